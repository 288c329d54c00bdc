"""Memory in PyTorch traces: what was allocated after every allocation and release, where the profiler was told to record it
(``profile_memory=True``).
"""

import re
from collections.abc import Iterator, Mapping

import polars as pl

_MARK = b'"[memory]"'
_EVENT = re.compile(
    rb'"name"\s*:\s*"\[memory\]"[^{}]*?"ts"\s*:\s*"?([\d.]+)"?[^{}]*?"args"\s*:\s*\{([^{}]*)\}', re.DOTALL
)
_ALLOCATED = re.compile(rb'"Total Allocated"\s*:\s*"?(\d+)')
_DEVICE = re.compile(rb'"Device (Type|Id)"\s*:\s*"?(-?\d+)')


MEMORY_SCHEMA: Mapping[str, pl.DataType] = {
    "time_ns": pl.Int64(),
    "bytes": pl.Int64(),
    "type": pl.Int64(),
    "device": pl.Int64(),
}
"""A mark of the profiler; ``type`` 0 is the host."""


def read_memory(data: bytes, base_ns: int) -> pl.DataFrame | None:
    """``time_ns``, ``bytes`` allocated from then on, of the device that holds most; of the host where there is none. None where
    nothing was recorded.
    """
    if _MARK not in data:
        return None
    return choose_device(pl.DataFrame(list(_events(data, base_ns)), schema=MEMORY_SCHEMA, orient="row"))


def choose_device(table: pl.DataFrame) -> pl.DataFrame | None:
    """The same of marks that have been read (``MEMORY_SCHEMA``)."""
    if not table.height:
        return None
    if (table["type"] != 0).any():
        table = table.filter(pl.col("type") != 0)
    most = table.group_by("device").agg(pl.col("bytes").max()).sort("bytes", "device")["device"][-1]
    return table.filter(pl.col("device") == most).sort("time_ns", maintain_order=True).select("time_ns", "bytes")


def _events(data: bytes, base_ns: int) -> Iterator[tuple[int, int, int, int]]:
    for found in _EVENT.finditer(data):
        arguments = found[2]
        allocated = _ALLOCATED.search(arguments)
        if allocated is None:  # older profilers wrote only the change
            continue
        device = {each[1]: int(each[2]) for each in _DEVICE.finditer(arguments)}
        whole, _, part = found[1].partition(b".")
        # Microseconds with decimals lose digits as floats.
        time_ns = int(whole) * 1000 + int((part + b"000")[:3])
        yield base_ns + time_ns, int(allocated[1]), device.get(b"Type", 0), device.get(b"Id", -1)
