"""A site with several users: everything a person owns contains their name, so that leaks can be found."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import orjson
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx2 import Response
from tracking.site import spooled

from clusters.opened import artifacts_of, open_queries, open_services
from clusters.told_viewers import believe_names
from clusterscape.collect.job_traces import read_trace
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.runs import RunIntake, StoredPiece
from clusterscape.ingest.traces import TraceIntake
from clusterscape.model import (
    Allocation,
    Names,
    Node,
    NodeId,
    NodeState,
    Partition,
    SampleBatch,
    Unit,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.model.access import LOCAL_ADMIN, Role, Viewer
from clusterscape.model.hangs import HangLook, ProcessLook, RankLook, StackFrame, ThreadStack, write_plain
from clusterscape.model.rules import Violation
from clusterscape.model.run_frames import encode_event
from clusterscape.query import QueryContext
from clusterscape.runtime.trace_importing import import_files
from clusterscape.serve.app import create_app
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.artifacts import FolderArtifactStore
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store
from clusterscape.store.records.contract import RecordStore

NOW = UnixMs(1_794_800_060_000)  # within a minute, so that new writes are visible
HOUR_MS = 3_600_000
RECORDED = Path(__file__).parents[1] / "data/h200/traces"

ADA, BOB, CLEO, OMAR = "zqada", "zqbob", "zqcleo", "zqomar"
PEOPLE = (ADA, BOB, CLEO)
NUMBERS = {ADA: 1, BOB: 2, CLEO: 3}
WITHOUT_LOGIN = {"accept-encoding": "identity"}


def project_of(person: str) -> str:
    return f"{person}-project"


VIEWERS: Mapping[str, Viewer] = {
    "viewer": Viewer(login="zqvera", role=Role.VIEWER),
    "nobody": Viewer(login=None, role=Role.VIEWER),
    "researcher": Viewer(login=ADA, role=Role.RESEARCHER),
    "lead": Viewer(login=ADA, role=Role.LEAD, projects=frozenset({project_of(CLEO)})),
    "operator": Viewer(login=OMAR, role=Role.OPERATOR),
    "admin": LOCAL_ADMIN,
    **{person: Viewer(login=person, role=Role.RESEARCHER) for person in PEOPLE},
}
VISIBLE_NAMES = {
    "viewer": (),
    "nobody": (),
    "researcher": (ADA,),
    "lead": (ADA, CLEO),
    "operator": (*PEOPLE, OMAR),
    "admin": (*PEOPLE, OMAR),
}
"""Names that each viewer may see on a private site."""


class HereRuns:
    """Takes runs in at once."""

    def __init__(self, intake: RunIntake) -> None:
        self._intake = intake

    @property
    def max_piece_bytes(self) -> int:
        return self._intake.limits.piece_bytes

    async def offsets(self, run: str) -> dict[str, int]:
        return self._intake.offsets(run)

    async def take(self, run: str, file: str, offset: int, data: bytes, *, user: str | None = None) -> StoredPiece:
        return self._intake.take(run, file, offset, data, user=user)

    async def delete(self, run: str, *, user: str | None = None) -> None:
        self._intake.delete(run, user=user)


@dataclass
class PrivateSite:
    """``traces``, ``uploads`` and ``comments``: the keys of each person's."""

    context: QueryContext
    ingest: Ingest
    runs: HereRuns
    intake: TraceIntake
    traces: dict[str, str]
    uploads: dict[str, str]
    comments: dict[str, str]

    def app(self, *, is_private: bool) -> FastAPI:
        """The server; header X-As names the viewer."""
        queries = open_queries(replace(self.context, is_private=is_private), self.ingest)
        app = create_app(
            queries, services=open_services(queries), ingest=self.ingest, runs=self.runs, trace_writer=self.intake
        )
        believe_names(app, VIEWERS)
        return app

    def client(self, *, is_private: bool) -> TestClient:
        return TestClient(self.app(is_private=is_private), headers=WITHOUT_LOGIN, raise_server_exceptions=False)


def job(person: str) -> str:
    return f"slurm:{NUMBERS[person]}"


def pods_of(person: str) -> str:
    """Kubernetes knows workloads by names."""
    return f"kubernetes:{person}-team.train-{person}.0000000{NUMBERS[person]}"


def waiting_job(person: str) -> str:
    return f"slurm:{NUMBERS[person]}0"


def run(person: str) -> str:
    return f"20261115-12000{NUMBERS[person]}-00000{NUMBERS[person]}"


def run_spool(person: str) -> bytes:
    about = {
        "user": person,
        "name": f"train-{person}.py",
        "experiment": f"{person}-experiment",
        "workload": project_of(person),
        "host": f"n{NUMBERS[person]}",
        "command": ["python", f"/home/{person}/train-{person}.py", f"--note={person}"],
        "cwd": f"/home/{person}/code",
    }
    series: dict[tuple[str, str | None, str], list[float]] = {
        ("loss", None, "run"): [3.0, 2.0, 1.0],
        ("gpu_util_ratio", None, "run"): [0.5, 0.6, 0.7],
    }
    whole = spooled(run(person), series=series, steps=True, params={f"{person}-param": f"{person}-value"}, about=about)
    return whole + hang_of(person)


