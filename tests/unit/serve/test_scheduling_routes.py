"""Routes of scheduling: the live queue, job traces, simulations."""

import gzip
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters.opened import open_queries, open_services
from clusters.queued import QueuedCluster, queued_cluster
from clusters.small import SmallCluster
from fastapi.testclient import TestClient

from clusterscape.collect.job_traces import read_trace
from clusterscape.executors import Report, Result, Task
from clusterscape.query import QueryContext
from clusterscape.serve.app import create_app
from clusterscape.services.simulation_results import place_lanes
from clusterscape.services.simulations import KEPT, KeptSimulations
from clusterscape.store.artifacts import FolderArtifactStore

__all__ = ["queued_cluster"]


def test_queue_story_and_what_if_answer_when_something_waits(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", 8)
    client = TestClient(create_app(queued_cluster.queries))
    assert [row["workload"] for row in client.get("/api/v1/scheduling/queue").json()["workloads"]] == ["slurm:10"]
    story = client.get("/api/v1/scheduling/queue/slurm%3A10").json()
    assert story["row"]["position"] == 1
    answer = client.post("/api/v1/scheduling/whatif", json={"policy": "sjf", "futures": 2}).json()
    assert answer["changes"] == ["policy sjf"]


def test_what_if_is_polled_over_http_when_it_takes_a_while(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", 8)
    client = TestClient(create_app(queued_cluster.queries, services=queued_cluster.services))
    begun = client.post("/api/v1/scheduling/whatif/runs", json={"policy": "sjf", "futures": 2}).json()
    for _ in range(2_400):
        result = client.get(f"/api/v1/scheduling/whatif/runs/{begun['run']}").json()
        if result["state"] != "running":
            break
        time.sleep(0.05)
    assert (result["state"], result["answer"]["changes"]) == ("done", ["policy sjf"])
    assert client.delete(f"/api/v1/scheduling/whatif/runs/{begun['run']}").json()["state"] == "done"
    assert client.get("/api/v1/scheduling/whatif/runs/nothing").status_code == 404


def test_error_is_reported_when_the_workload_or_the_policy_is_unknown(queued_cluster: QueuedCluster) -> None:
    client = TestClient(create_app(queued_cluster.queries))
    missing = client.get("/api/v1/scheduling/queue/slurm:404")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    wrong = client.post("/api/v1/scheduling/whatif", json={"policy": "chaos"})
    assert wrong.status_code == 422
    assert "size-priority" in wrong.json()["error"]["hint"]


SWF = "; MaxProcs: 8\n" + "".join(
    f"{job} {job * 60} 30 {100 + job % 7} {1 + job % 4} -1 -1 -1 600 -1 {job % 2} {job % 5} -1 -1 -1 -1 -1 -1\n"
    for job in range(1, 200)
)
BROKEN = SWF + "200 x 30 100 1 -1 -1 -1 600 -1 1 1 -1 -1 -1 -1 -1 -1\n201 5 30\n"


def compute_as_if_elsewhere(work: Callable[[Task, Report], Result], task: Task, report: Report) -> Result:
    """In this process, on copies: what cannot be sent to another process fails, and nothing is shared."""
    work, task = pickle.loads(pickle.dumps((work, task)))
    result: Result = pickle.loads(pickle.dumps(work(task, report)))
    return result


@pytest.fixture
def client(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[TestClient]:
    context = replace(
        small_cluster.queries.context,
        artifacts=FolderArtifactStore(tmp_path / "artifacts"),
        read_job_trace=lambda path, format, zone: read_trace(path, format, timezone=zone),
        compute=compute_as_if_elsewhere,
    )
    queries = open_queries(context)
    with TestClient(create_app(queries, services=open_services(queries))) as client:
        yield client


def upload(client: TestClient, name: str, body: bytes, **query: str) -> dict[str, object]:
    answer = client.post("/api/v1/job-traces", params={"name": name, **query}, content=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def test_own_history_is_listed_and_described_when_nothing_was_uploaded(client: TestClient) -> None:
    (own,) = client.get("/api/v1/job-traces").json()["traces"]
    assert (own["trace"], own["name"], own["is_own"]) == ("cluster", "small", True)
    result = client.get("/api/v1/job-traces/cluster/description").json()
    assert result["traces"][0]["jobs"] == 3
    assert result["claims"][0]["verdict"] == "cannot_tell"


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz", "../../a b/log"])
def test_a_trace_is_kept_and_described_when_it_is_uploaded(client: TestClient, name: str) -> None:
    row = upload(client, name, gzip.compress(SWF.encode()))
    assert (row["name"], row["format"], row["jobs"], row["total_units"]) == ("log", "swf", 199, 8)
    assert [row["trace"] for row in client.get("/api/v1/job-traces").json()["traces"]] == ["cluster", row["trace"]]
    result = client.get(f"/api/v1/job-traces/{row['trace']}/description").json()
    assert result["traces"][0]["occupancy"]["capacity_units"] == 8
    assert client.delete(f"/api/v1/job-traces/{row['trace']}").status_code == 204
    assert len(client.get("/api/v1/job-traces").json()["traces"]) == 1
    assert client.get(f"/api/v1/job-traces/{row['trace']}/description").status_code == 404


def test_predictors_are_compared_when_a_trace_was_uploaded(client: TestClient) -> None:
    trace = upload(client, "log.swf", SWF.encode())["trace"]
    result = client.get(f"/api/v1/job-traces/{trace}/predictions").json()
    assert (result["trace"], result["name"]) == (trace, "log")
    names = [row["name"] for row in result["report"]["tables"][0]["rows"]]
    assert names == ["user request", "Last2", "similar jobs", "LightGBM", "elapsed-aware", "best lately"]
    assert client.get("/api/v1/job-traces/none/predictions").status_code == 404
    few = client.get("/api/v1/job-traces/cluster/predictions")
    assert few.status_code == 422
    assert "few" in few.text


def test_published_results_are_returned_when_the_trace_has_their_name(client: TestClient) -> None:
    known = upload(client, "mira_2018_lumos.swf", SWF.encode())["trace"]
    other = upload(client, "other.swf", SWF.encode())["trace"]
    answers = [wait_for(client, {"trace": trace, "jitter": 0}) for trace in (known, other)]
    assert [(row["backfill"], row["wait_s"]) for row in answers[0]["published"]] == [
        ("relaxed", 34_199.90),
        ("adaptive", 36_210.37),
    ]
    assert answers[1]["published"] == []


def test_lines_and_reasons_are_reported_when_rows_are_wrong(client: TestClient) -> None:
    row = upload(client, "broken.swf", BROKEN.encode())
    assert row["dropped"] == 2
    assert row["notes"] == [
        {"action": "dropped", "reason": "fewer than 18 fields", "count": 1, "lines": [202]},
        {"action": "dropped", "reason": "submit_s cannot be read", "count": 1, "lines": [201]},
    ]
    assert client.get("/api/v1/job-traces").json()["traces"][1]["notes"] == row["notes"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "is empty"),
        (b"hello, world\n", "unknown format"),
        (b"; MaxProcs: 8\n1 2 3\n", "no row is a valid job"),
        (b"\x1f\x8b broken", "cannot be read"),
    ],
)
def test_nothing_is_kept_when_a_file_is_no_trace(client: TestClient, tmp_path: Path, body: bytes, message: str) -> None:
    answer = client.post("/api/v1/job-traces?name=odd.swf", content=body)
    assert answer.status_code == 422
    assert message in answer.json()["error"]["message"]
    assert str(tmp_path) not in answer.text
    assert not [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]
    assert len(client.get("/api/v1/job-traces").json()["traces"]) == 1


def test_traces_are_described_together_when_they_are_compared(client: TestClient) -> None:
    first = upload(client, "one.swf", SWF.encode())["trace"]
    second = upload(client, "two.swf", BROKEN.encode(), total_units="8")["trace"]
    result = client.get(f"/api/v1/job-traces/{first}/description?compare={second},cluster,{first}").json()
    assert [row["name"] for row in result["traces"]] == ["one", "two", "small"]
    assert {claim["key"] for claim in result["claims"]} >= {
        "deep_learning_jobs_are_shorter",
        "larger_jobs_fail_more_everywhere",
        "elapsed_time_predicts",
    }
    many = client.get(f"/api/v1/job-traces/{first}/description?compare={second},cluster,a,b")
    assert many.status_code == 404
    for name in ("Moon/Base", "localtime", "posix/UTC", "../UTC", ""):
        zone = client.get(f"/api/v1/job-traces/{first}/description", params={"timezone": name})
        assert (zone.status_code, zone.json()["error"]["code"]) == (422, "query"), name
        sent = client.post("/api/v1/job-traces", params={"name": "z.swf", "timezone": name}, content=SWF)
        assert sent.status_code == 422, name


def test_request_is_refused_when_it_removes_own_history_or_nothing_can_be_stored(
    client: TestClient, small_cluster: SmallCluster
) -> None:
    assert client.delete("/api/v1/job-traces/cluster").status_code == 422
    queries = small_cluster.queries
    for services in (None, open_services(queries)):
        with TestClient(create_app(queries, services=services)) as bare:
            assert bare.post("/api/v1/job-traces?name=a.swf", content=b"x").status_code == 503


def test_traces_are_distinguished_when_they_have_the_same_name(client: TestClient) -> None:
    first, second = (upload(client, "log.swf", SWF.encode() + b"; %d\n" % number)["trace"] for number in range(2))
    result = client.get(f"/api/v1/job-traces/{first}/description", params={"compare": str(second)}).json()
    assert [row["name"] for row in result["traces"]] == ["log", "log (2)"]


SIMULATED_SWF = "; MaxProcs: 8\n" + "".join(
    f"{job} {job * 40} 0 {100 + 37 * (job % 11)} {1 + job % 8} -1 -1 -1 900 -1 1 {job % 5} -1 -1 -1 -1 -1 -1\n"
    for job in range(1, 120)
)


@pytest.fixture
def context(small_cluster: SmallCluster, tmp_path: Path) -> QueryContext:
    return replace(
        small_cluster.queries.context,
        artifacts=FolderArtifactStore(tmp_path / "artifacts"),
        read_job_trace=lambda path, format, zone: read_trace(path, format, timezone=zone),
    )


@pytest.fixture
def simulator_client(context: QueryContext) -> Iterator[TestClient]:
    queries = open_queries(context)
    with TestClient(create_app(queries, services=open_services(queries))) as simulator_client:
        yield simulator_client


@pytest.fixture
def trace(simulator_client: TestClient) -> str:
    answer = simulator_client.post("/api/v1/job-traces", params={"name": "small.swf"}, content=SIMULATED_SWF.encode())
    return str(answer.json()["trace"])


def wait_for(simulator_client: TestClient, request: dict[str, object]) -> dict[str, Any]:
    answer = simulator_client.post("/api/v1/simulations", json=request)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    while result["state"] == "running":
        time.sleep(0.05)
        result = simulator_client.get(f"/api/v1/simulations/{result['simulation']}").json()
    return result


def test_every_choice_is_measured_with_intervals_when_a_trace_is_simulated(
    simulator_client: TestClient, trace: str
) -> None:
    request = {"trace": trace, "policies": ["fcfs", "sjf"], "backfills": ["easy", "none"], "jitter": 2}
    result = wait_for(simulator_client, request)
    assert (result["state"], result["problem"], result["processors"], result["simulated_jobs"]) == (
        "done",
        None,
        8,
        119,
    )
    names = [(row["policy"], row["backfill"]) for row in result["choices"]]
    assert names == [("fcfs", "easy"), ("fcfs", "none"), ("sjf", "easy"), ("sjf", "none")]
    waits = {name: row["measures"][0] for name, row in zip(names, result["choices"], strict=True)}
    assert all(row["low"] <= row["mean"] <= row["high"] for row in waits.values())
    assert waits["fcfs", "easy"]["value"] < waits["fcfs", "none"]["value"]
    assert len({row["fingerprint"] for row in result["choices"]}) == 4


def test_work_is_conserved_and_jobs_are_drawn_when_the_trace_is_small(simulator_client: TestClient, trace: str) -> None:
    (choice,) = wait_for(simulator_client, {"trace": trace, "jitter": 0})["choices"]
    jobs, course = choice["jobs"], choice["course"]
    work = sum(
        (end - start) * units for start, end, units in zip(jobs["start_s"], jobs["end_s"], jobs["units"], strict=True)
    )
    assert sum(course["busy_units"]) * course["step_s"] == pytest.approx(work, rel=1e-4)
    assert max(course["busy_units"]) <= 8
    assert all(lane >= 0 and lane + units <= 8 for lane, units in zip(jobs["lane"], jobs["units"], strict=True))


def test_result_is_the_same_when_it_is_requested_again(simulator_client: TestClient, trace: str) -> None:
    request: dict[str, object] = {"trace": trace, "jitter": 0}
    first = wait_for(simulator_client, request)
    again = simulator_client.post("/api/v1/simulations", json=request).json()
    assert again == first


def test_every_factor_is_tried_when_promises_are_relaxed(simulator_client: TestClient, trace: str) -> None:
    request = {"trace": trace, "backfills": ["easy", "relaxed"], "omegas": [0.1, 0.5], "jitter": 0}
    result = wait_for(simulator_client, request)
    named = [(row["backfill"], row["omega"]) for row in result["choices"]]
    assert named == [("easy", None), ("relaxed", 0.1), ("relaxed", 0.5)]
    assert result["asked"]["omegas"] == [0.1, 0.5]


@pytest.mark.parametrize("estimates", ["request", "actual", "predicted", "boosted", "elapsed-aware"])
def test_run_times_are_used_as_requested_when_a_trace_is_simulated(
    simulator_client: TestClient, trace: str, estimates: str
) -> None:
    result = wait_for(simulator_client, {"trace": trace, "estimates": estimates, "jitter": 0})
    (choice,) = result["choices"]
    measures = {row["name"]: row["value"] for row in choice["measures"]}
    assert 0 < measures["fairness"] <= 1
    assert sum(size["jobs"] for size in choice["sizes"]) == 119
    assert not any(
        size["is_starved"] for size in choice["sizes"]
    )  # first come, first served is what it is compared with


def test_result_is_available_when_the_server_was_restarted(
    context: QueryContext, trace: str, simulator_client: TestClient
) -> None:
    result = wait_for(simulator_client, {"trace": trace, "policies": ["fcfs", "sjf"], "jitter": 0})
    queries = open_queries(context)
    with TestClient(create_app(queries, services=open_services(queries))) as again:
        assert again.get(f"/api/v1/simulations/{result['simulation']}").json() == result
        (row,) = again.get("/api/v1/simulations").json()["simulations"]
        assert (row["simulation"], row["trace"], row["asked"]) == (result["simulation"], "small", result["asked"])
        assert again.post("/api/v1/simulations", json=result["asked"]).json() == result


def test_oldest_result_goes_when_enough_are_kept(
    context: QueryContext, trace: str, simulator_client: TestClient
) -> None:
    services = open_services(open_queries(context))
    result = services.simulations.find(wait_for(simulator_client, {"trace": trace, "jitter": 0})["simulation"])
    kept = KeptSimulations(services.context)
    for place in range(KEPT):
        kept.keep(replace(result, simulation=f"{place:024x}", made_at=result.made_at + 1 + place))
    assert len(kept.rows()) == KEPT
    assert kept.find(result.simulation) is None
    assert kept.rows()[0].simulation == f"{KEPT - 1:024x}"
    assert kept.find("../secret") is None


def test_result_is_gone_when_it_was_removed(context: QueryContext, trace: str, simulator_client: TestClient) -> None:
    request: dict[str, object] = {"trace": trace, "jitter": 0}
    result = wait_for(simulator_client, request)
    path = f"/api/v1/simulations/{result['simulation']}"
    assert simulator_client.delete(f"{path}/result").status_code == 204
    assert simulator_client.get("/api/v1/simulations").json()["simulations"] == []
    assert [
        simulator_client.get(path).status_code,
        simulator_client.delete(f"{path}/result").status_code,
    ] == [404, 404]
    assert context.artifacts is not None
    assert context.artifacts.list("simulations/") == []
    # The same request can be sent again, and has the same result.
    again = wait_for(simulator_client, request)
    assert again | {"made_at": 0} == result | {"made_at": 0}


def test_simulation_is_stopped_and_goes_on_when_asked(simulator_client: TestClient, trace: str) -> None:
    # Two at once: the second has not begun while the first is simulated.
    first = {"trace": trace, "policies": ["wfp3"], "backfills": ["conservative"], "jitter": 50}
    second = {"trace": trace, "policies": ["unicep"], "backfills": ["conservative"], "jitter": 50}
    names = [simulator_client.post("/api/v1/simulations", json=row).json()["simulation"] for row in (first, second)]
    for name in reversed(names):
        assert simulator_client.delete(f"/api/v1/simulations/{name}").json()["state"] in ("stopped", "done")
    assert simulator_client.get(f"/api/v1/simulations/{names[1]}").json()["choices"] == []
    again = wait_for(simulator_client, second)
    assert (again["state"], len(again["choices"])) == ("done", 1)
    assert simulator_client.delete(f"/api/v1/simulations/{names[1]}").json()["state"] == "done"
    assert simulator_client.delete("/api/v1/simulations/abc").status_code == 404


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": ["best"]}, "unknown policy 'best'"),
        ({"backfills": ["magic"]}, "unknown backfill strategy 'magic'"),
        ({"semantics": "other"}, "unknown semantics 'other'"),
        ({"policies": []}, "0 combinations"),
        ({"jitter": 1000}, "parameter `jitter`: Input should be less than"),
        ({"omegas": [-1]}, "parameter `omegas.0`: Input should be greater than"),
        ({"backfills": ["relaxed", "frugal"], "omegas": [at / 100 for at in range(20)]}, "40 combinations"),
    ],
)
def test_reason_is_reported_when_a_choice_does_not_exist(
    simulator_client: TestClient, trace: str, change: dict[str, object], message: str
) -> None:
    answer = simulator_client.post("/api/v1/simulations", json={"trace": trace} | change)
    assert answer.status_code == 422
    assert message in answer.text


