"""Runs into the stores: steps beside values, several samples a millisecond, pieces in any cut, twice."""

import math
from array import array
from pathlib import Path

import numpy as np
import pytest

from clusterscape.errors import NotFoundError, QueryError, StoreFullError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.runs import RunIntake, batch_of, split_dense
from clusterscape.model import UnitId, UnixMs, WorkloadId, WorkloadKind, WorkloadState
from clusterscape.model.run_frames import NO_STEP, SampleColumns, encode_event, encode_samples, iter_frames
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store

NOW = UnixMs(1_790_000_000_000)


def columns(code: list[int], time_us: list[int], step: list[int], value: list[float]) -> SampleColumns:
    return SampleColumns(array("I", code), array("q", time_us), array("q", step), array("d", value))


def test_steps_stand_beside_values_when_a_script_told_them() -> None:
    given = columns([0, 1, 0], [5000, 5000, 9000], [1, 1, NO_STEP], [0.5, math.nan, 0.25])
    batch, not_finite = batch_of(given, {0: ("loss", "run:a"), 1: ("odd", "run:a")}, step_unit="run:a")
    rows = sorted(
        zip(
            [batch.metrics.values[code] for code in batch.metric],
            batch.time_ms.tolist(),
            batch.value.tolist(),
            strict=True,
        )
    )
    assert rows == [("loss", 5, 0.5), ("loss", 9, 0.25), ("step", 5, 1.0)]
    assert not_finite == 1


def test_none_is_lost_when_many_fall_into_one_millisecond() -> None:
    given = columns([0, 1, 0, 0], [1000, 1000, 1001, 4000], [NO_STEP] * 4, [1, 2, 3, 4])
    batch, _ = batch_of(given, {0: ("a", "u"), 1: ("b", "u")}, step_unit="u")
    assert batch.time_ms.tolist() == [1, 1, 2, 4]


def test_rows_of_unknown_series_are_left_out_when_a_file_is_odd() -> None:
    batch, _ = batch_of(columns([0, 9], [1, 1], [NO_STEP] * 2, [1, 2]), {0: ("a", "u")}, step_unit="u")
    assert batch.value.tolist() == [1.0]


def test_pieces_hold_all_rows_when_names_and_times_are_many() -> None:
    count = 4000
    given = columns(list(range(count)), [n * 1000 for n in range(count)], [NO_STEP] * count, [1.0] * count)
    batch, _ = batch_of(given, {n: (f"m{n}", "u") for n in range(count)}, step_unit="u")
    pieces = split_dense(batch)
    assert len(pieces) > 1
    assert sum(map(len, pieces)) == count


def spool_file() -> bytes:
    start = NOW - 60_000
    return b"".join(
        [
            encode_event(
                {"event": "run", "run": "r1", "name": "a.py", "user": "me", "host": "n1", "devices": ["0", "1"],
                 "params": {"lr": "1"}, "queued_at": start}
            ),
            encode_event({"event": "moment", "moment": "barrier", "at": start + 10}),
            encode_event({"event": "moment", "moment": "running", "at": start + 20}),
            encode_event({"event": "series", "code": 0, "name": "loss", "unit": None, "scope": "run", "method": "measured"}),
            encode_samples([0, 0], [start * 1000 + 50_000, start * 1000 + 90_000], [0, 1], [1.0, 0.5]),
            encode_event({"event": "end", "state": "out_of_memory", "cause": "too big", "exit_code": 1, "at": start + 100}),
        ]
    )  # fmt: skip


@pytest.fixture
def site(tmp_path: Path):  # type: ignore[no-untyped-def]
    storage = StorageSettings(data_dir=tmp_path)
    metrics = open_metric_store(storage, RetentionSettings(), cluster="c")
    records = open_record_store(storage)
    ingest = Ingest(metrics, records, Changes(), clock=lambda: NOW)
    yield RunIntake(ingest, records, clock=lambda: NOW), records, metrics
    metrics.close()
    records.close()


