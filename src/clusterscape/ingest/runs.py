"""Takes in what trackers send of runs: frames of their files become workloads, allocations and samples.

Everything may come twice or in pieces: a file is taken in from where it was left, and the same again changes nothing. Who owns a
run, and whether all of a piece is as it should be, is decided before anything of it is applied. Runs on the writer's thread.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from clusterscape.errors import ForbiddenError, NotFoundError, QueryError, TooLargeError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.run_claims import RunClaims
from clusterscape.ingest.run_deletion import check_not_deleted, note_deleted
from clusterscape.ingest.run_events import (
    FIRST_MS,
    Ended,
    MomentReached,
    ProcessNamed,
    RunDescribed,
    RunEvent,
    SeriesNamed,
)
from clusterscape.ingest.run_figures import note_figures, note_steps
from clusterscape.ingest.run_pieces import Piece, read_piece
from clusterscape.ingest.run_records import RunState, take_event, workload_id, workload_of
from clusterscape.ingest.run_samples import batch_of, select_samples, split_dense
from clusterscape.ingest.run_usage import DAY_MS, RunUsage
from clusterscape.model import UnixMs
from clusterscape.model.run_units import is_run_unit, measured_unit, run_of_unit, run_unit
from clusterscape.model.stored_runs import DETAIL_KIND, RUN_KIND, find_damage, owner_of
from clusterscape.settings.limits import RunLimits
from clusterscape.store.records.contract import Document, RecordStore

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_CODES_PER_SERIES = 10
"""Codes of all files of a run together, for each series that it may have: every process counts from 0."""


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
    codes_elsewhere: int = 0  # of the run's other files


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

    def offsets(self, run: str) -> dict[str, int]:
        """How much of each file of a run is stored."""
        state = self._load(_check(run))
        return {name: int(file["offset"]) for name, file in state.files.items()} if state else {}

    def take(self, run: str, file: str, offset: int, data: bytes, *, user: str | None = None) -> TakenIn:
        """Store the whole frames of ``data``, which begins at ``offset`` of ``file``; a piece that is refused changes nothing.

        ``user``: whose run it must be, or becomes where it is new; None: anybody's, and a new one belongs to whom it names.
        """
        now = self._clock()
        stored_run = self._load(_check(run))
        state = stored_run or RunState(run=run)
        known = self._load_file(state, _check(file))
        if offset > known.offset:
            raise QueryError(
                f"bytes {known.offset} to {offset} of {file} are missing", hint=f"Send {file} from {known.offset} on."
            )
        piece = read_piece(data, file, offset, stored_to=known.offset, limits=self.limits)
        check_owner_of_piece(run, stored_run, piece.events, user)
        _check_times(piece.events, now)
        if stored_run is None:
            state.owned_by, state.received_at = find_owner(piece.events, user), now
        self._usage.check(state, piece.bytes, now, is_new=stored_run is None)
        taken = self._apply(piece, file, known, state)
        # How far the file was read stands in the second: after a crash between the two, the piece is taken in again.
        self._records.write_document(RUN_KIND, run, state.listed(), at_ms=now)
        self._records.write_document(DETAIL_KIND, run, state.detail(), at_ms=now)
        self._usage.note(state, now)
        self._ingest.note_run()
        return taken

    def _apply(self, piece: Piece, name: str, file: _File, state: RunState) -> TakenIn:
        was = workload_of(state).state if state.files else None
        for event in piece.events:
            self._take_event(event, state, file)
        file.offset = max(file.offset, piece.end)
        stored, not_finite = self._store_samples(piece, file, state)
        workload, held = workload_of(state), dict(state.holds)
        allocations = self._claims.allocations(state, self._clock())
        self._ingest.accept_run(workload, allocations, is_turn=workload.state is not was or state.holds != held)
        state.bytes += piece.bytes
        state.samples += stored
        state.files[name] = {
            "offset": file.offset,
            "rank": file.rank,
            "series": {str(code): list(pair) for code, pair in file.series.items()},
        }
        return TakenIn(offset=file.offset, samples=stored, not_finite=not_finite)

    def delete(self, run: str, *, user: str | None = None) -> None:
        """Forget a run; its samples are erased by ``erase_deleted_runs``. ``user``: whose it must be; None: anybody's."""
        listed = self._records.document(RUN_KIND, run)
        if listed is None:
            raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")
        owner = owner_of(listed.body)
        if user is not None and owner != user:
            raise ForbiddenError(f"run {run} is not a run of {user}", hint="Its owner and admins can delete it.")
        detail = self._records.document(DETAIL_KIND, run)
        # First, so that nothing of it comes back: a tracker may be sending it.
        note_deleted(self._records, run, owner, {} if detail is None else detail.body, now=self._clock())
        self._records.remove_document(DETAIL_KIND, run)
        self._records.remove_document(RUN_KIND, run)
        self._ingest.forget_workload(workload_id(run))
        self._usage.forget(run, owner)
        self._ingest.note_run()

    def _load(self, run: str) -> RunState | None:
        listed = self._records.document(RUN_KIND, run)
        if listed is None:
            check_not_deleted(self._records, run)
            return None
        # Without the second one its first piece was cut off by a crash: its owner is decided, and nothing else was read.
        detail = self._records.document(DETAIL_KIND, run) or Document(
            kind=DETAIL_KIND, key=run, body=RunState(run=run).detail(), written_at=listed.written_at
        )
        damage = find_damage(RUN_KIND, listed.body) or find_damage(DETAIL_KIND, detail.body)
        if damage is not None:
            raise QueryError(
                f"the stored record of run {run} is damaged: {damage}", hint="Delete it, then send it again."
            )
        return RunState.of(run, listed.body, detail.body)

    def _load_file(self, state: RunState, name: str) -> _File:
        body = state.files.get(name)
        elsewhere = sum(len(each["series"]) for each_name, each in state.files.items() if each_name != name)
        if body is None:
            if len(state.files) >= self.limits.files:
                raise TooLargeError(
                    f"run {state.run} has {len(state.files):,} files, and no more are accepted",
                    setting="limits.runs.files",
                )
            return _File(codes_elsewhere=elsewhere)
        series = {}
        for code, (metric, unit) in body["series"].items():
            home = unit if run_of_unit(unit) == state.run else measured_unit(state.run, unit)
            if home != unit:  # stored before runs had units of their own: what follows is another series
                state.move_series(metric, unit, home)
            series[int(code)] = (str(metric), str(home))
        return _File(int(body["offset"]), body.get("rank"), series, elsewhere)

    def _take_event(self, event: RunEvent, state: RunState, file: _File) -> None:
        match event:
            case SeriesNamed():
                unit = own_unit(state.run, event.unit, file.rank)
                may_add = partial(self._usage.has_room_for_series, state)
                if self._has_room(event.code, file, state) and state.note_series(event, unit, may_add=may_add):
                    file.series[event.code] = (event.name, unit)
                else:
                    file.series.pop(event.code, None)
            case ProcessNamed():
                file.rank = event.rank
            case _:
                take_event(event, state, self.limits)

    def _has_room(self, code: int, file: _File, state: RunState) -> bool:
        """Whether a file may have one more code; files of all processes together are bounded, too."""
        if code in file.series:
            return True
        codes, most = len(file.series), self.limits.series
        if codes < most and file.codes_elsewhere + codes < _CODES_PER_SERIES * most:
            return True
        state.leave_out("series")
        return False

    def _store_samples(self, piece: Piece, file: _File, state: RunState) -> tuple[int, int]:
        """All frames of a piece as one batch, where that is not too large: a store syncs once for each."""
        if not piece.samples:
            return 0, 0
        begin_ms, end_ms = self._span(state)
        samples = select_samples(piece.samples, file.series, begin_ms=begin_ms, end_ms=end_ms)
        note_figures(samples, state.series)
        state.steps = note_steps(samples, state.steps)
        state.not_finite += samples.not_finite
        state.leave_out("samples", samples.left_out)
        batch = batch_of(samples, step_unit=own_unit(state.run, None, file.rank))
        for part in split_dense(batch):
            self._ingest.accept_samples(part)
        return len(batch), samples.not_finite

    def _span(self, state: RunState) -> tuple[int, int]:
        """When samples of a run can have been taken."""
        now = self._clock()
        queued_at = state.about.get("queued_at")
        begin = queued_at if isinstance(queued_at, int) else state.received_at or now
        first = max(FIRST_MS, begin - DAY_MS)
        return first, int(min(now + self.limits.future_s * 1000, begin + self.limits.span_days * DAY_MS))


def check_owner_of_piece(run: str, stored: RunState | None, events: Iterable[RunEvent], user: str | None) -> None:
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
