"""What waits to be told, on disk: turns, the messages they became, what was delivered. Decides nothing; see ``plan``."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity
from clusterscape.watch.alerts.condense import merge, supersede, tally
from clusterscape.watch.alerts.contract import Answer, ChannelState, Firing, Group, Message, MessageKind, Tally
from clusterscape.watch.alerts.database import Database
from clusterscape.watch.alerts.plan import Plan, Waiting
from clusterscape.watch.alerts.states import read_states
from clusterscape.watch.alerts.turns import AlertTurn, parse_turn

KEEP_MS = 7 * 86_400_000
"""So long a turn that is posted again, and the key of a delivery, is remembered."""

LONGEST_MS = 100 * 86_400_000
"""After this nobody waits for the stop of a violation any more."""


@dataclass(frozen=True, slots=True)
class Head:
    """The next message of a lane; ``waiting`` counts the lane's messages, this one included."""

    id: int
    lane: str
    attempts: int
    next_at: UnixMs | None
    waiting: int


class Spool:
    """Every method is one transaction, safe from any thread."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def register(self, channels: Mapping[str, str]) -> None:
        """Know these channels (name → kind). A start is a reason to try everything at once: somebody may have mended it."""
        with self._database.writing() as sql:
            sql.executemany(
                "INSERT INTO channel (name, kind) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET kind = excluded.kind",
                channels.items(),
            )
            sql.execute("UPDATE channel SET paused_until = NULL")
            sql.execute("UPDATE message SET next_at = NULL")

    def post(self, turns: Mapping[str, Sequence[AlertTurn]], now: UnixMs) -> None:
        """Keep the turns of each channel, without what was posted before and without stops of what it was not told."""
        with self._database.writing() as sql:
            each_once = {turn.id: turn for many in turns.values() for turn in many}
            fresh = {turn.id: _take_fresh(sql, turn, now) for turn in each_once.values()}
            for channel, many in turns.items():
                found = (fresh[key] for key in dict.fromkeys(turn.id for turn in many))
                kept = (_pair(sql, channel, turn) for turn in found if turn is not None)
                sql.executemany(
                    "INSERT INTO turn (channel, posted_at, body) VALUES (?, ?, ?)",
                    [(channel, now, turn.to_json()) for turn in kept if turn is not None],
                )
            sql.execute("DELETE FROM seen WHERE at < ?", (now - KEEP_MS,))
            sql.execute("DELETE FROM delivery WHERE at < ?", (now - KEEP_MS,))
            sql.execute("DELETE FROM started WHERE since < ?", (now - LONGEST_MS,))

    def waiting(self, channel: str) -> list[Waiting]:
        """Turns that are in no message yet, in the order in which they were posted."""
        with self._database.reading() as sql:
            return _waiting(sql, "channel = ? AND message IS NULL", (channel,))

    def last_told(self, channel: str) -> dict[Group, UnixMs]:
        """When each group last became a message."""
        with self._database.reading() as sql:
            rows = sql.execute("SELECT grouped, at FROM told WHERE channel = ?", (channel,)).fetchall()
        return {_parse_group(text): at for text, at in rows}

    def apply(
        self, channel: str, plan: Plan, now: UnixMs, *, lane_of: Callable[[Group], str], interval_ms: int
    ) -> None:
        """Make the plan's messages, and forget what it drops."""
        with self._database.writing() as sql:
            _forget(sql, channel, plan)
            for group, seqs in plan.messages:
                made = sql.execute(
                    "INSERT INTO message (channel, lane, kind, grouped, created_at) VALUES (?, ?, ?, ?, ?)",
                    (channel, lane_of(group), MessageKind.ALERT, json.dumps(group), now),
                ).lastrowid
                sql.executemany("UPDATE turn SET message = ? WHERE seq = ?", [(made, seq) for seq in seqs])
                sql.execute("INSERT OR REPLACE INTO told VALUES (?, ?, ?)", (channel, json.dumps(group), now))
            sql.execute("DELETE FROM told WHERE channel = ? AND at < ?", (channel, now - interval_ms))

    def heads(self, channel: str) -> tuple[list[Head], UnixMs | None]:
        """The next message of every lane, oldest first, and until when the whole channel pauses."""
        with self._database.reading() as sql:
            rows = sql.execute(
                "SELECT m.id, m.lane, m.attempts, m.next_at, l.waiting FROM message m JOIN"
                " (SELECT MIN(id) AS id, COUNT(*) AS waiting FROM message WHERE channel = ? GROUP BY lane) l ON m.id = l.id"
                " ORDER BY m.id",
                (channel,),
            ).fetchall()
            (paused_until,) = sql.execute("SELECT paused_until FROM channel WHERE name = ?", (channel,)).fetchone()
        return [Head(*row) for row in rows], paused_until

    def delivered_since(self, channel: str, since: UnixMs) -> dict[str, list[UnixMs]]:
        """The times of deliveries after ``since`` by lane, in order."""
        with self._database.reading() as sql:
            rows = sql.execute(
                "SELECT lane, at FROM delivery WHERE channel = ? AND at > ? ORDER BY at", (channel, since)
            ).fetchall()
        found: dict[str, list[UnixMs]] = {}
        for lane, at in rows:
            found.setdefault(lane, []).append(at)
        return found

    def fold(self, channel: str, lane: str) -> None:
        """All messages of a lane become its first; only where that was never tried, since its key is then unknown outside."""
        with self._database.writing() as sql:
            rows = sql.execute(
                "SELECT id, attempts FROM message WHERE channel = ? AND lane = ? ORDER BY id", (channel, lane)
            ).fetchall()
            if len(rows) > 1 and rows[0][1] == 0:
                _absorb(sql, channel, [row[0] for row in rows])

    def begin(self, message: int) -> tuple[Message, int]:
        """The message, and which attempt this is; noted before it is sent, so that what may have arrived never changes."""
        with self._database.writing() as sql:
            sql.execute("UPDATE message SET attempts = attempts + 1 WHERE id = ?", (message,))
            lane, kind, group, created_at, attempts, tallies = sql.execute(
                "SELECT lane, kind, grouped, created_at, attempts, tallies FROM message WHERE id = ?", (message,)
            ).fetchone()
            turns = [each.turn for each in _waiting(sql, "message = ?", (message,))]
        return Message(
            key=f"{self._database.spool}-{message}",
            kind=MessageKind(kind),
            created_at=created_at,
            lane=lane,
            group=_parse_group(group),
            turns=turns,
            tallies=_parse_tallies(tallies),
        ), attempts

    def finish(self, channel: str, message: int, answer: Answer, now: UnixMs, fires: Iterable[Firing]) -> None:
        """The message was accepted: its key is recorded and the channel is well, in one."""
        with self._database.writing() as sql:
            sql.execute(
                "INSERT INTO delivery (key, channel, lane, at, attempts)"
                " SELECT ? || '-' || id, channel, lane, ?, attempts FROM message WHERE id = ?",
                (self._database.spool, now, message),
            )
            sql.execute("DELETE FROM turn WHERE channel = ? AND message = ?", (channel, message))
            sql.execute("DELETE FROM message WHERE id = ?", (message,))
            for each in fires:
                _keep_firing(sql, channel, each)
            sql.execute(
                "UPDATE channel SET delivered = delivered + 1, delivered_at = ?, failing_since = NULL, paused_until = NULL,"
                " note = ? WHERE name = ?",
                (now, answer.text if answer.is_lasting else None, channel),
            )

    def fail(self, channel: str, message: int, answer: Answer, now: UnixMs, next_at: UnixMs) -> None:
        """It was not: a refusal that lasts concerns this message's lane, anything else the whole channel."""
        with self._database.writing() as sql:
            sql.execute(
                "UPDATE message SET next_at = ?, failing_since = COALESCE(failing_since, ?), error = ?, is_lasting = ?"
                " WHERE id = ?",
                (next_at, now, answer.text, answer.is_lasting, message),
            )
            if not answer.is_lasting:
                sql.execute("UPDATE channel SET paused_until = ? WHERE name = ?", (next_at, channel))

    def note_refresh(self, channel: str, answer: Answer, now: UnixMs) -> None:
        """Whether repeating what fires works; it is no message and waits for nothing."""
        with self._database.writing() as sql:
            sql.execute(
                "UPDATE channel SET failing_since = iif(?1, NULL, COALESCE(failing_since, ?2)), note = iif(?1, NULL, ?3)"
                " WHERE name = ?4",
                (answer.is_accepted, now, answer.text, channel),
            )

    def firing(self, channel: str) -> dict[tuple[str, str], Firing]:
        """What the channel was told is breaking a rule."""
        with self._database.reading() as sql:
            rows = sql.execute(
                "SELECT rule, workload, first, parts FROM firing WHERE channel = ?", (channel,)
            ).fetchall()
        return {
            (rule, workload): Firing(first=parse_turn(first), parts=frozenset(json.loads(parts)))
            for rule, workload, first, parts in rows
        }

    def bound(self, channel: str, most: int, *, is_stateful: bool, lane_of: Callable[[AlertTurn], str]) -> None:
        """Where more than ``most`` turns wait, keep of the oldest only how many they were; what was tried stays."""
        with self._database.writing() as sql:
            (held,) = sql.execute("SELECT COUNT(*) FROM turn WHERE channel = ?", (channel,)).fetchone()
            if held <= most:
                return
            untried = _waiting(
                sql,
                "channel = ? AND (message IS NULL OR message IN (SELECT id FROM message WHERE channel = ? AND attempts = 0))",
                (channel, channel),
            )
            if is_stateful:
                _forget(sql, channel, supersede(untried))
                _drop_empty(sql, channel)
                return
            lanes: dict[str, list[Waiting]] = {}
            # Down to half: the next post must not do it again at once.
            for each in untried[: held - most // 2]:
                lanes.setdefault(lane_of(each.turn), []).append(each)
            for lane, oldest in lanes.items():
                _tally(sql, channel, lane, oldest)
            _drop_empty(sql, channel)

    def states(self) -> list[ChannelState]:
        """How every known channel does."""
        with self._database.reading() as sql:
            return read_states(sql)


def _take_fresh(sql: sqlite3.Connection, turn: AlertTurn, now: UnixMs) -> AlertTurn | None:
    """The turn without the units whose turn was posted before."""
    known = {
        part
        for part in turn.parts
        if not sql.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (turn.trace(part), now)).rowcount
    }
    return turn.without(frozenset(known)) if known else turn


