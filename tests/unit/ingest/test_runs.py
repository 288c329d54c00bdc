"""Runs in the stores: steps with values, several samples per millisecond, pieces of any size, repeated pieces."""

import math
from array import array
from pathlib import Path

import numpy as np
import pytest

from clusterscape.errors import NotFoundError, QueryError, StoreFullError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.run_pieces import batch_of, select_samples, split_dense
from clusterscape.ingest.runs import RunIntake
from clusterscape.model import SampleBatch, UnitId, UnixMs, WorkloadId, WorkloadKind, WorkloadState
from clusterscape.model.run_frames import NO_STEP, SampleColumns, encode_event, encode_samples, iter_frames
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.embedded.blocks import pivot
from clusterscape.store.records import open_record_store

NOW = UnixMs(1_790_000_000_000)


def columns(code: list[int], time_us: list[int], step: list[int], value: list[float]) -> SampleColumns:
    return SampleColumns(array("I", code), array("q", time_us), array("q", step), array("d", value))


def stored(sent: SampleColumns, series: dict[int, tuple[str, str]], unit: str) -> tuple[SampleBatch, int]:
    """The batch, and how many samples are not finite."""
    samples = select_samples([sent], series, begin_ms=0, end_ms=10_000)
    return batch_of(samples, step_unit=unit), samples.not_finite


def test_steps_are_stored_with_values_when_a_script_reports_them() -> None:
    sent = columns([0, 1, 0], [5000, 5000, 9000], [1, 1, NO_STEP], [0.5, math.nan, 0.25])
    batch, not_finite = stored(sent, {0: ("loss", "run:a"), 1: ("odd", "run:a")}, "run:a")
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


def test_no_sample_is_lost_when_many_fall_into_one_millisecond() -> None:
    sent = columns([0, 1, 0, 0], [1000, 1000, 1001, 4000], [NO_STEP] * 4, [1, 2, 3, 4])
    batch, _ = stored(sent, {0: ("a", "u"), 1: ("b", "u")}, "u")
    assert batch.time_ms.tolist() == [1, 1, 2, 4]


def test_rows_of_unknown_series_are_left_out_when_a_file_is_odd() -> None:
    sent = columns([0, 9, 2**32 - 1], [1] * 3, [NO_STEP] * 3, [1, 2, 3])
    batch, _ = stored(sent, {0: ("a", "u")}, "u")
    assert batch.value.tolist() == [1.0]
    assert len(stored(sent, {}, "u")[0]) == 0


def test_values_and_steps_are_left_out_when_they_are_beyond_reason() -> None:
    sent = columns([0] * 4, [1000, 2000, 3000, 4000], [2**62, 5, -(2**63), 3], [1.0, 1e200, -math.inf, 2.0])
    batch, not_finite = stored(sent, {0: ("a", "u")}, "u")
    assert batch.value.tolist() == [1.0, 2.0, 5.0, 3.0]
    assert not_finite == 2


def test_samples_are_left_out_when_their_times_are_outside_of_the_span() -> None:
    times = [-9 * 10**18, 4_999_000, 5_000_000, 9_000_999, 9_001_000, 9 * 10**18]
    sent = columns([0] * 6, times, [NO_STEP] * 6, [1, 2, 3, 4, 5, 6])
    samples = select_samples([sent], {0: ("a", "u")}, begin_ms=5000, end_ms=9000)
    assert (samples.value.tolist(), samples.left_out) == ([3.0, 4.0], 4)


