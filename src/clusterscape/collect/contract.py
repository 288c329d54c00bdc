"""What a collector is: something that is asked again and again, and yields what it saw."""

from collections.abc import AsyncIterator
from typing import Protocol

from clusterscape.model import Observation, SourceStatus, UnixMs


class Collector(Protocol):
    """One source. ``poll`` never raises for what the source does: a failure is a SourceStatus with a hint."""

    @property
    def name(self) -> str:
        """Short and stable: ``dcgm``, ``slurm``, ``prometheus``, ``nvml``."""
        ...

    @property
    def interval_s(self) -> float:
        """Seconds between polls."""
        ...

    def poll(self, now_ms: UnixMs) -> AsyncIterator[Observation]:
        """One look at the source. May yield several observations, the quick ones first."""
        ...

    async def check(self) -> list[SourceStatus]:
        """For ``clusterscape doctor``: try every connection and say what is wrong and how to mend it."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