def hang_of(person: str) -> bytes:
    """Two looks at a rank that waits for a lock, whose stack names the person."""
    frame = StackFrame(f"wait_for_{person}", f"/home/{person}/code/train-{person}.py", 7)
    rank = RankLook(0, stacks=(ThreadStack((frame,), name=person, is_main=True),), process=ProcessLook(state="S"))
    look = write_plain(HangLook({0: rank}, world_size=1))
    parts = [{"event": "ranks", "job": f"{person}-host:29500", "ranks": [0], "world_size": 1}]
    parts += [{"event": "hang_look", "at": NOW - 5000, "number": number, "look": look} for number in (1, 2)]
    return b"".join(map(encode_event, parts))


@contextmanager
def private_site(folder: Path) -> Iterator[PrivateSite]:
    """Real stores in a folder, filled."""
    storage = StorageSettings(data_dir=folder / "data")
    metrics, records = open_metric_store(storage, RetentionSettings(), cluster="c"), open_record_store(storage)
    artifacts = FolderArtifactStore(folder / "artifacts")
    changes = Changes()
    ingest = Ingest(metrics, records, changes, clock=lambda: NOW)
    numbers = iter(range(1000))
    intake = TraceIntake(
        artifacts, import_files, clock=lambda: NOW, token=lambda: f"{next(numbers):06x}", scratch=folder
    )
    context = QueryContext(
        metrics=metrics,
        records=records,
        changes=changes,
        clock=lambda: NOW,
        cluster="private",
        artifacts=artifacts,
        read_job_trace=lambda path, format, zone: read_trace(path, format, timezone=zone),
    )
    site = PrivateSite(context, ingest, HereRuns(RunIntake(ingest, records, clock=lambda: NOW)), intake, {}, {}, {})
    try:
        fill_inventory(records)
        fill_workloads(records)
        metrics.append(samples())
        changes.bump_tick(NOW)
        fill_kept(site)
        changes.bump_inventory()
        yield site
    finally:
        intake.close()
        metrics.close()
        records.close()


def fill_inventory(records: RecordStore) -> None:
    nodes = [
        Node(
            id=NodeId(f"n{number}"),
            partitions=("main",),
            machine_type="A100-80G",
            state=NodeState.DRAINED if number == 4 else NodeState.MIXED,
            reason=f"broken by {BOB}'s job, says {CLEO}" if number == 4 else None,
            gpu_count=4,
        )
        for number in range(1, 6)
    ]
    records.write_inventory(
        nodes=nodes,
        partitions=[Partition(name="main", nodes=tuple(node.id for node in nodes))],
        units=[Unit(id=gpu_unit_id(node.id, at), node=node.id, index=at) for node in nodes for at in range(4)],
        at_ms=UnixMs(NOW - 2 * HOUR_MS),
    )


def units_of(person: str) -> list[UnitId]:
    return [gpu_unit_id(NodeId(f"n{NUMBERS[person]}"), at) for at in range(4)]


