"""What every query is handed: the stores, the versions, a cache and a clock."""

from collections.abc import Callable
from dataclasses import dataclass, field

from clusterscape.model import UnixMs
from clusterscape.query.cache import VersionedCache
from clusterscape.store.changes import Changes
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryContext:
    """``lookback_ms``: how old a sample may be and still count as the value now."""

    metrics: MetricStore
    records: RecordStore
    changes: Changes
    clock: Callable[[], UnixMs]
    cluster: str
    is_demo: bool = False
    lookback_ms: int = 90_000
    cache: VersionedCache = field(default_factory=VersionedCache)
