"""Walking over JSON in bytes: compiled loops that skip values, read numbers, and give equal strings equal numbers. Importing
this imports numba.

Structure is checked as far as it is needed to find the way; what is skipped is not judged further.
"""

import numpy as np
from numpy.typing import NDArray

from clusterscape.collect.traces.byte_kernels import (
    LANES,
    WORD,
    Bytes,
    bare,
    ends_of_text,
    inlined,
    is_equal,
    load_word,
    others_than_digits,
    others_than_figures,
    others_than_space,
    trailing_zeros,
    word_at,
)

Ints = NDArray[np.int64]

ODD = -1
"""In the place of a place: this is no JSON, or none that can be read here."""
QUOTE, BACKSLASH, COMMA, COLON, MINUS, POINT = 34, 92, 44, 58, 45, 46
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = 123, 125, 91, 93
FIRST_OF_NULL = 110
NO_NUMBER, WHOLE_NUMBER, REAL_NUMBER, HARD_NUMBER = range(4)
"""What ``read_number`` finds; a hard one is left to others, who read any."""
BEGIN, END, HASH = range(3)
"""Columns of a table of tokens."""
_EXACT = 1 << 53
MOST_DIGITS = 18
_POWERS = 10.0 ** np.arange(MOST_DIGITS + 1)
_TENS = 10 ** np.arange(MOST_DIGITS + 1)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_ZEROS = np.uint64(0x3030303030303030)
_PAIRS, _FIRST_PAIRS, _OTHER_PAIRS = (
    np.uint64(0x000000FF000000FF),
    np.uint64(100 + (1000000 << 32)),
    np.uint64(1 + (10000 << 32)),
)
_EIGHT, _SIXTEEN, _TEN = np.uint64(8), np.uint64(16), np.uint64(10)


def _marks(characters: bytes) -> NDArray[np.bool_]:
    found = np.zeros(256, np.bool_)
    found[list(characters)] = True
    return found


_IS_WORD = _marks(b"0123456789+-.eEtrufalsn")  # numbers, true, false, null; no NaN, as in JSON
IS_BETWEEN = _marks(b"0123456789+-.eEtrufalsn \t\r\n,:")


@inlined
def skip_space(data: Bytes, at: int) -> int:
    """The next place that is no white space."""
    # None or one is usual, and a guess that comes true costs nothing.
    if at < data.size and data[at] > 32:
        return at
    if at + 1 < data.size and data[at] == 32 and data[at + 1] > 32:
        return at + 1
    while at + LANES <= data.size:
        steps: int = trailing_zeros(others_than_space(data, at))
        if steps < LANES:
            return at + steps
        at += LANES
    while at < data.size and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@inlined
def skip_string(data: Bytes, at: int) -> int:
    """Behind the string that begins here, or ``ODD``."""
    at += 1
    while at < data.size:
        if at + LANES <= data.size:
            steps: int = trailing_zeros(ends_of_text(data, at))
            if steps >= LANES:
                at += LANES
                continue
            at += steps
        one = data[at]
        if one == QUOTE:
            return at + 1
        if one == BACKSLASH:
            at += 1
        elif one < 32:
            return ODD
        at += 1
    return ODD


@inlined
def skip_word(data: Bytes, at: int) -> int:
    """Behind the number, true, false or null that begins here, or ``ODD``."""
    begin = at
    if at + LANES <= data.size:
        at += min(trailing_zeros(others_than_figures(data, at)), LANES)
    while at < data.size and _IS_WORD[data[at]]:
        at += 1
    return at if at > begin else ODD


@inlined
def skip_value(data: Bytes, at: int) -> int:
    """Behind the value that begins here, or ``ODD``."""
    if at >= data.size:
        return ODD
    if data[at] == QUOTE:
        return skip_string(data, at)
    if data[at] != OPEN and data[at] != OPEN_LIST:
        return skip_word(data, at)
    depth = 0
    while at < data.size:
        one = data[at]
        if one == QUOTE:
            at = skip_string(data, at)
            if at == ODD:
                return ODD
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
def is_same(data: Bytes, at: int, word: Bytes) -> bool:
    """Whether the word stands here; it must fit."""
    differs = False
    for place in range(word.size):
        differs |= data[at + place] != word[place]
    return not differs


@inlined
def skip_colon(data: Bytes, at: int) -> int:
    """Where the value begins of the member whose name ends here, or ``ODD``."""
    at = skip_space(data, at)
    if at >= data.size or data[at] != COLON:
        return ODD
    return skip_space(data, at + 1)


@inlined
def next_name(data: Bytes, at: int, is_first: bool) -> int:
    """Where the quote of the name of an object's next member is; at the object's end its bracket; ``ODD`` where neither is."""
    at = skip_space(data, at)
    if at >= data.size:
        return ODD
    if data[at] == CLOSE:
        return at
    if not is_first:
        if data[at] != COMMA:
            return ODD
        at = skip_space(data, at + 1)
    return at if at < data.size and data[at] == QUOTE else ODD