def _pair(sql: sqlite3.Connection, channel: str, turn: AlertTurn) -> AlertTurn | None:
    """A start that goes on is known, however long ago it was told. A stop keeps the units whose start the channel was told:
    others were muted, or began before there was the channel."""
    rows: dict[str, tuple[object, ...]] = {part: (channel, *turn.subject, part) for part in turn.parts}
    note = "DELETE FROM started WHERE channel = ? AND rule = ? AND workload = ? AND part = ?"
    if turn.is_start:
        rows = {part: (*row, turn.since) for part, row in rows.items()}
        note = (
            "INSERT INTO started VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET since = excluded.since"
            " WHERE since != excluded.since"
        )
    idle = frozenset(part for part, row in rows.items() if not sql.execute(note, row).rowcount)
    return turn.without(idle) if idle else turn


def _waiting(sql: sqlite3.Connection, where: str, values: tuple[object, ...]) -> list[Waiting]:
    # ``where`` is always one of the literals above.
    rows = sql.execute(f"SELECT seq, posted_at, body FROM turn WHERE {where} ORDER BY seq", values).fetchall()  # noqa: S608
    return [Waiting(seq, posted_at, parse_turn(body)) for seq, posted_at, body in rows]


def _forget(sql: sqlite3.Connection, channel: str, plan: Plan) -> None:
    sql.executemany("DELETE FROM turn WHERE seq = ?", [(seq,) for seq in (*plan.flapped, *plan.untold)])
    sql.executemany(
        "UPDATE turn SET body = ? WHERE seq = ?", [(turn.to_json(), seq) for seq, turn in plan.shortened.items()]
    )
    sql.execute("UPDATE channel SET flaps = flaps + ? WHERE name = ?", (len(plan.flapped), channel))


