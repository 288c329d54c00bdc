"""The dependencies of every service: what its viewers may read, and the stores that it writes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from clusterscape.model import UnixMs
from clusterscape.query.context import QueryContext
from clusterscape.settings.limits import ItemLimits
from clusterscape.store.artifacts.contract import ArtifactStore
from clusterscape.store.artifacts.quota import UploadQuota
from clusterscape.store.records.contract import RecordStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    """``reads``: the viewers' scoped context; ``records`` and ``artifacts`` are unscoped. No artifacts: no files are stored."""

    reads: QueryContext
    records: RecordStore
    artifacts: ArtifactStore | None = None
    quota: UploadQuota | None = None
    """The disk quota of uploads; None: unlimited."""
    items: ItemLimits = field(default_factory=ItemLimits)
    """Limits on views, insights, comments and mutes."""
    check_free: Callable[[str, str], None] = lambda *_: None
    """Raises ForbiddenError if the viewers may not write the document of this kind and key."""

    def write_document(self, kind: str, key: str, body: Mapping[str, object], *, at_ms: UnixMs) -> None:
        """Insert or replace a document that the viewers may write."""
        self.check_free(kind, key)
        self.records.write_document(kind, key, body, at_ms=at_ms)

    def remove_document(self, kind: str, key: str) -> bool:
        """Remove a document that the viewers may read and write; returns whether it existed."""
        if self.reads.records.document(kind, key) is None:
            return False
        self.check_free(kind, key)
        return self.records.remove_document(kind, key)
