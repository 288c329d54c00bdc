"""Hostlist expressions."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.collect.slurm.hostlist import MAX_HOSTS, expand_hostlist


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("gpu1", ["gpu1"]),
        ("gpu[01-03]", ["gpu01", "gpu02", "gpu03"]),
        ("gpu[01-02,12],vgpu3", ["gpu01", "gpu02", "gpu12", "vgpu3"]),
        ("r[1-2]n[08-09]", ["r1n08", "r1n09", "r2n08", "r2n09"]),
        ("gpu[1-2]-ib", ["gpu1-ib", "gpu2-ib"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("cs2.example.company.com", ["cs2.example.company.com"]),
        ("[1-2]", ["1", "2"]),
    ],
)
def test_expression_is_expanded_when_well_formed(text: str, expected: list[str]) -> None:
    assert expand_hostlist(text) == expected


@pytest.mark.parametrize(
    "text", ["gpu[1", "gpu1]", "gpu[[1]]", "gpu[a-b]", "gpu[3-1]", "gpu[]", "n[0-99999999]", "n[0-999]m[0-999]"]
)
def test_expression_is_refused_when_malformed_or_too_large(text: str) -> None:
    with pytest.raises(ValueError):
        expand_hostlist(text)


@given(st.text(alphabet="gpu[]-,0123456789 .", max_size=30))
def test_expansion_ends_when_text_is_arbitrary(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert len(expand_hostlist(text)) <= MAX_HOSTS


@given(st.lists(st.integers(0, 999), min_size=1, max_size=20, unique=True), st.integers(3, 5))
def test_names_come_back_when_folded_into_one_expression(numbers: list[int], width: int) -> None:
    text = ",".join(f"{number:0{width}d}" for number in numbers)
    assert expand_hostlist(f"gpu[{text}]") == [f"gpu{number:0{width}d}" for number in numbers]
