"""Takes in what trackers send of runs: frames of their files become workloads, allocations and samples.

Everything may come twice or in pieces: a file is taken in from where it was left, and the same again changes nothing.
Runs on the writer's thread.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clusterscape.errors import ForbiddenError, NotFoundError, QueryError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.run_figures import note_figures, note_steps
from clusterscape.ingest.run_records import RunState, allocations_of, take_event, workload_of
from clusterscape.model import HistoryObserved, Names, QueueObserved, SampleBatch, UnixMs
from clusterscape.model.run_frames import NO_STEP, FrameKind, SampleColumns, decode_event, decode_samples, iter_frames
from clusterscape.store.records.contract import RecordStore

RUN_KIND = "run"
"""Kind of the small documents that lists of runs are made of."""
DETAIL_KIND = "run-detail"
"""Kind of the documents with everything else of a run but its samples."""
STEP_METRIC = "step"
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
_MOST_CELLS = 4_000_000
"""The store keeps samples as dense columns: rows × names of one batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """What became of a piece of a file. ``offset`` is where the next one begins."""

    offset: int
    samples: int
    not_finite: int


@dataclass(slots=True)
class _File:
    """How far a file was read, and the series its codes stand for."""

    offset: int = 0
    rank: int | None = None
    series: dict[int, tuple[str, str]] = field(default_factory=dict)  # code: name, unit


class RunIntake:
    """The way of runs into the stores."""

    def __init__(self, ingest: Ingest, records: RecordStore, *, clock: Callable[[], UnixMs]) -> None:
        self._ingest = ingest
        self._records = records
        self._clock = clock

    def offsets(self, run: str) -> dict[str, int]:
        """How much of each file of a run is stored."""
        state = self._load(_check(run))
        return {name: int(str(file["offset"])) for name, file in state.files.items()} if state else {}

    def take(self, run: str, file: str, offset: int, data: bytes, *, user: str | None = None) -> TakenIn:
        """Store the whole frames of ``data``, which begins at ``offset`` of ``file``. ``user``: whose run it must be."""
        state = self._load(_check(run)) or RunState(run=run)
        known = _load_file(state.files.get(_check(file), {}))
        if offset > known.offset:
            raise QueryError(
                f"bytes {known.offset} to {offset} of {file} are missing", hint=f"Send {file} from {known.offset} on."
            )
        columns: list[SampleColumns] = []
        end = offset
        for frame in iter_frames(data):
            if offset + frame.end <= known.offset:
                end = offset + frame.end
                continue
            try:
                if frame.kind == FrameKind.EVENT:
                    self._take_event(decode_event(frame.payload), state, known)
                elif frame.kind == FrameKind.SAMPLES:
                    columns.append(decode_samples(frame.payload))
            except ValueError:
                state.damaged += 1
            end = offset + frame.end
        if end == offset and data:
            raise QueryError(f"{file} holds no frame at {offset}", hint="Is it a spool file of ClusterScape?")
        if "run" not in state.about:
            raise NotFoundError(f"run {run} is not known yet", hint="Send tracker.spool first.")
        if user is not None and state.about.get("user") != user:
            raise ForbiddenError(f"run {run} is not a run of {user}", hint="Send runs as the user that ran them.")
        known.offset = max(known.offset, end)
        stored, strange = self._store_samples(columns, known, state)
        self._store_records(state)
        state.samples += stored
        state.files[file] = {
            "offset": known.offset,
            "rank": known.rank,
            "series": {str(code): list(pair) for code, pair in known.series.items()},
        }
        now = self._clock()
        # How far the file was read stands in the second: after a crash between the two, the piece is taken in again.
        self._records.write_document(RUN_KIND, run, state.listed(), at_ms=now)
        self._records.write_document(DETAIL_KIND, run, state.detail(), at_ms=now)
        self._ingest.note_run()
        return TakenIn(offset=known.offset, samples=stored, not_finite=strange)

    def _load(self, run: str) -> RunState | None:
        detail = self._records.document(DETAIL_KIND, run)
        listed = self._records.document(RUN_KIND, run)
        return RunState.of(run, listed.body, detail.body) if listed and detail else None

    def _take_event(self, event: Mapping[str, object], state: RunState, file: _File) -> None:
        match event:
            case {"event": "series", "code": int(code), "name": str(name)}:
                unit = event.get("unit")
                home = unit if isinstance(unit, str) else f"run:{state.run}"
                if unit is None and file.rank:  # each further rank of a run says its own loss
                    home = f"{home}/rank{file.rank}"
                file.series[code] = (name, home)
                state.note_series(name, home, event)
            case {"event": "process"}:
                rank = event.get("rank")
                file.rank = rank if isinstance(rank, int) else None
            case _:
                take_event(event, state)

    def _store_records(self, state: RunState) -> None:
        now = self._clock()
        workload = workload_of(state)
        allocations = allocations_of(state)
        if workload.state.is_active:
            seen = QueueObserved(source="run", at=now, workloads=[workload], allocations=allocations, is_complete=False)
            self._ingest.accept(seen)
        else:
            self._ingest.accept(HistoryObserved(source="run", at=now, workloads=[workload], allocations=allocations))

    def _store_samples(self, frames: list[SampleColumns], file: _File, state: RunState) -> tuple[int, int]:
        """All frames of a piece as one batch: a store syncs once for each."""
        if not frames:
            return 0, 0
        columns = frames[0]
        for more in frames[1:]:
            columns.code.extend(more.code)
            columns.time_us.extend(more.time_us)
            columns.step.extend(more.step)
            columns.value.extend(more.value)
        note_figures(columns, file.series, state.series)
        state.steps = note_steps(columns, state.steps)
        own = f"run:{state.run}" if not file.rank else f"run:{state.run}/rank{file.rank}"
        batch, strange = batch_of(columns, file.series, step_unit=own)
        for part in split_dense(batch):
            self._ingest.accept_samples(part)
        state.not_finite += strange
        return len(batch), strange


