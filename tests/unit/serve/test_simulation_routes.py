"""Simulations over HTTP: asked for, looked after until done, kept by fingerprint, refused where they make no sense."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters.small import SmallCluster
from fastapi.testclient import TestClient

from clusterscape.collect.job_traces import read_trace
from clusterscape.query import Queries, QueryContext
from clusterscape.query.scheduling.simulations_kept import KEPT, KeptSimulations
from clusterscape.query.scheduling.simulations_results import place_lanes
from clusterscape.serve.app import create_app
from clusterscape.store.artifacts import FolderArtifactStore

SWF = "; MaxProcs: 8\n" + "".join(
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
def client(context: QueryContext) -> Iterator[TestClient]:
    with TestClient(create_app(Queries(context))) as client:
        yield client


@pytest.fixture
def trace(client: TestClient) -> str:
    answer = client.post("/api/v1/job-traces", params={"name": "small.swf"}, content=SWF.encode())
    return str(answer.json()["trace"])


def wait_for(client: TestClient, asked: dict[str, object]) -> dict[str, Any]:
    answer = client.post("/api/v1/simulations", json=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    while found["state"] == "running":
        time.sleep(0.05)
        found = client.get(f"/api/v1/simulations/{found['simulation']}").json()
    return found


def test_every_choice_is_measured_with_intervals_when_a_trace_is_simulated(client: TestClient, trace: str) -> None:
    asked = {"trace": trace, "policies": ["fcfs", "sjf"], "backfills": ["easy", "none"], "jitter": 2}
    found = wait_for(client, asked)
    assert (found["state"], found["problem"], found["processors"], found["simulated_jobs"]) == ("done", None, 8, 119)
    names = [(each["policy"], each["backfill"]) for each in found["choices"]]
    assert names == [("fcfs", "easy"), ("fcfs", "none"), ("sjf", "easy"), ("sjf", "none")]
    waits = {name: each["measures"][0] for name, each in zip(names, found["choices"], strict=True)}
    assert all(each["low"] <= each["mean"] <= each["high"] for each in waits.values())
    assert waits["fcfs", "easy"]["value"] < waits["fcfs", "none"]["value"]
    assert len({each["fingerprint"] for each in found["choices"]}) == 4


def test_work_is_conserved_and_jobs_are_drawn_when_the_trace_is_small(client: TestClient, trace: str) -> None:
    (choice,) = wait_for(client, {"trace": trace, "jitter": 0})["choices"]
    jobs, course = choice["jobs"], choice["course"]
    work = sum(
        (end - start) * units for start, end, units in zip(jobs["start_s"], jobs["end_s"], jobs["units"], strict=True)
    )
    assert sum(course["busy_units"]) * course["step_s"] == pytest.approx(work, rel=1e-4)
    assert max(course["busy_units"]) <= 8
    assert all(lane >= 0 and lane + units <= 8 for lane, units in zip(jobs["lane"], jobs["units"], strict=True))


def test_the_answer_is_the_same_when_it_is_asked_again(client: TestClient, trace: str) -> None:
    asked: dict[str, object] = {"trace": trace, "jitter": 0}
    first = wait_for(client, asked)
    again = client.post("/api/v1/simulations", json=asked).json()
    assert again == first


def test_every_factor_is_tried_when_promises_are_relaxed(client: TestClient, trace: str) -> None:
    asked = {"trace": trace, "backfills": ["easy", "relaxed"], "omegas": [0.1, 0.5], "jitter": 0}
    found = wait_for(client, asked)
    named = [(each["backfill"], each["omega"]) for each in found["choices"]]
    assert named == [("easy", None), ("relaxed", 0.1), ("relaxed", 0.5)]
    assert found["asked"]["omegas"] == [0.1, 0.5]


@pytest.mark.parametrize("estimates", ["request", "actual", "predicted"])
def test_run_times_are_taken_as_asked_when_a_trace_is_simulated(client: TestClient, trace: str, estimates: str) -> None:
    found = wait_for(client, {"trace": trace, "estimates": estimates, "jitter": 0})
    (choice,) = found["choices"]
    measures = {each["name"]: each["value"] for each in choice["measures"]}
    assert 0 < measures["fairness"] <= 1
    assert sum(size["jobs"] for size in choice["sizes"]) == 119
    assert not any(
        size["is_starved"] for size in choice["sizes"]
    )  # first come, first served is what it is compared with


def test_result_is_found_again_when_the_server_was_restarted(
    context: QueryContext, trace: str, client: TestClient
) -> None:
    made = wait_for(client, {"trace": trace, "policies": ["fcfs", "sjf"], "jitter": 0})
    with TestClient(create_app(Queries(context))) as again:
        assert again.get(f"/api/v1/simulations/{made['simulation']}").json() == made
        (row,) = again.get("/api/v1/simulations").json()["simulations"]
        assert (row["simulation"], row["trace"], row["asked"]) == (made["simulation"], "small", made["asked"])
        assert again.post("/api/v1/simulations", json=made["asked"]).json() == made


def test_oldest_result_goes_when_enough_are_kept(context: QueryContext, trace: str, client: TestClient) -> None:
    made = Queries(context).simulations.find(wait_for(client, {"trace": trace, "jitter": 0})["simulation"])
    kept = KeptSimulations(context)
    for place in range(KEPT):
        kept.keep(replace(made, simulation=f"{place:024x}", made_at=made.made_at + 1 + place))
    assert len(kept.rows()) == KEPT
    assert kept.find(made.simulation) is None
    assert kept.rows()[0].simulation == f"{KEPT - 1:024x}"
    assert kept.find("../secret") is None


def test_result_is_gone_when_it_was_removed(context: QueryContext, trace: str, client: TestClient) -> None:
    asked: dict[str, object] = {"trace": trace, "jitter": 0}
    made = wait_for(client, asked)
    path = f"/api/v1/simulations/{made['simulation']}"
    assert client.delete(f"{path}/result").status_code == 204
    assert client.get("/api/v1/simulations").json()["simulations"] == []
    assert [client.get(path).status_code, client.delete(f"{path}/result").status_code] == [404, 404]
    assert context.artifacts is not None
    assert context.artifacts.list("simulations/") == []
    # The same question can be asked again, and has the same answer.
    again = wait_for(client, asked)
    assert again | {"made_at": 0} == made | {"made_at": 0}


def test_simulation_is_stopped_and_goes_on_when_asked(client: TestClient, trace: str) -> None:
    # Two at once: the second has not begun while the first is simulated.
    first = {"trace": trace, "policies": ["wfp3"], "backfills": ["conservative"], "jitter": 50}
    second = {"trace": trace, "policies": ["unicep"], "backfills": ["conservative"], "jitter": 50}
    names = [client.post("/api/v1/simulations", json=each).json()["simulation"] for each in (first, second)]
    for name in reversed(names):
        assert client.delete(f"/api/v1/simulations/{name}").json()["state"] in ("stopped", "done")
    assert client.get(f"/api/v1/simulations/{names[1]}").json()["choices"] == []
    again = wait_for(client, second)
    assert (again["state"], len(again["choices"])) == ("done", 1)
    assert client.delete(f"/api/v1/simulations/{names[1]}").json()["state"] == "done"
    assert client.delete("/api/v1/simulations/abc").status_code == 404


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"policies": ["best"]}, "there is no policy 'best'"),
        ({"backfills": ["magic"]}, "there is no backfilling 'magic'"),
        ({"semantics": "other"}, "there are no semantics 'other'"),
        ({"policies": []}, "0 combinations"),
        ({"jitter": 1000}, "parameter `jitter`: Input should be less than"),
        ({"omegas": [-1]}, "parameter `omegas.0`: Input should be greater than"),
        ({"backfills": ["relaxed", "frugal"], "omegas": [at / 100 for at in range(20)]}, "40 combinations"),
    ],
)
def test_the_reason_is_told_when_a_choice_does_not_exist(
    client: TestClient, trace: str, change: dict[str, object], said: str
) -> None:
    answer = client.post("/api/v1/simulations", json={"trace": trace} | change)
    assert answer.status_code == 422
    assert said in answer.text


def test_it_is_not_found_when_nobody_asked_for_it(client: TestClient) -> None:
    assert client.get("/api/v1/simulations/abc").status_code == 404


def test_options_are_listed_when_asked_for(client: TestClient) -> None:
    options = client.get("/api/v1/simulations/options").json()
    assert {"fcfs", "sjf", "wfp3"} <= set(options["policies"])
    assert {"easy", "conservative", "frugal"} <= set(options["backfills"])
    assert "pyss" in options["semantics"]


def test_lanes_do_not_overlap_when_free_ones_lie_together() -> None:
    start, end, units = np.array([0, 0, 5, 10]), np.array([10, 5, 10, 20]), np.array([2, 2, 1, 4])
    assert place_lanes(start, end, units, 4) == [0, 2, 2, 0]
