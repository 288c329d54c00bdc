"""Where Slurm's JSON comes from: the one small interface behind which the commands and slurmrestd look alike."""

from collections.abc import Mapping
from typing import Protocol

from clusterscape.model import PreemptionRules

Document = dict[str, object]
"""An answer that holds a list of ``jobs``, ``nodes``, ``partitions`` or ``reservations``."""


class SlurmSource(Protocol):
    """Every method raises SourceError, with a hint, where Slurm does not answer or answers nonsense."""

    async def fetch_jobs(self) -> Document:
        """The queue, recently ended jobs included."""
        ...

    async def fetch_nodes(self) -> Document:
        """All nodes."""
        ...

    async def fetch_partitions(self) -> Document:
        """All partitions."""
        ...

    async def fetch_history(self, start_s: int, end_s: int) -> Document:
        """Accounting of jobs that were active at some time in [start, end), Unix seconds."""
        ...

    async def fetch_priorities(self) -> Mapping[str, Mapping[str, int]] | None:
        """Parts of the priorities of waiting jobs, by job number; None where this source or this Slurm has none."""
        ...

    async def fetch_reservations(self) -> Document:
        """All reservations that have not ended."""
        ...

    async def fetch_preemption(self) -> PreemptionRules | None:
        """Who may preempt whom; None where this source cannot say."""
        ...

    def describe(self) -> str:
        """What is asked, for people: ``Slurm's commands``, ``slurmrestd … API v0.0.44``."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
