"""Who hangs in a job whose trackers are on several machines, by what each of them sent."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hangs.made_up import write_case
from tracking.site import NOW, RunStores, run_stores, spooled

from clusterscape.analyze.hang.condense import condense_look
from clusterscape.collect.hangs.reading import read_looks
from clusterscape.errors import NotFoundError
from clusterscape.model import (
    Allocation,
    AllocationSource,
    Names,
    SampleBatch,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadKind,
    WorkloadState,
)
from clusterscape.model.hangs import HangLook, write_plain
from clusterscape.model.run_frames import encode_event

JOB = "10.0.0.1:29500"
LOOKED = NOW - 5000


def send(
    stores: RunStores, run: str, looks: list[HangLook], ranks: range, *, user: str = "me", is_looked: bool = True
) -> None:
    """A tracker's file: a run that goes on, its ranks, and two looks at them."""
    whole = spooled(run, about={"user": user, "host": run})
    end = encode_event({"event": "end", "state": "completed", "cause": None, "exit_code": 0, "at": NOW - 990_000})
    world = len(looks[0].ranks)
    parts = [whole[: -len(end)]]
    parts.append(
        encode_event({"event": "ranks", "job": JOB, "slurm_job": "4711", "ranks": list(ranks), "world_size": world})
    )
    for number, look in enumerate(looks if is_looked else [], start=1):
        part = replace(look, ranks={rank: look.ranks[rank] for rank in ranks}, world_size=world, is_partial=True)
        plain = write_plain(condense_look(part))
        parts.append(encode_event({"event": "hang_look", "at": LOOKED, "number": number, "look": plain}))
    stores.take(run, b"".join(parts))


@pytest.fixture
def case(tmp_path: Path) -> tuple[int, list[HangLook]]:
    case = write_case("absent", 3, tmp_path / "looks")
    [rank] = case.ranks
    return rank, read_looks(list(case.looks))


def test_rank_is_named_when_the_looks_of_two_machines_come_together(
    tmp_path: Path, case: tuple[int, list[HangLook]]
) -> None:
    guilty, looks = case
    with run_stores(tmp_path / "data") as stores:
        send(stores, "run-a", looks, range(4))
        send(stores, "run-b", looks, range(4, 8))
        answer = stores.queries.hangs.one("run-a")
        assert answer.report is not None
        assert (answer.report.verdict.ranks, answer.report.is_partial) == ((guilty,), False)
        assert (answer.hosts, answer.hosts_without_look) == (["run-a", "run-b"], [])
        assert stores.queries.hangs.one("run-b").report == answer.report
        for workload in (None, "run:run-a", "run:run-b", "slurm:4711"):
            [row] = stores.queries.hangs.all(workload=workload).rows
            assert (row.title, row.is_over) == (answer.report.verdict.title, False)
        assert stores.queries.hangs.all(workload="slurm:4712").rows == []


def test_other_trackers_are_asked_to_look_when_one_has_looked(tmp_path: Path, case: tuple[int, list[HangLook]]) -> None:
    _, looks = case
    with run_stores(tmp_path / "data") as stores:
        send(stores, "run-a", looks, range(4))
        send(stores, "run-b", looks, range(4, 8), is_looked=False)
        hangs = stores.queries.hangs
        assert (hangs.looked_elsewhere("run-b"), hangs.looked_elsewhere("run-a")) == (LOOKED, None)
        assert hangs.one("run-a").hosts_without_look == ["run-b"]
        offset = stores.intake.offsets("run-a")["tracker.spool"]
        stores.intake.take("run-a", "tracker.spool", offset, encode_event({"event": "hang_end", "at": LOOKED + 1000}))
        assert hangs.looked_elsewhere("run-b") is None
        [row] = hangs.all().rows
        assert (row.is_over, row.went_on_at) == (True, LOOKED + 1000)


def test_looks_of_another_user_are_left_out_when_the_job_has_the_same_name(
    tmp_path: Path, case: tuple[int, list[HangLook]]
) -> None:
    _, looks = case
    with run_stores(tmp_path / "data") as stores:
        send(stores, "run-a", looks, range(4))
        send(stores, "run-b", looks, range(4, 8), user="somebody")
        assert stores.queries.hangs.one("run-a").runs == ["run-a"]
        assert stores.queries.hangs.looked_elsewhere("run-a") is None
        assert len(stores.queries.hangs.all().rows) == 2