@pytest.mark.parametrize("has_own_units", [False, True])
@pytest.mark.parametrize("has_own_times", [False, True])
def test_parts_hold_all_rows_and_stay_small_when_names_and_times_are_many(
    has_own_units: bool, has_own_times: bool
) -> None:
    names, rows_per_name, most_cells = 300, 40, 50_000
    code = np.tile(np.arange(names), rows_per_name)
    order = np.arange(names * rows_per_name)
    time_us = (order if has_own_times else order // names) * 1000
    sent = columns(code.tolist(), time_us.tolist(), [NO_STEP] * len(code), [1.0] * len(code))
    series = {n: (f"m{n}", f"u{n}" if has_own_units else "u") for n in range(names)}
    batch = batch_of(select_samples([sent], series, begin_ms=0, end_ms=10**9), step_unit="u")
    parts = split_dense(batch, most_cells=most_cells)
    shapes = [pivot(part.unit, part.metric, part.time_ms, part.value, part.metrics.values) for part in parts]
    assert sum(shape.count_samples() for shape in shapes) == len(code)
    assert max(shape.cells for shape in shapes) <= most_cells
    assert len(parts) <= 4 * math.ceil(math.sqrt(len(code) * names / most_cells))


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
        result = intake.take("r1", "tracker.spool", begin, data[begin:end])
    assert result.offset == len(data) == intake.offsets("r1")["tracker.spool"]
    workload = records.workload(WorkloadId("run:r1"))
    assert (workload.kind, workload.state, workload.gpus_requested) == (
        WorkloadKind.RUN,
        WorkloadState.OUT_OF_MEMORY,
        2,
    )
    assert workload.tags == {"param.lr": "1", "cause": "too big"}
    held = records.allocations(workload=WorkloadId("run:r1"))
    assert [(allocation.unit, allocation.to_at) for allocation in held] == [
        ("run:r1/at/n1:0", NOW - 59_900),
        ("run:r1/at/n1:1", NOW - 59_900),
    ]
    samples = metrics.series(["loss", "step"], [UnitId("run:r1")], start_ms=UnixMs(0), end_ms=NOW)
    assert np.array_equal(samples["value"].to_numpy(), [1.0, 0.5, 0.0, 1.0])


def test_piece_is_refused_when_it_leaves_a_gap_or_is_invalid(site) -> None:  # type: ignore[no-untyped-def]
    intake, _, _ = site
    data = spool_file()
    with pytest.raises(QueryError, match="bytes 0 to 12"):
        intake.take("r1", "tracker.spool", 12, data[12:])
    with pytest.raises(QueryError, match="no frame"):
        intake.take("r1", "tracker.spool", 0, b"hello, world, how are you")
    with pytest.raises(QueryError, match="not a valid name"):
        intake.take("../etc", "tracker.spool", 0, data)
    with pytest.raises(NotFoundError, match="does not exist yet"):
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
    samples = metrics.series(["loss"], [UnitId("run:r1")], start_ms=UnixMs(0), end_ms=NOW)
    assert samples["value"].to_list() == [1.0, 0.5]


def refuse(batch: object) -> None:
    del batch
    raise StoreFullError("no space left", hint="Free some.")


def test_first_names_are_stored_and_the_rest_counted_when_a_run_has_too_many(site) -> None:  # type: ignore[no-untyped-def]
    intake, records, metrics = site
    most = intake.limits.series
    names = [f"metric {number}" for number in range(most + 10)]
    parts = [encode_event({"event": "run", "run": "r1", "name": "a.py", "host": "n1", "queued_at": NOW - 1000})]
    parts += [
        encode_event(
            {"event": "series", "code": code, "name": name, "unit": None, "scope": "run", "method": "measured"}
        )
        for code, name in enumerate(names)
    ]
    codes = list(range(len(names)))
    parts.append(encode_samples(codes, [NOW * 1000] * len(names), [NO_STEP] * len(names), [float(c) for c in codes]))
    data = b"".join(parts)
    begun = intake.take("r1", "tracker.spool", 0, data)  # the number of frames that one piece may hold
    assert intake.take("r1", "tracker.spool", begun.offset, data[begun.offset :]).samples == most
    detail = records.run("r1").detail
    assert len(detail.series) == most
    assert detail.left_out == {"series": 10, "samples": 10}
    samples = metrics.series(names, [UnitId("run:r1")], start_ms=UnixMs(0), end_ms=UnixMs(NOW + 1))
    assert sorted(samples["value"].to_list()) == [float(code) for code in range(most)]


class Counting:
    """A site that counts the notifications of its pages."""

    def __init__(self, folder: Path) -> None:
        storage = StorageSettings(data_dir=folder)
        self.metrics = open_metric_store(storage, RetentionSettings(), cluster="c")
        self.records = open_record_store(storage)
        self.changes, self.now = Changes(), NOW
        ingest = Ingest(self.metrics, self.records, self.changes, clock=lambda: self.now)
        self.intake = RunIntake(ingest, self.records, clock=lambda: self.now)

    def close(self) -> None:
        self.metrics.close()
        self.records.close()


def test_pages_are_notified_rarely_when_pieces_arrive_continuously(tmp_path: Path) -> None:
    """Shared responses are computed again for each version, so one sender must not cause many versions."""
    site = Counting(tmp_path)
    data = spool_file()
    site.intake.take("r1", "tracker.spool", 0, data)
    site.now = UnixMs(NOW + 10_000)
    first = site.changes.versions
    for number in range(50):
        tag = encode_event({"event": "tags", "tags": {"a": f"{number}"}})
        again = encode_event({"event": "end", "state": ("failed", "completed")[number % 2], "at": NOW})
        late = encode_samples([0], [NOW * 1000 - 5_000_000], [NO_STEP], [1.0])
        site.now = UnixMs(site.now + 100)
        site.intake.take("r1", f"f{number}", 0, tag + again + series_of("loss") + late)
    last = site.changes.versions
    assert last.history == first.history
    assert last.tick - first.tick <= 2
    assert last.inventory - first.inventory <= 2
    assert last.runs - first.runs == 50
    assert last.newest_sample_at is not None
    assert last.newest_sample_at <= site.now
    site.close()


def series_of(name: str) -> bytes:
    event = {"event": "series", "code": 0, "name": name, "unit": None, "scope": "run", "method": "measured"}
    return encode_event(event)


def test_pages_are_notified_immediately_when_a_run_begins_and_ends(tmp_path: Path) -> None:
    site = Counting(tmp_path)
    data = spool_file()
    notified = []
    offset = 0
    for frame in iter_frames(data):
        before = site.changes.versions.inventory
        site.intake.take("r1", "tracker.spool", offset, data[offset : frame.end])
        notified.append(site.changes.versions.inventory > before)
        offset = frame.end
    assert notified == [True, False, True, False, False, True], "described, barrier, running, series, samples, end"
    site.close()


def test_first_end_counts_when_a_run_ends_twice_unless_it_was_reported_for_its_tracker(tmp_path: Path) -> None:
    site = Counting(tmp_path)
    begun = encode_event({"event": "run", "run": "r1", "queued_at": NOW - 1000})
    closing = {"event": "end", "state": "failed", "cause": "its tracker was killed", "at": NOW, "is_closing": True}
    ends = [closing, {**closing, "state": "unknown"}, {"event": "end", "state": "completed", "at": NOW}, closing]
    states = []
    for number, end in enumerate(ends):
        site.intake.take("r1", f"f{number}", 0, begun + encode_event(end))
        states.append(site.records.workload(WorkloadId("run:r1")).state.value)  # type: ignore[union-attr]
    assert states == ["failed", "failed", "completed", "completed"]
    site.close()
