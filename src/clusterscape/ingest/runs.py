"""Receives the files of tracked runs: their frames become workloads, allocations and samples.

Uploads are resumable and idempotent: a file continues at its stored offset, and a repeated piece changes nothing. Ownership and
the whole piece are checked before anything is applied. Runs on the writer's thread.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from clusterscape.errors import ForbiddenError, NotFoundError, QueryError, TooLargeError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.run_figures import note_figures, note_steps
from clusterscape.ingest.run_pieces import Piece, batch_of, read_piece, select_samples, split_dense
from clusterscape.ingest.run_records import RunClaims, claimed_units, summarize, workload_of
from clusterscape.ingest.run_usage import RunUsage, check_not_deleted, note_deleted
from clusterscape.model import UnixMs
from clusterscape.model.durations import DAY_MS, HOUR_MS
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
from clusterscape.model.runs import (
    RunFile,
    RunRecord,
    SeriesFigures,
    StoredRun,
    is_run_unit,
    measured_unit,
    new_run,
    run_of_unit,
    run_unit,
)
from clusterscape.settings.limits import RunLimits
from clusterscape.store.records.contract import RecordStore

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_CODES_PER_SERIES = 10
"""Limit of codes in all files of a run, per allowed series: the codes of every process start at 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPiece:
    """Result of storing a piece of a file. ``offset``: where the next piece starts."""

    offset: int
    samples: int
    not_finite: int


class RunIntake:
    """Stores tracked runs."""

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
        """The stored bytes of each file of a run."""
        stored = self._load(_check(run))
        return {} if stored is None else {name: file.offset for name, file in stored.detail.files.items()}

    def take(self, run: str, file: str, offset: int, data: bytes, *, user: str | None = None) -> StoredPiece:
        """Store the complete frames of ``data``, which starts at ``offset`` of ``file``; a rejected piece changes nothing.

        ``user``: the required owner, or the owner of a new run; None: any owner, and a new run belongs to the user it names.
        """
        now = self._clock()
        stored = self._load(_check(run))
        state = stored or new_run(run)
        source = self._open_file(state, _check(file))
        if offset > source.offset:
            raise QueryError(
                f"bytes {source.offset} to {offset} of {file} are missing",
                hint=f"Send {file} from offset {source.offset}.",
            )
        piece = read_piece(data, file, offset, stored_to=source.offset, limits=self.limits)
        check_owner_of_piece(run, None if stored is None else stored.record, piece.events, user)
        _check_times(piece.events, now)
        if stored is None:
            state.record.owned_by, state.record.received_at = find_owner(piece.events, user), now
        self._usage.check(state.record, piece.bytes, now, is_new=stored is None)
        result = self._apply(piece, source, state)
        self._records.write_run(state, at_ms=now)
        self._usage.note(state.record, now)
        self._ingest.note_run()
        return result

    def _apply(self, piece: Piece, file: RunFile, run: StoredRun) -> StoredPiece:
        before, held = workload_of(run).state, dict(run.detail.holds or {})
        is_first = not any(source.offset for source in run.detail.files.values())
        codes_elsewhere = sum(len(source.series) for source in run.detail.files.values() if source is not file)
        for event in piece.events:
            self._take_event(event, run, file, codes_elsewhere)
        file.offset = max(file.offset, piece.end)
        stored, not_finite = self._store_samples(piece, file, run)
        workload = workload_of(run)
        allocations = self._claims.allocations(run, self._clock())
        is_state_change = is_first or workload.state is not before or run.detail.holds != held
        self._ingest.accept_run(workload, allocations, is_state_change=is_state_change)
        run.record.bytes += piece.bytes
        run.summary.samples += stored
        summarize(run)
        return StoredPiece(offset=file.offset, samples=stored, not_finite=not_finite)

    def delete(self, run: str, *, user: str | None = None) -> None:
        """Delete a run; ``erase_deleted_runs`` erases its samples later. ``user``: the required owner; None: any."""
        stored = self._records.run(run)
        if stored is None:
            raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")
        record = stored.record
        if user is not None and record.owned_by != user:
            raise ForbiddenError(
                f"run {run} does not belong to {user}", hint="Only its owner and admins can delete it."
            )
        # First, so that a tracker that still sends the run cannot recreate it.
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
                f"the stored record of run {run} is damaged: {stored.damage}",
                hint="Delete the run, then send it again.",
            )
        if stored.detail.holds is None:  # stored before claims were checked: all were accepted
            stored.detail.holds = {unit: unit for unit in claimed_units(stored)}
        return stored

    def _open_file(self, run: StoredRun, name: str) -> RunFile:
        """The file of a run; added if new."""
        files = run.detail.files
        if name not in files:
            if len(files) >= self.limits.files:
                raise TooLargeError(
                    f"run {run.run} has {len(files):,} files, the limit is {self.limits.files:,}",
                    setting="limits.runs.files",
                )
            files[name] = RunFile()
        file = files[name]
        for code, (metric, unit) in file.series.items():
            home = unit if run_of_unit(unit) == run.run else measured_unit(run.run, unit)
            if home != unit:  # stored before runs had their own units: continue as another series
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
        """Whether a file may have another code; the files of all processes together are limited, too."""
        if code in file.series:
            return True
        codes, most = len(file.series), self.limits.series
        if codes < most and codes_elsewhere + codes < _CODES_PER_SERIES * most:
            return True
        leave_out(run, "series")
        return False

    def _store_samples(self, piece: Piece, file: RunFile, run: StoredRun) -> tuple[int, int]:
        """Store all frames of a piece as one batch unless too large, because the store syncs once per batch."""
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
        """The time range in which samples of a run are accepted."""
        now = self._clock()
        begin = run.summary.about.queued_at or run.record.received_at or now
        first = max(FIRST_MS, begin - DAY_MS)
        return first, int(min(now + self.limits.clock_skew_s * 1000, begin + self.limits.span_days * DAY_MS))


