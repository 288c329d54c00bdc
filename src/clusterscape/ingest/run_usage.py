"""Quotas of users' runs (``limits.runs``), and tombstones of deleted runs, which prevent that they are sent again while
their samples are removed.

Usage is counted from the table of runs once, and then updated by the only process that writes runs. What a crash or an
unreachable metrics server leaves behind of a deleted run is removed by the next maintenance.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from clusterscape.errors import ClusterScapeError, GoneError, ThrottledError, TooLargeError
from clusterscape.model import UnixMs
from clusterscape.model.durations import DAY_MS, HOUR_MS
from clusterscape.model.runs import DELETED_KIND, NAMES_KIND, RunRecord, StoredRun, run_unit, workload_id
from clusterscape.settings.limits import RunLimits
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import Document, RecordStore

RECOUNT_MS = HOUR_MS
"""Minimum time between two recounts of a user's metric names, which drop those of deleted runs."""


@dataclass(slots=True)
class _User:
    bytes_of: dict[str, int] = field(default_factory=dict)  # by run
    series_of: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    series: int = 0
    names: set[str] | None = None  # of metrics; None: not read yet
    has_new_names: bool = False
    counted_at: int = 0
    received_at: deque[int] = field(default_factory=deque)  # arrival of new runs within a day, oldest first

    def count(self, run: RunRecord) -> None:
        """Add a run, or replace its previous count."""
        self.bytes += run.bytes - self.bytes_of.get(run.run, 0)
        self.bytes_of[run.run] = run.bytes
        self.series += run.series_count - self.series_of.get(run.run, 0)
        self.series_of[run.run] = run.series_count


class RunUsage:
    """Usage by user. Only for the writer's thread."""

    def __init__(self, records: RecordStore, limits: RunLimits, clock: Callable[[], UnixMs]) -> None:
        self._clock = clock
        self._records = records
        self._limits = limits
        self._users: dict[str | None, _User] | None = None

    def check(self, run: RunRecord, more_bytes: int, now: UnixMs, *, is_new: bool) -> None:
        """Raise if a piece of ``more_bytes`` exceeds a quota of its owner."""
        user = self._of(run.owned_by, now)
        while user.received_at and user.received_at[0] <= now - DAY_MS:
            user.received_at.popleft()
        owner = run.owned_by or "nobody"
        if user.bytes + more_bytes > self._limits.bytes_per_user:
            raise TooLargeError(
                f"the runs of {owner} have {user.bytes:,} bytes, the limit is {self._limits.bytes_per_user:,}",
                setting="limits.runs.bytes_per_user",
                hint="Delete runs with `clusterscape runs delete`, or ask an admin to raise the limit.",
            )
        if not is_new:
            return
        if len(user.bytes_of) >= self._limits.per_user:
            raise TooLargeError(
                f"{owner} has {len(user.bytes_of):,} runs, the limit is {self._limits.per_user:,}",
                setting="limits.runs.per_user",
                hint="Delete runs with `clusterscape runs delete`, or ask an admin to raise the limit.",
            )
        if len(user.received_at) >= self._limits.new_per_day:
            free_in_s = math.ceil((user.received_at[0] + DAY_MS - now) / 1000)
            raise ThrottledError(
                f"{owner} has started {len(user.received_at):,} runs within a day, the limit is {self._limits.new_per_day:,}",
                retry_after_s=max(1, free_in_s),
                hint="The tracker sends them later. The setting is limits.runs.new_per_day.",
            )

    def has_room_for_series(self, run: StoredRun, name: str) -> bool:
        """Whether a run may have another series, with a metric of this name."""
        owner, series = run.record.owned_by, run.detail.series
        user = self._of(owner, self._clock())
        of_others = user.series - user.series_of.get(run.run, 0)
        if len(series) >= self._limits.series or of_others + len(series) >= self._limits.series_per_user:
            return False
        if user.names is None:
            user.names = self._read_names(owner)
        if name in user.names:
            return True
        if len(user.names) >= self._limits.names_per_user and self._clock() - user.counted_at > RECOUNT_MS:
            user.counted_at = self._clock()  # drops the names of deleted runs
            user.names = self._count_names(user) | _names_of(series)
        if len(user.names) >= self._limits.names_per_user:
            return False
        user.names.add(name)
        user.has_new_names = True
        return True

    def note(self, run: RunRecord, now: UnixMs) -> None:
        """Count what was stored of a run."""
        user = self._of(run.owned_by, now)
        if user.has_new_names:
            self._write_names(run.owned_by, user, now)
        if run.run not in user.bytes_of and run.received_at is not None:
            user.received_at.append(run.received_at)
        user.count(run)

    def forget(self, run: str, owner: str | None) -> None:
        """Subtract a deleted run; it still counts as a new run of the day."""
        if self._users is not None and (user := self._users.get(owner)) is not None:
            user.bytes -= user.bytes_of.pop(run, 0)
            user.series -= user.series_of.pop(run, 0)

    def _of(self, owner: str | None, now: UnixMs) -> _User:
        if self._users is None:
            self._users = self._read(now)
        return self._users.setdefault(owner, _User())

    def _read(self, now: UnixMs) -> dict[str | None, _User]:
        users: dict[str | None, _User] = {}
        runs = self._records.runs().records
        for run in runs:
            users.setdefault(run.owned_by, _User()).count(run)
        for run in sorted(runs, key=lambda run: run.received_at or 0):
            if run.received_at is not None and run.received_at > now - DAY_MS:
                users[run.owned_by].received_at.append(run.received_at)
        return users

    def _read_names(self, owner: str | None) -> set[str]:
        document = self._records.document(NAMES_KIND, _key_of(owner))
        names = document.body.get("names") if document is not None else None
        return {str(name) for name in names} if isinstance(names, list) else set()

    def _write_names(self, owner: str | None, user: _User, now: UnixMs) -> None:
        body = {"owned_by": owner, "names": sorted(user.names or ())}
        self._records.write_document(NAMES_KIND, _key_of(owner), body, at_ms=now)
        user.has_new_names = False

    def _count_names(self, user: _User) -> set[str]:
        names: set[str] = set()
        for run in user.bytes_of:
            stored = self._records.run(run)
            names |= _names_of({} if stored is None else stored.detail.series)
        return names


