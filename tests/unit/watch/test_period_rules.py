"""Rules over the jobs of users and projects, from the stored summaries to violations and messages."""

import pytest
from clusters.small import NOW, SmallCluster
from unit.analyze.test_job_advice import gpu_summary

from clusterscape.analyze.rules.reading import parse_text
from clusterscape.analyze.rules.shipped import shipped_rules
from clusterscape.analyze.rules.writing import format_text
from clusterscape.errors import RuleSyntaxError
from clusterscape.model import UnixMs
from clusterscape.model.durations import DAY_MS, HOUR_MS
from clusterscape.model.job_summaries import JobSummary
from clusterscape.model.rules import Rule, Severity, Subject, Turn, is_no_workload
from clusterscape.watch.judging import HardwareJudge, group_turns
from clusterscape.watch.rulebook import RuleBook
from clusterscape.watch.trial import try_rule

KEY = "user-unused-gpus"


def ended(number: int, user: str, at: int, hours: float = 50.0, **fields: object) -> JobSummary:
    return gpu_summary(
        number,
        user=user,
        project="ml" if user == "ada" else "bio",
        run_s=hours * 3600,
        started_at=UnixMs(int(at - hours * HOUR_MS)),
        ended_at=UnixMs(at),
        gpus=2,
        gpus_unused=1,
        **fields,
    )


def test_a_user_violates_a_rule_while_the_jobs_of_the_last_days_do(small_cluster: SmallCluster) -> None:
    records = small_cluster.records
    records.write_summaries(
        [
            ended(1, "ada", NOW - DAY_MS),
            ended(2, "ada", NOW - 2 * DAY_MS, 55.0),
            ended(3, "ada", NOW - 9 * DAY_MS, 500.0),
            ended(4, "bob", NOW - DAY_MS),
        ]
    )
    hardware = HardwareJudge(records, small_cluster.metrics, RuleBook(records, clock=lambda: NOW))
    hardware.judge(NOW)
    [violation] = [violation for violation in hardware.apply().started if violation.rule == KEY]
    assert (violation.workload, violation.unit, violation.gpus) == ("user:ada", None, 0)
    assert list(violation.values.values()) == [pytest.approx(105.0)]
    assert is_no_workload(violation.workload)
    rule = RuleBook(records, clock=lambda: NOW).find(KEY)
    [turn] = group_turns([violation], {KEY: rule}, {}, Turn.STARTED)
    assert (turn.user, turn.project) == ("ada", None)

    # A job that ends later is read without reading the others again; then the first ones are too old.
    records.write_summaries([ended(5, "bob", NOW + DAY_MS, 60.0)])
    later = UnixMs(NOW + DAY_MS + HOUR_MS)
    hardware.judge(later)
    assert {violation.workload for violation in hardware.apply().started if violation.rule == KEY} == {"user:bob"}
    for at in (later + 7 * DAY_MS, later + 8 * DAY_MS):
        hardware.judge(UnixMs(at))
        hardware.apply()
    assert not [violation for violation in hardware.open if violation.rule == KEY]


def test_projects_are_judged_by_all_of_their_users(small_cluster: SmallCluster) -> None:
    expression = parse_text("unused_gpu_hours increase over last 2d >= 100 for every project")
    rule = Rule(key="x", name="x", severity=Severity.INFO, expression=expression.expression, scope=expression.scope)
    jobs = [ended(1, "bob", NOW - DAY_MS), ended(2, "cy", NOW - DAY_MS), ended(3, "ada", NOW - DAY_MS)]
    small_cluster.records.write_summaries(jobs)
    trial = try_rule(
        rule,
        records=small_cluster.records,
        metrics=small_cluster.metrics,
        start_ms=UnixMs(NOW - 2 * DAY_MS),
        end_ms=NOW,
        step_ms=6 * HOUR_MS,
    )
    assert (trial.lives, trial.judged) == (2, 2)
    [violation] = trial.violations
    assert violation.workload == "project:bio"
    assert violation.since >= NOW - DAY_MS


def test_all_fourteen_alerts_of_job_defense_shield_ship_as_rules() -> None:
    rules = {shipped.rule.key: shipped.rule for shipped in shipped_rules()}
    of_users = [key for key, rule in rules.items() if rule.scope.subject is Subject.USERS]
    assert len(of_users) == 13
    assert "gpu-unused-1h" in rules
    for key in of_users:
        text = format_text(rules[key].expression, rules[key].scope)
        parsed = parse_text(text)
        assert (parsed.expression, parsed.scope) == (rules[key].expression, rules[key].scope)
        assert rules[key].severity is Severity.INFO
        assert rules[key].advice


@pytest.mark.parametrize(
    "text",
    [
        "unused_gpu_hours increase over last 7d > 1 for every user for partition a100",
        "unused_gpu_hours max > 1 for every user",
        "unused_gpu_hours increase over last 7d > 1 for every user on any GPU",
    ],
)
def test_clauses_without_a_meaning_for_users_are_refused(text: str) -> None:
    with pytest.raises(RuleSyntaxError):
        parse_text(text)
