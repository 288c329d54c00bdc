"""Requests that the server refuses before a route reads them: the answer to each, how often, and one log record a minute.

What a request holds is never logged: whoever sends it chooses that.
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
        "the address of the request is too long",
        "limits.http.url_bytes in the settings bounds it.",
    )
    LARGE_HEADERS = (
        "large_headers",
        431,
        "too_large",
        "the headers of the request are too large or too many",
        "limits.http.header_bytes and limits.http.headers in the settings bound them.",
    )
    SLOW_HEAD = (
        "slow_head",
        408,
        "stalled",
        "address and headers did not arrive in time",
        "limits.http.head_s in the settings bounds it.",
    )
    SLOW_BODY = (
        "slow_body",
        408,
        "stalled",
        "the body of the request stalled or came too slowly",
        "limits.http.body_stall_s and limits.http.bytes_per_s in the settings bound it.",
    )
    LARGE_BODY = (
        "large_body",
        413,
        "too_large",
        "the body of the request is too large",
        "limits.http in the settings has the limits.",
    )
    MUCH_HELD = (
        "held_bodies",
        429,
        "throttled",
        "the server holds too much of other requests",
        "Try again in some seconds; limits.http.held_body_bytes in the settings bounds it.",
    )
    BAD_TEXT = (
        "bad_text",
        422,
        "query",
        "the body is not valid Unicode text",
        "Send JSON in UTF-8, without halves of surrogate pairs.",
    )
    BAD_URL = (
        "bad_url",
        400,
        "malformed",
        "the address holds control characters or is not valid UTF-8",
        "Names in addresses are percent-encoded UTF-8.",
    )
    MALFORMED = ("malformed", 400, "malformed", "this is not a valid HTTP request", None)
    PIPELINED = (
        "pipelined",
        429,
        "throttled",
        "too many requests wait on this connection",
        "limits.http.pipelined in the settings bounds them.",
    )
    CONNECTIONS = (
        "connections",
        503,
        "busy",
        "the server has too many connections",
        "Try again in some seconds; limits.http.connections in the settings bounds them.",
    )
    SLOW_READER = ("slow_reader", 408, "stalled", "the client did not take its answer", None)

    def __init__(self, reason: str, status: int, code: str, message: str, hint: str | None) -> None:
        self.reason = reason
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint

    @property
    def headers(self) -> Mapping[str, str]:
        """Of its answer, beside what every answer has."""
        return {"Retry-After": "5"} if self.status in (429, 503) else {}

    def content(self) -> bytes:
        """The body of its answer, in the one error shape."""
        return bytes(problem(self.status, self.code, self.message, self.hint).body)


class Refusals:
    """Counts refusals. Lives in the server's event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unlogged: Counter[Refusal] = Counter()
        self._logged_at: dict[Refusal, float] = {}
        self.counts: Counter[Refusal] = Counter()

    @property
    def has_unlogged(self) -> bool:
        """Whether some wait to be logged."""
        return bool(self._unlogged)

    def note(self, refusal: Refusal) -> None:
        """Count one; the first of a kind is logged at once."""
        self.counts[refusal] += 1
        self._unlogged[refusal] += 1
        self.write_log()

    def write_log(self) -> None:
        """Log each kind that was not logged for LOG_EVERY_S."""
        now = self._clock()
        due = [each for each in self._unlogged if now - self._logged_at.get(each, -LOG_EVERY_S) >= LOG_EVERY_S]
        for refusal in due:
            count = self._unlogged.pop(refusal)
            self._logged_at[refusal] = now
            log.warning("refused %d requests (%d %s): %s", count, refusal.status, refusal.reason, refusal.message)
