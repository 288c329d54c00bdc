"""The interface of listeners, which sample resource usage of a workload's runs and write it to their spools."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from clusterscape.track.devices import MigInstance
from clusterscape.track.processes import ProcessTree
from clusterscape.track.spool import Spool


class ListenerUnavailableError(Exception):
    """The listener's data source is not available on this machine; the message says why."""


class ListenedRun(NamedTuple):
    """A run as listeners see it. ``devices`` are GPU indices; empty: whichever its processes use."""

    id: str
    spool: Spool
    tree: ProcessTree
    devices: tuple[int, ...]
    instances: tuple[MigInstance, ...] = ()  # MIG instances that stand for its devices


class ListenerContext(NamedTuple):
    """Common arguments of all listeners."""

    host: str
    host_folder: Path
    argument: str | None


class Listener(Protocol):
    """One instance serves all runs of a workload. Its exceptions are reported and do not affect the runs."""

    name: str
    period_s: float

    def open(self, runs: Sequence[ListenedRun]) -> None:
        """Open the data source; raises ListenerUnavailableError if there is none."""
        ...

    def sample(self, runs: Sequence[ListenedRun], time_us: int) -> None:
        """Take one sample for all active runs."""
        ...

    def finish(self, run: ListenedRun, time_us: int) -> None:
        """Take the last sample of a run whose first process has ended but is not reaped yet."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...
