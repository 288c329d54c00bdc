"""One pass over the bytes of a Kineto file: its complete events ("X") as columns, its strings as numbers. Compiled; importing
this imports numba.

Reads what spans are made of and skips the rest, without making an object. What is not as profilers write it (``ODD``) is left
to ``kineto.py``, which says what is wrong. Codes are places in the table of tokens; −1 is null.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clusterscape.collect.traces.byte_kernels import (
    BLOCK,
    WORD,
    Bytes,
    bare,
    block_brackets,
    block_breaks,
    block_quotes,
    block_strangers,
    fold_quotes,
    inlined,
    is_equal,
    marks_of,
    trailing_zeros,
    word_at,
)
from clusterscape.collect.traces.json_kernels import (
    BEGIN,
    CLOSE,
    CLOSE_LIST,
    COMMA,
    END,
    FIRST_OF_NULL,
    HARD_NUMBER,
    IS_BETWEEN,
    MINUS,
    NO_NUMBER,
    ODD,
    OPEN,
    OPEN_LIST,
    QUOTE,
    REAL_NUMBER,
    WHOLE_NUMBER,
    Ints,
    find_token,
    is_same,
    next_name,
    read_number,
    skip_colon,
    skip_space,
    skip_string,
    skip_value,
)

Reals = NDArray[np.float64]

NOTHING = np.iinfo(np.int64).min
"""Null among whole numbers."""
LEAST_EVENT_BYTES = 24
"""No event that counts is shorter: {"ph":"X","cat":"","ts":0}"""
LEAST_HARD_BYTES = 8
"""No number that Python has to read takes less, with its name: "ts":1e1"""
TOKENS_PER_EVENT = 3


# Columns of whole numbers, of real numbers, and what a number that Python has to read belongs to.
CATEGORY, NAME, THREAD, START, CORRELATION, SIZE, ARGUMENTS, ARGUMENTS_END = range(8)
WHOLE_COLUMNS = 8
START_REAL, DURATION, FLOPS = range(3)
REAL_COLUMNS = 3
HARD_START, HARD_DURATION, HARD_CORRELATION, HARD_SIZE, HARD_FLOPS = range(5)
HARD_KINDS = 5

# What is found of an event: where its numbers begin (0: nowhere), in the order of the kinds above; where its strings and its
# arguments begin and, behind that, end; whether it is a complete one, and whether there is something only the decoder can judge.
AT_CATEGORY, AT_NAME, AT_THREAD, AT_ARGUMENTS = 5, 7, 9, 11
IS_COMPLETE, IS_ODD = 13, 14
FOUND = 15
PHASE, OTHER = FOUND, FOUND + 1
"""Members of an event that are not found but judged, or skipped."""

# Where the scan is: how far in the bytes, and how many rows, hard numbers, tokens and marks of memory there are by now.
AT, ROWS, HARDS, TOKENS, MARKS = range(5)
STATE = 5
IS_DONE, IS_FULL = 0, 1
"""Outcomes of a scan beside ``ODD``: at the end of the list, or it can go on with more slots."""


def as_word(text: bytes) -> int:
    return int.from_bytes(text, "little")


_OF_3, _OF_4, _OF_5, _OF_6 = ((1 << (8 * length)) - 1 for length in (3, 4, 5, 6))
_PHASE, _START = as_word(b'ph"'), as_word(b'ts"')
_CATEGORY, _THREAD, _DURATION, _PROCESS = (as_word(name) for name in (b'cat"', b'tid"', b'dur"', b'pid"'))
_NAME, _ARGUMENTS = as_word(b'name"'), as_word(b'args"')
_BYTES, _FLOPS = as_word(b'bytes"'), as_word(b'flops"')
_CORRELAT, _ION = as_word(b"correlat"), as_word(b'ion"')
_MEMORY = np.frombuffer(b'"[memory]"', np.uint8)
_REACH = 1 + 2 * WORD
"""Bytes behind a quote that are looked at."""
# Of the 64 bytes from a place on: those that a name of interest among arguments begins with: b, c, f.
block_initials: Any = marks_of(BLOCK, ((98, 99), (102, 102)))


@inlined
def note_argument(data: Bytes, at: int, found: Ints) -> None:
    """Note where its value begins, where a name of interest among arguments begins here."""
    word = word_at(data, at, WORD)
    if word == _CORRELAT and word_at(data, at + WORD, 4) == _ION:
        kind, end = HARD_CORRELATION, at + 12
    elif word & _OF_6 == _BYTES:
        kind, end = HARD_SIZE, at + 6
    elif word & _OF_6 == _FLOPS:
        kind, end = HARD_FLOPS, at + 6
    else:
        return
    value = skip_colon(data, end)
    if value != ODD:
        found[IS_ODD] |= found[kind] > 0
        found[kind] = value


@bare
def find_arguments_slowly(data: Bytes, at: int, found: Ints) -> int:
    """As ``find_arguments``, byte by byte: whatever is in strings, up to the file's last byte."""
    found[HARD_CORRELATION] = found[HARD_SIZE] = found[HARD_FLOPS] = 0
    depth = 0
    while at < data.size:
        one = data[at]
        if one == QUOTE:
            begin = at + 1
            at = skip_string(data, at)
            if at == ODD:
                return ODD
            if depth == 1:
                note_argument(data, begin, found)
            continue
        if one in (OPEN, OPEN_LIST):
            depth += 1
        elif one in (CLOSE, CLOSE_LIST):
            depth -= 1
            if depth == 0:
                return at + 1
        elif not IS_BETWEEN[one]:
            return ODD
        at += 1
    return ODD


