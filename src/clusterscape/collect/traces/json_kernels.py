"""Walking over JSON in bytes: compiled loops that skip values, read numbers, and give equal strings equal numbers. Importing
this imports numba.

Structure is checked as far as it is needed to find the way; what is skipped is not judged further.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]

ODD = -1
"""In the place of a place: this is no JSON, or none that can be read here."""
QUOTE, BACKSLASH, COMMA, COLON, MINUS, POINT = 34, 92, 44, 58, 45, 46
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = 123, 125, 91, 93
FIRST_OF_NULL = 110
NO_NUMBER, WHOLE_NUMBER, REAL_NUMBER, HARD_NUMBER = range(4)
"""What ``read_number`` finds; a hard one is left to others, who read any."""
HASHED_BYTES = 32
_EXACT = 1 << 53
_POWERS = 10.0 ** np.arange(19)
_PRIME = np.uint64(0x100000001B3)
_BASIS = np.uint64(0xCBF29CE484222325)  # FNV-1a


def _marks(characters: bytes) -> NDArray[np.bool_]:
    found = np.zeros(256, np.bool_)
    found[list(characters)] = True
    return found


_IS_WORD = _marks(b"0123456789+-.eEtrufalsn")  # numbers, true, false, null; no NaN, as in JSON
IS_BETWEEN = _marks(b"0123456789+-.eEtrufalsn \t\r\n,:")


@njit(cache=True, nogil=True)
def skip_space(data: Bytes, at: int) -> int:
    """The next place that is no white space."""
    while at < data.size and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@njit(cache=True, nogil=True)
def skip_string(data: Bytes, at: int) -> int:
    """Behind the string that begins here, or ``ODD``."""
    at += 1
    while at < data.size:
        one = data[at]
        if one == QUOTE:
            return at + 1
        if one == BACKSLASH:
            at += 1
        elif one < 32:
            return ODD
        at += 1
    return ODD


@njit(cache=True, nogil=True)
def skip_value(data: Bytes, at: int) -> int:
    """Behind the value that begins here, or ``ODD``."""
    if at >= data.size:
        return ODD
    if data[at] == QUOTE:
        return skip_string(data, at)
    if data[at] != OPEN and data[at] != OPEN_LIST:
        begin = at
        while at < data.size and _IS_WORD[data[at]]:
            at += 1
        return at if at > begin else ODD
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


@njit(cache=True, nogil=True)
def is_same(data: Bytes, at: int, word: Bytes) -> bool:
    """Whether the word stands here; it must fit."""
    differs = False
    for place in range(word.size):
        differs |= data[at + place] != word[place]
    return not differs


@njit(cache=True, nogil=True)
def is_equal(data: Bytes, one: int, other: int, length: int) -> bool:
    """Whether the same bytes stand in two places."""
    differs = False
    for place in range(length):
        differs |= data[one + place] != data[other + place]
    return not differs


@njit(cache=True, nogil=True)
def next_member(data: Bytes, at: int, is_first: bool) -> tuple[int, int, int]:
    """Where the name of an object's next member begins and ends, and where its value begins.

    The begin is ``ODD`` where the object is not as it should be. At the object's end begin and end are 0 and the third is the
    place behind it.
    """
    at = skip_space(data, at)
    if at >= data.size:
        return ODD, 0, 0
    if data[at] == CLOSE:
        return 0, 0, at + 1
    if not is_first:
        if data[at] != COMMA:
            return ODD, 0, 0
        at = skip_space(data, at + 1)
    if at >= data.size or data[at] != QUOTE:
        return ODD, 0, 0
    end = skip_string(data, at)
    if end == ODD:
        return ODD, 0, 0
    value = skip_space(data, end)
    if value >= data.size or data[value] != COLON:
        return ODD, 0, 0
    return at + 1, end - 1, skip_space(data, value + 1)


@njit(cache=True, nogil=True)
def read_number(data: Bytes, at: int) -> tuple[int, int, float]:
    """What number begins here, and its value, whole or real.

    A real number is read here only where whole digits and a power of ten are exact, so that one division rounds as any correct
    reader does.
    """
    is_negative = data[at] == MINUS
    if is_negative:
        at += 1
    digits = decimals = 0
    value = np.int64(0)
    is_real = False
    while at < data.size:
        one = data[at]
        if 48 <= one <= 57:
            digits += 1
            if digits <= 18:
                value = value * 10 + (one - 48)
            decimals += is_real
        elif one == POINT and not is_real:
            is_real = True
        else:
            break
        at += 1
    if digits == 0:
        return NO_NUMBER, 0, 0.0
    has_more = at < data.size and _IS_WORD[data[at]]  # an exponent
    if has_more or digits > 18 or (is_real and value > _EXACT):
        return HARD_NUMBER, 0, 0.0
    if is_real:
        real = value / _POWERS[decimals]
        return REAL_NUMBER, 0, -real if is_negative else real
    return WHOLE_NUMBER, int(-value if is_negative else value), 0.0


@njit(cache=True, nogil=True)
def grow_slots(slots: Ints, hashes: Hashes, count: int) -> Ints:
    """Twice as many slots with the same tokens."""
    larger = np.full(2 * slots.size, -1, np.int64)
    mask = np.uint64(larger.size - 1)
    for code in range(count):
        slot = hashes[code] & mask
        while larger[np.int64(slot)] >= 0:
            slot = (slot + np.uint64(1)) & mask
        larger[np.int64(slot)] = code
    return larger


@njit(cache=True, nogil=True)
def find_token(
    data: Bytes, begin: int, end: int, slots: Ints, begins: Ints, ends: Ints, hashes: Hashes, count: int
) -> int:
    """The code of the bytes from ``begin`` to ``end``; where it is ``count``, they are new and were added."""
    # Of long names some bytes tell enough, evenly spread, as they often differ in a word in their midst.
    value = _BASIS ^ np.uint64(end - begin)
    for at in range(begin, end, 1 + (end - begin) // HASHED_BYTES):
        value = (value ^ np.uint64(data[at])) * _PRIME
    value ^= value >> np.uint64(29)
    mask = np.uint64(slots.size - 1)
    slot = value & mask
    while True:
        code = slots[np.int64(slot)]
        if code < 0:
            break
        is_as_long = hashes[code] == value and ends[code] - begins[code] == end - begin
        if is_as_long and is_equal(data, begin, begins[code], end - begin):
            return int(code)
        slot = (slot + np.uint64(1)) & mask
    slots[np.int64(slot)] = count
    begins[count], ends[count], hashes[count] = begin, end, value
    return count
