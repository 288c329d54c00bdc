"""Takes in what trackers send of runs: frames of their files become workloads, allocations and samples.

Everything may come twice or in pieces: a file is taken in from where it was left, and the same again changes nothing. Who owns a
run, and whether all of a piece is as it should be, is decided before anything of it is applied. Runs on the writer's thread.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from clusterscape.errors import ForbiddenError, NotFoundError, QueryError, TooLargeError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.run_claims import RunClaims
from clusterscape.ingest.run_deletion import check_not_deleted, note_deleted
from clusterscape.ingest.run_figures import note_figures, note_steps
from clusterscape.ingest.run_pieces import Piece, read_piece
from clusterscape.ingest.run_records import claimed_units, summarize, workload_of
from clusterscape.ingest.run_samples import batch_of, select_samples, split_dense
from clusterscape.ingest.run_usage import DAY_MS, RunUsage
from clusterscape.model import UnixMs
from clusterscape.model.run_events import (
    FIRST_MS,
    Ended,
    MomentReached,
    ProcessNamed,
    RunDescribed,
    RunEvent,
    SeriesNamed,
)
from clusterscape.model.run_fold import METRIC_CHARS, FoldLimits, fold_event, leave_out
from clusterscape.model.run_units import is_run_unit, measured_unit, run_of_unit, run_unit
from clusterscape.model.runs import RunFile, RunRecord, SeriesFigures, StoredRun, new_run
from clusterscape.settings.limits import RunLimits
from clusterscape.store.records.contract import RecordStore

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_CODES_PER_SERIES = 10
"""Codes of all files of a run together, for each series that it may have: every process counts from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """What became of a piece of a file. ``offset`` is where the next one begins."""

    offset: int
    samples: int
    not_finite: int


