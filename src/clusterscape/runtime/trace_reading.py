"""Where the files of a trace are read: in this process, or on a Dask cluster whose machines see the same files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusterscape.model.spans import Trace
    from clusterscape.settings.limits import UploadLimits


def read_anywhere(
    paths: Sequence[Path],
    scheduler: str | None,
    *,
    workers: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    limits: "UploadLimits | None" = None,
) -> "Trace":
    """The trace in the files, the same everywhere.

    ``scheduler``: the address of the cluster. ``limits``: of files that somebody else sent.
    """
    from clusterscape.collect.traces import read_traces

    if scheduler is None:
        return read_traces(paths, workers=workers, progress=progress, limits=limits)
    from clusterscape.runtime.dask_cluster import dask_client

    with dask_client(scheduler) as client:
        return read_traces(paths, pool=client.get_executor(pure=False), progress=progress, limits=limits)
