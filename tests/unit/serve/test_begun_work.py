"""Running simulations and what-ifs: the roles that may stop them, and limits per user."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from clusters.opened import open_queries, open_services
from clusters.queued import QueuedCluster
from clusters.queued import queued_cluster as queued_cluster
from clusters.told_viewers import believe_names
from fastapi.testclient import TestClient

from clusterscape.collect.job_traces import read_trace
from clusterscape.errors import ThrottledError
from clusterscape.executors import FairQueue, FairWorker
from clusterscape.model.access import Role, Viewer
from clusterscape.query import Queries
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf
from clusterscape.serve.app import create_app
from clusterscape.services import Services
from clusterscape.services.simulation_answers import SimulationAsk
from clusterscape.services.simulations import KEPT_PER_OWNER, KeptSimulations
from clusterscape.services.whatif_runs import KEPT_RUNS_PER_USER, WhatIfRuns
from clusterscape.settings.limits import WorkLimits
from clusterscape.store.artifacts import FolderArtifactStore

OPERATORS = ("operator", "admin")
VIEWERS = {
    "ada": Viewer(login="ada", role=Role.RESEARCHER),
    "eve": Viewer(login="eve", role=Role.RESEARCHER),
    "lead": Viewer(login="lead", role=Role.LEAD, projects=frozenset({"nlp"})),
    "operator": Viewer(login="omar", role=Role.OPERATOR),
    "admin": Viewer(login=None, role=Role.ADMIN),
}
SWF = "; MaxProcs: 8\n" + "".join(
    f"{job} {job * 40} 0 300 1 -1 -1 -1 900 -1 1 1 -1 -1 -1 -1 -1 -1\n" for job in range(1, 20)
)


def assert_waited(event: threading.Event) -> None:
    assert event.wait(60)


@contextmanager
def held(*workers: FairWorker) -> Iterator[None]:
    """Occupy the workers, so that queued work does not start."""
    is_over = threading.Event()
    for worker in workers:
        worker.submit("test", lambda: assert_waited(is_over))
    try:
        yield
    finally:
        is_over.set()


def make_site(
    cluster: QueuedCluster, folder: Path, *, is_private: bool, limits: WorkLimits | None = None
) -> tuple[Queries, Services]:
    context = replace(
        cluster.queries.context,
        artifacts=FolderArtifactStore(folder / "artifacts"),
        read_job_trace=lambda path, format, zone: read_trace(path, format, timezone=zone),
        is_private=is_private,
        work=limits or WorkLimits(simulations_per_user=100, queued_simulations=1000),
    )
    queries = open_queries(context)
    return queries, open_services(queries)


def may_stop(began: str, stops: str) -> bool:
    return began == stops or stops in OPERATORS


@pytest.mark.parametrize("is_private", [False, True])
def test_work_is_stopped_only_by_its_owner_or_operators_when_anybody_tries(
    queued_cluster: QueuedCluster, tmp_path: Path, is_private: bool
) -> None:
    queued_cluster.wait("slurm:10", 8, hours=6, since_h=2, user="ada")
    queries, services = make_site(queued_cluster, tmp_path, is_private=is_private)
    app = create_app(queries, services=services, static=tmp_path)
    believe_names(app, VIEWERS)
    refused = 404 if is_private else 403
    with TestClient(app) as client, held(services.simulations._worker, services.what_if_runs._board.worker):
        uploads = {
            name: client.post(
                "/api/v1/job-traces?name=t.swf", content=f"; Note: {name}\n{SWF}", headers={"x-as": name}
            ).json()["trace"]
            for name in VIEWERS
        }
        for number, (began, stops) in enumerate(product(VIEWERS, VIEWERS)):
            request = {"trace": uploads[began], "omegas": [number / 100]}
            simulation = client.post("/api/v1/simulations", json=request, headers={"x-as": began}).json()["simulation"]
            run = client.post("/api/v1/scheduling/whatif/runs", json={}, headers={"x-as": began}).json()["run"]
            for address in (f"/api/v1/simulations/{simulation}", f"/api/v1/scheduling/whatif/runs/{run}"):
                answer = client.delete(address, headers={"x-as": stops})
                assert answer.status_code == (200 if may_stop(began, stops) else refused), (began, stops, address)
                state = client.get(address, headers={"x-as": began}).json()["state"]
                assert state == ("stopped" if may_stop(began, stops) else "running"), (began, stops, address)


def test_others_read_no_what_if_when_the_site_is_private(queued_cluster: QueuedCluster, tmp_path: Path) -> None:
    queued_cluster.wait("slurm:10", 8, hours=6, since_h=2, user="ada")
    queries, services = make_site(queued_cluster, tmp_path, is_private=True)
    app = create_app(queries, services=services, static=tmp_path)
    viewers = {**VIEWERS, **{name: Viewer(login=name, role=Role.VIEWER) for name in ("vera", "vic")}}
    believe_names(app, viewers)
    with TestClient(app) as client:
        run = client.post("/api/v1/scheduling/whatif/runs", json={"futures": 2}, headers={"x-as": "vera"}).json()["run"]
        statuses = {
            name: client.get(f"/api/v1/scheduling/whatif/runs/{run}", headers={"x-as": name}).status_code
            for name in viewers
        }
    may = ("vera", *OPERATORS)
    assert statuses == {name: 200 if name in may else 404 for name in viewers}


def test_surplus_is_refused_and_others_go_on_when_one_user_begins_too_many(
    queued_cluster: QueuedCluster, tmp_path: Path
) -> None:
    queued_cluster.wait("slurm:10", 8, hours=6, since_h=2, user="ada")
    limits = WorkLimits(simulations_per_user=3, queued_simulations=5)
    queries, services = make_site(queued_cluster, tmp_path, is_private=True, limits=limits)
    app = create_app(queries, services=services, static=tmp_path)
    believe_names(app, VIEWERS)
    with TestClient(app) as client, held(services.what_if_runs._board.worker, services.simulations._worker):

        def begin(name: str) -> int:
            answer = client.post("/api/v1/scheduling/whatif/runs", json={}, headers={"x-as": name})
            if answer.status_code == 429:
                assert int(answer.headers["retry-after"]) > 0
                assert answer.json()["error"]["hint"]
            return answer.status_code

        assert [begin("ada") for _ in range(5)] == [200, 200, 200, 429, 429]
        assert [begin("eve") for _ in range(3)] == [200, 200, 429]  # of all users five wait at most
        trace = client.post("/api/v1/job-traces?name=t.swf", content=SWF, headers={"x-as": "ada"}).json()["trace"]
        codes = [
            client.post(
                "/api/v1/simulations", json={"trace": trace, "omegas": [at / 10]}, headers={"x-as": "ada"}
            ).status_code
            for at in range(5)
        ]
        assert codes == [200, 200, 200, 429, 429]


def test_results_of_one_user_make_room_for_their_own_when_they_begin_many(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", 8, hours=6, since_h=2, user="ada")
    runs: WhatIfRuns = queued_cluster.services.what_if_runs
    kept = runs.start(QueueWhatIf(futures=2), user="ada")
    runs.stop(kept.run)
    for _ in range(KEPT_RUNS_PER_USER + 4):
        runs.stop(runs.start(QueueWhatIf(futures=2), user="eve").run)
    assert runs.find(kept.run).state in ("stopped", "done")
    assert len(runs._board.runs) <= KEPT_RUNS_PER_USER + 2


def test_users_take_turns_when_one_has_queued_many() -> None:
    queue: FairQueue[int] = FairQueue()
    for item in range(3):
        queue.put("ada", item)
    queue.put("eve", 10)
    queue.remove("ada", 1)
    queue.remove("nobody", 1)
    order = [queue.pop(), queue.pop(), queue.pop(), queue.pop()]
    assert order == [("ada", 0), ("eve", 10), ("ada", 2), None]
    assert len(queue) == 0


def test_job_counts_until_it_ended_when_it_raises() -> None:
    worker, is_over = FairWorker("test", per_user=1, waiting=1), threading.Event()

    def fail() -> None:
        is_over.wait(60)
        raise ValueError

    worker.submit("ada", fail)
    with pytest.raises(ThrottledError):
        worker.submit("ada", fail)
    is_over.set()
    ended = threading.Event()
    worker.submit("eve", ended.set)
    assert ended.wait(60)
    worker.check("ada")


def test_kept_results_of_others_stay_when_one_owner_keeps_many(queued_cluster: QueuedCluster, tmp_path: Path) -> None:
    _, services = make_site(queued_cluster, tmp_path, is_private=False)
    trace = services.job_traces.upload("t.swf", [SWF.encode()], by=VIEWERS["ada"]).trace
    begun = services.simulations.ask(SimulationAsk(trace=trace, jitter=0), by=VIEWERS["ada"])
    kept = KeptSimulations(services.context)
    kept.keep(replace(begun, simulation="a0", made_at=1), "ada")
    for at in range(KEPT_PER_OWNER + 5):
        kept.keep(replace(begun, simulation=f"e{at}", made_at=10 + at), "eve")
    names = [row.simulation for row in kept.rows() if row.simulation != begun.simulation]
    assert names == [*(f"e{at}" for at in range(KEPT_PER_OWNER + 4, 4, -1)), "a0"]
