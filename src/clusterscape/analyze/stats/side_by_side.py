"""Runs a kernel on parts of its rows at the same time: kernels let go of the interpreter's lock, and rows are independent."""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Part = TypeVar("Part")

FEWEST_ROWS = 2048
"""Fewer rows are done before a second thread has begun."""

MOST_PARTS = 4


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=MOST_PARTS, thread_name_prefix="statistics")


def run_on_parts(row_count: int, work: Callable[[slice], Part]) -> list[Part]:
    """What ``work`` returns for each part of the rows, in order."""
    parts = min(MOST_PARTS, os.cpu_count() or 1, row_count // FEWEST_ROWS)
    if parts < 2:
        return [work(slice(0, row_count))]
    borders = [row_count * part // parts for part in range(parts + 1)]
    pieces = [slice(start, stop) for start, stop in itertools.pairwise(borders)]
    others = [_pool().submit(work, piece) for piece in pieces[1:]]
    return [work(pieces[0]), *(other.result() for other in others)]
