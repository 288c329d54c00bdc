"""The collector protocol: a collector is polled at an interval and yields observations."""

from collections.abc import AsyncIterator
from typing import Protocol

from clusterscape.model import Observation, SourceStatus, UnixMs


class Collector(Protocol):
    """Reads one source. ``poll`` never raises because of the source: a failure is a SourceStatus with a hint."""

    @property
    def name(self) -> str:
        """Short and stable: ``dcgm``, ``slurm``, ``prometheus``, ``nvml``."""
        ...

    @property
    def interval_s(self) -> float:
        """Seconds between polls."""
        ...

    def poll(self, now_ms: UnixMs) -> AsyncIterator[Observation]:
        """Read the source once. May yield several observations, the quick ones first."""
        ...

    async def check(self) -> list[SourceStatus]:
        """Try every connection, for ``clusterscape doctor``: what is wrong and how to fix it."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
