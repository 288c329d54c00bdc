"""The queue on disk: turns, messages and deliveries. Decides nothing; see ``plan``."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity
from clusterscape.watch.alerts.condense import merge, supersede, tally
from clusterscape.watch.alerts.contract import ChannelState, DeliveryResult, Firing, Group, Message, MessageKind, Tally
from clusterscape.watch.alerts.database import Database
from clusterscape.watch.alerts.plan import DeliveryPlan, SpooledTurn
from clusterscape.watch.alerts.states import read_states
from clusterscape.watch.alerts.turns import AlertTurn, parse_turn

KEEP_MS = 7 * 86_400_000
"""How long posted turns and keys of deliveries are remembered, to detect duplicates."""

LONGEST_MS = 100 * 86_400_000
"""A started violation is forgotten after this, even if it has not stopped."""


@dataclass(frozen=True, slots=True)
class Head:
    """The next message of a lane; ``waiting`` counts the lane's messages, this one included."""

    id: int
    lane: str
    attempts: int
    next_at: UnixMs | None
    waiting: int


class AlertSpool:
    """The spool of alerts. Every method is one transaction; thread-safe."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def register(self, channels: Mapping[str, str]) -> None:
        """Add these channels (name → kind), and retry everything at once: the cause of a failure may be fixed."""
        with self._database.writing() as sql:
            sql.executemany(
                "INSERT INTO channel (name, kind) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET kind = excluded.kind",
                channels.items(),
            )
            sql.execute("UPDATE channel SET paused_until = NULL")
            sql.execute("UPDATE message SET next_at = NULL")

    def post(self, turns: Mapping[str, Sequence[AlertTurn]], now: UnixMs) -> None:
        """Add the turns of each channel, without those posted before and without stops whose start it was not sent."""
        with self._database.writing() as sql:
            unique_turns = {turn.id: turn for channel_turns in turns.values() for turn in channel_turns}
            new_turns = {turn.id: _drop_duplicates(sql, turn, now) for turn in unique_turns.values()}
            for channel, channel_turns in turns.items():
                candidates = (new_turns[key] for key in dict.fromkeys(turn.id for turn in channel_turns))
                kept = (_match_start(sql, channel, turn) for turn in candidates if turn is not None)
                sql.executemany(
                    "INSERT INTO turn (channel, posted_at, body) VALUES (?, ?, ?)",
                    [(channel, now, turn.to_json()) for turn in kept if turn is not None],
                )
            sql.execute("DELETE FROM seen WHERE at < ?", (now - KEEP_MS,))
            sql.execute("DELETE FROM delivery WHERE at < ?", (now - KEEP_MS,))
            sql.execute("DELETE FROM started WHERE since < ?", (now - LONGEST_MS,))

    def waiting(self, channel: str) -> list[SpooledTurn]:
        """Turns that are not part of a message yet, in the order in which they were posted."""
        with self._database.reading() as sql:
            return _waiting(sql, "channel = ? AND message IS NULL", (channel,))

    def last_sent(self, channel: str) -> dict[Group, UnixMs]:
        """When the last message of each group was built."""
        with self._database.reading() as sql:
            rows = sql.execute("SELECT grouped, at FROM told WHERE channel = ?", (channel,)).fetchall()
        return {_parse_group(text): at for text, at in rows}

    def apply(
        self, channel: str, plan: DeliveryPlan, now: UnixMs, *, lane_of: Callable[[Group], str], interval_ms: int
    ) -> None:
        """Create the plan's messages, and delete the turns that it drops."""
        with self._database.writing() as sql:
            _drop_turns(sql, channel, plan)
            for group, seqs in plan.messages:
                message_id = sql.execute(
                    "INSERT INTO message (channel, lane, kind, grouped, created_at) VALUES (?, ?, ?, ?, ?)",
                    (channel, lane_of(group), MessageKind.ALERT, json.dumps(group), now),
                ).lastrowid
                sql.executemany("UPDATE turn SET message = ? WHERE seq = ?", [(message_id, seq) for seq in seqs])
                sql.execute("INSERT OR REPLACE INTO told VALUES (?, ?, ?)", (channel, json.dumps(group), now))
            sql.execute("DELETE FROM told WHERE channel = ? AND at < ?", (channel, now - interval_ms))

    def heads(self, channel: str) -> tuple[list[Head], UnixMs | None]:
        """The next message of every lane, oldest first, and the end of the channel's pause."""
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
        times: dict[str, list[UnixMs]] = {}
        for lane, at in rows:
            times.setdefault(lane, []).append(at)
        return times

    def fold(self, channel: str, lane: str) -> None:
        """Merge all messages of a lane into the first, unless it was sent before: then the destination may know its key."""
        with self._database.writing() as sql:
            rows = sql.execute(
                "SELECT id, attempts FROM message WHERE channel = ? AND lane = ? ORDER BY id", (channel, lane)
            ).fetchall()
            if len(rows) > 1 and rows[0][1] == 0:
                _merge_messages(sql, channel, [row[0] for row in rows])

    def begin(self, message: int) -> tuple[Message, int]:
        """The message and the number of the attempt, written before sending: a message that may have arrived never changes."""
        with self._database.writing() as sql:
            sql.execute("UPDATE message SET attempts = attempts + 1 WHERE id = ?", (message,))
            lane, kind, group, created_at, attempts, tallies = sql.execute(
                "SELECT lane, kind, grouped, created_at, attempts, tallies FROM message WHERE id = ?", (message,)
            ).fetchone()
            turns = [spooled.turn for spooled in _waiting(sql, "message = ?", (message,))]
        return Message(
            key=f"{self._database.spool}-{message}",
            kind=MessageKind(kind),
            created_at=created_at,
            lane=lane,
            group=_parse_group(group),
            turns=turns,
            tallies=_parse_tallies(tallies),
        ), attempts

    def finish(self, channel: str, message: int, result: DeliveryResult, now: UnixMs, firing: Iterable[Firing]) -> None:
        """Record a delivered message and clear the channel's failure, in one transaction."""
        with self._database.writing() as sql:
            sql.execute(
                "INSERT INTO delivery (key, channel, lane, at, attempts)"
                " SELECT ? || '-' || id, channel, lane, ?, attempts FROM message WHERE id = ?",
                (self._database.spool, now, message),
            )
            sql.execute("DELETE FROM turn WHERE channel = ? AND message = ?", (channel, message))
            sql.execute("DELETE FROM message WHERE id = ?", (message,))
            for alert in firing:
                _write_firing(sql, channel, alert)
            sql.execute(
                "UPDATE channel SET delivered = delivered + 1, delivered_at = ?, failing_since = NULL, paused_until = NULL,"
                " note = ? WHERE name = ?",
                (now, result.text if result.is_lasting else None, channel),
            )

    def fail(self, channel: str, message: int, result: DeliveryResult, now: UnixMs, next_at: UnixMs) -> None:
        """Record a failed message: a permanent error blocks its lane, any other error pauses the whole channel."""
        with self._database.writing() as sql:
            sql.execute(
                "UPDATE message SET next_at = ?, failing_since = COALESCE(failing_since, ?), error = ?, is_lasting = ?"
                " WHERE id = ?",
                (next_at, now, result.text, result.is_lasting, message),
            )
            if not result.is_lasting:
                sql.execute("UPDATE channel SET paused_until = ? WHERE name = ?", (next_at, channel))

    def note_refresh(self, channel: str, result: DeliveryResult, now: UnixMs) -> None:
        """Record the result of repeating firing alerts, which is not a message and is not retried."""
        with self._database.writing() as sql:
            sql.execute(
                "UPDATE channel SET failing_since = iif(?1, NULL, COALESCE(failing_since, ?2)), note = iif(?1, NULL, ?3)"
                " WHERE name = ?4",
                (result.is_accepted, now, result.text, channel),
            )

    def firing(self, channel: str) -> dict[tuple[str, str], Firing]:
        """The open violations that the channel was notified of."""
        with self._database.reading() as sql:
            rows = sql.execute(
                "SELECT rule, workload, first, parts FROM firing WHERE channel = ?", (channel,)
            ).fetchall()
        return {
            (rule, workload): Firing(first=parse_turn(first), parts=frozenset(json.loads(parts)))
            for rule, workload, first, parts in rows
        }

    def bound(self, channel: str, most: int, *, is_stateful: bool, lane_of: Callable[[AlertTurn], str]) -> None:
        """If more than ``most`` turns wait, reduce the oldest to counts; messages that were sent before stay."""
        with self._database.writing() as sql:
            (count,) = sql.execute("SELECT COUNT(*) FROM turn WHERE channel = ?", (channel,)).fetchone()
            if count <= most:
                return
            unsent = _waiting(
                sql,
                "channel = ? AND (message IS NULL OR message IN (SELECT id FROM message WHERE channel = ? AND attempts = 0))",
                (channel, channel),
            )
            if is_stateful:
                _drop_turns(sql, channel, supersede(unsent))
                _drop_empty(sql, channel)
                return
            lanes: dict[str, list[SpooledTurn]] = {}
            # Down to half, so that the next post does not trigger it again.
            for spooled in unsent[: count - most // 2]:
                lanes.setdefault(lane_of(spooled.turn), []).append(spooled)
            for lane, oldest in lanes.items():
                _tally(sql, channel, lane, oldest)
            _drop_empty(sql, channel)

    def states(self) -> list[ChannelState]:
        """The state of every channel in the spool."""
        with self._database.reading() as sql:
            return read_states(sql)


def _drop_duplicates(sql: sqlite3.Connection, turn: AlertTurn, now: UnixMs) -> AlertTurn | None:
    """The turn without units that were posted before."""
    duplicates = {
        part
        for part in turn.parts
        if not sql.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (turn.fingerprint(part), now)).rowcount
    }
    return turn.without(frozenset(duplicates)) if duplicates else turn


