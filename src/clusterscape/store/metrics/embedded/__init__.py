"""The embedded metric store: Parquet segments with Polars, no server to install."""

from clusterscape.store.metrics.embedded.compaction import CompactionPolicy
from clusterscape.store.metrics.embedded.store import EmbeddedMetricStore

__all__ = ["CompactionPolicy", "EmbeddedMetricStore"]
