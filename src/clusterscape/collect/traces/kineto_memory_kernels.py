"""Marks of memory in a Kineto file, from the places where ``kineto_kernels.py`` found them. Compiled; importing this imports
numba.
"""

import numpy as np

from clusterscape.collect.traces.byte_kernels import Bytes, bare, inlined
from clusterscape.collect.traces.json_kernels import MINUS, ODD, POINT, QUOTE, Ints, is_same, next_member, skip_value

TIME, TOTAL, DEVICE_TYPE, DEVICE = range(4)
MARK_COLUMNS = 4
_TOTAL = np.frombuffer(b"Total Allocated", np.uint8)
_DEVICE_TYPE = np.frombuffer(b"Device Type", np.uint8)
_DEVICE = np.frombuffer(b"Device Id", np.uint8)


@inlined
def read_digits(data: Bytes, at: int) -> tuple[int, int]:
    """A whole number, which may stand in quotes and be negative, and the place behind its digits."""
    if data[at] == QUOTE:
        at += 1
    is_negative = data[at] == MINUS
    if is_negative:
        at += 1
    value = 0
    while at < data.size and 48 <= data[at] <= 57:
        value = value * 10 + int(np.int64(data[at]) - 48)
        at += 1
    return -value if is_negative else value, at


@inlined
def read_nanoseconds(data: Bytes, at: int) -> int:
    """Microseconds with decimals, which a float would lose."""
    value, at = read_digits(data, at)
    value *= 1000
    if at < data.size and data[at] == POINT:
        factor = 100
        at += 1
        while factor and at < data.size and 48 <= data[at] <= 57:
            value += factor * int(np.int64(data[at]) - 48)
            factor //= 10
            at += 1
    return value


@inlined
def find_column(data: Bytes, name: int, length: int) -> int:
    """Which column an argument of a mark is; ``TIME``: none."""
    if length == _TOTAL.size and is_same(data, name, _TOTAL):
        return TOTAL
    if length == _DEVICE_TYPE.size and is_same(data, name, _DEVICE_TYPE):
        return DEVICE_TYPE
    if length == _DEVICE.size and is_same(data, name, _DEVICE):
        return DEVICE
    return TIME


@bare
def read_marks(data: Bytes, memory: Ints, found: Ints) -> int:
    """Marks of memory into ``found``: nanoseconds, bytes allocated, type and number of the device; and how many there are.

    Those that tell only a change, as older profilers wrote them, are left out.
    """
    count = 0
    for mark in range(memory.shape[0]):
        found[count, TIME] = read_nanoseconds(data, memory[mark, 0])
        found[count, DEVICE_TYPE], found[count, DEVICE] = 0, -1
        has_total = False
        at = memory[mark, 1] + 1
        is_first = True
        while True:
            name, name_end, at = next_member(data, at, is_first)
            if name <= 0:
                break
            is_first = False
            column = find_column(data, name, name_end - name)
            if column != TIME:
                found[count, column], _ = read_digits(data, at)
                has_total |= column == TOTAL
            at = skip_value(data, at)
            if at == ODD:
                break
        count += has_total
    return count
