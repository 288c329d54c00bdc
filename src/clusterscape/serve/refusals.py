"""Requests that the server refuses before a route reads them: responses, counts, and one log record per minute.

The content of requests is never logged, because the client controls it.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum

from clusterscape.serve.problems import problem

log = logging.getLogger(__name__)

LOG_EVERY_S = 60.0


class Refusal(Enum):
    """Why a request is refused: reason (a label in `/metrics`), status, code, message, hint."""

    LONG_URL = (
        "long_url",
        414,
        "too_large",
        "the URL is too long",
        "The setting limits.http.url_bytes sets the limit.",
    )
    LARGE_HEADERS = (
        "large_headers",
        431,
        "too_large",
        "the request headers are too large or too many",
        "The settings limits.http.header_bytes and limits.http.headers set the limits.",
    )
    SLOW_HEAD = (
        "slow_head",
        408,
        "stalled",
        "the request headers did not arrive in time",
        "The setting limits.http.header_timeout_s sets the timeout.",
    )
    SLOW_BODY = (
        "slow_body",
        408,
        "stalled",
        "the request body stalled or arrived too slowly",
        "The settings limits.http.body_timeout_s and limits.http.min_bytes_per_s set the limits.",
    )
    LARGE_BODY = (
        "large_body",
        413,
        "too_large",
        "the request body is too large",
        "The settings limits.http set the limits.",
    )
    HELD_BODIES = (
        "held_bodies",
        429,
        "throttled",
        "the server already holds too many request bodies in memory",
        "Try again in a few seconds. The setting limits.http.buffered_body_bytes sets the limit.",
    )
    BAD_TEXT = (
        "bad_text",
        422,
        "query",
        "the body is not valid Unicode text",
        "Send JSON in UTF-8, without unpaired surrogates.",
    )
    BAD_URL = (
        "bad_url",
        400,
        "malformed",
        "the URL contains control characters or is not valid UTF-8",
        "Percent-encode names in URLs as UTF-8.",
    )
    MALFORMED = ("malformed", 400, "malformed", "this is not a valid HTTP request", None)
    PIPELINED = (
        "pipelined",
        429,
        "throttled",
        "too many requests wait on this connection",
        "The setting limits.http.pipelined sets the limit.",
    )
    CONNECTIONS = (
        "connections",
        503,
        "busy",
        "the server has too many connections",
        "Try again in a few seconds. The setting limits.http.connections sets the limit.",
    )
    SLOW_READER = ("slow_reader", 408, "stalled", "the client did not read its response", None)

    def __init__(self, reason: str, status: int, code: str, message: str, hint: str | None) -> None:
        self.reason = reason
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of its response, in addition to those of every response."""
        return {"Retry-After": "5"} if self.status in (429, 503) else {}

    def content(self) -> bytes:
        """The body of its response, in the one error shape."""
        return bytes(problem(self.status, self.code, self.message, self.hint).body)


class Refusals:
    """Counts and logs refusals. Runs in the server's event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unlogged: Counter[Refusal] = Counter()
        self._logged_at: dict[Refusal, float] = {}
        self.counts: Counter[Refusal] = Counter()

    @property
    def has_unlogged(self) -> bool:
        """Whether some refusals are not logged yet."""
        return bool(self._unlogged)

    def note(self, refusal: Refusal) -> None:
        """Count a refusal; the first of a kind is logged at once."""
        self.counts[refusal] += 1
        self._unlogged[refusal] += 1
        self.write_log()

    def write_log(self) -> None:
        """Log each kind that was not logged for LOG_EVERY_S."""
        now = self._clock()
        due = [kind for kind in self._unlogged if now - self._logged_at.get(kind, -LOG_EVERY_S) >= LOG_EVERY_S]
        for refusal in due:
            count = self._unlogged.pop(refusal)
            self._logged_at[refusal] = now
            log.warning("refused %d requests (%d %s): %s", count, refusal.status, refusal.reason, refusal.message)
