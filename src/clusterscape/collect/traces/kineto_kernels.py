"""One pass over the bytes of a Kineto file: its complete events ("X") as columns, its strings as numbers. Compiled; importing
this imports numba.

Reads what spans are made of and skips the rest, without making an object. What is not as profilers write it (``ODD``) is left
to ``kineto.py``, which says what is wrong. Codes are places in the table of tokens; −1 is null.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from clusterscape.collect.traces.json_kernels import (
    CLOSE,
    CLOSE_LIST,
    COLON,
    COMMA,
    FIRST_OF_NULL,
    HARD_NUMBER,
    IS_BETWEEN,
    MINUS,
    NO_NUMBER,
    ODD,
    OPEN,
    OPEN_LIST,
    POINT,
    QUOTE,
    REAL_NUMBER,
    WHOLE_NUMBER,
    Bytes,
    Hashes,
    Ints,
    find_token,
    grow_slots,
    is_equal,
    is_same,
    next_member,
    read_number,
    skip_space,
    skip_string,
    skip_value,
)

Whole = NDArray[np.int64]
Real = NDArray[np.float64]

NOTHING = np.iinfo(np.int64).min
"""Null among whole numbers."""
LEAST_EVENT_BYTES = 24
"""No event that counts is shorter: {"ph":"X","cat":"","ts":0}"""
FIRST_SLOTS = 1 << 12
TOKENS_PER_EVENT = 3
HARD_PER_MEMBER = 3
MOST_MEMBERS = 64
"""Of a document; profilers write a dozen."""

# Columns of whole numbers, of real numbers, and what a number that Python has to read belongs to.
CATEGORY, NAME, THREAD, START, START_AT, CORRELATION, SIZE, ARGUMENTS, ARGUMENTS_END = range(9)
WHOLE_COLUMNS = 9
START_REAL, DURATION, FLOPS = range(3)
REAL_COLUMNS = 3
HARD_START, HARD_DURATION, HARD_CORRELATION, HARD_SIZE, HARD_FLOPS = range(5)

_CORRELATION = np.frombuffer(b"correlation", np.uint8)
_BYTES = np.frombuffer(b"bytes", np.uint8)
_FLOPS = np.frombuffer(b"flops", np.uint8)
_NAME = np.frombuffer(b"name", np.uint8)
_ARGS = np.frombuffer(b"args", np.uint8)
_MEMORY = np.frombuffer(b'"[memory]"', np.uint8)
_TOTAL = np.frombuffer(b"Total Allocated", np.uint8)
_DEVICE_TYPE = np.frombuffer(b"Device Type", np.uint8)
_DEVICE_ID = np.frombuffer(b"Device Id", np.uint8)
_EVENTS = np.frombuffer(b"traceEvents", np.uint8)


@njit(cache=True, nogil=True)
def find_arguments(data: Bytes, at: int) -> tuple[int, int, int, int]:
    """The place behind an event's arguments, or ``ODD``; where the values of correlation, bytes and flops begin, 0: nowhere.

    Most arguments are of no use: this walks over them as ``skip_value`` does, and looks twice only at strings that may be these.
    """
    correlation = size = flops = depth = 0
    while at < data.size:
        one = data[at]
        if one == QUOTE:
            begin = at + 1
            at = skip_string(data, at)
            if at == ODD:
                return ODD, 0, 0, 0
            first = data[begin]
            if depth == 1 and (first == 99 or first == 98 or first == 102):  # c, b, f
                length = at - 1 - begin
                value = skip_space(data, at)
                if value < data.size and data[value] == COLON:
                    value = skip_space(data, value + 1)
                    if length == 11 and is_same(data, begin, _CORRELATION):
                        correlation = value
                    elif length == 5 and is_same(data, begin, _BYTES):
                        size = value
                    elif length == 5 and is_same(data, begin, _FLOPS):
                        flops = value
            continue
        if one in (OPEN, OPEN_LIST):
            depth += 1
        elif one in (CLOSE, CLOSE_LIST):
            depth -= 1
            if depth == 0:
                return at + 1, correlation, size, flops
        elif not IS_BETWEEN[one]:
            return ODD, 0, 0, 0
        at += 1
    return ODD, 0, 0, 0


@njit(cache=True, nogil=True)
def read_value(
    data: Bytes, begin: int, kind: int, row: int, whole: Whole, real: Real, hard: Ints, hard_count: int
) -> int:
    """Puts a number into its column and gives 0; into ``hard`` and gives 1; gives ``ODD`` where it is none.

    A number may be written as a string, but for times.
    """
    first = data[begin]
    if first == FIRST_OF_NULL:
        return 0
    what, value, number = read_number(data, begin)
    is_time = kind <= HARD_DURATION
    if what == NO_NUMBER and (is_time or first != QUOTE):
        return ODD
    if what == WHOLE_NUMBER:
        number = float(value)
    is_real = what == REAL_NUMBER
    is_counted = kind in (HARD_CORRELATION, HARD_SIZE)
    if what in (NO_NUMBER, HARD_NUMBER) or (is_real and is_counted):
        hard[hard_count, 0], hard[hard_count, 1], hard[hard_count, 2] = row, kind, begin
        return 1
    if kind == HARD_START:
        real[row, START_REAL] = number
        if not is_real:
            whole[row, START] = value
    elif kind == HARD_DURATION:
        real[row, DURATION] = number
    elif kind == HARD_FLOPS:
        real[row, FLOPS] = number
    else:
        whole[row, CORRELATION if kind == HARD_CORRELATION else SIZE] = value
    return 0


@njit(cache=True, nogil=True)
def read_arguments(
    data: Bytes, at: int, row: int, whole: Whole, real: Real, hard: Ints, hard_count: int
) -> tuple[int, int, bool]:
    """The place behind an event's arguments, how many hard numbers there are by now, and whether one has an odd type."""
    end, correlation, size, flops = find_arguments(data, at)
    whole[row, ARGUMENTS], whole[row, ARGUMENTS_END] = at, end
    is_odd = False
    if correlation:
        outcome = read_value(data, correlation, HARD_CORRELATION, row, whole, real, hard, hard_count)
        is_odd |= outcome == ODD
        hard_count += outcome == 1
    if size:
        outcome = read_value(data, size, HARD_SIZE, row, whole, real, hard, hard_count)
        is_odd |= outcome == ODD
        hard_count += outcome == 1
    if flops:
        outcome = read_value(data, flops, HARD_FLOPS, row, whole, real, hard, hard_count)
        is_odd |= outcome == ODD
        hard_count += outcome == 1
    return end, hard_count, is_odd


