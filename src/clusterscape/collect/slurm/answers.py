"""One question to Slurm: what came back, how long it took, and the status that follows from it."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from clusterscape.collect.slurm.source import Document
from clusterscape.errors import SourceError
from clusterscape.model import SourceStatus, UnixMs

NAME = "slurm"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one question: a document or why there is none."""

    document: Document | None
    error: SourceError | None
    duration_s: float


async def ask(question: Awaitable[Document]) -> Answer:
    """Await an answer and time it; a SourceError becomes part of it."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        document = await question
    except SourceError as error:
        return Answer(None, error, loop.time() - began)
    return Answer(document, None, loop.time() - began)


def status_of(part: str, answer: Answer, at: UnixMs) -> SourceStatus:
    """How this part of Slurm is doing."""
    return SourceStatus(
        source=f"{NAME} {part}",
        kind=NAME,
        is_ok=answer.error is None,
        at=at,
        message=answer.error.message if answer.error else None,
        hint=answer.error.hint if answer.error else None,
        duration_s=answer.duration_s,
    )
