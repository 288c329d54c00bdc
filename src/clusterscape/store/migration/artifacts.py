"""Moves artifacts from one store to another, file by file, and reads each again at its new place."""

import hashlib
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass

from clusterscape.errors import NotFoundError, StoreError
from clusterscape.store.artifacts.contract import ArtifactInfo, ArtifactStore
from clusterscape.store.migration.journal import Journal

PIECE_BYTES = 1 << 20
Tell = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class MovedArtifact:
    """One file."""

    key: str
    size: int
    sha256: str


def move_artifacts(
    source: ArtifactStore, target: ArtifactStore, artifacts: list[ArtifactInfo], journal: Journal, tell: Tell
) -> list[MovedArtifact]:
    """Copy those that are not there yet. Raises StoreError where one is not there as it was."""
    total, done, moved = sum(each.size for each in artifacts), 0, []
    for each in artifacts:
        step = f"artifact {each.key} {each.size} {each.modified_at}"
        known = journal.find(step)
        if known is None:
            known = {"sha256": _move(source, target, each)}
            journal.finish(step, known)
        moved.append(MovedArtifact(each.key, each.size, str(known["sha256"])))
        done += each.size
        tell(done, total, f"artifact {each.key}")
    return moved


def _move(source: ArtifactStore, target: ArtifactStore, each: ArtifactInfo) -> str:
    wanted = _digest(source, each.key)
    try:
        if _digest(target, each.key) == wanted:
            return wanted
    except NotFoundError:
        pass
    with closing(_pieces(source, each.key)) as pieces:
        target.put(each.key, pieces)
    if _digest(target, each.key) != wanted:
        raise StoreError(
            f"{each.key} is not at its new place as it was", hint="Move again; see the log of the new store."
        )
    return wanted


def _digest(store: ArtifactStore, key: str) -> str:
    digest = hashlib.sha256()
    for piece in _pieces(store, key):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(store: ArtifactStore, key: str) -> Generator[bytes, None, None]:
    with store.open(key) as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