def _absorb(sql: sqlite3.Connection, channel: str, messages: Sequence[int]) -> None:
    """The first message takes over the turns and tallies of the others."""
    first, *others = messages
    tallies: list[Tally] = []
    for each in messages:
        (text,) = sql.execute("SELECT tallies FROM message WHERE id = ?", (each,)).fetchone()
        tallies += _parse_tallies(text)
    sql.executemany(
        "UPDATE turn SET message = ? WHERE channel = ? AND message = ?", [(first, channel, each) for each in others]
    )
    sql.executemany("DELETE FROM message WHERE id = ?", [(each,) for each in others])
    _set_summary(sql, first, tallies)


def _tally(sql: sqlite3.Connection, channel: str, lane: str, oldest: Sequence[Waiting]) -> None:
    """The oldest turns of a lane become numbers in its first message that was never tried."""
    row = sql.execute(
        "SELECT id, tallies FROM message WHERE channel = ? AND lane = ? AND attempts = 0 ORDER BY id LIMIT 1",
        (channel, lane),
    ).fetchone()
    if row is None:
        made = sql.execute(
            "INSERT INTO message (channel, lane, kind, grouped, created_at) VALUES (?, ?, ?, '[]', ?)",
            (channel, lane, MessageKind.SUMMARY, oldest[-1].posted_at),
        ).lastrowid
        row = (made, "[]")
    message, text = row
    _set_summary(sql, message, [*_parse_tallies(text), *tally(each.turn for each in oldest)])
    sql.executemany("DELETE FROM turn WHERE seq = ?", [(each.seq,) for each in oldest])
    sql.execute("UPDATE channel SET tallied = tallied + ? WHERE name = ?", (len(oldest), channel))


