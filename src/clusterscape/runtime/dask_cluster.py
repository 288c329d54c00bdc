"""Connects to an existing Dask cluster, and reads the files of a trace there or in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusterscape.errors import ConfigError, QueryError

if TYPE_CHECKING:
    from clusterscape.model.spans import Trace
    from clusterscape.settings.limits import UploadLimits


@contextmanager
def dask_client(scheduler: str) -> Iterator[Any]:
    """A client of the scheduler; its ``get_executor`` returns a standard executor."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ConfigError(
            "a Dask cluster requires the package distributed", hint="pip install 'clusterscape[dask]'"
        ) from error
    try:
        connect: Any = Client  # the package has no types
        client = connect(scheduler, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise QueryError(f"no Dask scheduler answers at {scheduler}", hint=str(error)) from error
    try:
        yield client
    finally:
        client.close()


def read_trace_files(
    paths: Sequence[Path],
    scheduler: str | None,
    *,
    workers: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    limits: UploadLimits | None = None,
) -> Trace:
    """Read the trace in the files, with the same result on a cluster and in this process.

    ``scheduler``: the address of the cluster; None: this process. ``limits``: limits of files that users uploaded.
    """
    from clusterscape.collect.traces import read_traces

    if scheduler is None:
        return read_traces(paths, workers=workers, progress=progress, limits=limits)

    with dask_client(scheduler) as client:
        return read_traces(paths, pool=client.get_executor(pure=False), progress=progress, limits=limits)
