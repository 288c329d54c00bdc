"""What a store of artifacts promises. An artifact is a file written once, whole or not at all, and never changed in part."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from clusterscape.model import UnixMs


@dataclass(frozen=True, slots=True)
class ArtifactInfo:
    """One artifact; ``size`` in bytes."""

    key: str
    size: int
    modified_at: UnixMs


class ArtifactStore(Protocol):
    """Keys are names with ``/`` between them (``traces/pipe-4f2a91/spans.parquet``): letters, digits, ``._-+=@`` and spaces; no
    part begins with a dot. Another key raises ``QueryError``. Safe to use from several threads.
    """

    def put(self, key: str, chunks: Iterable[bytes]) -> int:
        """Store the chunks one after another and return how many bytes they were. An older artifact of that key is replaced.

        Until the last chunk is durable, readers see the older one or none. Raises ``StoreFullError`` where there is no space.
        """
        ...

    def open(self, key: str) -> BinaryIO:
        """The content, to be closed by the caller. Raises ``NotFoundError``."""
        ...

    def path(self, key: str) -> Path:
        """A local file with the content, for readers that need one; it must not be written. Raises ``NotFoundError``."""
        ...

    def list(self, prefix: str = "") -> list[ArtifactInfo]:
        """All artifacts whose key begins with ``prefix``, by key."""
        ...

    def delete(self, key: str) -> bool:
        """Remove an artifact; False where there was none."""
        ...

    def remove_unfinished(self) -> None:
        """Remove what writers left that were killed."""
        ...