@inlined
def find_arguments(data: Bytes, at: int, found: Ints) -> int:
    """The place behind an event's arguments, or ``ODD``; notes where the values of correlation, bytes and flops begin.

    Most arguments are of no use: 64 bytes at a time are looked at, of which only brackets outside strings and quotes before
    the letters of interest matter.
    """
    begin = at
    depth = 0
    inside = 0  # −1: the block begins in a string
    while at + BLOCK + _REACH <= data.size:
        quotes = block_quotes(data, at)
        strings = fold_quotes(quotes) ^ inside
        inside = strings >> 63
        outside = ~(strings | quotes)
        if (block_breaks(data, at) & strings) | (block_strangers(data, at) & outside):
            return find_arguments_slowly(data, begin, found)
        marks = (block_brackets(data, at) & outside) | (quotes & strings & block_initials(data, at + 1))
        while marks:
            place = at + trailing_zeros(marks)
            marks &= marks - 1
            one = data[place]
            if one == QUOTE:
                if depth == 1:
                    note_argument(data, place + 1, found)
            elif one in (OPEN, OPEN_LIST):
                depth += 1
            else:
                depth -= 1
                if depth == 0:
                    return int(place + 1)
        at += BLOCK
    return find_arguments_slowly(data, begin, found)


@inlined
def name_member(data: Bytes, at: int) -> tuple[int, int]:
    """Which member of an event the name is whose quote is here, and the place behind it, or ``ODD``."""
    word = word_at(data, at + 1, WORD)
    short, middle, long = word & _OF_3, word & _OF_4, word & _OF_5
    if short == _PHASE:
        return PHASE, at + 4
    if short == _START:
        return HARD_START, at + 4
    if middle == _CATEGORY:
        return AT_CATEGORY, at + 5
    if long == _NAME:
        return AT_NAME, at + 6
    if middle == _PROCESS:
        return OTHER, at + 5
    if middle == _THREAD:
        return AT_THREAD, at + 5
    if middle == _DURATION:
        return HARD_DURATION, at + 5
    if long == _ARGUMENTS:
        return AT_ARGUMENTS, at + 6
    return OTHER, skip_string(data, at)


@inlined
def note_member(data: Bytes, member: int, begin: int, end: int, found: Ints) -> None:
    """Note where a member's value is; or that it is of a kind that only the decoder judges."""
    first = data[begin]
    if member == PHASE:
        found[IS_COMPLETE] = end - begin == 3 and data[begin + 1] == 88
    elif first == FIRST_OF_NULL:
        return
    elif member <= HARD_DURATION:
        found[member] = begin
    else:
        is_number = first == MINUS or 48 <= first <= 57
        is_token = first == QUOTE or (is_number and member != AT_CATEGORY)
        if first == OPEN if member == AT_ARGUMENTS else is_token:
            found[member], found[member + 1] = begin, end
        else:
            found[IS_ODD] = 1


@inlined
def find_event(data: Bytes, at: int, found: Ints) -> int:
    """The place behind the event that begins here, from behind its bracket, or ``ODD``; notes where its members are."""
    for place in range(FOUND):
        found[place] = 0
    seen = 0
    is_first = True
    while True:
        at = next_name(data, at, is_first)
        if at == ODD:
            return ODD
        if data[at] == CLOSE:
            return at + 1
        is_first = False
        member, at = name_member(data, at)
        begin = skip_colon(data, at) if at != ODD else ODD
        if begin == ODD or begin >= data.size:
            return ODD
        has_arguments = member == AT_ARGUMENTS and data[begin] == OPEN
        at = find_arguments(data, begin, found) if has_arguments else skip_value(data, begin)
        if at == ODD or (member == PHASE and data[begin] != QUOTE):
            return ODD
        if member != OTHER:
            found[IS_ODD] |= (seen >> member) & 1  # what is told twice, the decoder weighs
            seen |= 1 << member
            note_member(data, member, begin, at, found)


