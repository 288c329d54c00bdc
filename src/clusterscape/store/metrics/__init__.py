"""Samples: the embedded store and VictoriaMetrics behind one contract."""

from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.metrics.contract import MetricStore, MetricStoreInfo, Statistic
from clusterscape.store.metrics.embedded import EmbeddedMetricStore

__all__ = ["EmbeddedMetricStore", "MetricStore", "MetricStoreInfo", "Statistic", "open_metric_store"]


def open_metric_store(storage: StorageSettings, retention: RetentionSettings) -> MetricStore:
    """The store that the settings name."""
    return EmbeddedMetricStore(storage.data_dir / "metrics", retention, min_free_bytes=storage.min_free_bytes)