class RunIntake:
    """The way of runs into the stores."""

    def __init__(
        self,
        ingest: Ingest,
        records: RecordStore,
        *,
        clock: Callable[[], UnixMs],
        limits: RunLimits | None = None,
    ) -> None:
        self.limits = limits or RunLimits()
        self._ingest = ingest
        self._records = records
        self._claims = RunClaims(records, ingest.has_unit, most=self.limits.devices)
        self._usage = RunUsage(records, self.limits, clock)
        self._clock = clock
        self._fold_limits = FoldLimits(
            params=self.limits.params,
            param_chars=self.limits.param_chars,
            text_chars=self.limits.text_chars,
            marks=self.limits.marks,
            devices=self.limits.devices,
        )

    def offsets(self, run: str) -> dict[str, int]:
        """How much of each file of a run is stored."""
        stored = self._load(_check(run))
        return {} if stored is None else {name: file.offset for name, file in stored.detail.files.items()}

    def take(self, run: str, file: str, offset: int, data: bytes, *, user: str | None = None) -> TakenIn:
        """Store the whole frames of ``data``, which begins at ``offset`` of ``file``; a piece that is refused changes nothing.

        ``user``: whose run it must be, or becomes where it is new; None: anybody's, and a new one belongs to whom it names.
        """
        now = self._clock()
        stored = self._load(_check(run))
        state = stored or new_run(run)
        source = self._open_file(state, _check(file))
        if offset > source.offset:
            raise QueryError(
                f"bytes {source.offset} to {offset} of {file} are missing", hint=f"Send {file} from {source.offset} on."
            )
        piece = read_piece(data, file, offset, stored_to=source.offset, limits=self.limits)
        check_owner_of_piece(run, None if stored is None else stored.record, piece.events, user)
        _check_times(piece.events, now)
        if stored is None:
            state.record.owned_by, state.record.received_at = find_owner(piece.events, user), now
        self._usage.check(state.record, piece.bytes, now, is_new=stored is None)
        taken = self._apply(piece, source, state)
        self._records.write_run(state, at_ms=now)
        self._usage.note(state.record, now)
        self._ingest.note_run()
        return taken

    def _apply(self, piece: Piece, file: RunFile, run: StoredRun) -> TakenIn:
        before, held = workload_of(run).state, dict(run.detail.holds or {})
        is_first = not any(source.offset for source in run.detail.files.values())
        codes_elsewhere = sum(len(source.series) for source in run.detail.files.values() if source is not file)
        for event in piece.events:
            self._take_event(event, run, file, codes_elsewhere)
        file.offset = max(file.offset, piece.end)
        stored, not_finite = self._store_samples(piece, file, run)
        workload = workload_of(run)
        allocations = self._claims.allocations(run, self._clock())
        is_turn = is_first or workload.state is not before or run.detail.holds != held
        self._ingest.accept_run(workload, allocations, is_turn=is_turn)
        run.record.bytes += piece.bytes
        run.summary.samples += stored
        summarize(run)
        return TakenIn(offset=file.offset, samples=stored, not_finite=not_finite)

    def delete(self, run: str, *, user: str | None = None) -> None:
        """Forget a run; its samples are erased by ``erase_deleted_runs``. ``user``: whose it must be; None: anybody's."""
        stored = self._records.run(run)
        if stored is None:
            raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")
        record = stored.record
        if user is not None and record.owned_by != user:
            raise ForbiddenError(f"run {run} is not a run of {user}", hint="Its owner and admins can delete it.")
        # First, so that nothing of it comes back: a tracker may be sending it.
        note_deleted(self._records, stored, now=self._clock())
        self._records.remove_run(run)
        self._ingest.forget_workload(record.workload)
        self._usage.forget(run, record.owned_by)
        self._ingest.note_run()

    def _load(self, run: str) -> StoredRun | None:
        stored = self._records.run(run)
        if stored is None:
            check_not_deleted(self._records, run)
            return None
        if stored.damage is not None:
            raise QueryError(
                f"the stored record of run {run} is damaged: {stored.damage}", hint="Delete it, then send it again."
            )
        if stored.detail.holds is None:  # stored before claims were checked: all of them were believed
            stored.detail.holds = {unit: unit for unit in claimed_units(stored)}
        return stored

    def _open_file(self, run: StoredRun, name: str) -> RunFile:
        """The file of a run, which is added where it is new."""
        files = run.detail.files
        if name not in files:
            if len(files) >= self.limits.files:
                raise TooLargeError(
                    f"run {run.run} has {len(files):,} files, and no more are accepted",
                    setting="limits.runs.files",
                )
            files[name] = RunFile()
        file = files[name]
        for code, (metric, unit) in file.series.items():
            home = unit if run_of_unit(unit) == run.run else measured_unit(run.run, unit)
            if home != unit:  # stored before runs had units of their own: what follows is another series
                move_series(run, metric, unit, home)
                file.series[code] = (metric, home)
        return file

    def _take_event(self, event: RunEvent, run: StoredRun, file: RunFile, codes_elsewhere: int) -> None:
        match event:
            case SeriesNamed():
                unit = own_unit(run.run, event.unit, file.rank)
                may_add = partial(self._usage.has_room_for_series, run)
                has_room = self._has_room(event.code, file, run, codes_elsewhere)
                if has_room and note_series(run, event, unit, may_add=may_add):
                    file.series[event.code] = (event.name, unit)
                else:
                    file.series.pop(event.code, None)
            case ProcessNamed():
                file.rank = event.rank
            case _:
                fold_event(event, run, self._fold_limits)

    def _has_room(self, code: int, file: RunFile, run: StoredRun, codes_elsewhere: int) -> bool:
        """Whether a file may have one more code; files of all processes together are bounded, too."""
        if code in file.series:
            return True
        codes, most = len(file.series), self.limits.series
        if codes < most and codes_elsewhere + codes < _CODES_PER_SERIES * most:
            return True
        leave_out(run, "series")
        return False

    def _store_samples(self, piece: Piece, file: RunFile, run: StoredRun) -> tuple[int, int]:
        """All frames of a piece as one batch, where that is not too large: a store syncs once for each."""
        if not piece.samples:
            return 0, 0
        begin_ms, end_ms = self._span(run)
        samples = select_samples(piece.samples, file.series, begin_ms=begin_ms, end_ms=end_ms)
        note_figures(samples, run.detail.series)
        run.detail.steps = note_steps(samples, run.detail.steps)
        run.summary.not_finite += samples.not_finite
        leave_out(run, "samples", samples.left_out)
        batch = batch_of(samples, step_unit=own_unit(run.run, None, file.rank))
        for part in split_dense(batch):
            self._ingest.accept_samples(part)
        return len(batch), samples.not_finite

    def _span(self, run: StoredRun) -> tuple[int, int]:
        """When samples of a run can have been taken."""
        now = self._clock()
        begin = run.summary.about.queued_at or run.record.received_at or now
        first = max(FIRST_MS, begin - DAY_MS)
        return first, int(min(now + self.limits.future_s * 1000, begin + self.limits.span_days * DAY_MS))


