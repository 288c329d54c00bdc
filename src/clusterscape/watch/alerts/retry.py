"""When a failed message is sent again. Pure, except for the random generator that it is given."""

import random

from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.contract import DeliveryResult

FIRST_MS = 5_000
LONGEST_MS = 10 * 60_000
LASTING_MS = 30 * 60_000
"""Permanent errors are retried, too: after an operator fixes the token, everything that waited is delivered."""

_LONGEST_RETRY_AFTER_MS = 24 * 3_600_000  # a Retry-After beyond a day is an error of the server


def next_attempt_at(result: DeliveryResult, attempts: int, now: UnixMs, rng: random.Random) -> UnixMs:
    """Exponential backoff with jitter: between half and the whole interval, never before the server's Retry-After."""
    interval_ms = LASTING_MS if result.is_lasting else min(LONGEST_MS, FIRST_MS * 2 ** min(attempts - 1, 20))
    wait_ms = interval_ms * rng.uniform(0.5, 1.0)
    if result.retry_after_s is not None:
        wait_ms = max(wait_ms, min(result.retry_after_s * 1000, _LONGEST_RETRY_AFTER_MS))
    return UnixMs(now + int(wait_ms))