def test_gpus_and_xids_are_evidence_when_telemetry_has_them(tmp_path: Path, case: tuple[int, list[HangLook]]) -> None:
    _, looks = case
    units = [UnitId(f"n1:{index}") for index in range(4)]
    values = {
        "gpu_util_ratio": [1.0, 1.0, 1.0, 0.0],
        "power_watts": [121.0] * 4,
        "power_limit_watts": [700.0] * 4,
        "xid_error_code": [0.0] * 4,
    }
    times = [LOOKED - 60_000, LOOKED - 30_000]
    rows = [
        (unit, metric, time, 79.0 if name == "xid_error_code" and unit == 3 and number == 1 else values[name][unit])
        for metric, name in enumerate(values)
        for unit in range(4)
        for number, time in enumerate(times)
    ]
    codes = np.array([row[:3] for row in rows])
    batch = SampleBatch(
        units=Names(units),
        metrics=Names(list(values)),
        unit=codes[:, 0].astype(np.int32),
        metric=codes[:, 1].astype(np.int32),
        time_ms=codes[:, 2].astype(np.int64),
        value=np.array([row[3] for row in rows]),
    )
    with run_stores(tmp_path / "data") as stores:
        stores.metrics.append(batch)
        stores.records.write_allocations(
            Allocation(
                workload=WorkloadId("slurm:4711"),
                unit=unit,
                from_at=UnixMs(LOOKED - 900_000),
                to_at=None,
                source=AllocationSource.SCHEDULER_INDEX,
                confidence=1.0,
            )
            for unit in units
        )
        send(stores, "run-a", looks, range(8))
        report = stores.queries.hangs.one("run-a").report
        assert report is not None
        evidence = "\n".join(report.verdict.evidence)
        assert "3 of 4 GPUs are at 95% utilization or more and draw 17% of their power limit" in evidence
        assert "n1:3 is idle" in evidence
        assert "n1:3: Xid 79" in evidence or "n1:3: XID 79" in evidence


@pytest.mark.parametrize(("user", "runs"), [("me", ["run-a"]), ("somebody", [])])
def test_run_is_of_the_slurm_job_that_it_names_when_both_have_one_user(
    tmp_path: Path, case: tuple[int, list[HangLook]], user: str, runs: list[str]
) -> None:
    _, looks = case
    job = WorkloadId("slurm:4711")
    held = Allocation(
        workload=job,
        unit=UnitId("n1:0"),
        from_at=UnixMs(LOOKED - 900_000),
        to_at=None,
        source=AllocationSource.SCHEDULER_INDEX,
        confidence=1.0,
    )
    idle = SampleBatch(
        units=Names(["n1:0"]),
        metrics=Names(["gpu_util_ratio", "power_watts", "power_limit_watts"]),
        unit=np.zeros(3, np.int32),
        metric=np.arange(3, dtype=np.int32),
        time_ms=np.full(3, LOOKED - 30_000),
        value=np.array([0.0, 121.0, 700.0]),
    )
    with run_stores(tmp_path / "data") as stores:
        workload = Workload(id=job, kind=WorkloadKind.JOB, state=WorkloadState.RUNNING, user=user)
        stores.records.write_workloads([workload], at_ms=UnixMs(NOW))
        stores.records.write_allocations([held])
        stores.metrics.append(idle)
        send(stores, "run-a", looks, range(8))
        assert [row.run for row in stores.queries.hangs.all(workload=job).rows] == runs
        report = stores.queries.hangs.one("run-a").report
        assert report is not None
        assert bool([line for line in report.verdict.evidence if "n1:0 is idle" in line]) is bool(runs)


def test_error_names_the_run_when_there_is_none(tmp_path: Path) -> None:
    with run_stores(tmp_path / "data") as stores, pytest.raises(NotFoundError, match="no run `x`"):
        stores.queries.hangs.one("x")


def test_look_is_left_out_when_it_is_larger_than_a_tracker_sends(
    tmp_path: Path, case: tuple[int, list[HangLook]]
) -> None:
    _, looks = case
    many = replace(looks[0], ranks={rank: replace(looks[0].ranks[0], rank=rank) for rank in range(300)})
    with run_stores(tmp_path / "data") as stores:
        send(stores, "run-a", [many], range(300))
        assert stores.queries.runs.one("run-a").left_out == {"looks": 1}
        assert stores.queries.hangs.one("run-a").report is None
