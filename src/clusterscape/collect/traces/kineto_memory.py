"""Memory in PyTorch traces: the bytes allocated after every allocation and release, where the profiler recorded them
(``profile_memory=True``).
"""

from collections.abc import Iterable

import polars as pl

from clusterscape.collect.traces.kineto import (
    MOST_US,
    AllocationArguments,
    Event,
    InstantEvent,
    to_column,
    to_whole,
)

_NAME = b'"[memory]"'
_NO_ARGUMENTS = AllocationArguments()
_MOST_DIGITS = 16


class MemoryColumns:
    """Collects the allocations of a file, a block of events at a time."""

    def __init__(self) -> None:
        self._times_ns: list[int | None] = []
        self._arguments: list[AllocationArguments] = []

    def add(self, events: Iterable[Event]) -> None:
        """Take in a block of events."""
        instants = [event for event in events if type(event) is InstantEvent]
        marks = [event for event in instants if bytes(event.name) == _NAME]
        self._times_ns += [_parse_time(bytes(event.ts)) for event in marks]
        self._arguments += [event.args or _NO_ARGUMENTS for event in marks]

    def build(self, base_ns: int) -> pl.DataFrame | None:
        """``time_ns`` and the ``bytes`` allocated from then on, of the device that holds most; of the host where no device
        is named. None where nothing was recorded.
        """
        table = pl.DataFrame(
            {
                "time_ns": pl.Series(self._times_ns, dtype=pl.Int64) + base_ns,
                "bytes": to_column([own.total for own in self._arguments], pl.Int64(), to_whole),
                "type": to_column([own.device_type for own in self._arguments], pl.Int64(), to_whole).fill_null(0),
                "device": to_column([own.device for own in self._arguments], pl.Int64(), to_whole).fill_null(-1),
            }
        )
        table = table.drop_nulls()  # older profilers wrote only the change, without the total
        if not table.height:
            return None
        if (table["type"] != 0).any():  # 0 is the host
            table = table.filter(pl.col("type") != 0)
        largest = table.group_by("device").agg(pl.col("bytes").max()).sort("bytes", "device")["device"][-1]
        table = table.filter(pl.col("device") == largest).sort("time_ns", maintain_order=True)
        return table.select("time_ns", "bytes")


def _parse_time(text: bytes) -> int | None:
    """Nanoseconds of microseconds with decimals, which some profilers put in quotes."""
    whole, _, decimals = text.strip(b'"').partition(b".")
    if not whole.isdigit() or len(whole) > _MOST_DIGITS or not (decimals or b"0").isdigit():
        return None
    microseconds = int(whole)
    return microseconds * 1000 + int((decimals + b"000")[:3]) if microseconds <= MOST_US else None