@njit(cache=True, nogil=True)
def find_column(data: Bytes, name: int, length: int) -> int:
    """Which column of tokens a member of an event is; −1: none."""
    if length == 3 and data[name] == 99 and data[name + 1] == 97 and data[name + 2] == 116:  # cat
        return CATEGORY
    if length == 3 and data[name] == 116 and data[name + 1] == 105 and data[name + 2] == 100:  # tid
        return THREAD
    if length == 4 and is_same(data, name, _NAME):
        return NAME
    return -1


@njit(cache=True, nogil=True)
def find_time(data: Bytes, name: int, length: int) -> int:
    """Which time a member of an event is; −1: none."""
    if length == 2 and data[name] == 116 and data[name + 1] == 115:  # ts
        return HARD_START
    if length == 3 and data[name] == 100 and data[name + 1] == 117 and data[name + 2] == 114:  # dur
        return HARD_DURATION
    return -1


@njit(cache=True, nogil=True)
def clear_row(row: int, whole: Whole, real: Real) -> None:
    """Nothing is known of the event."""
    whole[row, CATEGORY] = whole[row, NAME] = whole[row, THREAD] = -1
    whole[row, CORRELATION] = whole[row, SIZE] = whole[row, START] = NOTHING
    whole[row, START_AT] = whole[row, ARGUMENTS] = whole[row, ARGUMENTS_END] = 0
    real[row, START_REAL] = real[row, FLOPS] = np.nan
    real[row, DURATION] = 0.0


