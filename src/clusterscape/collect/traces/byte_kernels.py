"""Many bytes at a time: which of the next 32 or 64 belong to a set, and 8 of them as one number. Compiled; importing this
imports numba.

Written as LLVM's vectors, which become what the processor has. Nothing here asks whether the bytes are there: callers do.
Numbers are little-endian, as on every processor that numba is shipped for.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

LANES = 32
BLOCK = 64
WORD = 8
_BYTE = ir.IntType(8)
_Function = TypeVar("_Function", bound=Callable[..., object])


def bare(function: _Function) -> _Function:
    """Compile without counting references, which costs more than walking over a few bytes does.

    Only for functions that make no array and return none.
    """
    return _compile(function)


def inlined(function: _Function) -> _Function:
    """The same for a short function that is called for every few bytes: a call hands over eight numbers for each array."""
    return _compile(function, forceinline=True)


def _compile(function: _Function, **more: bool) -> _Function:
    options = {"cache": True, "nogil": True, "_nrt": False, **more}  # numba's stubs do not know the last ones
    return cast(_Function, njit(**options)(function))  # type: ignore[call-overload]


def _load(context: Any, builder: Any, signature: Any, arguments: Any, kind: ir.Type) -> Any:
    """What stands in an array of bytes from a place on, wherever that is."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    place = builder.gep(array.data, [arguments[1]])
    return builder.load(builder.bitcast(place, kind.as_pointer()), align=1, typ=kind)


def marks_of(lanes: int, ranges: Sequence[tuple[int, int]], *, is_outside: bool = False) -> Any:
    """``(data, at)`` → a bit for each of the bytes from there on, the first the lowest: whether it is in one of the ranges."""
    vector = ir.VectorType(_BYTE, lanes)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def all_are(value: int) -> ir.Constant:
            return ir.Constant(vector, [value] * lanes)

        loaded = _load(context, builder, signature, arguments, vector)
        found = None
        for low, high in ranges:
            if low == high:
                one = builder.icmp_unsigned("==", loaded, all_are(low))
            else:
                one = builder.icmp_unsigned("<=", builder.sub(loaded, all_are(low)), all_are(high - low))
            found = one if found is None else builder.or_(found, one)
        bits = builder.bitcast(builder.not_(found) if is_outside else found, ir.IntType(lanes))
        return bits if lanes == BLOCK else builder.zext(bits, ir.IntType(64))

    def type_marks(_typing_context: Any, data: Any, _at: Any) -> Any:
        return types.int64(data, types.int64), build

    return intrinsic(type_marks)


def _type_word_at(_typing_context: Any, data: Any, _at: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _load(context, builder, signature, arguments, ir.IntType(64))

    return types.int64(data, types.int64), build


def _type_trailing_zeros(_typing_context: Any, _word: Any) -> Any:
    def build(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return types.int64(types.int64), build


# How many of the lowest bits are 0 (64 for 0).
trailing_zeros: Any = intrinsic(_type_trailing_zeros)
# The 8 bytes from a place on as one number, the first the lowest.
load_word: Any = intrinsic(_type_word_at)

_SPACES = ((9, 10), (13, 13), (32, 32))
_BRACKETS = ((91, 91), (93, 93), (123, 123), (125, 125))
# Of numbers, true, false, null; commas and colons.
_BETWEEN = ((43, 46), (48, 58), (69, 69), (97, 97), (101, 102), (108, 108), (110, 110), (114, 117))
# Of the 32 bytes from a place on: what ends a string or needs a second look in it (quotes, backslashes, control characters) …
ends_of_text: Any = marks_of(LANES, ((0, 31), (34, 34), (92, 92)))
# … what is no white space …
others_than_space: Any = marks_of(LANES, _SPACES, is_outside=True)
# … what is no digit …
others_than_digits: Any = marks_of(LANES, ((48, 57),), is_outside=True)
# … what is no digit, point or minus.
others_than_figures: Any = marks_of(LANES, ((45, 46), (48, 57)), is_outside=True)
# Of the 64 bytes from a place on: quotes; what must not be in a string as it is; brackets; what must not be between strings.
block_quotes: Any = marks_of(BLOCK, ((34, 34),))
block_breaks: Any = marks_of(BLOCK, ((0, 31), (92, 92)))
block_brackets: Any = marks_of(BLOCK, _BRACKETS)
block_strangers: Any = marks_of(BLOCK, (*_SPACES, *_BRACKETS, *_BETWEEN), is_outside=True)


@inlined
def word_at(data: Bytes, at: int, length: int) -> int:
    """The first ``length`` (at most 8) bytes from a place on as one number; they must be there."""
    if at + WORD <= data.size:
        word: int = load_word(data, at)
        return word if length >= WORD else word & ((1 << (8 * length)) - 1)
    word = 0
    for place in range(min(length, data.size - at)):
        word |= int(np.int64(data[at + place])) << (8 * place)
    return word


@inlined
def is_equal(data: Bytes, one: int, other: int, length: int) -> bool:
    """Whether the same bytes stand in two places."""
    if length < WORD:
        return word_at(data, one, length) == word_at(data, other, length)
    last = length - WORD
    for place in range(0, last, WORD):
        if load_word(data, one + place) != load_word(data, other + place):
            return False
    same: bool = load_word(data, one + last) == load_word(data, other + last)
    return same


@inlined
def fold_quotes(quotes: int) -> int:
    """Of marks of quotes: every bit from an opening one up to the one before its closing one."""
    quotes ^= quotes << 1
    quotes ^= quotes << 2
    quotes ^= quotes << 4
    quotes ^= quotes << 8
    quotes ^= quotes << 16
    return quotes ^ (quotes << 32)
