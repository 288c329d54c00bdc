"""Addresses, tenants and access of metrics servers: settings in, a store in VictoriaMetrics' or Prometheus' layout out."""

from collections.abc import Mapping

from clusterscape.settings import MetricsServerSettings, RemoteWriteSettings
from clusterscape.store.metrics.prometheus_api import PrometheusApi
from clusterscape.store.metrics.sample_writers import ImportWriter, NoWriter, RemoteWriter, SampleWriter
from clusterscape.store.metrics.victoria import VictoriaMetricStore

WRITE_PATH = "/api/v1/write"
"""Of remote write at Prometheus and VictoriaMetrics; Mimir has /api/v1/push, Thanos /api/v1/receive."""


def open_server_store(url: str, server: MetricsServerSettings, *, cluster: str | None) -> VictoriaMetricStore:
    """The store at ``url``, read and written as ``server`` says. Nothing is asked yet."""
    api = PrometheusApi(
        read_url(url, server),
        timeout_s=server.timeout_s,
        headers=access_headers(server),
        parameters=server.query_parameters,
    )
    return VictoriaMetricStore(api, cluster=cluster, writer=_writer(url, server, cluster))


def read_url(url: str, server: MetricsServerSettings) -> str:
    """Where queries go."""
    return f"{url.rstrip('/')}/select/{server.tenant}/prometheus" if server.layout == "cluster" else url


def write_url(url: str, server: MetricsServerSettings) -> str:
    """Where samples go: the base of ``/api/v1/import``, or the whole remote-write address."""
    base = (server.write_url or url).rstrip("/")
    if server.layout == "cluster":
        base = f"{base}/insert/{server.tenant}/prometheus"
    is_whole = server.writes == "remote_write" and server.write_url is not None and server.layout == "single"
    return base if server.writes != "remote_write" or is_whole else base + WRITE_PATH


def access_headers(server: MetricsServerSettings | RemoteWriteSettings) -> dict[str, str]:
    """What every request says of who asks."""
    found: dict[str, str] = {}
    if server.token is not None:
        found["Authorization"] = f"Bearer {server.token}"
    if server.org_id is not None:
        found["X-Scope-OrgID"] = server.org_id
    return found | server.headers


def open_remote_writer(settings: RemoteWriteSettings, labels: Mapping[str, str]) -> RemoteWriter | None:
    """What sends to ``remote_write.url``; None where there is none."""
    if settings.url is None:
        return None
    api = PrometheusApi(
        settings.url, timeout_s=settings.timeout_s, headers=access_headers(settings), setting="remote_write.url"
    )
    return RemoteWriter(api, labels={**settings.labels, **labels})


def _writer(url: str, server: MetricsServerSettings, cluster: str | None) -> SampleWriter:
    if server.writes == "off":
        return NoWriter()
    setting = "storage.metrics" if server.write_url is None else "storage.metrics_server.write_url"
    api = PrometheusApi(
        write_url(url, server), timeout_s=server.timeout_s, headers=access_headers(server), setting=setting
    )
    if server.writes == "import":
        return ImportWriter(api, cluster=cluster)
    return RemoteWriter(api, labels={} if cluster is None else {"cluster": cluster})
