"""The interface of artifact stores, and valid keys. An artifact is a file that is written atomically and never changed."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import UnixMs


@dataclass(frozen=True, slots=True)
class ArtifactInfo:
    """One artifact; ``size`` in bytes."""

    key: str
    size: int
    modified_at: UnixMs


class ArtifactReader(Protocol):
    """Reads artifacts. Keys are names separated by ``/`` (``traces/pipe-4f2a91/spans.parquet``):
    letters, digits, ``._-+=@`` and spaces; no
    part starts with a dot. Other keys raise ``QueryError``. Thread-safe.
    """

    def open(self, key: str) -> BinaryIO:
        """The content, to be closed by the caller. Raises ``NotFoundError``."""
        ...

    def path(self, key: str) -> Path:
        """A local file with the content, for readers that need a file; must not be modified. Raises ``NotFoundError``."""
        ...

    def list(self, prefix: str = "") -> list[ArtifactInfo]:
        """All artifacts whose key starts with ``prefix``, by key."""
        ...

    def folders(self, prefix: str) -> Sequence[str]:
        """The folders in the folder ``prefix`` (``traces/``), by name; cheap however many files they contain."""
        ...


class ArtifactStore(ArtifactReader, Protocol):
    """Also writes and removes artifacts."""

    def put(self, key: str, chunks: Iterable[bytes]) -> int:
        """Store the concatenated chunks and return their size in bytes. Replaces an existing artifact of that key.

        Until the last chunk is durable, readers see the previous artifact or none. Raises ``StoreFullError``.
        """
        ...

    def delete(self, key: str) -> bool:
        """Remove an artifact; False if there was none."""
        ...

    def remove_unfinished(self) -> None:
        """Remove partial files of killed writers."""
        ...


MAX_KEY_LENGTH = 500
_PART = re.compile(r"[\w+=@-][\w.+=@ -]{0,199}")


def check_key(key: str) -> str:
    """Return ``key``; raises QueryError if it could leave its folder."""
    if len(key) > MAX_KEY_LENGTH or not all(_PART.fullmatch(part) for part in key.split("/")):
        raise QueryError(
            f"{key!r} is not a valid name of a stored file",
            hint="Use letters, digits and ._-+=@ with / between folders.",
        )
    return key


def missing_artifact(key: str) -> NotFoundError:
    """The error for a missing artifact."""
    return NotFoundError(f"stored file {key} does not exist")
