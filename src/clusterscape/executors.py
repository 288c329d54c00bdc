"""The thread pools of background work, apart from those that answer requests: docs/design/load.md lists all of them.

asyncio's default executor is used by nobody here: name resolution of collectors needs it, and must not wait for others.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

Asked = ParamSpec("Asked")
Result = TypeVar("Result")


class ThreadPool:
    """A bounded number of threads, created as they are needed."""

    def __init__(self, name: str, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Callable[Asked, Result], *args: Asked.args, **kwargs: Asked.kwargs) -> Result:
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
