"""Units as a file, and waste by unit, over HTTP and in the terminal."""

import io
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from clusters.small import SmallCluster
from fastapi.testclient import TestClient
from servers.in_thread import served_in_thread
from typer.testing import CliRunner

from clusterscape.cli.entry import app as command
from clusterscape.serve.app import create_app


@pytest.fixture
def client(small_cluster: SmallCluster) -> Iterator[TestClient]:
    with TestClient(create_app(small_cluster.queries)) as client:
        yield client


def read_parquet(body: bytes) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(body))


def test_every_unit_is_in_the_file_when_none_is_chosen(client: TestClient) -> None:
    table = read_parquet(client.get("/api/v1/units.parquet").content)
    snapshot = pl.read_ipc_stream(io.BytesIO(client.get("/api/v1/snapshot").content))
    assert table["unit"].to_list() == snapshot["unit"].to_list()
    assert table.filter(pl.col("unit") == "n1:0")["gpu_util_ratio"].item() == pytest.approx(0.9)
    assert table.filter(pl.col("unit") == "n2:0")["gpu_util_ratio"].item() is None


def test_only_chosen_units_are_in_the_file_when_some_are_named(client: TestClient) -> None:
    answer = client.post("/api/v1/units.parquet", json={"units": ["n3:1", "n1:0", "nowhere:0"]})
    assert read_parquet(answer.content)["unit"].to_list() == ["n1:0", "n3:1"]
    assert "clusterscape-units.parquet" in answer.headers["content-disposition"]


def test_file_is_empty_but_has_its_columns_when_nothing_is_chosen(client: TestClient) -> None:
    table = read_parquet(client.post("/api/v1/units.parquet", json={"units": []}).content)
    assert len(table) == 0
    assert {"unit", "workload", "user"} <= set(table.columns)


def test_waste_of_units_is_a_table_when_asked(client: TestClient) -> None:
    table = pl.read_ipc_stream(io.BytesIO(client.get("/api/v1/waste/units?hours=24").content))
    assert table.columns == ["unit", "workload", "held_gpu_hours", "measured_gpu_hours", "wasted_gpu_hours"]
    total = client.get("/api/v1/waste?hours=24").json()
    assert table["held_gpu_hours"].sum() == pytest.approx(total["held_gpu_hours"])


def test_list_writes_the_same_units_when_a_file_is_asked_for(small_cluster: SmallCluster, tmp_path: Path) -> None:
    run = CliRunner().invoke
    with served_in_thread(small_cluster.queries) as url:
        whole = run(command, ["list", "units", "--url", url, "--format", "csv"])
        target = tmp_path / "units.parquet"
        done = run(command, ["list", "units", "--url", url, "--format", "parquet", "-o", str(target), "--user", "ada"])
        shown = run(command, ["list", "units", "--url", url, "--limit", "2"])
        refused = run(command, ["list", "nodes", "--url", url, "--format", "csv"])
    assert done.exit_code == 0, done.output
    mine = pl.read_parquet(target)
    assert set(mine["user"]) == {"ada"}
    rows = pl.read_csv(io.StringIO(whole.stdout))
    assert rows.filter(pl.col("user") == "ada")["unit"].to_list() == mine["unit"].to_list()
    assert f"2 of {len(rows)} units" in shown.stdout
    assert refused.exit_code != 0
