"""Slurm's drifting values: numbers, times, texts, states and exit codes."""

import pytest
from unit.collect.slurm.documents import ended

from clusterscape.collect.slurm.states import exit_state, job_state, node_state
from clusterscape.collect.slurm.values import read_int, read_minutes, read_names, read_text, read_time, read_words
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
def test_node_state_follows_the_gravest_word_when_several(words: list[str], expected: NodeState) -> None:
    assert node_state(words)[0] is expected


def test_node_state_gives_a_reason_when_the_word_is_one() -> None:
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
        # Slurm 22.05's accounting says success of a job that failed: that is no news.
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
