"""Evaluation: three-valued logic compared with a plain computation per row, blamed units, and explanations."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.analyze.rules.evaluation import Verdicts, evaluate
from clusterscape.analyze.rules.facts import FALSE, OUT_OF_SCOPE, TRUE, UNKNOWN, LifeFacts
from clusterscape.analyze.rules.reading import parse_rule
from clusterscape.model import UnitId, WorkloadId
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.rules import Condition, Expression, Junction, Statistic

UTIL, POWER = "gpu_util_ratio", "power_watts"


class GivenColumns:
    """Given statistics, the same for every statistic of a metric; records each request."""

    def __init__(self, values: Mapping[str, Sequence[float]], *, samples: int | Sequence[int] = 100) -> None:
        self._values = {metric: np.array(column, dtype=np.float64) for metric, column in values.items()}
        self.row_count = len(next(iter(self._values.values())))
        self._samples = np.broadcast_to(np.array(samples, dtype=np.int64), (self.row_count,))
        self.requests: list[tuple[str, Statistic, int | None]] = []

    def column(self, metric: str, statistic: Statistic, *, window_ms: int | None = None) -> Float64s:
        self.requests.append((metric, statistic, window_ms))
        return self._values.get(metric, np.full(self.row_count, np.nan))

    def samples(self, metric: str, *, window_ms: int | None = None) -> Int64s:
        return np.where(np.isnan(self._values.get(metric, np.full(self.row_count, np.nan))), 0, self._samples)

    def limits(self, metric: str) -> Float64s:
        return np.full(self.row_count, 700.0 if metric == POWER else np.nan)


def facts(
    workload: Sequence[int], *, age_ms: int | Sequence[int] = 10**9, users: Sequence[str | None] = ()
) -> LifeFacts:
    count = max(workload, default=-1) + 1
    named = list(users) or [f"user{place}" for place in range(count)]
    return LifeFacts(
        units=[UnitId(f"node:{row}") for row in range(len(workload))],
        workload=np.array(workload, dtype=np.int32),
        age_ms=np.broadcast_to(np.array(age_ms, dtype=np.int64), (len(workload),)),
        workloads=[WorkloadId(f"w{place}") for place in range(count)],
        users=named,
        projects=[None] * count,
        partitions=["large"] * count,
        machine_types=["A100-80G"] * count,
        names=[f"train-{place}" for place in range(count)],
        gpus=np.bincount(np.array(workload, dtype=np.int64), minlength=count),
    )


def judge(text: str, columns: GivenColumns, lives: LifeFacts) -> Verdicts:
    return evaluate([parse_rule(text, key="k", name="n")], columns, lives)


def states(text: str, columns: GivenColumns, lives: LifeFacts) -> list[int]:
    return [int(state) for state in judge(text, columns, lives).states[0]]


NAN = math.nan
T, F, U, OUT = int(TRUE), int(FALSE), int(UNKNOWN), int(OUT_OF_SCOPE)


@pytest.mark.parametrize(
    ("joint", "expected"), [("and", [T, F, U, F, F, F, U, F, U]), ("or", [T, T, T, T, F, U, T, U, U])]
)
def test_unknown_decides_only_where_needed_when_terms_are_joined(joint: str, expected: list[int]) -> None:
    # true, false, unknown of utilization against the same of power
    util = [1, 1, 1, 0, 0, 0, NAN, NAN, NAN]
    power = [700, 0, NAN, 700, 0, NAN, 700, 0, NAN]
    columns = GivenColumns({UTIL: util, POWER: power})
    assert states(f"util now > 50% {joint} power now > 50%", columns, facts(range(9))) == expected


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 1.0, NAN]), st.sampled_from([0.0, 350.0, NAN])), min_size=1, max_size=12
    ),
    st.sampled_from(
        [
            "util now > 50%",
            "util now >= 50% and power now < 50%",
            "util now < 50% or power now = 50% and util now != 100%",
            "(util now <= 50% or tensor now > 1%) and (power now >= 50% or util now = 0%)",
        ]
    ),
)
@settings(max_examples=200, deadline=None)
def test_verdicts_match_a_plain_computation_when_values_are_arbitrary(
    rows: list[tuple[float, float]], text: str
) -> None:
    rule = parse_rule(text, key="k", name="n")
    columns = GivenColumns({UTIL: [row[0] for row in rows], POWER: [row[1] for row in rows]})
    verdicts = evaluate([rule], columns, facts(range(len(rows))))
    for place, (util, power) in enumerate(rows):
        expected = _evaluate_row(rule.expression, {UTIL: util, POWER: power / 700.0})
        assert int(verdicts.states[0, place]) == {True: T, False: F, None: U}[expected]


def _evaluate_row(expression: Expression, values: Mapping[str, float]) -> bool | None:
    if isinstance(expression, Condition):
        value, bound = values.get(expression.metric, NAN), expression.value.number
        if math.isnan(value):
            return None
        return {
            "<": value < bound,
            "<=": value <= bound,
            ">": value > bound,
            ">=": value >= bound,
            "=": value == bound,
            "!=": value != bound,
        }[expression.operator.value]
    parts = [_evaluate_row(term, values) for term in expression.terms]
    decisive = expression.junction is Junction.OR
    if decisive in parts:
        return decisive
    return None if None in parts else not decisive


def test_rounding_does_not_decide_when_a_value_equals_the_bound() -> None:
    columns = GivenColumns({UTIL: [57 * 0.01]})  # 0.5700000000000001
    assert states("util now > 57%", columns, facts([0])) == [F]
    assert states("util now <= 57%", columns, facts([0])) == [T]
    assert states("util now = 57%", columns, facts([0])) == [T]


def test_young_and_scarce_lives_are_not_judged_when_the_scope_wants_more() -> None:
    columns = GivenColumns({UTIL: [1.0, 1.0, 1.0]}, samples=[100, 9, 100])
    lives = facts([0, 1, 2], age_ms=[600_000, 600_000, 599_999])
    verdicts = judge("util now > 50%", columns, lives)
    assert verdicts.states.tolist() == [[T, U, U]]
    assert verdicts.explain(0, 1).why == "gpu_util now has 9 of 10 samples"
    assert verdicts.explain(0, 2).why == "younger than 10m"


def test_rows_are_out_of_scope_when_names_do_not_match() -> None:
    columns = GivenColumns({UTIL: [1.0, 1.0, 0.0, 1.0]})
    lives = facts([0, 1, 2, 3], users=["alice", "bob", "alfred", None])
    assert states("util now > 50% for user al*, carol", columns, lives) == [T, OUT, F, OUT]
    assert states("util now > 50% for user al* for name train-[12]", columns, lives) == [OUT, OUT, F, OUT]
    assert states("util now > 50% for project x", columns, lives) == [OUT] * 4


def test_small_workloads_are_out_of_scope_when_many_gpus_are_wanted() -> None:
    columns = GivenColumns({UTIL: [1.0, 1.0, 1.0]})
    assert states("util now > 50% with at least 2 GPUs", columns, facts([0, 1, 1])) == [OUT, T, T]


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("on any GPU", [T, T, T, F, F, U, U, T]),
        ("on all GPUs", [F, F, F, F, F, U, U, T]),
        ("on 50% of GPUs", [F, F, F, F, F, U, U, T]),
        ("on 30% of GPUs", [T, T, T, F, F, U, U, T]),
    ],
)
def test_whole_workload_is_blamed_when_the_rule_requires_it(clause: str, expected: list[int]) -> None:
    # one of three; none of two; both unknown; a single GPU
    columns = GivenColumns({UTIL: [1, 0, 0, 0, 0, NAN, NAN, 1]})
    lives = facts([0, 0, 0, 1, 1, 2, 2, 3])
    assert states(f"util now > 50% {clause}", columns, lives) == expected


def test_share_is_met_exactly_when_rounding_would_miss_it() -> None:
    columns = GivenColumns({UTIL: [1.0] * 29 + [0.0] * 71})
    assert states("util now > 50% on 29% of GPUs", columns, facts([0] * 100)) == [T] * 100
    assert states("util now > 50% on 30% of GPUs", columns, facts([0] * 100)) == [F] * 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("spread of util now > 50%", [T, T, T, F, U]),
        ("least of util now < 20%", [T, T, T, F, U]),
        ("most of util now >= 90%", [T, T, T, F, U]),
        ("average of util now = 50%", [T, T, T, T, U]),
        ("most of power now < 70%", [T, T, T, T, U]),
    ],
)
def test_gpus_are_combined_when_a_statistic_is_across(text: str, expected: list[int]) -> None:
    # the third GPU of the first workload has no value and is not counted
    columns = GivenColumns({UTIL: [0.1, 0.9, NAN, 0.5, NAN], POWER: [70.0, 480.0, NAN, 10.0, NAN]})
    assert states(text, columns, facts([0, 0, 0, 1, 2])) == expected


def test_statistic_is_computed_once_when_many_rules_share_it() -> None:
    columns = GivenColumns({UTIL: [1.0], POWER: [1.0]})
    rules = [
        parse_rule(f"util p95 > {number}% and power p50 over last 30m < 70%", key=f"k{number}", name="n")
        for number in range(20)
    ]
    evaluate(rules, columns, facts([0]))
    assert len(columns.requests) == 2


def test_every_condition_is_explained_when_requested() -> None:
    columns = GivenColumns({UTIL: [0.95], POWER: [350.0]})
    verdicts = judge("util p95 > 90% and power p50 < 40% or tensor p50 < 1%", columns, facts([0]))
    explained = verdicts.explain(0, 0)
    assert explained.state == "not judged"
    assert explained.why == "tensor_active is not measured"
    assert [(reading.text, reading.value, reading.bound, reading.is_met) for reading in explained.readings] == [
        ("gpu_util p95 > 90%", 0.95, 0.9, True),
        ("power p50 < 40%", 350.0, 280.0, False),
        ("tensor_active p50 < 1%", None, 0.01, None),
    ]
    assert verdicts.values(0, 0) == {"gpu_util p95 > 90%": 0.95, "power p50 < 40%": 350.0}


def test_missing_limit_is_named_when_a_rule_uses_a_share_of_it() -> None:
    columns = GivenColumns({"memory_used_bytes": [1e9]})
    assert judge("memory now > 50%", columns, facts([0])).explain(0, 0).why == (
        "the GPU's limit of memory_used is unknown"
    )


def test_verdicts_are_empty_when_there_are_no_lives() -> None:
    columns = GivenColumns({UTIL: []})
    assert judge("spread of util now > 5% on any GPU for user x", columns, facts([])).states.shape == (1, 0)


def test_mismatch_is_refused_when_rows_do_not_fit() -> None:
    with pytest.raises(ValueError, match="1 rows of statistics, but 2 lives"):
        judge("util now > 5%", GivenColumns({UTIL: [1.0]}), replace(facts([0, 0])))
