"""How often a wrong password may be tried, by address and account. In memory of one replica, a fixed amount at most."""

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Callable

from clusterscape.errors import ThrottledError
from clusterscape.serve.identity.addresses import neighborhood

MOST_KEYS = 10_000
WIDER = 5
"""So many times the limit of one account from one address are allowed to an account, or an address, in all: many people share an
address, and nobody shall lock another out of their account with a handful of requests."""


class Throttle:
    """Counts failures by key within a window that slides. Thread-safe."""

    def __init__(self, *, limit: int, window_s: float, now_s: Callable[[], float], most_keys: int = MOST_KEYS) -> None:
        self._limit = limit
        self._window_s = window_s
        self._now_s = now_s
        self._most_keys = most_keys
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many keys are remembered."""
        return len(self._failures)

    def wait_s(self, key: str) -> float:
        """Seconds until the next try; 0: now."""
        with self._lock:
            times = self._recent(key)
            return 0.0 if len(times) < self._limit else times[0] + self._window_s - self._now_s()

    def note(self, key: str) -> None:
        """One more failure."""
        with self._lock:
            times = self._recent(key)
            times.append(self._now_s())
            self._failures[key] = times
            self._failures.move_to_end(key)
            while len(self._failures) > self._most_keys:
                self._failures.popitem(last=False)

    def take_back(self, key: str) -> None:
        """The last failure was none."""
        with self._lock:
            times = self._failures.get(key)
            if times:
                times.pop()
            if not times:
                self._failures.pop(key, None)

    def _recent(self, key: str) -> deque[float]:
        times = self._failures.get(key)
        if times is None:
            return deque(maxlen=self._limit)
        oldest = self._now_s() - self._window_s
        while times and times[0] <= oldest:
            times.popleft()
        return times


class SignInThrottle:
    """Refuses a sign-in where too many failed before it."""

    def __init__(self, *, attempts: int, window_s: float, now_s: Callable[[], float]) -> None:
        self._both = Throttle(limit=attempts, window_s=window_s, now_s=now_s)
        self._address = Throttle(limit=attempts * WIDER, window_s=window_s, now_s=now_s)
        self._account = Throttle(limit=attempts * WIDER, window_s=window_s, now_s=now_s)

    def begin(self, address: str, account: str) -> None:
        """Count an attempt, as a failure until it is said to be none; raises ThrottledError where there were too many."""
        tried = self._tried(address, account)
        wait_s = max(throttle.wait_s(key) for throttle, key in tried)
        if wait_s > 0:
            raise ThrottledError(
                "too many sign-ins failed",
                retry_after_s=math.ceil(wait_s),
                hint=f"Wait {math.ceil(wait_s)} seconds, then try again.",
            )
        for throttle, key in tried:
            throttle.note(key)

    def succeed(self, address: str, account: str) -> None:
        """The attempt that was begun was right."""
        for throttle, key in self._tried(address, account):
            throttle.take_back(key)

    def _tried(self, address: str, account: str) -> list[tuple[Throttle, str]]:
        place = neighborhood(address)
        who = account.casefold()[:256]
        return [(self._both, f"{place} {who}"), (self._address, place), (self._account, who)]
