"""What a listener is: something that is asked again and again what the runs of a workload use, and writes it to their spools."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from clusterscape.track.mig_instance import MigInstance
from clusterscape.track.spool import Spool
from clusterscape.track.tree import RunTree


class ListenerUnavailableError(Exception):
    """This machine does not have what the listener listens to; the message says what and why."""


class ListenedRun(NamedTuple):
    """A run as listeners see it. ``devices`` are GPU indices; empty: whichever its processes use."""

    id: str
    spool: Spool
    tree: RunTree
    devices: tuple[int, ...]
    instances: tuple[MigInstance, ...] = ()  # MIG instances that stand for its devices


class ListenerContext(NamedTuple):
    """What all listeners are handed."""

    host: str
    host_folder: Path
    argument: str | None


class Listener(Protocol):
    """One instance serves all runs of a workload. Whatever it raises is reported and harms nobody."""

    name: str
    period_s: float

    def open(self, runs: Sequence[ListenedRun]) -> None:
        """Get ready; raises ListenerUnavailableError where there is nothing to listen to."""
        ...

    def sample(self, runs: Sequence[ListenedRun], time_us: int) -> None:
        """Measure once, for all runs that go on."""
        ...

    def finish(self, run: ListenedRun, time_us: int) -> None:
        """The last word on a run whose first process has ended, but is still listed by the system."""
        ...

    def close(self) -> None:
        """Release what was opened."""
        ...
