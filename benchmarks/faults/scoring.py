"""Scores the answers of any tool: the cause, the rank and the seconds of the first verdict, and how often it blames a rank where
nothing was planted. Faults too small to find (2 % of a step) are left out and counted.

A program has costs that nobody planted, and they may be larger than the fault: then they are rightly first. So the first verdict
is also scored without those that the same tool gives for the healthy twin (same kind and rank, at least half of the seconds).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.faults.answers import Answer, list_cases

TWIN_SHARE = 0.5


def score_folder(folder: Path, half: str) -> dict[str, Any]:
    """The scores of all tools that answered."""
    cases = list_cases(folder, half)
    return {
        path.stem: score(cases, json.loads(path.read_text())) for path in sorted((folder / "answers").glob("*.json"))
    }


def score(cases: Sequence[Mapping[str, Any]], answers: Mapping[str, Answer]) -> dict[str, Any]:
    """Precision, recall and F1 of cause (kind and rank right) and rank, over findable faults and healthy twins.

    A healthy twin in which the first verdict blames a rank is a false positive of both.
    """
    planted = [case for case in cases if case["truth"] is not None and case["id"] in answers]
    faults = [case for case in planted if case["truth"]["is_findable"]]
    healthy = [case for case in cases if case["truth"] is None and case["id"] in answers]
    blamed = [case for case in healthy if answers[case["id"]] and answers[case["id"]][0].get("rank") is not None]
    result: dict[str, Any] = {
        "faults": len(faults),
        "too_small": len(planted) - len(faults),
        "healthy": len(healthy),
        "healthy_blamed_ratio": len(blamed) / len(healthy) if healthy else None,
        "cause": _rate(faults, answers, len(blamed), _is_cause_right),
        "rank": _rate([case for case in faults if case["truth"]["root_ranks"]], answers, len(blamed), _is_rank_right),
        "first_right_ratio": _share(faults, answers, _is_cause_right),
        "first_beyond_twin_right_ratio": _share(faults, _leave_out_twins(faults, answers), _is_cause_right),
        "cause_among_all_ratio": _share(faults, answers, _is_among),
        "seconds_within_20_percent_ratio": _seconds_ratio(faults, answers),
        "by_rhythm": {},
        "by_source": {},
        "by_kind": {},
    }
    reads: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "by_rhythm": lambda case: str(case["fault"]["rhythm"]),
        "by_source": lambda case: str(case["source"]),
        "by_kind": lambda case: str(case["truth"]["root_kind"]),
    }
    for name, read in reads.items():
        for value in sorted({read(case) for case in faults}):
            part = [case for case in faults if read(case) == value]
            result[name][value] = {"faults": len(part), "first_right_ratio": _share(part, answers, _is_cause_right)}
            beyond = _share(part, _leave_out_twins(part, answers), _is_cause_right)
            result[name][value]["first_beyond_twin_right_ratio"] = beyond
    return result


def _leave_out_twins(cases: Sequence[Mapping[str, Any]], answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """The answers without causes that the healthy twin has, too."""
    left = {}
    for case in cases:
        twin = answers.get(case["twin"], [])
        left[case["id"]] = [cause for cause in answers[case["id"]] if not any(_is_same(cause, other) for other in twin)]
    return left


def _is_same(cause: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    seconds, twin_s = cause.get("seconds_per_step"), other.get("seconds_per_step")
    is_as_large = seconds is None or twin_s is None or twin_s >= TWIN_SHARE * seconds
    return (cause.get("kind"), cause.get("rank")) == (other.get("kind"), other.get("rank")) and is_as_large


def _is_rank_right(case: Mapping[str, Any], answer: Answer) -> bool:
    return bool(answer) and [answer[0].get("rank")] == case["truth"]["root_ranks"]


def _matches(case: Mapping[str, Any], cause: Mapping[str, Any]) -> bool:
    ranks = case["truth"]["root_ranks"]
    return cause.get("kind") in case["accept"]["kinds"] and (not ranks or [cause.get("rank")] == ranks)


def _is_cause_right(case: Mapping[str, Any], answer: Answer) -> bool:
    return bool(answer) and _matches(case, answer[0])


def _is_among(case: Mapping[str, Any], answer: Answer) -> bool:
    return any(_matches(case, cause) for cause in answer)


def _share(cases: Sequence[Mapping[str, Any]], answers: Mapping[str, Answer], is_right: Any) -> float | None:
    return sum(is_right(case, answers[case["id"]]) for case in cases) / len(cases) if cases else None


def _rate(
    cases: Sequence[Mapping[str, Any]], answers: Mapping[str, Answer], false_alarms: int, is_right: Any
) -> dict[str, float | None]:
    right = sum(is_right(case, answers[case["id"]]) for case in cases)
    answered = sum(bool(answers[case["id"]]) for case in cases)
    precision = right / (answered + false_alarms) if answered + false_alarms else None
    recall = right / len(cases) if cases else None
    f1 = 2 * precision * recall / (precision + recall) if precision and recall else (None if not cases else 0.0)
    return {"precision": precision, "recall": recall, "f1": f1}


def _seconds_ratio(cases: Sequence[Mapping[str, Any]], answers: Mapping[str, Answer]) -> float | None:
    """Of right causes with measured seconds, the share within the tolerance."""
    within = []
    for case in cases:
        true_s, answer = case["truth"]["seconds_per_step"], answers[case["id"]]
        cause = next((cause for cause in answer if _matches(case, cause)), None)
        if true_s is None or cause is None or cause.get("seconds_per_step") is None:
            continue
        within.append(abs(cause["seconds_per_step"] - true_s) <= case["accept"]["seconds_tolerance_ratio"] * true_s)
    return sum(within) / len(within) if within else None
