"""What every query is handed: the stores, the versions, a cache and a clock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from clusterscape.model import UnixMs
from clusterscape.model.jobs import JobTrace
from clusterscape.query.cache import VersionedCache, new_cache
from clusterscape.settings.limits import ItemLimits, UploadLimits, WorkLimits
from clusterscape.store.artifacts.contract import ArtifactStore
from clusterscape.store.artifacts.quota import UploadQuota
from clusterscape.store.changes import Changes
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore
from clusterscape.supervision import BackgroundLoops
from clusterscape.warm_up import WarmUp

TraceReader = Callable[[Path, str | None, str], JobTrace]
"""Reads a file of jobs: path, format (None: find out), zone of times without an offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryContext:
    """``lookback_ms``: how old a sample may be and still count as the value now.

    Without ``artifacts`` and ``read_job_trace`` no files can be kept and read. ``is_private``: who asks sees others' names only
    where they may (``query/redaction``). ``new_cache`` makes a cache of a name and size.
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
    awaited: Callable[[], list[str]] = list
    """Kinds of sources that are configured and have neither answered nor failed yet."""
    loops: BackgroundLoops = field(default_factory=BackgroundLoops)
    """Background work of this process, and whether it fails."""
    work: WorkLimits = field(default_factory=WorkLimits)
    """Bounds on simulations that are begun and run in the background."""
    warm_up: WarmUp = field(default_factory=WarmUp)
    """What of this process is compiled yet."""
    uploads: UploadLimits = field(default_factory=UploadLimits)
    """Bounds on files that users upload."""
    items: ItemLimits = field(default_factory=ItemLimits)
    """How many views, insights, comments and mutes are kept."""
    quota: UploadQuota | None = None
    """How much of the disk they may take; None: whatever there is."""
    cache: VersionedCache = field(default_factory=VersionedCache)
    new_cache: Callable[[str, int], VersionedCache] = new_cache