@inlined
def read_value(
    data: Bytes, begin: int, kind: int, row: int, whole: Ints, real: Reals, hard: Ints, hard_count: int
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
        real[START_REAL, row] = number
        if not is_real:
            whole[START, row] = value
    elif kind == HARD_DURATION:
        real[DURATION, row] = number
    elif kind == HARD_FLOPS:
        real[FLOPS, row] = number
    else:
        whole[CORRELATION if kind == HARD_CORRELATION else SIZE, row] = value
    return 0


@inlined
def read_numbers(data: Bytes, row: int, found: Ints, whole: Ints, real: Reals, hard: Ints, hard_count: int) -> int:
    """How many hard numbers there are behind those of this event, or ``ODD``; puts the others into the row."""
    whole[CORRELATION, row] = whole[SIZE, row] = whole[START, row] = NOTHING
    real[START_REAL, row] = real[FLOPS, row] = np.nan
    real[DURATION, row] = 0.0
    for kind in range(HARD_KINDS):
        if found[kind]:
            outcome = read_value(data, found[kind], kind, row, whole, real, hard, hard_count)
            if outcome == ODD:
                return ODD
            hard_count += outcome
    return hard_count


@inlined
def read_codes(data: Bytes, row: int, found: Ints, whole: Ints, slots: Ints, tokens: Ints, count: int) -> int:
    """How many tokens there are behind those of this event; puts their codes into the row."""
    for column in range(TOKENS_PER_EVENT):
        begin, end = found[AT_CATEGORY + 2 * column], found[AT_CATEGORY + 2 * column + 1]
        if begin == 0:
            whole[column, row] = -1
            continue
        # Events that follow one another are often of one category and thread.
        code = whole[column, row - 1] if row else -1
        if (
            code < 0
            or tokens[code, END] - tokens[code, BEGIN] != end - begin
            or not is_equal(data, begin, tokens[code, BEGIN], end - begin)
        ):
            code = find_token(data, begin, end, slots, tokens, count)
            count += code == count
        whole[column, row] = code
    whole[ARGUMENTS, row], whole[ARGUMENTS_END, row] = found[AT_ARGUMENTS], found[AT_ARGUMENTS + 1]
    return count


@inlined
def is_mark(data: Bytes, found: Ints) -> bool:
    """Whether the event tells how much memory is allocated."""
    begin, end = found[AT_NAME], found[AT_NAME + 1]
    is_named = end - begin == _MEMORY.size and is_same(data, begin, _MEMORY)
    return bool(is_named and found[AT_ARGUMENTS] and found[HARD_START])


@inlined
def read_event(
    data: Bytes, found: Ints, state: Ints, whole: Ints, real: Reals, hard: Ints, slots: Ints, tokens: Ints, memory: Ints
) -> bool:
    """Take in an event that was found; whether it is as it should be."""
    row = state[ROWS]
    counts = False
    if found[IS_COMPLETE]:
        hard_count = read_numbers(data, row, found, whole, real, hard, state[HARDS])
        if hard_count == ODD or found[IS_ODD]:
            return False
        counts = found[HARD_START] > 0 and found[AT_CATEGORY] > 0
        if counts:
            state[HARDS] = hard_count
            state[TOKENS] = read_codes(data, row, found, whole, slots, tokens, state[TOKENS])
            state[ROWS] += 1
    if not counts and is_mark(data, found) and state[MARKS] < memory.shape[0]:
        memory[state[MARKS], 0], memory[state[MARKS], 1] = found[HARD_START], found[AT_ARGUMENTS]
        state[MARKS] += 1
    return True


@bare
def scan_events(
    data: Bytes, state: Ints, whole: Ints, real: Reals, hard: Ints, slots: Ints, tokens: Ints, memory: Ints, found: Ints
) -> int:
    """Walk over the list of events from where ``state`` says, between two events, and take in those that are complete and have
    a category and a start: columns of whole numbers and of real numbers; hard numbers (row, what, begin); tokens; and of marks
    of memory, where their times and arguments begin. ``IS_DONE``, ``IS_FULL``, or ``ODD`` where ``kineto.py`` has to look.
    """
    while True:
        at = skip_space(data, state[AT])
        if at < data.size and data[at] == CLOSE_LIST:
            state[AT] = at + 1
            return IS_DONE
        if data[state[AT] - 1] != OPEN_LIST:
            if at >= data.size or data[at] != COMMA:
                return ODD
            at = skip_space(data, at + 1)
        has_room = state[TOKENS] + TOKENS_PER_EVENT <= tokens.shape[0] and state[HARDS] + HARD_KINDS <= hard.shape[0]
        if at >= data.size or data[at] != OPEN or not has_room:
            return ODD
        if 2 * (state[TOKENS] + TOKENS_PER_EVENT) > slots.size:
            return IS_FULL
        at = find_event(data, at + 1, found)
        if at == ODD or not read_event(data, found, state, whole, real, hard, slots, tokens, memory):
            return ODD
        state[AT] = at
