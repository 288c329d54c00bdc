"""Upper bounds of request values: names, texts, times and numbers. The page never reaches them; hostile clients might.

Every list, text and number of a request has one; tests/contract/test_request_bounds.py checks the OpenAPI schema.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

LATEST_MS = 253_402_300_799_999
"""The end of the year 9999, the last year of Python's ``datetime``."""
MAX_NS = 10**18
"""Thirty years: longer than any trace."""

Name = Annotated[str, StringConstraints(max_length=256)]
"""Of a user, project, partition, node, metric, policy."""
ItemId = Annotated[str, StringConstraints(max_length=512)]
"""Of a workload, unit, run or document."""
LongText = Annotated[str, StringConstraints(max_length=8_000)]
"""Text that users write; some queries allow less."""

Moment = Annotated[int, Field(ge=0, le=LATEST_MS)]
"""Unix ms."""
Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
MAX_DIGITS = 9
Coordinate = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]
"""Of an axis: seconds, steps, values of a metric."""
Nanoseconds = Annotated[float, Field(ge=-MAX_NS, le=MAX_NS, allow_inf_nan=False)]


def parse_count(text: str) -> int | None:
    """A whole number of at most nine ASCII digits; None if the text is anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None