@inlined
def next_member(data: Bytes, at: int, is_first: bool) -> tuple[int, int, int]:
    """Where the name of an object's next member begins and ends, and where its value begins.

    The begin is ``ODD`` where the object is not as it should be. At the object's end begin and end are 0 and the third is the
    place behind it.
    """
    at = next_name(data, at, is_first)
    if at == ODD:
        return ODD, 0, 0
    if data[at] == CLOSE:
        return 0, 0, at + 1
    end = skip_string(data, at)
    value = skip_colon(data, end) if end != ODD else ODD
    if value == ODD:
        return ODD, 0, 0
    return at + 1, end - 1, value


@inlined
def read_number(data: Bytes, at: int) -> tuple[int, int, float]:
    """What number begins here, and its value, whole or real.

    A real number is read here only where whole digits and a power of ten are exact, so that one division rounds as any correct
    reader does.
    """
    is_negative = data[at] == MINUS
    if is_negative:
        at += 1
    digits = count_digits(data, at)
    value = read_digits(data, at, digits)
    at += digits
    is_real = at < data.size and data[at] == POINT
    decimals = 0
    if is_real:
        decimals = count_digits(data, at + 1)
        digits += decimals
        if digits <= MOST_DIGITS:
            value = value * _TENS[decimals] + read_digits(data, at + 1, decimals)
        at += 1 + decimals
    if digits == 0:
        return NO_NUMBER, 0, 0.0
    has_more = at < data.size and _IS_WORD[data[at]]  # an exponent
    if has_more or digits > MOST_DIGITS or (is_real and value > _EXACT):
        return HARD_NUMBER, 0, 0.0
    if is_real:
        real = value / _POWERS[decimals]
        return REAL_NUMBER, 0, -real if is_negative else real
    return WHOLE_NUMBER, -value if is_negative else value, 0.0


@inlined
def count_digits(data: Bytes, at: int) -> int:
    """How many digits stand here; of more than 32 some."""
    if at + LANES <= data.size:
        return int(min(trailing_zeros(others_than_digits(data, at)), LANES))
    begin = at
    while at < data.size and 48 <= data[at] <= 57:
        at += 1
    return at - begin


@inlined
def read_digits(data: Bytes, at: int, count: int) -> int:
    """The whole number of so many digits; of more than 18 anything."""
    value = 0
    count = min(count, MOST_DIGITS)
    while count >= WORD:
        value = value * 100_000_000 + join_digits(np.uint64(load_word(data, at)) - _ZEROS)
        at += WORD
        count -= WORD
    if count:
        # Bytes behind the digits are shifted out, and zeros before them in.
        rest = np.uint64(word_at(data, at, count)) - _ZEROS
        value = value * _TENS[count] + join_digits(rest << np.uint64(8 * (WORD - count)))
    return value


@inlined
def join_digits(word: np.uint64) -> int:
    """The number that 8 bytes of 0 to 9 are, the first the lowest: joined to pairs, these to fours, these to one."""
    word = word * _TEN + (word >> _EIGHT)
    fours = (word & _PAIRS) * _FIRST_PAIRS + ((word >> _SIXTEEN) & _PAIRS) * _OTHER_PAIRS
    return int(np.int64(fours >> _HALF))


@bare
def fill_slots(slots: Ints, tokens: Ints, count: int) -> None:
    """Put the tokens into slots that are all free; there are more slots than tokens, and their number is a power of 2."""
    mask = slots.size - 1
    for code in range(count):
        slot = tokens[code, HASH] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = code


@inlined
def hash_bytes(data: Bytes, begin: int, end: int) -> int:
    """A number for the bytes; others have it seldom."""
    length = end - begin
    value = np.uint64(length) * _PRIME
    last = max(length - WORD, 0)
    for place in range(0, last, WORD):
        value = (value ^ np.uint64(load_word(data, begin + place))) * _PRIME
        value ^= value >> _HALF
    value = (value ^ np.uint64(word_at(data, begin + last, length))) * _PRIME
    return int(np.int64(value ^ (value >> _HALF)))


@inlined
def find_token(data: Bytes, begin: int, end: int, slots: Ints, tokens: Ints, count: int) -> int:
    """The code of the bytes from ``begin`` to ``end``; where it is ``count``, they are new and were added."""
    value = hash_bytes(data, begin, end)
    mask = slots.size - 1
    slot = value & mask
    while True:
        code = slots[slot]
        if code < 0:
            break
        is_as_long = tokens[code, HASH] == value and tokens[code, END] - tokens[code, BEGIN] == end - begin
        if is_as_long and is_equal(data, begin, tokens[code, BEGIN], end - begin):
            return int(code)
        slot = (slot + 1) & mask
    slots[slot] = count
    tokens[count, BEGIN], tokens[count, END], tokens[count, HASH] = begin, end, value
    return count
