"""Reads a pickle that contains only dicts, lists, tuples, strings and numbers. Nothing in it is imported or called.

An unpickler can run code only through a global, a persistent id or an extension code. Their opcodes are refused before the
unpickler sees the bytes, and so are those that let a small file allocate much: an index of the memo or a length beyond the
file. Compiled, because a dump has some 100,000 opcodes. ``find_class`` refuses once more.
"""

import io
import pickle
from typing import Any, NoReturn

import numpy as np
from numba import njit

from clusterscape.errors import SourceError
from clusterscape.model.arrays import Int64s, Uint8s

_HINT = "Flight Recorder dumps contain only plain values. Nothing in the file was executed."
_REFUSED = -1
_PLAIN = b"()]}Nt\x85\x86\x87\x88\x89ldaesu\x94"
_FIXED = {b"\x80": 1, b"K": 1, b"M": 2, b"J": 4, b"G": 8, b"\x95": 8}
_MEMO = {b"q": 1, b"h": 1, b"r": 4, b"j": 4}
_LENGTH = {b"X": 4, b"U": 1, b"T": 4, b"C": 1, b"B": 4, b"\x8c": 1, b"\x8d": 8, b"\x8e": 8, b"\x8a": 1}


def _table(sizes: dict[bytes, int]) -> Int64s:
    table = np.full(256, _REFUSED, dtype=np.int64)
    for opcode, size in sizes.items():
        table[opcode[0]] = size
    return table


_SKIPS = _table({bytes([opcode]): 0 for opcode in _PLAIN} | _FIXED)
_MEMO_SIZES = _table(_MEMO)
_LENGTH_SIZES = _table(_LENGTH)
_STOP = b"."[0]


class _PlainUnpickler(pickle.Unpickler):
    """Refuses every global and persistent id."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise SourceError(f"it names {module}.{name}, which is not a plain value", hint=_HINT)

    def persistent_load(self, pid: object) -> NoReturn:
        raise SourceError(f"it refers to {str(pid)[:50]}, an object outside the file", hint=_HINT)


def read_plain_pickle(data: bytes) -> Any:
    """The value of a pickle. Raises SourceError if it is damaged or contains anything but plain values.

    Grows with the length of the file. The value may contain one object many times: do not walk it without a limit.
    """
    at = int(_find_refused(np.frombuffer(data, dtype=np.uint8), _SKIPS, _MEMO_SIZES, _LENGTH_SIZES))
    if at >= len(data):
        raise SourceError("it is a truncated pickle", hint="Was the process killed while it wrote the file?")
    if at >= 0:
        raise SourceError(f"its pickle opcode {data[at : at + 1]!r} at byte {at:,} is not of a plain value", hint=_HINT)
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except SourceError:
        raise
    # The unpickler raises whatever the misuse of a value raises: a dict as a key, a pop from an empty stack.
    except Exception as error:
        raise SourceError(f"it is a damaged pickle: {type(error).__name__}: {str(error)[:200]}", hint=_HINT) from None


@njit(cache=True, nogil=True)
def _find_refused(data: Uint8s, skips: Int64s, memo_sizes: Int64s, length_sizes: Int64s) -> int:
    """The place of the first opcode that is not allowed; the length of the data if it ends early; -1 if there is none."""
    end = len(data)
    at = 0
    while at < end:
        opcode = int(data[at])
        if opcode == _STOP:
            return -1
        skip = int(skips[opcode])
        size = int(max(memo_sizes[opcode], length_sizes[opcode]))
        if size > 0:
            if at + 1 + size > end:
                return end
            value = 0
            for place in range(size):
                if place == 7 and data[at + 1 + place] > 0:  # a length of more than 2**56 bytes
                    return end
                value |= int(data[at + 1 + place]) << (8 * place)
            if memo_sizes[opcode] > 0:
                if value > at:  # each entry of the memo takes at least one opcode
                    return at
                skip = size
            else:
                skip = size + value
        elif skip < 0:
            return at
        if skip > end - at:
            return end
        at += 1 + skip
    return end
