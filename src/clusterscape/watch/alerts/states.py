"""The state of each channel, read from the spool, also by other processes."""

import sqlite3
from pathlib import Path

from clusterscape.watch.alerts.contract import ChannelState
from clusterscape.watch.alerts.database import reading_only

_CHANNELS = """
SELECT name, kind, delivered, delivered_at, failing_since, note, paused_until, flaps, tallied,
       (SELECT COUNT(*) FROM message WHERE channel = name), (SELECT COUNT(*) FROM turn WHERE channel = name)
FROM channel ORDER BY name
"""
# The oldest failed message represents the channel.
_FAILING = """
SELECT failing_since, error, is_lasting, attempts, next_at FROM message
WHERE channel = ? AND error IS NOT NULL ORDER BY id LIMIT 1
"""


def read_states(sql: sqlite3.Connection) -> list[ChannelState]:
    """All channels in the spool, including those that are no longer configured but have waiting messages."""
    states = []
    for row in sql.execute(_CHANNELS).fetchall():
        name, kind, delivered, delivered_at, channel_since, note, paused, flaps, tallied, messages, turns = row
        failing = sql.execute(_FAILING, (name,)).fetchone() or (channel_since, note, False, 0, None)
        since, error, is_lasting, attempts, next_at = failing
        states.append(
            ChannelState(
                name=name,
                kind=kind,
                waiting=messages,
                waiting_turns=turns,
                delivered=delivered,
                delivered_at=delivered_at,
                failing_since=since,
                last_error=error,
                is_lasting=bool(is_lasting),
                attempts=attempts,
                next_attempt_at=max((at for at in (paused, next_at) if at is not None), default=None),
                flaps=flaps,
                tallied_turns=tallied,
            )
        )
    return states


def read_spool(path: Path) -> list[ChannelState]:
    """The states in a spool file that another process may be using; empty if there is no file yet."""
    if not path.is_file():
        return []
    with reading_only(path) as sql:
        return read_states(sql)
