"""Samples: the embedded store and VictoriaMetrics (or what speaks Prometheus' API) behind one contract."""

from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.metrics.contract import MetricStore, MetricStoreInfo, Statistic
from clusterscape.store.metrics.embedded import EmbeddedMetricStore
from clusterscape.store.metrics.servers import open_server_store
from clusterscape.store.metrics.spool import SampleSpool
from clusterscape.store.metrics.spooled import SpooledMetricStore
from clusterscape.store.metrics.victoria import VictoriaMetricStore
from clusterscape.supervision import BackgroundLoops

__all__ = [
    "EmbeddedMetricStore",
    "MetricStore",
    "MetricStoreInfo",
    "Statistic",
    "VictoriaMetricStore",
    "open_metric_store",
]

SPOOL_FOLDER = "spool"
"""Below ``storage.data_dir``: samples that wait for the server."""


def open_metric_store(
    storage: StorageSettings,
    retention: RetentionSettings,
    *,
    cluster: str | None = None,
    spools: bool = False,
    loops: BackgroundLoops | None = None,
) -> MetricStore:
    """The store that the settings name; ``cluster`` tells clusters apart that share one server.

    ``spools``: what a server does not take now waits on disk; for the one process that collects here.
    """
    if storage.metrics == "embedded":
        return EmbeddedMetricStore(storage.data_dir / "metrics", retention, min_free_bytes=storage.min_free_bytes)
    store = open_server_store(storage.metrics, storage.metrics_server, cluster=cluster)
    server = storage.metrics_server
    if not spools or not server.spool_bytes or server.writes == "off":
        return store
    spool = SampleSpool(storage.data_dir / SPOOL_FOLDER, max_bytes=server.spool_bytes)
    return SpooledMetricStore(store, spool, server=store.address, loops=loops)
