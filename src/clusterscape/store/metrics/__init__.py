"""Samples: the embedded store and VictoriaMetrics (or what speaks Prometheus' API) behind one contract.

``contract``: the interface of metric stores; all pass ``tests/contract/test_metric_store.py``.
``embedded``: Parquet segments, no server.
``kernels``: statistics of many series at once.
``prometheus_api``: HTTP client of such a server.
``sample_writers``: formats in which samples are sent.
``spool``: keeps samples on disk while a metrics server is unreachable.
``victoria``: VictoriaMetrics, Prometheus: addresses, tenants, access.
"""

from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.metrics.contract import MetricStore, MetricStoreInfo, SeriesStatistic
from clusterscape.store.metrics.embedded import EmbeddedMetricStore
from clusterscape.store.metrics.spool import SampleSpool, SpooledMetricStore
from clusterscape.store.metrics.victoria import VictoriaMetricStore, open_server_store
from clusterscape.supervision import BackgroundLoops

__all__ = [
    "EmbeddedMetricStore",
    "MetricStore",
    "MetricStoreInfo",
    "SeriesStatistic",
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
    """The store of the settings; ``cluster`` distinguishes clusters that share one server.

    ``spools``: samples that the server does not accept wait on disk; only for the process that collects.
    """
    if storage.metrics == "embedded":
        return EmbeddedMetricStore(storage.data_dir / "metrics", retention, min_free_bytes=storage.min_free_bytes)
    store = open_server_store(storage.metrics, storage.metrics_server, cluster=cluster)
    server = storage.metrics_server
    if not spools or not server.spool_bytes or server.write_protocol == "off":
        return store
    spool = SampleSpool(storage.data_dir / SPOOL_FOLDER, max_bytes=server.spool_bytes)
    return SpooledMetricStore(store, spool, server=store.address, loops=loops)
