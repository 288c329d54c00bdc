"""When a message that was not accepted is tried again. Pure, apart from the dice it is handed."""

import random

from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.contract import Answer

FIRST_MS = 5_000
LONGEST_MS = 10 * 60_000
LASTING_MS = 30 * 60_000
"""A refusal that lasts is not a reason to give up: somebody mends the token, and everything that waited arrives."""

_PATIENCE_MS = 24 * 3_600_000  # a Retry-After beyond a day is a mistake of the other side


def next_attempt_at(answer: Answer, attempts: int, now: UnixMs, dice: random.Random) -> UnixMs:
    """Exponential with jitter: between half and the whole of the interval, never before the other side's Retry-After."""
    whole_ms = LASTING_MS if answer.is_lasting else min(LONGEST_MS, FIRST_MS * 2 ** min(attempts - 1, 20))
    wait_ms = whole_ms * dice.uniform(0.5, 1.0)
    if answer.retry_after_s is not None:
        wait_ms = max(wait_ms, min(answer.retry_after_s * 1000, _PATIENCE_MS))
    return UnixMs(now + int(wait_ms))
