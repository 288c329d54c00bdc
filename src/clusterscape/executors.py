"""Where background work runs, apart from what answers requests: docs/design/load.md lists all thread pools and processes.

Expensive work of users is scheduled fairly: they take turns, and the jobs that one user may queue are limited.

asyncio's default executor is not used here: name resolution of collectors needs it, and must not wait for others.
"""

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Generic, ParamSpec, Protocol, TypeVar

from clusterscape.errors import ThrottledError

Params = ParamSpec("Params")
Task = TypeVar("Task")
Result = TypeVar("Result")
T = TypeVar("T")

RETRY_AFTER_S = 5

Report = Callable[[float], None]
"""Called with the progress of work, from 0 to 1; raises StoppedError where the work is to stop. Also called, with the same
progress, while work waits or says nothing.
"""


def ignore_progress(_: float) -> None:
    """A report of work that cannot be stopped."""


class Compute(Protocol):
    """Runs a pure function of a module on picklable data, perhaps in another process, and waits for its result."""

    def __call__(self, work: Callable[[Task, Report], Result], task: Task, report: Report) -> Result:
        """What ``work(task, report)`` returns or raises."""
        ...


def compute_here(work: Callable[[Task, Report], Result], task: Task, report: Report) -> Result:
    """In the calling thread."""
    return work(task, report)


class ThreadPool:
    """A bounded number of threads, created as they are needed."""

    def __init__(self, name: str, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Await what ``work`` returns, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(*args, **kwargs))

    def close(self) -> None:
        """Finish what is under way."""
        self._executor.shutdown(wait=True)


COLLECT = ThreadPool("collect", 8)
"""Reads and parses what sources answer. Only collectors use it."""

UPKEEP = ThreadPool("upkeep", 16)
"""Compaction, retention, alerts, remote write, election: short work of background loops."""


async def run_in_own_thread(name: str, work: Callable[[], Result]) -> Result:
    """Await what ``work`` returns, in a thread of its own: for work that lasts as long as the process."""
    executor = ThreadPoolExecutor(1, thread_name_prefix=name)
    try:
        return await asyncio.get_running_loop().run_in_executor(executor, work)
    finally:
        executor.shutdown(wait=False)


@contextmanager
def run_meanwhile(work: Callable[[], Result]) -> Iterator[Callable[[], Result]]:
    """Run ``work`` in a thread during the block; yields a function that waits for its result."""
    with ThreadPoolExecutor(1) as executor:
        yield executor.submit(work).result


class FairQueue(Generic[T]):
    """First in, first out for each user; users in turn. Not thread-safe."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, deque[T]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        """Items of all users."""
        return self._size

    def count(self, user: str) -> int:
        """Items of one user."""
        return len(self._lanes.get(user, ()))

    def put(self, user: str, item: T) -> None:
        """Append an item to the user's lane."""
        self._lanes.setdefault(user, deque()).append(item)
        self._size += 1

    def pop(self, is_eligible: Callable[[str], bool] = lambda _: True) -> tuple[str, T] | None:
        """The oldest item of the user whose turn it is, among those that are eligible; None where there is none."""
        user = next((user for user in self._lanes if is_eligible(user)), None)
        if user is None:
            return None
        item = self._lanes[user].popleft()
        self._size -= 1
        self._lanes.move_to_end(user)
        self._drop_empty(user)
        return user, item

    def remove(self, user: str, item: T) -> None:
        """Take an item out that is not wanted any more; one that is not queued is ignored."""
        lane = self._lanes.get(user)
        if lane is not None and item in lane:
            lane.remove(item)
            self._size -= 1
            self._drop_empty(user)

    def _drop_empty(self, user: str) -> None:
        if not self._lanes[user]:
            del self._lanes[user]


class FairWorker:
    """One thread that runs jobs, users in turn. Thread-safe. ``per_user``: running and waiting; ``waiting``: of all users; None:
    not limited here.
    """

    def __init__(self, name: str, *, per_user: int | None = None, waiting: int | None = None) -> None:
        self._per_user = per_user
        self._waiting = waiting
        self._queue: FairQueue[Callable[[], None]] = FairQueue()
        self._running: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    def check(self, user: str) -> None:
        """Raise ThrottledError where ``submit`` would: before anything expensive is prepared."""
        with self._lock:
            self._refuse_surplus(user)

    def submit(self, user: str, job: Callable[[], None]) -> None:
        """Run ``job`` when it is the user's turn. Raises ThrottledError where the user, or all together, have too many."""
        with self._lock:
            self._refuse_surplus(user)
            self._queue.put(user, job)
        self._pool.submit(self._run_next)

    def withdraw(self, user: str, job: Callable[[], None]) -> None:
        """Take a job out that has not begun; one that runs, or is over, is left alone."""
        with self._lock:
            self._queue.remove(user, job)

    def close(self) -> None:
        """Start no more jobs; what runs goes on."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _refuse_surplus(self, user: str) -> None:
        if self._per_user is not None and self._queue.count(user) + self._running[user] >= self._per_user:
            raise ThrottledError(
                f"{self._per_user} simulations of yours are running or waiting",
                retry_after_s=RETRY_AFTER_S,
                hint="Wait until one is done, or stop one.",
            )
        if self._waiting is not None and len(self._queue) >= self._waiting:
            raise ThrottledError(
                f"{self._waiting} simulations are waiting", retry_after_s=RETRY_AFTER_S, hint="Try again later."
            )

    def _run_next(self) -> None:
        with self._lock:
            entry = self._queue.pop()
            if entry is None:
                return
            user, job = entry
            self._running[user] += 1
        try:
            job()
        finally:
            with self._lock:
                self._running[user] -= 1
                self._running += Counter()  # drops users whose count is zero
