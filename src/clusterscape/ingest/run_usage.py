"""How many runs each user has, and how much of them is stored: the quotas of ``limits.runs``.

Counted from the table of runs once, and kept up from then on by the one process that writes them.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from clusterscape.errors import ThrottledError, TooLargeError
from clusterscape.model import UnixMs
from clusterscape.model.runs import NAMES_KIND, RunRecord, StoredRun
from clusterscape.settings.limits import RunLimits
from clusterscape.store.records.contract import RecordStore

DAY_MS = 86_400_000


RECOUNT_MS = 3_600_000
"""Names of deleted runs are forgotten at most so often."""


@dataclass(slots=True)
class _User:
    bytes_of: dict[str, int] = field(default_factory=dict)  # by run
    series_of: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    series: int = 0
    names: set[str] | None = None  # of metrics; None: not read yet
    has_new_names: bool = False
    counted_at: int = 0
    received_at: deque[int] = field(default_factory=deque)  # of new runs within a day, oldest first

    def count(self, run: RunRecord) -> None:
        """Count a run in place of what was counted of it before."""
        self.bytes += run.bytes - self.bytes_of.get(run.run, 0)
        self.bytes_of[run.run] = run.bytes
        self.series += run.series_count - self.series_of.get(run.run, 0)
        self.series_of[run.run] = run.series_count


class RunUsage:
    """Only for the thread that writes."""

    def __init__(self, records: RecordStore, limits: RunLimits, clock: Callable[[], UnixMs]) -> None:
        self._clock = clock
        self._records = records
        self._limits = limits
        self._users: dict[str | None, _User] | None = None

    def check(self, run: RunRecord, more_bytes: int, now: UnixMs, *, is_new: bool) -> None:
        """Raise where a piece of ``more_bytes`` would be more than its owner may store."""
        user = self._of(run.owned_by, now)
        while user.received_at and user.received_at[0] <= now - DAY_MS:
            user.received_at.popleft()
        owner = run.owned_by or "nobody"
        if user.bytes + more_bytes > self._limits.bytes_per_user:
            raise TooLargeError(
                f"the runs of {owner} have {user.bytes:,} bytes, and at most {self._limits.bytes_per_user:,} are stored",
                setting="limits.runs.bytes_per_user",
                hint="Delete runs with `clusterscape runs delete`, or ask an admin to raise the limit.",
            )
        if not is_new:
            return
        if len(user.bytes_of) >= self._limits.per_user:
            raise TooLargeError(
                f"{owner} has {len(user.bytes_of):,} runs, and no more are stored",
                setting="limits.runs.per_user",
                hint="Delete runs with `clusterscape runs delete`, or ask an admin to raise the limit.",
            )
        if len(user.received_at) >= self._limits.new_per_day:
            free_in_s = math.ceil((user.received_at[0] + DAY_MS - now) / 1000)
            raise ThrottledError(
                f"{owner} has begun {len(user.received_at):,} runs within a day, and no more are accepted",
                retry_after_s=max(1, free_in_s),
                hint="They are sent later. The setting limits.runs.new_per_day bounds this.",
            )

    def has_room_for_series(self, run: StoredRun, name: str) -> bool:
        """Whether a run may have one more series, with a metric of this name."""
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
            user.counted_at = self._clock()  # those of deleted runs are forgotten
            user.names = self._count_names(user) | _names_of(series)
        if len(user.names) >= self._limits.names_per_user:
            return False
        user.names.add(name)
        user.has_new_names = True
        return True

    def note(self, run: RunRecord, now: UnixMs) -> None:
        """What was stored of a run."""
        user = self._of(run.owned_by, now)
        if user.has_new_names:
            self._write_names(run.owned_by, user, now)
        if run.run not in user.bytes_of and run.received_at is not None:
            user.received_at.append(run.received_at)
        user.count(run)

    def forget(self, run: str, owner: str | None) -> None:
        """A run was deleted; it still counts as one of the day."""
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
