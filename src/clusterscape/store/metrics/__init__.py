"""Samples: the embedded store and VictoriaMetrics behind one contract."""

from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.metrics.contract import MetricStore, MetricStoreInfo, Statistic
from clusterscape.store.metrics.embedded import EmbeddedMetricStore
from clusterscape.store.metrics.victoria import VictoriaMetricStore

__all__ = [
    "EmbeddedMetricStore",
    "MetricStore",
    "MetricStoreInfo",
    "Statistic",
    "VictoriaMetricStore",
    "open_metric_store",
]


def open_metric_store(
    storage: StorageSettings, retention: RetentionSettings, *, cluster: str | None = None
) -> MetricStore:
    """The store that the settings name; ``cluster`` tells clusters apart that share one VictoriaMetrics."""
    if storage.metrics == "embedded":
        return EmbeddedMetricStore(storage.data_dir / "metrics", retention, min_free_bytes=storage.min_free_bytes)
    return VictoriaMetricStore(storage.metrics, cluster=cluster)
