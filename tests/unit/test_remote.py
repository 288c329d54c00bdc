"""Queries to a server from Python and with ``clusterscape ask``; stored simulations with ``sched results``."""

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import polars as pl
import pytest
from clusters.opened import open_queries
from clusters.small import SmallCluster, small_cluster
from servers.in_thread import served_in_thread
from typer.testing import CliRunner

import clusterscape
from clusterscape import remote
from clusterscape.cli.entry import app
from clusterscape.collect.job_traces import read_trace
from clusterscape.errors import ClusterScapeError, QueryError, SourceError
from clusterscape.store.artifacts import FolderArtifactStore

__all__ = ["small_cluster"]

SWF = "; MaxProcs: 8\n" + "".join(
    f"{job} {job * 40} 0 {100 + 37 * (job % 11)} {1 + job % 8} -1 -1 -1 900 -1 1 {job % 5} -1 -1 -1 -1 -1 -1\n"
    for job in range(1, 60)
)


@pytest.fixture
def url(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[str]:
    context = replace(
        small_cluster.queries.context,
        artifacts=FolderArtifactStore(tmp_path / "artifacts"),
        read_job_trace=lambda path, format, zone: read_trace(path, format, timezone=zone),
    )
    with served_in_thread(open_queries(context)) as url:
        yield url


def command(url: str, *arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--url", url])
    if isinstance(done.exception, ClusterScapeError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_lists_are_whole_frames_with_typed_columns(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PAGE_ROWS", 3)
    server = clusterscape.connect(url)
    workloads = server.workloads()
    assert len(workloads) == server.get("/workloads", limit=1)["total"] > 3
    assert workloads["workload"].n_unique() == len(workloads)
    assert workloads.schema["submitted_at"] == pl.Datetime("ms", "UTC")
    assert workloads.schema["time_limit_s"] == pl.Int64
    assert workloads.schema["nodes"] == pl.List(pl.String)
    one = workloads.drop_nulls("started_at").row(0, named=True)
    detail = server.get(f"/workloads/{one['workload']}")["workload"]
    assert round(one["started_at"].timestamp() * 1000) == detail["started_at"]
    running = server.workloads(state="running")
    assert set(running["state"]) == {"running"}
    assert len(server.nodes()) == len(server.get("/nodes"))
    assert {"node", "gpu_util_ratio"} <= set(server.units().columns)


def test_lists_without_rows_keep_their_columns(url: str) -> None:
    server = clusterscape.connect(url)
    nobody = server.workloads(user="nobody-at-all")
    assert nobody.is_empty()
    assert nobody.schema == server.workloads().schema
    for frame in (server.runs(), server.traces(), server.violations(hours=1)):
        assert frame.is_empty()
    assert "run" in server.runs().columns
    assert server.runs().schema["times.running_s"] == pl.Float64
    assert server.violations().schema["since"] == pl.Datetime("ms", "UTC")


def test_samples_have_times_and_the_queue_is_in_order(url: str) -> None:
    server = clusterscape.connect(url)
    units = server.units()["unit"].head(2).to_list()
    samples = server.samples("gpu_util_ratio", units=units)
    assert samples.schema["time"] == pl.Datetime("ms", "UTC")
    assert set(samples["unit"]) <= set(units)
    first = samples["time"].min()
    later = server.samples("gpu_util_ratio", units=units, start=first)
    assert len(later) == len(samples) > 0
    queue = server.queue()
    assert queue["position"].drop_nulls().is_sorted()


def test_answers_are_dictionaries_and_frames_when_asked_from_python(url: str) -> None:
    server = clusterscape.connect(url)
    assert server.get("/cluster")["units"]["total"] == server.get("/api/v1/cluster")["units"]["total"]
    listed = server.get("/workloads", state=["running", "waiting"], limit=5, at=None)
    assert len(listed["workloads"]) <= 5
    units = server.get("/units.parquet")
    snapshot = server.get("/snapshot")
    assert isinstance(units, pl.DataFrame)
    assert isinstance(snapshot, pl.DataFrame)
    assert units["unit"].to_list() == snapshot["unit"].to_list()
    assert server.send("PUT", "/views/mine", {"version": 1, "title": "mine"})["name"] == "mine"
    assert server.send("DELETE", "/views/mine") is None


def test_every_item_of_a_list_is_asked_for_when_the_parameter_takes_names(url: str) -> None:
    server = clusterscape.connect(url)
    table = server.get("/tick", metrics=["gpu_util_ratio", "power_watts"])
    assert {"gpu_util_ratio", "power_watts"} <= set(table.columns)


def test_joined_parameters_are_those_of_the_schema_that_take_commas(url: str) -> None:
    """A list of names is one parameter there; others repeat it."""
    paths = clusterscape.connect(url).get("/openapi.json")["paths"]
    parameters = [item for path in paths.values() for way in path.values() for item in way.get("parameters", [])]
    joined = {
        item["name"]
        for item in parameters
        if re.search(r"separated by commas|comma-separated", item.get("description", ""))
        and item["schema"]["type"] == "string"
    }
    assert joined == set(remote._JOINED)


def test_pages_of_lists_are_reported_when_no_limit_was_given(url: str, caplog: pytest.LogCaptureFixture) -> None:
    server = clusterscape.connect(url)
    answer = {"total": 133, "limit": 100, "offset": 0, "workloads": []}
    with mock.patch.object(server, "send", return_value=answer):
        server.get("/workloads", limit=100)
        assert caplog.messages == []
        server.get("/workloads")
    assert caplog.messages == ["/workloads: 100 of 133; limit= and offset= ask for others"]


def test_server_is_named_in_one_way_when_any_command_is_used(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cli = CliRunner()
    monkeypatch.setenv("CLUSTERSCAPE_URL", url)
    assert cli.invoke(app, ["ask", "/cluster"]).exit_code == 0
    monkeypatch.delenv("CLUSTERSCAPE_URL")
    for words in (["runs", "upload", "nothing"], ["sched", "wait", "--gpus", "1"]):
        new, old = cli.invoke(app, [*words, "--url", url]), cli.invoke(app, [*words, "--server", url])
        assert (old.exit_code, repr(old.exception)) == (new.exit_code, repr(new.exception))
        assert "--server is now --url" in old.stderr
        assert "now --url" not in new.stderr


def test_error_names_the_problem_when_no_answer_is_possible(url: str) -> None:
    server = clusterscape.connect(url)
    with pytest.raises(SourceError, match=r"^no workload .*answers 404"):
        server.get("/workloads/slurm:nobody")
    with pytest.raises(QueryError, match="is not a path"):
        server.get("workloads")
    with pytest.raises(SourceError, match="is not an address"):
        clusterscape.connect("localhost")
    with pytest.raises(SourceError, match="no ClusterScape answers"):
        clusterscape.connect("http://127.0.0.1:9").get("/cluster")


def test_any_query_is_answered_when_the_command_sends_it(url: str, tmp_path: Path) -> None:
    assert json.loads(command(url, "ask", "/cluster"))["units"]["total"] > 0
    rows = json.loads(command(url, "ask", "/snapshot"))
    file = tmp_path / "units.csv"
    command(url, "ask", "/snapshot", "--output", str(file))
    assert pl.read_csv(file)["unit"].to_list() == [row["unit"] for row in rows]
    body = tmp_path / "view.json"
    body.write_text('{"version": 1, "title": "mine"}')
    command(url, "ask", "/views/mine", "--method", "put", "--body", f"@{body}")
    assert [view["name"] for view in json.loads(command(url, "ask", "/views"))["views"]] == ["mine"]
    with pytest.raises(QueryError, match="not JSON"):
        command(url, "ask", "/views/mine", "--method", "PUT", "--body", "{")


def test_kept_results_are_listed_shown_and_forgotten_when_asked_by_the_command(url: str) -> None:
    assert "No stored results" in command(url, "sched", "results")
    sent = urllib.request.Request(f"{url}/api/v1/job-traces?name=small.swf", SWF.encode(), method="POST")
    with urllib.request.urlopen(sent, timeout=30) as answer:
        trace = json.load(answer)["trace"]
    server = clusterscape.connect(url)
    simulation = server.send("POST", "/simulations", {"trace": trace, "jitter": 0})
    name = simulation["simulation"]
    while simulation["state"] == "running":
        time.sleep(0.05)
        simulation = server.get(f"/simulations/{name}")
    assert simulation["state"] == "done", simulation
    assert name in command(url, "sched", "results")
    assert "fcfs + easy" in command(url, "sched", "results", name)
    assert json.loads(command(url, "sched", "results", name, "--remove", "--json")) == {"removed": name}
    assert json.loads(command(url, "sched", "results", "--json")) == []
    with pytest.raises(QueryError, match="--remove needs a result"):
        command(url, "sched", "results", "--remove")
