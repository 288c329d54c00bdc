"""Slurm's drifting values: numbers, times, texts, states and exit codes."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.collect.slurm.documents import ended

from clusterscape.collect.slurm.states import exit_state, job_state, node_state
from clusterscape.collect.slurm.values import (
    MAX_HOSTS,
    expand_hostlist,
    read_int,
    read_minutes,
    read_names,
    read_text,
    read_time,
    read_words,
)
from clusterscape.model import NodeState, WorkloadState


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        ("5", 5),
        (5.0, 5),
        ({"set": True, "infinite": False, "number": 5}, 5),
        ({"number": 5}, 5),
        (0, 0),
    ],
)
def test_number_is_read_when_in_any_form(value: object, expected: int) -> None:
    assert read_int(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        "five",
        "٣",
        -2,
        0xFFFFFFFE,
        0xFFFFFFFF,
        0xFFFFFFFFFFFFFFFE,
        float("nan"),
        float("inf"),
        [],
        {},
        {"set": False, "infinite": False, "number": 5},
        {"set": True, "infinite": True, "number": 5},
        {"set": True, "number": {"number": 5}},
        "9" * 5000,
    ],
)
def test_number_is_none_when_unset_or_nonsense(value: object) -> None:
    assert read_int(value) is None


def test_time_is_in_milliseconds_when_set_and_none_when_zero() -> None:
    assert read_time(1_700_000_000) == 1_700_000_000_000
    assert read_time(0) is None
    assert read_time({"set": False, "infinite": False, "number": 0}) is None


def test_limit_is_in_seconds_when_finite() -> None:
    assert read_minutes(60) == 3600
    assert read_minutes({"set": False, "infinite": True, "number": 0}) is None


@pytest.mark.parametrize("value", ["", "  ", "(null)", "None assigned", "N/A", None, 3, []])
def test_text_is_none_when_slurm_means_nothing(value: object) -> None:
    assert read_text(value) is None


def test_text_can_be_stored_when_it_holds_half_a_surrogate_pair() -> None:
    text = read_text("bad \ud800 name")
    assert text is not None
    assert text.encode() == b"bad ? name"


def test_words_are_upper_case_when_from_text_or_array() -> None:
    assert read_words("mixed") == ("MIXED",)
    assert read_words("IDLE+DRAIN") == ("IDLE", "DRAIN")
    assert read_words("CANCELLED by 1000") == ("CANCELLED",)
    assert read_words(["Idle", "DRAIN", 3, None]) == ("IDLE", "DRAIN")
    assert read_words(7) == ()


def test_names_lose_the_default_mark_when_listed() -> None:
    assert read_names("a100*,v100") == ("a100", "v100")
    assert read_names(["a100", "", None, "all"]) == ("a100", "all")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["PENDING"], WorkloadState.WAITING),
        (["RUNNING", "CONFIGURING"], WorkloadState.RUNNING),
        (["COMPLETING"], WorkloadState.RUNNING),
        (["CANCELLED", "COMPLETING"], WorkloadState.CANCELLED),
        (["REQUEUED"], WorkloadState.WAITING),
        (["PENDING", "COMPLETING", "REQUEUED"], WorkloadState.WAITING),
        (["NODE_FAIL"], WorkloadState.NODE_FAILED),
        (["DEADLINE"], WorkloadState.TIMEOUT),
        (["OUT_OF_MEMORY"], WorkloadState.OUT_OF_MEMORY),
        (["STOPPED"], WorkloadState.SUSPENDED),
        (["MARTIAN"], None),
        ([], None),
    ],
)
def test_job_state_is_known_when_slurm_has_such_words(words: list[str], expected: WorkloadState | None) -> None:
    assert job_state(words) is expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["IDLE"], NodeState.IDLE),
        (["IDLE", "PLANNED"], NodeState.IDLE),
        (["IDLE", "CLOUD", "POWERED_DOWN"], NodeState.IDLE),
        (["MIXED"], NodeState.MIXED),
        (["ALLOCATED"], NodeState.ALLOCATED),
        (["IDLE", "DRAIN"], NodeState.DRAINED),
        (["MIXED", "DRAIN"], NodeState.DRAINING),
        (["IDLE", "COMPLETING", "DRAIN"], NodeState.DRAINING),
        (["IDLE", "MAINTENANCE"], NodeState.DRAINED),
        (["DOWN"], NodeState.DOWN),
        (["DOWN", "DRAIN"], NodeState.DOWN),
        (["IDLE", "NOT_RESPONDING"], NodeState.DOWN),
        (["IDLE", "DRAIN", "INVALID_REG"], NodeState.DOWN),
        (["MARTIAN"], NodeState.UNKNOWN),
    ],
)
def test_node_state_is_the_most_severe_when_there_are_several(words: list[str], expected: NodeState) -> None:
    assert node_state(words)[0] is expected


def test_node_state_gives_a_reason_when_the_word_implies_one() -> None:
    assert node_state(["IDLE", "NOT_RESPONDING"])[1] == "not responding"
    assert node_state(["IDLE"])[1] is None


@pytest.mark.parametrize(
    ("value", "state", "expected"),
    [
        (768, WorkloadState.FAILED, (3, None)),
        (9, WorkloadState.FAILED, (None, 9)),
        (0, WorkloadState.COMPLETED, (0, None)),
        ({"set": True, "infinite": False, "number": 256}, WorkloadState.FAILED, (1, None)),
        (ended(3), WorkloadState.FAILED, (3, None)),
        (ended(signal=15), WorkloadState.TIMEOUT, (None, 15)),
        ({"status": "SIGNALED", "return_code": None, "signal": {"signal_id": 9}}, WorkloadState.FAILED, (None, 9)),
        # The accounting of Slurm 22.05 reports success for failed jobs: it is ignored.
        ({"status": "SUCCESS", "return_code": 0}, WorkloadState.FAILED, (None, None)),
        ({"status": "SUCCESS", "return_code": 0}, WorkloadState.COMPLETED, (0, None)),
        (768, WorkloadState.RUNNING, (None, None)),
        ("junk", WorkloadState.FAILED, (None, None)),
        (None, WorkloadState.CANCELLED, (None, None)),
    ],
)
def test_exit_state_is_read_when_in_any_form(
    value: object, state: WorkloadState, expected: tuple[int | None, int | None]
) -> None:
    assert exit_state(value, state) == expected


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
def test_names_round_trip_when_folded_into_one_expression(numbers: list[int], width: int) -> None:
    text = ",".join(f"{number:0{width}d}" for number in numbers)
    assert expand_hostlist(f"gpu[{text}]") == [f"gpu{number:0{width}d}" for number in numbers]
