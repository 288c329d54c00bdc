"""A source that exceeds a limit is reported in /api/v1/sources, in /metrics and by ``clusterscape doctor``."""

from pathlib import Path

from clusters.opened import open_queries
from clusters.small import SmallCluster
from fastapi.testclient import TestClient
from servers.in_thread import served_in_thread

from clusterscape.cli.checks import check_everything
from clusterscape.ingest.pipeline import Ingest
from clusterscape.model import InventoryObserved, Node, NodeId
from clusterscape.serve.app import create_app
from clusterscape.settings import ServerSettings, Settings, StorageSettings
from clusterscape.settings.limits import SourceLimits


def limited_ingest(cluster: SmallCluster) -> Ingest:
    """A site whose Slurm names more nodes than are accepted."""
    limits = SourceLimits(nodes=5)
    ingest = Ingest(cluster.metrics, cluster.records, cluster.changes, clock=lambda: cluster.now, limits=limits)
    nodes = [Node(id=NodeId(f"new{number}")) for number in range(20)]
    ingest.accept(InventoryObserved(source="slurm", at=cluster.now, nodes=nodes, is_complete=False))
    return ingest


def test_a_limited_source_is_named_everywhere_when_the_server_is_asked(small_cluster: SmallCluster) -> None:
    ingest = limited_ingest(small_cluster)
    queries = open_queries(small_cluster.queries.context, ingest)
    with TestClient(create_app(queries, ingest=ingest)) as client:
        answer = client.get("/api/v1/sources").json()
        metrics = client.get("/metrics").text.splitlines()
    (group,) = [group for group in answer["groups"] if group["kind"] == "slurm"]
    assert (group["failing"], group["limited"]) == (0, 1)
    assert group["notes"][0]["source"] == "slurm limits"
    assert "limits.sources.nodes" in group["notes"][0]["hint"]
    (dropped,) = [row for row in answer["dropped"] if row["reason"] == "too_many_nodes"]
    assert dropped["count"] == 15
    assert 'clusterscape_limited_sources{kind="slurm"} 1.0' in metrics
    assert 'clusterscape_dropped_total{kind="slurm",reason="too_many_nodes"} 15.0' in metrics


def test_doctor_names_the_limit_when_a_server_runs(small_cluster: SmallCluster, tmp_path: Path) -> None:
    queries = open_queries(small_cluster.queries.context, limited_ingest(small_cluster))
    with served_in_thread(queries) as url:
        server = ServerSettings(host="127.0.0.1", port=int(url.rsplit(":", 1)[1]))
        checks = check_everything(Settings(server=server, storage=StorageSettings(data_dir=tmp_path)), None)
    (check,) = [check for check in checks if check.what == "slurm limits"]
    assert check.is_ok
    assert check.is_note
    assert "more nodes than are accepted" in check.message
