"""Pickles of strangers: plain values are read, anything else is refused before it can do anything."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from clusterscape.collect.hangs.safe_pickle import read_plain_pickle
from clusterscape.errors import SourceError

PLAIN = {
    "version": "2.10",
    "entries": [{"sizes": [[4, 2], []], "at": 2**70, "ratio": 0.5, "done": True, "none": None, "pair": ("0", "tp")}],
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_are_read_when_any_protocol_since_2_wrote_them(protocol: int) -> None:
    assert read_plain_pickle(pickle.dumps(PLAIN, protocol=protocol)) == PLAIN


class Trap:
    """Runs a command when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.file}",)


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_executed_when_a_pickle_names_a_function(tmp_path: Path, protocol: int) -> None:
    trap = tmp_path / "executed"
    data = pickle.dumps({"entries": [Trap(trap)]}, protocol=protocol)
    with pytest.raises(SourceError, match="not of a plain value"):
        read_plain_pickle(data)
    assert not trap.exists()
    pickle.loads(data)  # shows that the trap works
    assert trap.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02r\xff\xff\xff\x7f.",  # an index of the memo that allocates 32 GiB
        b"\x80\x02]r\x40\x00\x00\x00.",
        b"\x80\x02\x82\x01.",  # an extension code
        b"\x80\x02K\x01Q.",  # a persistent id
        b"\x80\x02}}\x81.",  # a new object
        b"\x80\x05\x97.",  # a buffer outside the file
        b"\x80\x02(cos\nsystem\n.",
    ],
)
def test_opcode_is_refused_when_it_is_not_of_a_plain_value(data: bytes) -> None:
    with pytest.raises(SourceError, match="not of a plain value"):
        read_plain_pickle(data)


@pytest.mark.parametrize(
    "data", [b"\x80\x04\x8e" + b"\xff" * 8 + b".", b"\x80\x02X\xff\xff\xff\x7fabc", b"\x80\x02}q\x00"]
)
def test_file_is_called_truncated_when_it_ends_before_what_it_announces(data: bytes) -> None:
    with pytest.raises(SourceError, match="truncated"):
        read_plain_pickle(data)


def test_every_truncation_and_changed_byte_is_an_error_or_a_value_when_a_file_is_damaged() -> None:
    data = pickle.dumps(PLAIN, protocol=2)
    outcomes = set()
    for length in range(len(data)):
        with pytest.raises(SourceError):
            read_plain_pickle(data[:length])
    for place in range(len(data)):
        for value in (0, 46, 82, 99, 255):
            try:
                read_plain_pickle(data[:place] + bytes([value]) + data[place + 1 :])
                outcomes.add("value")
            except SourceError:
                outcomes.add("error")
    assert outcomes == {"value", "error"}


def test_damaged_structure_is_a_sentence_when_values_do_not_fit() -> None:
    with pytest.raises(SourceError, match="damaged pickle"):
        read_plain_pickle(b"\x80\x02}]K\x01s.")
