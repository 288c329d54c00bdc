"""Before and behind the pass over the events of a Kineto file (``kineto_kernels.py``): members of the document; rows that are
kept; arguments that tell something. Compiled; importing this imports numba.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from clusterscape.collect.traces.byte_kernels import WORD, Bytes, bare, word_at
from clusterscape.collect.traces.json_kernels import MINUS, ODD, QUOTE, Ints, is_same, next_member, skip_value
from clusterscape.collect.traces.kineto_kernels import Reals, as_word

Bools = NDArray[np.bool_]

MOST_MEMBERS = 64
"""Of a document; profilers write a dozen."""
_EVENTS = np.frombuffer(b"traceEvents", np.uint8)
_OF_4, _OF_6, _OF_7 = ((1 << (8 * length)) - 1 for length in (4, 6, 7))
_SEQUENCE, _DATA_TYPE = as_word(b'Seq"'), as_word(b'dtype"')
_STREAM, _EXTERNAL = as_word(b'stream"'), as_word(b"External")
# What the names of other arguments that are read of some spans begin with (``EventArguments``).
_TELLING = tuple(
    as_word(name[:WORD])
    for name in (
        b"Collective name", b"Process Group", b"Group size", b"In msg nelems", b"Out msg nelems", b"Src Rank", b"Dst Rank",
        b"Input Dims", b"Input type", b"Concrete Inputs",
    )
)  # fmt: skip


@bare
def keep_rows(whole: Ints, real: Reals, is_kept: Bools) -> int:
    """Move the rows that are kept to the front, in their order; how many there are."""
    count = 0
    for column in range(whole.shape[0]):
        count = 0
        for row in range(is_kept.size):
            whole[column, count] = whole[column, row]
            count += is_kept[row]
    for column in range(real.shape[0]):
        count = 0
        for row in range(is_kept.size):
            real[column, count] = real[column, row]
            count += is_kept[row]
    return count


@bare
def mark_telling(data: Bytes, begins: Ints, is_telling: Bools) -> None:
    """Which of the arguments that begin there tell something of a collective or of shapes; 0: there are none."""
    for row in range(begins.size):
        is_telling[row] = False
        if begins[row] == 0:
            continue
        at = begins[row] + 1
        is_first = True
        while not is_telling[row]:
            name, _, at = next_member(data, at, is_first)
            if name <= 0:
                is_telling[row] = name == ODD  # the decoder says what is wrong
                break
            is_first = False
            word = word_at(data, name, WORD)
            for telling in _TELLING:
                is_telling[row] |= word == telling
            is_telling[row] |= word & _OF_4 == _SEQUENCE or word & _OF_6 == _DATA_TYPE
            # What should be a number and is none is the decoder's to judge.
            if word & _OF_7 == _STREAM or word == _EXTERNAL:
                is_telling[row] |= data[at] != MINUS and data[at] != QUOTE and not 48 <= data[at] <= 57
            at = skip_value(data, at)
            is_telling[row] |= at == ODD


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