def test_run_is_a_workload_when_its_file_comes_in_any_pieces(site) -> None:  # type: ignore[no-untyped-def]
    intake, records, metrics = site
    data = spool_file()
    ends = [0, *(frame.end for frame in iter_frames(data))]
    for begin, end in zip(ends, [*ends[2:], ends[-1]], strict=False):  # each frame comes twice
        taken = intake.take("r1", "tracker.spool", begin, data[begin:end])
    assert taken.offset == len(data) == intake.offsets("r1")["tracker.spool"]
    workload = records.workload(WorkloadId("run:r1"))
    assert (workload.kind, workload.state, workload.gpus_requested) == (
        WorkloadKind.RUN,
        WorkloadState.OUT_OF_MEMORY,
        2,
    )
    assert workload.tags == {"param.lr": "1", "cause": "too big"}
    held = records.allocations(workload=WorkloadId("run:r1"))
    assert [(one.unit, one.to_at) for one in held] == [("n1:0", NOW - 59_900), ("n1:1", NOW - 59_900)]
    found = metrics.series(["loss", "step"], [UnitId("run:r1")], start_ms=UnixMs(0), end_ms=NOW)
    assert np.array_equal(found["value"].to_numpy(), [1.0, 0.5, 0.0, 1.0])


def test_gap_and_nonsense_are_refused_when_they_come(site) -> None:  # type: ignore[no-untyped-def]
    intake, _, _ = site
    data = spool_file()
    with pytest.raises(QueryError, match="bytes 0 to 12"):
        intake.take("r1", "tracker.spool", 12, data[12:])
    with pytest.raises(QueryError, match="no frame"):
        intake.take("r1", "tracker.spool", 0, b"hello, world, how are you")
    with pytest.raises(QueryError, match="no name"):
        intake.take("../etc", "tracker.spool", 0, data)
    with pytest.raises(NotFoundError, match="not known yet"):
        intake.take("r1", "script-1.spool", 0, encode_event({"event": "process", "pid": 1}))


def test_nothing_is_lost_when_the_disk_was_full(site, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    intake, _, metrics = site
    data = spool_file()
    with monkeypatch.context() as full:
        full.setattr(metrics, "append", refuse)
        with pytest.raises(StoreFullError):
            intake.take("r1", "tracker.spool", 0, data)
    assert intake.offsets("r1") == {}  # the tracker sends it again
    assert intake.take("r1", "tracker.spool", 0, data).samples == 4
    found = metrics.series(["loss"], [UnitId("run:r1")], start_ms=UnixMs(0), end_ms=NOW)
    assert found["value"].to_list() == [1.0, 0.5]


def refuse(batch: object) -> None:
    del batch
    raise StoreFullError("no space left", hint="Free some.")


def test_every_name_is_stored_when_a_run_has_ten_thousand(site) -> None:  # type: ignore[no-untyped-def]
    intake, records, metrics = site
    names = [f"metric {number}" for number in range(10_000)]
    parts = [encode_event({"event": "run", "run": "r1", "name": "a.py", "host": "n1", "queued_at": NOW - 1000})]
    parts += [
        encode_event(
            {"event": "series", "code": code, "name": name, "unit": None, "scope": "run", "method": "measured"}
        )
        for code, name in enumerate(names)
    ]
    codes = list(range(len(names)))
    parts.append(encode_samples(codes, [NOW * 1000] * len(names), [NO_STEP] * len(names), [float(c) for c in codes]))
    assert intake.take("r1", "tracker.spool", 0, b"".join(parts)).samples == len(names)
    assert len(records.document("run-detail", "r1").body["series"]) == len(names)
    found = metrics.series(names[-2:], [UnitId("run:r1")], start_ms=UnixMs(0), end_ms=UnixMs(NOW + 1))
    assert found["value"].to_list() == [9998.0, 9999.0]