def note_series(run: StoredRun, event: SeriesNamed, unit: str, *, may_add: Callable[[str], bool]) -> bool:
    """Record scope and method of a series; False if the name is invalid or ``may_add`` rejects it."""
    key, series = f"{unit} {event.name}", run.detail.series
    if not 0 < len(event.name) <= METRIC_CHARS or (key not in series and not may_add(event.name)):
        leave_out(run, "series")
        return False
    figures = series.setdefault(key, SeriesFigures())
    figures.scope, figures.method = event.scope, event.method
    return True


def move_series(run: StoredRun, name: str, unit: str, home: str) -> None:
    """Continue a series under another unit, with new figures."""
    figures = run.detail.series.get(f"{unit} {name}")
    if figures is not None:
        run.detail.series.setdefault(f"{home} {name}", SeriesFigures(scope=figures.scope, method=figures.method))


def check_owner_of_piece(run: str, stored: RunRecord | None, events: Iterable[RunEvent], user: str | None) -> None:
    """Raise if ``user`` may not send this piece, before anything is applied."""
    described = [event for event in events if isinstance(event, RunDescribed)]
    if stored is None and not described:
        raise NotFoundError(f"run {run} does not exist yet", hint="Send tracker.spool first.")
    if stored is not None and user is not None and stored.owned_by != user:
        raise ForbiddenError(f"run {run} does not belong to {user}", hint="Send runs as the user who ran them.")
    owner = stored.owned_by if stored is not None else find_owner(described, user)
    for event in described:
        if event.user is not None and event.user != owner:
            raise ForbiddenError(
                f"run {run} belongs to {owner}, and a `run` event in this piece names the user {event.user!r}",
                hint="The owner of a run never changes. Send runs as the user who ran them.",
            )
        if event.run not in (None, run):
            raise QueryError(
                f"a `run` event in this piece belongs to another run than {run}", hint="Send it to that run."
            )


def find_owner(events: Iterable[RunEvent], user: str | None) -> str | None:
    """The owner of a new run: the sender, or the user in the first event if the sender may send runs of others."""
    if user is not None:
        return user
    return next((event.user for event in events if isinstance(event, RunDescribed)), None)


def own_unit(run: str, unit: str | None, rank: int | None) -> str:
    """The unit of a run's samples, always below the run itself. Raises QueryError for units of other runs."""
    if unit is None:
        return run_unit(run, f"rank{rank}" if rank else None)  # every rank logs its own loss
    if not is_run_unit(unit):
        return measured_unit(run, unit)
    if run_of_unit(unit) != run:
        raise QueryError(f"run {run} may not write samples of {unit[:200]}", hint="A run may only write its own units.")
    return unit


def _check_times(events: Iterable[RunEvent], now: UnixMs) -> None:
    """Raise for times in the future: the run would count as still running."""
    for event in events:
        match event:
            case MomentReached(at=at) | Ended(at=at) | RunDescribed(queued_at=int(at)) if at > now + DAY_MS:
                hours = (at - now) // HOUR_MS
                raise QueryError(
                    f"this piece has a time {hours:,} hours ahead of the server's clock",
                    hint="Check the clocks of the tracked host and of the server.",
                )


def _check(name: str) -> str:
    if not _NAME.match(name):
        raise QueryError(
            f"`{name[:100]}` is not a valid name of a run or file", hint="Use letters, digits, dots, - and _."
        )
    return name
