"""What every query is handed: the stores, the versions, a cache and a clock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from clusterscape.model import UnixMs
from clusterscape.model.jobs import JobTrace
from clusterscape.query.cache import VersionedCache, new_cache
from clusterscape.store.artifacts.contract import ArtifactStore
from clusterscape.store.changes import Changes
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore

TraceReader = Callable[[Path, str | None, str], JobTrace]
"""Reads a file of jobs: path, format (None: find out), zone of times without an offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryContext:
    """``lookback_ms``: how old a sample may be and still count as the value now.

    Without ``artifacts`` and ``read_job_trace`` no files can be kept and read. ``is_private``: who asks sees others' names only
    where they may (``query/visibility``). ``new_cache`` makes a cache of a name and size.
    """

    metrics: MetricStore
    records: RecordStore
    changes: Changes
    clock: Callable[[], UnixMs]
    cluster: str
    is_demo: bool = False
    lookback_ms: int = 90_000
    artifacts: ArtifactStore | None = None
    read_job_trace: TraceReader | None = None
    is_private: bool = False
    collects: Callable[[], bool] = lambda: True
    """Whether this process is the one, or one of those, that collect."""
    cache: VersionedCache = field(default_factory=VersionedCache)
    new_cache: Callable[[str, int], VersionedCache] = new_cache
