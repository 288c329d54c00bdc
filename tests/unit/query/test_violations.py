"""Violations with owners, times and costs; timelines, verdicts, trials, mutes and comments, on a watched site."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from clusters.opened import open_queries, open_services
from unit.watch.site import MINUTE, T0, Curve, WatchedSite

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import UnitId, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.model.rules import Violation
from clusterscape.query import Queries, QueryContext
from clusterscape.services import Services
from clusterscape.store.changes import Changes

HOUR = 3_600_000
IDLE = "gpu_util p95 < 50%"


@dataclass
class RuleStack:
    """A site without shipped rules, its queries and services."""

    site: WatchedSite
    queries: Queries
    services: Services

    def save(self, key: str, text: str, **more: object) -> None:
        self.services.rules.save(key, {"text": text, **more})

    def write(self, *violations: Violation) -> None:
        self.site.records.write_violations(violations)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[RuleStack]:
    site = WatchedSite(tmp_path)
    for rule in site.watch.book.rules():
        site.watch.book.save(replace(rule, is_enabled=False))
    context = QueryContext(
        metrics=site.metrics, records=site.records, changes=Changes(), clock=lambda: site.now, cluster="test"
    )
    queries = open_queries(context, watch=site.watch)
    yield RuleStack(site, queries, open_services(queries))
    site.close()


def util(*levels: float) -> Mapping[str, Sequence[Curve]]:
    def constant(level: float) -> Curve:
        return lambda _: level

    return {"gpu_util_ratio": [constant(level) for level in (*levels, *[1.0] * (8 - len(levels)))]}


def violation(workload: str, unit: int | None, since_min: float, until_min: float | None, **more: Any) -> Violation:
    return Violation(
        rule=more.pop("rule", "idle"),
        workload=WorkloadId(workload),
        unit=None if unit is None else UnitId(f"n1:{unit}"),
        since=UnixMs(T0 + int(since_min * MINUTE)),
        until=None if until_min is None else UnixMs(T0 + int(until_min * MINUTE)),
        **more,
    )


def test_violations_are_summed_by_workload_most_hours_first_when_listed(stack: RuleStack) -> None:
    stack.save("idle", IDLE, name="Idle", severity="critical")
    small = stack.site.start_job("small", [0], user="bob")
    large = stack.site.start_job("large", [1, 2])
    stack.site.run_until(40, util(0.1, 0.2, 0.3))
    answer = stack.queries.violations.all(hours=2)
    assert [row.workload for row in answer.violations] == [large, small]
    first = answer.violations[0]
    assert (first.rule, first.rule_name, first.severity) == ("idle", "Idle", "critical")
    assert (first.user, first.project, first.workload_name) == ("ann", "p1", "large")
    assert (first.units, first.gpus, first.until, first.mute) == (["n1:1", "n1:2"], 2, None, None)
    assert first.gpu_hours == pytest.approx(2 * 30 / 60, abs=0.05)
    assert first.readings in ("gpu_util p95 20%", "gpu_util p95 30%")
    assert answer.gpu_hours == pytest.approx(1.5, abs=0.1)
    assert [(share.name, share.workloads) for share in answer.users] == [("ann", 1), ("bob", 1)]
    assert [(share.name, share.workloads) for share in answer.projects] == [("p1", 2)]


def test_gpu_counts_once_in_the_sums_when_it_breaks_two_rules(stack: RuleStack) -> None:
    stack.save("idle", IDLE)
    stack.save("idler", "gpu_util p95 < 60%")
    stack.site.start_job("one", [0])
    stack.site.run_until(40, util(0.1))
    answer = stack.queries.violations.all(hours=2)
    assert len(answer.violations) == 2
    assert answer.gpu_hours == pytest.approx(answer.violations[0].gpu_hours)


def test_hours_are_those_of_the_requested_range_when_it_cuts_a_violation(stack: RuleStack) -> None:
    stack.save("idle", IDLE)
    job = stack.site.start_job("one", [0])
    stack.site.now = UnixMs(T0 + 300 * MINUTE)
    stack.write(violation(job, 0, 60, 240))
    answer = stack.queries.violations.all(start=T0 + 120 * MINUTE, end=T0 + 180 * MINUTE)
    assert (answer.start, answer.end) == (T0 + 120 * MINUTE, T0 + 180 * MINUTE)
    assert answer.violations[0].gpu_hours == pytest.approx(1.0)
    assert answer.violations[0].since == T0 + 60 * MINUTE
    assert stack.queries.violations.all(start=T0, end=T0 + 30 * MINUTE).violations == []


def test_violation_counts_the_gpus_a_workload_held_when_it_names_no_unit(stack: RuleStack) -> None:
    stack.save("idle", f"{IDLE} on any GPU")
    job = stack.site.start_job("one", [0, 1, 2])
    stack.site.now = UnixMs(T0 + 120 * MINUTE)
    stack.site.end_job(job)
    stack.site.now = UnixMs(T0 + 200 * MINUTE)
    stack.write(violation(job, None, 60, 150, gpus=2))
    (violation_row,) = stack.queries.violations.all(hours=24).violations
    assert (violation_row.units, violation_row.gpus) == ([], 2)
    assert violation_row.gpu_hours == pytest.approx(3.0), "from its begin to the end of the allocation"


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, {"past", "now", "other"}),
        ({"is_open": True}, {"now"}),
        ({"is_open": False}, {"past", "other"}),
        ({"user": "bob"}, {"other"}),
        ({"project": "p1", "is_open": True}, {"now"}),
        ({"user": "nobody"}, set()),
        ({"rule": "nothing"}, set()),
    ],
)
def test_violations_are_filtered_when_filters_are_given(
    stack: RuleStack, filters: dict[str, Any], expected: set[str]
) -> None:
    stack.save("idle", IDLE)
    for name, user in (("past", "ann"), ("now", "ann"), ("other", "bob")):
        stack.site.start_job(name, [0], user=user)
    stack.site.now = UnixMs(T0 + 60 * MINUTE)
    stack.write(
        violation("slurm:past", 0, 1, 20), violation("slurm:now", 0, 30, None), violation("slurm:other", 0, 2, 9)
    )
    answer = stack.queries.violations.all(hours=2, **filters)
    assert {row.workload.removeprefix("slurm:") for row in answer.violations} == expected


def test_violation_is_shown_when_workload_or_rule_no_longer_exist(stack: RuleStack) -> None:
    stack.site.now = UnixMs(T0 + 60 * MINUTE)
    stack.write(violation("slurm:gone", 0, 1, 20, rule="lost", values={"gpu_util p95 < 50%": 0.1}))
    answer = stack.queries.violations.all(hours=2)
    (violation_row,) = answer.violations
    assert (
        violation_row.rule_name,
        violation_row.severity,
        violation_row.user,
        violation_row.workload_name,
        violation_row.readings,
    ) == ("lost", "info", None, None, "")
    assert [share.name for share in answer.users] == [None]


def test_many_violations_are_listed_with_their_owners_when_there_are_thousands(stack: RuleStack) -> None:
    stack.save("idle", IDLE)
    count = 10_000
    names = [WorkloadId(f"slurm:{index}") for index in range(count)]
    stack.site.records.write_workloads(
        [
            Workload(
                id=name,
                state=WorkloadState.COMPLETED,
                user=f"u{index % 7}",
                gpus_requested=1,
                started_at=UnixMs(T0),
                ended_at=UnixMs(T0 + 30 * MINUTE),
            )
            for index, name in enumerate(names)
        ],
        at_ms=UnixMs(T0),
    )
    stack.write(*[violation(name, index % 8, 1, 21) for index, name in enumerate(names)])
    stack.site.now = UnixMs(T0 + 60 * MINUTE)
    answer = stack.queries.violations.all(hours=2)
    assert len(answer.violations) == count
    assert sum(share.workloads for share in answer.users) == count
    assert None not in {share.name for share in answer.users}
    assert answer.gpu_hours == pytest.approx(count / 3)


def test_timeline_counts_gpus_per_step_when_violations_come_and_go(stack: RuleStack) -> None:
    stack.save("idle", IDLE)
    stack.site.now = UnixMs(T0 + 60 * MINUTE)
    stack.write(
        violation("slurm:1", 0, 10, 30),
        violation("slurm:1", 1, 20, None),
        violation("slurm:2", None, 0, 10, gpus=4),
    )
    timeline = stack.queries.violations.timeline(hours=1, steps=6)
    assert (timeline.start, timeline.step_ms) == (T0, 10 * MINUTE)
    assert timeline.gpus["idle"] == [4, 1, 2, 1, 1, 1]
    assert all(sum(line) == 0 for key, line in timeline.gpus.items() if key != "idle")


def test_verdicts_have_readings_in_words_when_a_workload_runs(stack: RuleStack) -> None:
    stack.save("stall", "gpu_util p95 > 90% and power p50 < 70%")
    job = stack.site.start_job("stalls", [0, 1])
    power: list[Curve] = [lambda _: 80.0, lambda _: 390.0, *[lambda _: 0.0] * 6]
    stack.site.run_until(20, {**util(), "power_watts": power})
    verdicts = stack.queries.violations.workload(job)
    assert verdicts.units == 2
    met, kept = verdicts.verdicts
    assert (met.unit, met.state, kept.unit, kept.state) == ("n1:0", "met", "n1:1", "not met")
    reading = met.readings[1]
    assert (reading.condition, reading.metric, reading.is_met) == ("power p50 < 70%", "power_watts", True)
    assert reading.value == pytest.approx(80, abs=4)
    assert reading.value_words is not None
    assert reading.value_words.endswith("W")
    assert (reading.bound, reading.bound_words) == (280.0, "280W")
    (span,) = verdicts.spans
    assert (span.rule, span.unit, span.until) == ("stall", "n1:0", None)
    assert [row.rule for row in verdicts.violations] == ["stall"]


def test_workload_keeps_its_past_when_it_has_ended(stack: RuleStack) -> None:
    stack.save("idle", IDLE)
    job = stack.site.start_job("idles", [0])
    stack.site.run_until(20, util(0.1))
    stack.site.end_job(job)
    stack.site.run_until(21, util(0.1))
    verdicts = stack.queries.violations.workload(job)
    assert (verdicts.units, verdicts.verdicts) == (0, [])
    assert [span.until for span in verdicts.spans] == [T0 + 20 * MINUTE]
    with pytest.raises(NotFoundError, match="no workload"):
        stack.queries.violations.workload("slurm:nobody")


def test_units_are_listed_as_past_when_they_no_longer_break_the_rule(stack: RuleStack) -> None:
    stack.save("pause", "gpu_util mean over last 5m < 10%")
    stack.site.start_job("pauses", [0, 1])
    curves = util()
    pausing: list[Curve] = [lambda minute: 0.0 if 12 <= minute < 22 else 1.0, *list(curves["gpu_util_ratio"])[1:]]
    stack.site.run_until(40, {"gpu_util_ratio": pausing})
    now = {rule.rule: rule for rule in stack.queries.violations.units().rules}["pause"]
    assert (now.units, now.past) == ([], ["n1:0"])
    then = {rule.rule: rule for rule in stack.queries.violations.units(T0 + 20 * MINUTE).rules}["pause"]
    assert then.units == ["n1:0"]


def test_trial_says_what_would_have_happened_when_nothing_is_saved(stack: RuleStack) -> None:
    stack.site.start_job("idles", [0, 1])
    stack.site.run_until(40, util(0.1, 0.9))
    trial = stack.queries.violations.try_rule(stack.queries.rules.parse(text=IDLE), hours=1)
    assert (trial.text, trial.times, trial.workloads, trial.lives, trial.judged) == (IDLE, 1, 1, 2, 2)
    assert trial.gpu_hours == pytest.approx(0.5, abs=0.05)
    assert stack.site.records.violations() == []


def test_violation_is_shown_muted_until_its_mute_ends_when_muted(stack: RuleStack) -> None:
    stack.save("idle", IDLE)
    job = stack.site.start_job("idles", [0])
    stack.site.start_job("idles too", [1])
    stack.site.run_until(20, util(0.1, 0.1))
    mute = stack.services.notes.mute(rule="idle", workload=job, reason="known", author="ann", hours=1)
    shown = {row.workload: row.mute for row in stack.queries.violations.all(hours=1).violations}
    assert shown[job] == mute
    assert shown["slurm:idles too"] is None
    stack.site.now = UnixMs(stack.site.now + 2 * HOUR)
    assert stack.queries.rule_notes.mutes() == []
    assert all(row.mute is None for row in stack.queries.violations.all(hours=4).violations)


def test_mute_of_all_workloads_ends_when_it_is_removed(stack: RuleStack) -> None:
    stack.save("idle", IDLE)
    mute = stack.services.notes.mute(rule="idle", workload=None, reason="upgrade", author="ann", hours=24)
    assert stack.queries.rule_notes.mutes() == [mute]
    stack.services.notes.unmute(mute.key)
    assert stack.queries.rule_notes.mutes() == []
    with pytest.raises(NotFoundError, match="no mute"):
        stack.services.notes.unmute(mute.key)


def test_mutes_of_a_rule_go_when_it_is_removed(stack: RuleStack) -> None:
    stack.save("idle", IDLE)
    stack.services.notes.mute(rule="idle", workload=None, reason="upgrade", author="ann", hours=24)
    stack.services.rules.remove("idle")
    assert stack.queries.rule_notes.mutes() == []


def test_comments_are_newest_first_when_several_are_written(stack: RuleStack) -> None:
    job = stack.site.start_job("idles", [0])
    notes, keeper = stack.queries.rule_notes, stack.services.notes
    first = keeper.comment(workload=job, author="ann", text="  waits for data  ")
    stack.site.now = UnixMs(stack.site.now + 1)
    second = keeper.comment(workload=job, author="bob", text="asked her")
    assert first.text == "waits for data"
    assert notes.comments(job) == [second, first]
    assert notes.comments("slurm:other") == []
    keeper.remove_comment(first.key)
    assert notes.comments() == [second]
    with pytest.raises(NotFoundError, match="no comment"):
        keeper.remove_comment(first.key)


@pytest.mark.parametrize("hours", [0, -1, float("nan"), float("inf"), 1e9])
def test_error_names_the_hours_when_they_make_no_sense(stack: RuleStack, hours: float) -> None:
    with pytest.raises(QueryError, match="hours"):
        stack.queries.violations.all(hours=hours)
    with pytest.raises(QueryError, match="hours"):
        stack.services.notes.mute(rule="idle-corner", workload=None, reason="x", author="y", hours=hours)


def test_error_is_raised_when_the_end_is_before_the_start(stack: RuleStack) -> None:
    with pytest.raises(QueryError, match="must be after the start"):
        stack.queries.violations.all(start=T0 + 5, end=T0)
    with pytest.raises(QueryError, match="must be after the start"):
        stack.queries.violations.all(start=T0 + 24 * HOUR)