def note_series(run: StoredRun, event: SeriesNamed, unit: str, *, may_add: Callable[[str], bool]) -> bool:
    """What a series measures and how; False where it is one too many, as ``may_add`` says of its name."""
    key, series = f"{unit} {event.name}", run.detail.series
    if not 0 < len(event.name) <= METRIC_CHARS or (key not in series and not may_add(event.name)):
        leave_out(run, "series")
        return False
    figures = series.setdefault(key, SeriesFigures())
    figures.scope, figures.method = event.scope, event.method
    return True


def move_series(run: StoredRun, name: str, unit: str, home: str) -> None:
    """Samples that follow are stored under another unit: figures begin anew there."""
    figures = run.detail.series.get(f"{unit} {name}")
    if figures is not None:
        run.detail.series.setdefault(f"{home} {name}", SeriesFigures(scope=figures.scope, method=figures.method))


def check_owner_of_piece(run: str, stored: RunRecord | None, events: Iterable[RunEvent], user: str | None) -> None:
    """Raise where ``user`` may not send this piece, before anything of it is applied."""
    described = [event for event in events if isinstance(event, RunDescribed)]
    if stored is None and not described:
        raise NotFoundError(f"run {run} is not known yet", hint="Send tracker.spool first.")
    if stored is not None and user is not None and stored.owned_by != user:
        raise ForbiddenError(f"run {run} is not a run of {user}", hint="Send runs as the user that ran them.")
    owner = stored.owned_by if stored is not None else find_owner(described, user)
    for event in described:
        if event.user is not None and event.user != owner:
            raise ForbiddenError(
                f"run {run} belongs to {owner}, and a `run` event in this piece names the user {event.user!r}",
                hint="The owner of a run never changes. Send runs as the user that ran them.",
            )
        if event.run not in (None, run):
            raise QueryError(f"a `run` event in this piece is about another run than {run}", hint="Send it there.")


def find_owner(events: Iterable[RunEvent], user: str | None) -> str | None:
    """Whose a new run is: the sender's, or for senders who may send runs of others, that of whom the first event names."""
    if user is not None:
        return user
    return next((event.user for event in events if isinstance(event, RunDescribed)), None)


def own_unit(run: str, unit: str | None, rank: int | None) -> str:
    """Where samples of a run are stored: always below the run itself. Raises QueryError for units of other runs."""
    if unit is None:
        return run_unit(run, f"rank{rank}" if rank else None)  # each further rank of a run says its own loss
    if not is_run_unit(unit):
        return measured_unit(run, unit)
    if run_of_unit(unit) != run:
        raise QueryError(f"run {run} may not write samples of {unit[:200]}", hint="A run writes its own units only.")
    return unit


def _check_times(events: Iterable[RunEvent], now: UnixMs) -> None:
    """Raise for a life that lies in the future: it would be held for one that goes on."""
    for event in events:
        match event:
            case MomentReached(at=at) | Ended(at=at) | RunDescribed(queued_at=int(at)) if at > now + DAY_MS:
                hours = (at - now) // 3_600_000
                raise QueryError(
                    f"this piece tells of a time {hours:,} hours ahead of the server's clock",
                    hint="Is the clock right where the run was tracked, and on the server?",
                )


def _check(name: str) -> str:
    if not _NAME.match(name):
        raise QueryError(f"`{name[:100]}` is no name of a run or file", hint="Letters, digits, dots, - and _.")
    return name