def _set_summary(sql: sqlite3.Connection, message: int, tallies: Sequence[Tally]) -> None:
    text = json.dumps([asdict(each) for each in merge(tallies)])
    sql.execute(
        "UPDATE message SET kind = ?, grouped = '[]', tallies = ? WHERE id = ?", (MessageKind.SUMMARY, text, message)
    )


def _drop_empty(sql: sqlite3.Connection, channel: str) -> None:
    sql.execute(
        "DELETE FROM message WHERE channel = ? AND attempts = 0 AND tallies = '[]'"
        " AND id NOT IN (SELECT message FROM turn WHERE channel = ? AND message IS NOT NULL)",
        (channel, channel),
    )


def _keep_firing(sql: sqlite3.Connection, channel: str, firing: Firing) -> None:
    if not firing.parts:
        sql.execute(
            "DELETE FROM firing WHERE channel = ? AND rule = ? AND workload = ?", (channel, *firing.first.subject)
        )
        return
    sql.execute(
        "INSERT OR REPLACE INTO firing VALUES (?, ?, ?, ?, ?)",
        (channel, *firing.first.subject, firing.first.to_json(), json.dumps(sorted(firing.parts))),
    )


def _parse_group(text: str) -> Group:
    return tuple((name, value) for name, value in json.loads(text))


def _parse_tallies(text: str) -> list[Tally]:
    return [Tally(**{**each, "severity": Severity(each["severity"])}) for each in json.loads(text)]
