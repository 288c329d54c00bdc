"""Violations begin, go on and end as verdicts say."""

import numpy as np
import pytest

from clusterscape.analyze.rules.facts import FALSE, OUT_OF_SCOPE, TRUE, UNKNOWN
from clusterscape.model import UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import (
    Condition,
    Operator,
    Quantifier,
    Quantity,
    Rule,
    RuleScope,
    Severity,
    Statistic,
    StatisticKind,
)
from clusterscape.watch.judging import SETTLE_MS, JudgedLives, Judgement, ViolationKeeper

KEPT, BROKEN = FALSE, TRUE
MINUTE = 60_000
T0 = 1_000_000


def rule(key: str, quantifier: Quantifier = Quantifier.EACH) -> Rule:
    condition = Condition(
        metric="gpu_util_ratio",
        statistic=Statistic(StatisticKind.MEAN),
        operator=Operator.LESS,
        value=Quantity(0.5),
    )
    return Rule(
        key=key, name=key, severity=Severity.WARNING, expression=condition, scope=RuleScope(quantifier=quantifier)
    )


IDLE = rule("idle")


def judgement(
    minute: int,
    verdicts: list[np.uint8],
    *,
    rules: tuple[Rule, ...] = (IDLE,),
    from_minute: int = 0,
    ended_minute: int | None = None,
) -> Judgement:
    count = len(verdicts)
    ended = -1 if ended_minute is None else T0 + ended_minute * MINUTE
    return Judgement(
        at=at(minute),
        rules=rules,
        lives=JudgedLives(
            workloads=[WorkloadId("job")] * count,
            units=[UnitId(f"n:{row}") for row in range(count)],
            from_at=np.full(count, T0 + from_minute * MINUTE, dtype=np.int64),
            until_at=np.full(count, ended, dtype=np.int64),
            is_open=np.full(count, ended_minute is None),
        ),
        verdicts=np.array([verdicts] * len(rules), dtype=np.uint8),
    )


def at(minute: int) -> UnixMs:
    return UnixMs(T0 + minute * MINUTE)


SETTLED = SETTLE_MS // MINUTE


def test_violation_ends_when_its_rule_is_met_again() -> None:
    keeper = ViolationKeeper()
    assert not keeper.judge(judgement(1, [KEPT, KEPT]))
    (started,) = keeper.judge(judgement(2, [KEPT, BROKEN])).started
    assert (started.unit, started.since, started.until) == ("n:1", at(2), None)
    assert not keeper.judge(judgement(3, [KEPT, BROKEN]))
    assert not keeper.judge(judgement(4, [KEPT, KEPT]))
    (stopped,) = keeper.judge(judgement(4 + SETTLED, [KEPT, KEPT])).stopped
    assert (stopped.unit, stopped.since, stopped.until) == ("n:1", at(2), at(4))
    assert not keeper.open


def test_a_violation_goes_on_when_its_rule_cannot_be_judged() -> None:
    keeper = ViolationKeeper()
    keeper.judge(judgement(1, [BROKEN]))
    assert not keeper.judge(judgement(2, [UNKNOWN]))
    assert len(keeper.open) == 1


def test_a_violation_ends_when_its_workload_is_out_of_scope() -> None:
    keeper = ViolationKeeper()
    keeper.judge(judgement(1, [BROKEN]))
    keeper.judge(judgement(2, [OUT_OF_SCOPE]))
    assert len(keeper.judge(judgement(2 + SETTLED, [OUT_OF_SCOPE])).stopped) == 1


def test_a_violation_ends_with_its_life_when_the_unit_is_given_back() -> None:
    keeper = ViolationKeeper()
    keeper.judge(judgement(1, [BROKEN]))
    (stopped,) = keeper.judge(judgement(5, [BROKEN], ended_minute=3)).stopped
    assert stopped.until == at(3)


def test_violation_ends_when_its_life_is_no_longer_known() -> None:
    keeper = ViolationKeeper()
    keeper.judge(judgement(1, [BROKEN]))
    (stopped,) = keeper.judge(judgement(2, [])).stopped
    assert stopped.until == at(2)


@pytest.mark.parametrize("verdict", [BROKEN, KEPT, UNKNOWN])
def test_a_violation_ends_when_its_workload_starts_a_new_life(verdict: np.uint8) -> None:
    keeper = ViolationKeeper()
    keeper.judge(judgement(1, [BROKEN]))
    turned = keeper.judge(judgement(9, [verdict], from_minute=7))
    assert [violation.until for violation in turned.stopped] == [at(7)]
    assert [violation.since for violation in turned.started] == ([at(9)] if verdict == BROKEN else [])


def test_one_violation_goes_on_when_a_rule_is_broken_again_at_once() -> None:
    keeper = ViolationKeeper()
    keeper.judge(judgement(1, [BROKEN]))
    keeper.judge(judgement(2, [KEPT]))
    assert not keeper.judge(judgement(3, [BROKEN]))
    assert not keeper.judge(judgement(3 + SETTLED, [KEPT]))
    (stopped,) = keeper.judge(judgement(3 + 2 * SETTLED, [KEPT])).stopped
    assert (stopped.since, stopped.until) == (at(1), at(3 + SETTLED))


def test_violation_covers_the_whole_workload_when_the_rule_says_so() -> None:
    uneven = rule("uneven", Quantifier.ANY)
    keeper = ViolationKeeper()
    (started,) = keeper.judge(judgement(1, [BROKEN, BROKEN, BROKEN], rules=(uneven,))).started
    assert (started.unit, started.gpus) == (None, 3)
    assert not keeper.judge(judgement(2, [BROKEN, BROKEN, BROKEN], rules=(uneven,)))
    keeper.judge(judgement(3, [KEPT, KEPT, KEPT], rules=(uneven,)))
    assert len(keeper.judge(judgement(3 + SETTLED, [KEPT, KEPT, KEPT], rules=(uneven,))).stopped) == 1


def test_violations_end_when_their_rule_goes() -> None:
    keeper = ViolationKeeper()
    keeper.judge(judgement(1, [BROKEN, BROKEN]))
    assert len(keeper.drop_rule("idle", at(2)).stopped) == 2
    assert not keeper.open


def test_no_turn_is_reported_when_open_violations_come_from_before_a_restart() -> None:
    before = ViolationKeeper()
    before.judge(judgement(1, [BROKEN, KEPT]))
    after = ViolationKeeper(before.open.values())
    assert not after.judge(judgement(2, [BROKEN, KEPT]))
    after.judge(judgement(3, [KEPT, KEPT]))
    assert len(after.judge(judgement(3 + SETTLED, [KEPT, KEPT])).stopped) == 1