def _match_start(sql: sqlite3.Connection, channel: str, turn: AlertTurn) -> AlertTurn | None:
    """Drop the units of a start that are already recorded as started, and the units of a stop whose start the channel was not
    sent: they were muted, or started before the channel was configured."""
    rows: dict[str, tuple[object, ...]] = {part: (channel, *turn.subject, part) for part in turn.parts}
    statement = "DELETE FROM started WHERE channel = ? AND rule = ? AND workload = ? AND part = ?"
    if turn.is_start:
        rows = {part: (*row, turn.since) for part, row in rows.items()}
        statement = (
            "INSERT INTO started VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET since = excluded.since"
            " WHERE since != excluded.since"
        )
    unmatched = frozenset(part for part, row in rows.items() if not sql.execute(statement, row).rowcount)
    return turn.without(unmatched) if unmatched else turn


def _waiting(sql: sqlite3.Connection, where: str, values: tuple[object, ...]) -> list[SpooledTurn]:
    # ``where`` is always one of the literals above.
    rows = sql.execute(f"SELECT seq, posted_at, body FROM turn WHERE {where} ORDER BY seq", values).fetchall()  # noqa: S608
    return [SpooledTurn(seq, posted_at, parse_turn(body)) for seq, posted_at, body in rows]


def _drop_turns(sql: sqlite3.Connection, channel: str, plan: DeliveryPlan) -> None:
    sql.executemany("DELETE FROM turn WHERE seq = ?", [(seq,) for seq in (*plan.flapped, *plan.unsent_stops)])
    sql.executemany(
        "UPDATE turn SET body = ? WHERE seq = ?", [(turn.to_json(), seq) for seq, turn in plan.shortened.items()]
    )
    sql.execute("UPDATE channel SET flaps = flaps + ? WHERE name = ?", (len(plan.flapped), channel))