def test_simulation_is_not_found_when_nobody_requested_it(simulator_client: TestClient) -> None:
    assert simulator_client.get("/api/v1/simulations/abc").status_code == 404


def test_options_are_listed_when_asked_for(simulator_client: TestClient) -> None:
    options = simulator_client.get("/api/v1/simulations/options").json()
    assert {"fcfs", "sjf", "wfp3"} <= set(options["policies"])
    assert {"easy", "conservative", "frugal"} <= set(options["backfills"])
    assert "pyss" in options["semantics"]


def test_lanes_do_not_overlap_when_free_ones_lie_together() -> None:
    start, end, units = np.array([0, 0, 5, 10]), np.array([10, 5, 10, 20]), np.array([2, 2, 1, 4])
    assert place_lanes(start, end, units, 4) == [0, 2, 2, 0]


def test_lanes_take_memory_by_jobs_when_the_machine_is_huge() -> None:
    start, end, units = np.array([0, 0, 5]), np.array([10, 5, 10]), np.array([400_000_000, 2, 600_000_000])
    assert place_lanes(start, end, units, 10**9) == [0, 400_000_000, 400_000_000]


def test_lanes_are_those_of_a_search_lane_by_lane_when_many_jobs_run() -> None:
    random = np.random.default_rng(1)
    start = np.sort(random.integers(0, 500, 300))
    end, units = start + random.integers(1, 60, 300), random.integers(1, 9, 300)
    free_from, expected = [0] * 40, {}
    for job in np.lexsort((-units, start)).tolist():
        is_free = [at <= start[job] for at in free_from]
        fitting = [lane for lane in range(40 - units[job] + 1) if all(is_free[lane : lane + units[job]])]
        begins_run = [lane for lane in fitting if lane == 0 or not is_free[lane - 1]]
        lane = begins_run[0] if begins_run else min(is_free.index(True) if any(is_free) else 0, 40 - int(units[job]))
        free_from[lane : lane + units[job]] = [end[job]] * int(units[job])
        expected[job] = lane
    assert place_lanes(start, end, units, 40) == [expected[job] for job in range(300)]
