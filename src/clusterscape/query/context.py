"""The dependencies of every query: read access to the stores, data versions, a cache and a clock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from clusterscape.executors import Compute, compute_here
from clusterscape.model import UnixMs
from clusterscape.model.jobs import JobTrace
from clusterscape.query.cache import VersionedCache, new_cache
from clusterscape.settings.accounting import AccountingSettings
from clusterscape.settings.limits import UploadLimits, WorkLimits
from clusterscape.store.artifacts.contract import ArtifactReader
from clusterscape.store.changes import Changes
from clusterscape.store.metrics.contract import MetricReader
from clusterscape.store.records.contract import RecordReader
from clusterscape.supervision import BackgroundLoops
from clusterscape.warm_up import WarmUp

TraceReader = Callable[[Path, str | None, str], JobTrace]
"""Reads a job trace: path, format (None: detect), time zone of times without an offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryContext:
    """``lookback_ms``: how old a sample may be and still count as the value now.

    Without ``artifacts`` and ``read_job_trace`` no files can be read. ``is_private``: viewers see only the names in their
    scope (``query/redaction``). ``new_cache`` creates a cache by name and size.
    """

    metrics: MetricReader
    records: RecordReader
    changes: Changes
    clock: Callable[[], UnixMs]
    cluster: str
    is_demo: bool = False
    lookback_ms: int = 90_000
    artifacts: ArtifactReader | None = None
    read_job_trace: TraceReader | None = None
    is_private: bool = False
    collects: Callable[[], bool] = lambda: True
    """Whether this process collects."""
    awaited: Callable[[], list[str]] = list
    """Kinds of configured sources that have neither responded nor failed since the start."""
    loops: BackgroundLoops = field(default_factory=BackgroundLoops)
    """Background loops of this process and their health."""
    work: WorkLimits = field(default_factory=WorkLimits)
    """Limits on background simulations."""
    compute: Compute = compute_here
    """Where long simulations run."""
    warm_up: WarmUp = field(default_factory=WarmUp)
    """Which parts of this process are compiled already."""
    uploads: UploadLimits = field(default_factory=UploadLimits)
    """Limits on uploads."""
    accounting: AccountingSettings = field(default_factory=AccountingSettings)
    """Time zone, prices and budgets."""
    cache: VersionedCache = field(default_factory=VersionedCache)
    new_cache: Callable[[str, int], VersionedCache] = new_cache