@njit(cache=True, nogil=True)
def read_event(
    data: Bytes,
    at: int,
    row: int,
    whole: Whole,
    real: Real,
    hard: Ints,
    hard_count: int,
    slots: Ints,
    begins: Ints,
    ends: Ints,
    hashes: Hashes,
    tokens: int,
) -> tuple[int, bool, int, int]:
    """The place behind the event whose bracket was before this place, whether it is complete with a category and a start, and
    how many hard numbers and tokens there are by now. Fills the row.
    """
    clear_row(row, whole, real)
    is_complete = is_odd = has_start = False
    is_first = True
    while True:
        name, name_end, at = next_member(data, at, is_first)
        if name == 0:
            break
        if name == ODD or hard_count + HARD_PER_MEMBER > hard.shape[0]:
            return ODD, False, hard_count, tokens
        is_first = False
        begin = at
        length = name_end - name
        if length == 4 and data[at] == OPEN and whole[row, ARGUMENTS] == 0 and is_same(data, name, _ARGS):
            at, hard_count, has_odd = read_arguments(data, at, row, whole, real, hard, hard_count)
            is_odd |= has_odd
            if at == ODD:
                return ODD, False, hard_count, tokens
            continue
        at = skip_value(data, at)
        if at == ODD:
            return ODD, False, hard_count, tokens
        is_null = data[begin] == FIRST_OF_NULL
        time = find_time(data, name, length)
        column = find_column(data, name, length)
        if length == 2 and data[name] == 112 and data[name + 1] == 104:  # ph
            if data[begin] != QUOTE:
                return ODD, False, hard_count, tokens
            is_complete = at - begin == 3 and data[begin + 1] == 88
        elif time >= 0:
            outcome = read_value(data, begin, time, row, whole, real, hard, hard_count)
            is_odd |= outcome == ODD
            hard_count += outcome == 1
            if time == HARD_START and not is_null:
                has_start = True
                whole[row, START_AT] = begin
        elif column >= 0 and not is_null:
            is_number = data[begin] == MINUS or 48 <= data[begin] <= 57
            if whole[row, column] >= 0 or not (data[begin] == QUOTE or (is_number and column != CATEGORY)):
                is_odd = True
                continue
            # Events that follow one another are often of one category and thread.
            code = whole[row - 1, column] if row else -1
            if (
                code < 0
                or ends[code] - begins[code] != at - begin
                or not is_equal(data, begin, begins[code], at - begin)
            ):
                code = find_token(data, begin, at, slots, begins, ends, hashes, tokens)
                tokens += code == tokens
            whole[row, column] = code
        elif length == 4 and is_same(data, name, _ARGS):
            is_odd |= not is_null
    if is_complete and is_odd:
        return ODD, False, hard_count, tokens
    return at, is_complete and has_start and whole[row, CATEGORY] >= 0, hard_count, tokens


@njit(cache=True, nogil=True)
def scan_events(data: Bytes, at: int) -> tuple[int, Whole, Real, Ints, Ints, Ints, Ints]:
    """The place behind the list of events that begins here, and of its complete events with a category and a start:

    columns of whole numbers and of real numbers, a row each; hard numbers (row, what, begin); where tokens begin and end. Last,
    of marks of memory, where their times and arguments begin. The place is ``ODD`` where ``kineto.py`` has to look at the file.
    """
    most = (data.size - at) // LEAST_EVENT_BYTES + 2
    # More than are needed; what is not written to takes no memory.
    whole = np.empty((most, WHOLE_COLUMNS), np.int64)
    real = np.empty((most, REAL_COLUMNS), np.float64)
    hard = np.empty((most, 3), np.int64)
    begins, ends = np.empty(3 * most, np.int64), np.empty(3 * most, np.int64)
    hashes = np.empty(3 * most, np.uint64)
    slots = np.full(FIRST_SLOTS, -1, np.int64)
    memory = np.empty((most, 2), np.int64)
    row = hard_count = tokens = marks = 0
    is_first = True
    at += 1
    while True:
        at = skip_space(data, at)
        if at < data.size and data[at] == CLOSE_LIST:
            at += 1
            break
        if not is_first:
            if at >= data.size or data[at] != COMMA:
                at = ODD
                break
            at = skip_space(data, at + 1)
        is_first = False
        if at >= data.size or data[at] != OPEN or tokens + TOKENS_PER_EVENT > begins.size:
            at = ODD
            break
        if 2 * (tokens + TOKENS_PER_EVENT) > slots.size:
            slots = grow_slots(slots, hashes, tokens)
        at, counts, hard_after, tokens = read_event(
            data, at + 1, row, whole, real, hard, hard_count, slots, begins, ends, hashes, tokens
        )
        if at == ODD:
            break
        if counts:
            row += 1
            hard_count = hard_after
        else:
            code, begin = whole[row, NAME], whole[row, ARGUMENTS]
            is_mark = code >= 0 and ends[code] - begins[code] == _MEMORY.size and is_same(data, begins[code], _MEMORY)
            if is_mark and begin > 0 and whole[row, START_AT] > 0 and marks < most:
                memory[marks, 0], memory[marks, 1] = whole[row, START_AT], begin
                marks += 1
    found = whole[:row], real[:row], hard[:hard_count]
    return at, *found, begins[:tokens].copy(), ends[:tokens].copy(), memory[:marks]