def fill_workloads(records: RecordStore) -> None:
    for person in PEOPLE:
        number = NUMBERS[person]
        about = Workload(
            id=WorkloadId(job(person)),
            state=WorkloadState.RUNNING,
            name=f"train-{person}",
            user=person,
            project=project_of(person),
            experiment=f"{person}-experiment",
            partition="main",
            qos=f"{project_of(person)}",
            resource_type="A100-80G-4",
            gpus_requested=4,
            nodes_requested=1,
            time_limit_s=6 * 3600,
            submitted_at=UnixMs(NOW - 3 * HOUR_MS),
            started_at=UnixMs(NOW - HOUR_MS),
            nodes=(f"n{number}",),
            tags={f"{person}-tag": f"{person}-value", "tp": "2", "dp": "2"},
        )
        waiting = replace(
            about,
            id=WorkloadId(waiting_job(person)),
            state=WorkloadState.WAITING,
            started_at=None,
            priority=100 + number,
            pending_reason="Priority",
            nodes=(),
        )
        ended = replace(
            about,
            id=WorkloadId(f"slurm:{number}1"),
            state=WorkloadState.COMPLETED,
            submitted_at=UnixMs(NOW - 9 * HOUR_MS),
            started_at=UnixMs(NOW - 8 * HOUR_MS),
            ended_at=UnixMs(NOW - 6 * HOUR_MS),
        )
        pods = replace(
            about, id=WorkloadId(pods_of(person)), gpus_requested=1, resource_type="A100-80G-1", nodes=("n5",), tags={}
        )
        queued = replace(
            pods, id=WorkloadId(f"{pods_of(person)}9"), state=WorkloadState.WAITING, started_at=None, nodes=()
        )
        records.write_workloads([about, waiting, ended, pods, queued], at_ms=NOW)
        since = UnixMs(NOW - HOUR_MS)
        records.write_allocations(
            [
                *(Allocation(workload=about.id, unit=unit, from_at=since) for unit in units_of(person)),
                Allocation(workload=pods.id, unit=gpu_unit_id(NodeId("n5"), number), from_at=since),
            ]
        )
        records.write_violations(
            [
                Violation(
                    rule="low-utilization",
                    workload=about.id,
                    unit=units_of(person)[0],
                    since=UnixMs(NOW - HOUR_MS // 2),
                    gpus=1,
                )
            ]
        )


def samples() -> SampleBatch:
    units = [unit for person in PEOPLE for unit in units_of(person)]
    times = np.arange(NOW - HOUR_MS, NOW, 60_000, dtype=np.int64)
    random = np.random.default_rng(3)
    count = len(units) * len(times)
    metrics = ("gpu_util_ratio", "power_watts")
    return SampleBatch(
        Names(units),
        Names(metrics),
        np.tile(np.repeat(np.arange(len(units), dtype=np.int32), len(times)), 2),
        np.repeat(np.arange(2, dtype=np.int32), count),
        np.tile(times, 2 * len(units)),
        np.concatenate([random.uniform(0.2, 0.9, count), random.uniform(100, 300, count)]),
    )


def upload_of(person: str) -> bytes:
    """A job trace of one's own team, which names people."""
    head = "JobID|User|Account|Partition|Submit|Start|End|Elapsed|Timelimit|NCPUS|NNodes|State"
    days = "2026-11-{:02}T10:00:00|2026-11-{:02}T10:05:00|2026-11-{:02}T11:05:00"
    rows = [
        f"{at}|{person}|{project_of(person)}|main|{days.format(at, at, at)}|01:00:00|02:00:00|8|1|COMPLETED"
        for at in range(1, 15)
    ]
    return "\n".join([head, *rows, ""]).encode()


def fill_kept(site: PrivateSite) -> None:
    """Runs, traces, uploads, views, insights, rules, mutes and comments, by the routes that people use."""
    first = site.intake.take(sorted(RECORDED.glob("ddp_*")), f"profile of some steps by {BOB}", job(BOB))
    with site.client(is_private=False) as client:
        for person in PEOPLE:
            _keep(site, client, person, first.trace_id)
        shared = {"version": 1, "title": f"GPUs of {BOB}", "filter": {"user": BOB, "names": [project_of(CLEO)]}}
        _ok(client.put("/api/v1/views/shared", json=shared, headers={"x-as": "operator"}))
        scope = f"gpu_util p95 < 5% for user {BOB}, {CLEO}"
        text = {"text": scope, "name": "Watched", "owner": BOB}
        _ok(client.put("/api/v1/rules/watched", json=text, headers={"x-as": "operator"}))
        for workload in (None, job(BOB)):
            mute = {"rule": "watched", "workload": workload, "reason": f"{BOB} asked", "author": "x", "hours": 5}
            _ok(client.post("/api/v1/mutes", json=mute, headers={"x-as": "operator"}))


def _keep(site: PrivateSite, client: TestClient, person: str, trace: str) -> None:
    headers = {"x-as": person}
    artifacts = artifacts_of(site.context)
    assert artifacts is not None
    _ok(client.post(f"/api/v1/runs/{run(person)}/files/tracker.spool", content=run_spool(person), headers=headers))
    upload = client.post(f"/api/v1/job-traces?name=team-{person}.txt", content=upload_of(person), headers=headers)
    site.uploads[person] = _ok(upload)["trace"]
    view = {"version": 1, "title": f"view of {person}", "filter": {"user": person}}
    _ok(client.put(f"/api/v1/views/view-{NUMBERS[person]}", json=view, headers=headers))
    _ok(client.put(f"/api/v1/insights/insight-{NUMBERS[person]}", json=view, headers=headers))
    comment = {"workload": job(person), "author": "somebody", "text": f"says {person}"}
    site.comments[person] = _ok(client.post("/api/v1/comments", json=comment, headers=headers))["key"]
    # A trace is read once: importing is slow, and the others' have the same spans.
    named = {"name": f"profile of some steps by {person}", "workload_id": job(person)}
    trace_id = _ok(client.post("/api/v1/traces", json=named, headers=headers))["trace_id"]
    for artifact in artifacts.list(f"traces/{trace}/"):
        with artifacts.open(artifact.key) as file:
            content = file.read()
        if artifact.key.endswith("about.json"):
            content = content.replace(trace.encode(), trace_id.encode()).replace(BOB.encode(), person.encode())
            content = content.replace(f'"{job(BOB)}"'.encode(), f'"{job(person)}"'.encode())
            content = orjson.dumps(orjson.loads(content) | {"owned_by": person})
        artifacts.put(artifact.key.replace(trace, trace_id), [content])
    site.traces[person] = trace_id


def _ok(answer: Response) -> dict[str, str]:
    assert answer.status_code in (200, 201, 202, 204), answer.text
    body: dict[str, str] = answer.json() if answer.content else {}
    return body