def batch_of(
    columns: SampleColumns, series: Mapping[int, tuple[str, str]], *, step_unit: str
) -> tuple[SampleBatch, int]:
    """Samples for the store, and how many were left out because they are NaN or infinite.

    Steps become samples of ``step`` at the same times. Of several samples of a series in one millisecond, later ones move to
    the next free ones.
    """
    code = np.frombuffer(columns.code, np.uint32)
    value = np.frombuffer(columns.value, np.float64)
    step = np.frombuffer(columns.step, np.int64)
    time_ms = np.frombuffer(columns.time_us, np.int64) // 1000
    units, metrics = Names(), Names()
    lookup = np.full((int(code.max(initial=0)) + 1, 2), -1, np.int32)
    for number, (name, unit) in series.items():
        if number < len(lookup):
            lookup[number] = (units.code(unit), metrics.code(name))
    unit_code, metric_code = lookup[code, 0], lookup[code, 1]
    is_known = unit_code >= 0
    is_finite = np.isfinite(value)
    keep = is_known & is_finite
    time_ms = _spread(code, time_ms)
    has_step = np.flatnonzero(is_known & (step != NO_STEP))
    _, first = np.unique(time_ms[has_step], return_index=True)
    steps = has_step[first]
    batch = SampleBatch(
        units=units,
        metrics=metrics,
        unit=np.concatenate([unit_code[keep], np.full(len(steps), units.code(step_unit), np.int32)]),
        metric=np.concatenate([metric_code[keep], np.full(len(steps), metrics.code(STEP_METRIC), np.int32)]),
        time_ms=np.concatenate([time_ms[keep], time_ms[steps]]),
        value=np.concatenate([value[keep], step[steps].astype(np.float64)]),
    )
    return batch, int((is_known & ~is_finite).sum())


def _spread(code: NDArray[np.uint32], time_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times that rise strictly within each series."""
    order = np.lexsort((np.arange(len(code)), code))
    sorted_code, sorted_time = code[order], time_ms[order]
    starts = np.flatnonzero(np.r_[True, sorted_code[1:] != sorted_code[:-1]]) if len(code) else np.empty(0, np.int64)
    place = np.arange(len(code)) - np.repeat(starts, np.diff(np.r_[starts, len(code)]))
    found = np.empty_like(time_ms)
    moved = sorted_time - place
    for begin, end in zip(starts.tolist(), np.r_[starts[1:], len(code)].tolist(), strict=True):
        moved[begin:end] = np.maximum.accumulate(moved[begin:end])
    found[order] = moved + place
    return found


def split_dense(batch: SampleBatch) -> list[SampleBatch]:
    """Pieces that do not grow beyond reason as dense columns, where thousands of names come at thousands of times."""
    names, times = len(batch.metrics), len(np.unique(batch.time_ms))
    pieces = -(-names * times // _MOST_CELLS)
    if pieces <= 1:
        return [batch]
    order = np.argsort(batch.time_ms, kind="stable")
    return [
        SampleBatch(
            batch.units,
            batch.metrics,
            batch.unit[part],
            batch.metric[part],
            batch.time_ms[part],
            batch.value[part],
        )
        for part in np.array_split(order, pieces)
        if len(part)
    ]


def _check(name: str) -> str:
    if not _NAME.match(name):
        raise QueryError(f"`{name[:100]}` is no name of a run or file", hint="Letters, digits, dots, - and _.")
    return name


def _load_file(body: object) -> _File:
    if not isinstance(body, Mapping) or not body:
        return _File()
    series = {int(code): (str(pair[0]), str(pair[1])) for code, pair in dict(body["series"]).items()}
    rank = body.get("rank")
    return _File(int(body["offset"]), rank if isinstance(rank, int) else None, series)