@njit(cache=True, nogil=True)
def read_digits(data: Bytes, at: int) -> tuple[int, int]:
    """A whole number, which may stand in quotes and be negative, and the place behind its digits."""
    if data[at] == QUOTE:
        at += 1
    is_negative = data[at] == MINUS
    if is_negative:
        at += 1
    value = 0
    while at < data.size and 48 <= data[at] <= 57:
        value = value * 10 + (int(data[at]) - 48)
        at += 1
    return -value if is_negative else value, at


@njit(cache=True, nogil=True)
def read_marks(data: Bytes, memory: Ints) -> tuple[Ints, int]:
    """Marks of memory: nanoseconds, bytes allocated, type and number of the device; and how many there are.

    Those that tell only a change, as older profilers wrote them, are left out.
    """
    found = np.empty((memory.shape[0], 4), np.int64)
    count = 0
    for mark in range(memory.shape[0]):
        value, at = read_digits(data, memory[mark, 0])
        found[count, 0] = value * 1000
        if data[at] == POINT:
            factor = 100
            at += 1
            while factor and 48 <= data[at] <= 57:
                found[count, 0] += factor * (int(data[at]) - 48)
                factor //= 10
                at += 1
        found[count, 2], found[count, 3] = 0, -1
        has_total = False
        at = memory[mark, 1] + 1
        is_first = True
        while True:
            name, name_end, at = next_member(data, at, is_first)
            if name <= 0:
                break
            is_first = False
            length = name_end - name
            column = -1
            if length == _TOTAL.size and is_same(data, name, _TOTAL):
                column, has_total = 1, True
            elif length == _DEVICE_TYPE.size and is_same(data, name, _DEVICE_TYPE):
                column = 2
            elif length == _DEVICE_ID.size and is_same(data, name, _DEVICE_ID):
                column = 3
            if column > 0:
                found[count, column], _ = read_digits(data, at)
            at = skip_value(data, at)
        count += has_total
    return found, count


@njit(cache=True, nogil=True)
def find_members(data: Bytes, at: int, is_first: bool) -> tuple[int, Ints, bool]:
    """Members of a document: where each one's name and value begin and end; whether the last is ``traceEvents``.

    From behind the document's bracket, or from behind a member, up to the place behind the document, or up to the list of events
    (its value is empty here: it is for ``scan_events``). The place is ``ODD`` where the document is not whole.
    """
    found = np.zeros((MOST_MEMBERS, 4), np.int64)
    for count in range(MOST_MEMBERS):
        name, name_end, at = next_member(data, at, is_first)
        if name == ODD:
            break
        if name == 0:
            return at, found[:count], False
        is_first = False
        begin = at
        is_events = name_end - name == _EVENTS.size and is_same(data, name, _EVENTS)
        if not is_events:
            at = skip_value(data, at)
            if at == ODD:
                break
        found[count, 0], found[count, 1], found[count, 2], found[count, 3] = name, name_end, begin, at
        if is_events:
            return at, found[: count + 1], True
    return ODD, found[:0], False