def _merge_messages(sql: sqlite3.Connection, channel: str, messages: Sequence[int]) -> None:
    """Move the turns and tallies of all messages to the first."""
    first, *others = messages
    tallies: list[Tally] = []
    for message in messages:
        (text,) = sql.execute("SELECT tallies FROM message WHERE id = ?", (message,)).fetchone()
        tallies += _parse_tallies(text)
    sql.executemany(
        "UPDATE turn SET message = ? WHERE channel = ? AND message = ?",
        [(first, channel, message) for message in others],
    )
    sql.executemany("DELETE FROM message WHERE id = ?", [(message,) for message in others])
    _set_summary(sql, first, tallies)


def _tally(sql: sqlite3.Connection, channel: str, lane: str, oldest: Sequence[SpooledTurn]) -> None:
    """Reduce the oldest turns of a lane to counts in its first message that was never sent."""
    row = sql.execute(
        "SELECT id, tallies FROM message WHERE channel = ? AND lane = ? AND attempts = 0 ORDER BY id LIMIT 1",
        (channel, lane),
    ).fetchone()
    if row is None:
        message_id = sql.execute(
            "INSERT INTO message (channel, lane, kind, grouped, created_at) VALUES (?, ?, ?, '[]', ?)",
            (channel, lane, MessageKind.SUMMARY, oldest[-1].posted_at),
        ).lastrowid
        row = (message_id, "[]")
    message, text = row
    _set_summary(sql, message, [*_parse_tallies(text), *tally(spooled.turn for spooled in oldest)])
    sql.executemany("DELETE FROM turn WHERE seq = ?", [(spooled.seq,) for spooled in oldest])
    sql.execute("UPDATE channel SET tallied = tallied + ? WHERE name = ?", (len(oldest), channel))


def _set_summary(sql: sqlite3.Connection, message: int, tallies: Sequence[Tally]) -> None:
    text = json.dumps([asdict(rule_tally) for rule_tally in merge(tallies)])
    sql.execute(
        "UPDATE message SET kind = ?, grouped = '[]', tallies = ? WHERE id = ?", (MessageKind.SUMMARY, text, message)
    )


def _drop_empty(sql: sqlite3.Connection, channel: str) -> None:
    sql.execute(
        "DELETE FROM message WHERE channel = ? AND attempts = 0 AND tallies = '[]'"
        " AND id NOT IN (SELECT message FROM turn WHERE channel = ? AND message IS NOT NULL)",
        (channel, channel),
    )


def _write_firing(sql: sqlite3.Connection, channel: str, firing: Firing) -> None:
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
    return [Tally(**{**fields, "severity": Severity(fields["severity"])}) for fields in json.loads(text)]