def _names_of(series: Mapping[str, object]) -> set[str]:
    return {key.partition(" ")[2] for key in series}


def _key_of(owner: str | None) -> str:
    return "nobody" if owner is None else f"user {owner}"


log = logging.getLogger(__name__)

SETTLE_MS = HOUR_MS
"""Writes about a workload that began before its deletion, such as the end of a violation, finish within this time."""


def note_deleted(records: RecordStore, run: StoredRun, *, now: UnixMs) -> None:
    """Write the tombstone of a deleted run, with the time range of its samples."""
    start_ms, end_ms = _span_of(run)
    body = {"owned_by": run.record.owned_by, "start_ms": start_ms, "end_ms": end_ms, "is_erased": False}
    records.write_document(DELETED_KIND, run.run, body, at_ms=now)


def check_not_deleted(records: RecordStore, run: str) -> None:
    """Raise GoneError for a run that has a tombstone."""
    if records.document(DELETED_KIND, run) is not None:
        raise GoneError(
            f"run {run} was deleted",
            hint="It cannot be sent again; `clusterscape runs delete --local` removes it from this machine.",
        )


def erase_deleted_runs(records: RecordStore, metrics: MetricStore, limits: RunLimits, *, now: UnixMs) -> None:
    """Erase the samples of deleted runs, and remove old tombstones. Not on the writer's thread."""
    for document in records.documents(DELETED_KIND):
        age_ms = now - document.written_at
        if not document.body.get("is_erased") or age_ms < SETTLE_MS:
            _erase(document, records, metrics)
        elif age_ms >= limits.deleted_days * DAY_MS:
            records.remove_document(DELETED_KIND, document.key)


def _erase(document: Document, records: RecordStore, metrics: MetricStore) -> None:
    run, body = document.key, document.body
    records.remove_run(run)
    records.remove_workload(workload_id(run))
    if body.get("is_erased"):
        return
    start_ms, end_ms = body.get("start_ms"), body.get("end_ms")
    if isinstance(start_ms, int) and isinstance(end_ms, int):
        try:
            removed = metrics.remove_unit(run_unit(run), start_ms=UnixMs(start_ms), end_ms=UnixMs(end_ms))
        except ClusterScapeError as error:
            log.warning("samples of the deleted run %s are still stored: %s", run, error.message)
            return
        if not removed:
            log.warning(
                "samples of the deleted run %s stay on the metrics server, which does not support deletion", run
            )
    records.write_document(DELETED_KIND, run, {**body, "is_erased": True}, at_ms=document.written_at)


def _span_of(run: StoredRun) -> tuple[int | None, int | None]:
    """Time range of the samples. Samples in the same millisecond were shifted, by at most their number."""
    spans = [(series.first_ms, series.last_ms + series.count) for series in run.detail.series.values() if series.count]
    steps = run.detail.steps
    if steps is not None:
        spans.append((min(steps.first_ms, steps.last_ms), max(steps.first_ms, steps.last_ms) + 1))
    if not spans:
        return None, None
    return min(first for first, _ in spans) - 1, max(last for _, last in spans) + DAY_MS
