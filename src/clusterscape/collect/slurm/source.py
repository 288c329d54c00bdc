"""The interface to Slurm's JSON, common to commands and slurmrestd; and timed requests to it with their status."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Protocol

from clusterscape.errors import SourceError
from clusterscape.model import PreemptionRules, SourceStatus, UnixMs

Document = dict[str, object]
"""A response with a list of ``jobs``, ``nodes``, ``partitions`` or ``reservations``."""


class SlurmSource(Protocol):
    """Every method raises SourceError, with a hint, if Slurm does not respond or the response is invalid."""

    async def fetch_jobs(self) -> Document:
        """The queue, including recently ended jobs."""
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
        """Priority factors of waiting jobs, by job number; None if this source or this Slurm has none."""
        ...

    async def fetch_reservations(self) -> Document:
        """All reservations that have not ended."""
        ...

    async def fetch_preemption(self) -> PreemptionRules | None:
        """Which partitions and QOS preempt which; None if this source does not have it."""
        ...

    def describe(self) -> str:
        """A name for messages: ``Slurm's commands``, ``slurmrestd … API v0.0.44``."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


NAME = "slurm"


@dataclass(frozen=True, slots=True)
class SlurmResponse:
    """The result of one request: a document, or the error."""

    document: Document | None
    error: SourceError | None
    duration_s: float


async def fetch_timed(request: Awaitable[Document]) -> SlurmResponse:
    """Await a response and time it; a SourceError becomes part of it."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        document = await request
    except SourceError as error:
        return SlurmResponse(None, error, loop.time() - began)
    return SlurmResponse(document, None, loop.time() - began)


def status_of(part: str, response: SlurmResponse, at: UnixMs) -> SourceStatus:
    """The status of this part of Slurm."""
    return SourceStatus(
        source=f"{NAME} {part}",
        kind=NAME,
        is_ok=response.error is None,
        at=at,
        message=response.error.message if response.error else None,
        hint=response.error.hint if response.error else None,
        duration_s=response.duration_s,
    )
