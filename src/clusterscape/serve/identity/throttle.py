"""Rate limits of failed sign-ins, by address and account. In the memory of one replica, with a fixed maximum size."""

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Callable

from clusterscape.errors import ThrottledError
from clusterscape.serve.identity.addresses import rate_limit_network

MOST_KEYS = 10_000
SHARED_FACTOR = 5
"""The limit of one account from all addresses, and of one address for all accounts, as a multiple of the limit of one account
from one address: many users share an address, and a handful of requests must not lock another user out."""


class Throttle:
    """Counts failures by key within a sliding window. Thread-safe."""

    def __init__(self, *, limit: int, window_s: float, now_s: Callable[[], float], most_keys: int = MOST_KEYS) -> None:
        self._limit = limit
        self._window_s = window_s
        self._now_s = now_s
        self._most_keys = most_keys
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """The number of keys in memory."""
        return len(self._failures)

    def wait_s(self, key: str) -> float:
        """Seconds until the next attempt is allowed; 0: now."""
        with self._lock:
            times = self._recent(key)
            return 0.0 if len(times) < self._limit else times[0] + self._window_s - self._now_s()

    def note(self, key: str) -> None:
        """Record a failure."""
        with self._lock:
            times = self._recent(key)
            times.append(self._now_s())
            self._failures[key] = times
            self._failures.move_to_end(key)
            while len(self._failures) > self._most_keys:
                self._failures.popitem(last=False)

    def undo(self, key: str) -> None:
        """Remove the last failure."""
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
    """Refuses a sign-in after too many failures."""

    def __init__(self, *, attempts: int, window_s: float, now_s: Callable[[], float]) -> None:
        self._address_and_account = Throttle(limit=attempts, window_s=window_s, now_s=now_s)
        self._address = Throttle(limit=attempts * SHARED_FACTOR, window_s=window_s, now_s=now_s)
        self._account = Throttle(limit=attempts * SHARED_FACTOR, window_s=window_s, now_s=now_s)

    def begin(self, address: str, account: str) -> None:
        """Count an attempt, as a failure until ``succeed`` is called; raises ThrottledError after too many failures."""
        throttles = self._throttles(address, account)
        wait_s = max(throttle.wait_s(key) for throttle, key in throttles)
        if wait_s > 0:
            raise ThrottledError(
                "too many failed sign-ins",
                retry_after_s=math.ceil(wait_s),
                hint=f"Wait {math.ceil(wait_s)} seconds, then try again.",
            )
        for throttle, key in throttles:
            throttle.note(key)

    def succeed(self, address: str, account: str) -> None:
        """Remove a successful attempt from the failures."""
        for throttle, key in self._throttles(address, account):
            throttle.undo(key)

    def _throttles(self, address: str, account: str) -> list[tuple[Throttle, str]]:
        network = rate_limit_network(address)
        login = account.casefold()[:256]
        return [(self._address_and_account, f"{network} {login}"), (self._address, network), (self._account, login)]
