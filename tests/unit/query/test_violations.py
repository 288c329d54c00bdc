"""Who broke what, when and what it cost; timelines, verdicts, trials, mutes and comments, on a followed site."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from unit.watch.site import MINUTE, T0, Curve, WatchedSite

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import UnitId, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.model.rules import Violation
from clusterscape.query import Queries, QueryContext
from clusterscape.store.changes import Changes

HOUR = 3_600_000
IDLE = "gpu_util p95 < 50%"


@dataclass
class Asked:
    """A site without shipped rules, and its queries."""

    site: WatchedSite
    queries: Queries

    def save(self, key: str, text: str, **more: object) -> None:
        self.queries.rules.save(key, {"text": text, **more})

    def write(self, *violations: Violation) -> None:
        self.site.records.write_violations(violations)


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    site = WatchedSite(tmp_path)
    for rule in site.watch.book.rules():
        site.watch.book.save(replace(rule, is_enabled=False))
    context = QueryContext(
        metrics=site.metrics, records=site.records, changes=Changes(), clock=lambda: site.now, cluster="test"
    )
    yield Asked(site, Queries(context, watch=site.watch))
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


def test_violations_are_summed_by_workload_most_hours_first_when_listed(asked: Asked) -> None:
    asked.save("idle", IDLE, name="Idle", severity="critical")
    small = asked.site.start_job("small", [0], user="bob")
    large = asked.site.start_job("large", [1, 2])
    asked.site.run_until(40, util(0.1, 0.2, 0.3))
    found = asked.queries.violations.all(hours=2)
    assert [each.workload for each in found.violations] == [large, small]
    first = found.violations[0]
    assert (first.rule, first.rule_name, first.severity) == ("idle", "Idle", "critical")
    assert (first.user, first.project, first.workload_name) == ("ann", "p1", "large")
    assert (first.units, first.gpus, first.until, first.mute) == (["n1:1", "n1:2"], 2, None, None)
    assert first.gpu_hours == pytest.approx(2 * 30 / 60, abs=0.05)
    assert first.readings in ("gpu_util p95 20%", "gpu_util p95 30%")
    assert found.gpu_hours == pytest.approx(1.5, abs=0.1)
    assert [(share.name, share.workloads) for share in found.users] == [("ann", 1), ("bob", 1)]
    assert [(share.name, share.workloads) for share in found.projects] == [("p1", 2)]


def test_gpu_counts_once_in_the_sums_when_it_breaks_two_rules(asked: Asked) -> None:
    asked.save("idle", IDLE)
    asked.save("idler", "gpu_util p95 < 60%")
    asked.site.start_job("one", [0])
    asked.site.run_until(40, util(0.1))
    found = asked.queries.violations.all(hours=2)
    assert len(found.violations) == 2
    assert found.gpu_hours == pytest.approx(found.violations[0].gpu_hours)


def test_hours_are_those_of_the_asked_time_when_it_cuts_a_violation(asked: Asked) -> None:
    asked.save("idle", IDLE)
    job = asked.site.start_job("one", [0])
    asked.site.now = UnixMs(T0 + 300 * MINUTE)
    asked.write(violation(job, 0, 60, 240))
    found = asked.queries.violations.all(start=T0 + 120 * MINUTE, end=T0 + 180 * MINUTE)
    assert (found.start, found.end) == (T0 + 120 * MINUTE, T0 + 180 * MINUTE)
    assert found.violations[0].gpu_hours == pytest.approx(1.0)
    assert found.violations[0].since == T0 + 60 * MINUTE
    assert asked.queries.violations.all(start=T0, end=T0 + 30 * MINUTE).violations == []


def test_whole_workload_counts_the_gpus_it_held_when_it_is_blamed(asked: Asked) -> None:
    asked.save("idle", f"{IDLE} on any GPU")
    job = asked.site.start_job("one", [0, 1, 2])
    asked.site.now = UnixMs(T0 + 120 * MINUTE)
    asked.site.end_job(job)
    asked.site.now = UnixMs(T0 + 200 * MINUTE)
    asked.write(violation(job, None, 60, 150, gpus=2))
    (found,) = asked.queries.violations.all(hours=24).violations
    assert (found.units, found.gpus) == ([], 2)
    assert found.gpu_hours == pytest.approx(3.0), "from its begin to the end of the allocation"


@pytest.mark.parametrize(
    ("asked_for", "expected"),
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
def test_violations_are_narrowed_when_asked(asked: Asked, asked_for: dict[str, Any], expected: set[str]) -> None:
    asked.save("idle", IDLE)
    for name, user in (("past", "ann"), ("now", "ann"), ("other", "bob")):
        asked.site.start_job(name, [0], user=user)
    asked.site.now = UnixMs(T0 + 60 * MINUTE)
    asked.write(
        violation("slurm:past", 0, 1, 20), violation("slurm:now", 0, 30, None), violation("slurm:other", 0, 2, 9)
    )
    found = asked.queries.violations.all(hours=2, **asked_for)
    assert {each.workload.removeprefix("slurm:") for each in found.violations} == expected


def test_violation_is_shown_when_workload_or_rule_are_gone(asked: Asked) -> None:
    asked.site.now = UnixMs(T0 + 60 * MINUTE)
    asked.write(violation("slurm:gone", 0, 1, 20, rule="lost", values={"gpu_util p95 < 50%": 0.1}))
    found = asked.queries.violations.all(hours=2)
    (one,) = found.violations
    assert (one.rule_name, one.severity, one.user, one.workload_name, one.readings) == ("lost", "info", None, None, "")
    assert [share.name for share in found.users] == [None]


def test_many_violations_are_listed_with_their_owners_when_there_are_thousands(asked: Asked) -> None:
    asked.save("idle", IDLE)
    count = 10_000
    names = [WorkloadId(f"slurm:{index}") for index in range(count)]
    asked.site.records.write_workloads(
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
    asked.write(*[violation(name, index % 8, 1, 21) for index, name in enumerate(names)])
    asked.site.now = UnixMs(T0 + 60 * MINUTE)
    found = asked.queries.violations.all(hours=2)
    assert len(found.violations) == count
    assert sum(share.workloads for share in found.users) == count
    assert None not in {share.name for share in found.users}
    assert found.gpu_hours == pytest.approx(count / 3)


def test_timeline_counts_gpus_per_step_when_violations_come_and_go(asked: Asked) -> None:
    asked.save("idle", IDLE)
    asked.site.now = UnixMs(T0 + 60 * MINUTE)
    asked.write(
        violation("slurm:1", 0, 10, 30),
        violation("slurm:1", 1, 20, None),
        violation("slurm:2", None, 0, 10, gpus=4),
    )
    told = asked.queries.violations.timeline(hours=1, steps=6)
    assert (told.start, told.step_ms) == (T0, 10 * MINUTE)
    assert told.gpus["idle"] == [4, 1, 2, 1, 1, 1]
    assert all(sum(line) == 0 for key, line in told.gpus.items() if key != "idle")


def test_verdicts_have_readings_in_words_when_a_workload_runs(asked: Asked) -> None:
    asked.save("stall", "gpu_util p95 > 90% and power p50 < 70%")
    job = asked.site.start_job("stalls", [0, 1])
    power: list[Curve] = [lambda _: 80.0, lambda _: 390.0, *[lambda _: 0.0] * 6]
    asked.site.run_until(20, {**util(), "power_watts": power})
    told = asked.queries.violations.workload(job)
    assert told.units == 2
    met, kept = told.verdicts
    assert (met.unit, met.state, kept.unit, kept.state) == ("n1:0", "met", "n1:1", "not met")
    reading = met.readings[1]
    assert (reading.condition, reading.metric, reading.is_met) == ("power p50 < 70%", "power_watts", True)
    assert reading.value == pytest.approx(80, abs=4)
    assert reading.value_words is not None
    assert reading.value_words.endswith("W")
    assert (reading.bound, reading.bound_words) == (280.0, "280W")
    (span,) = told.spans
    assert (span.rule, span.unit, span.until) == ("stall", "n1:0", None)
    assert [each.rule for each in told.violations] == ["stall"]


def test_workload_keeps_its_past_when_it_has_ended(asked: Asked) -> None:
    asked.save("idle", IDLE)
    job = asked.site.start_job("idles", [0])
    asked.site.run_until(20, util(0.1))
    asked.site.end_job(job)
    asked.site.run_until(21, util(0.1))
    told = asked.queries.violations.workload(job)
    assert (told.units, told.verdicts) == (0, [])
    assert [each.until for each in told.spans] == [T0 + 20 * MINUTE]
    with pytest.raises(NotFoundError, match="no workload"):
        asked.queries.violations.workload("slurm:nobody")


def test_units_that_broke_a_rule_earlier_are_past_when_it_is_kept_again(asked: Asked) -> None:
    asked.save("pause", "gpu_util mean over last 5m < 10%")
    asked.site.start_job("pauses", [0, 1])
    curves = util()
    pausing: list[Curve] = [lambda minute: 0.0 if 12 <= minute < 22 else 1.0, *list(curves["gpu_util_ratio"])[1:]]
    asked.site.run_until(40, {"gpu_util_ratio": pausing})
    now = {each.rule: each for each in asked.queries.violations.units().rules}["pause"]
    assert (now.units, now.past) == ([], ["n1:0"])
    then = {each.rule: each for each in asked.queries.violations.units(T0 + 20 * MINUTE).rules}["pause"]
    assert then.units == ["n1:0"]


def test_trial_says_what_would_have_happened_when_nothing_is_saved(asked: Asked) -> None:
    asked.site.start_job("idles", [0, 1])
    asked.site.run_until(40, util(0.1, 0.9))
    trial = asked.queries.violations.try_rule(asked.queries.rules.parse(text=IDLE), hours=1)
    assert (trial.text, trial.times, trial.workloads, trial.lives, trial.judged) == (IDLE, 1, 1, 2, 2)
    assert trial.gpu_hours == pytest.approx(0.5, abs=0.05)
    assert asked.site.records.violations() == []


def test_violation_is_shown_muted_until_its_mute_ends_when_muted(asked: Asked) -> None:
    asked.save("idle", IDLE)
    job = asked.site.start_job("idles", [0])
    asked.site.start_job("idles too", [1])
    asked.site.run_until(20, util(0.1, 0.1))
    mute = asked.queries.rule_notes.mute(rule="idle", workload=job, reason="known", author="ann", hours=1)
    shown = {each.workload: each.mute for each in asked.queries.violations.all(hours=1).violations}
    assert shown[job] == mute
    assert shown["slurm:idles too"] is None
    asked.site.now = UnixMs(asked.site.now + 2 * HOUR)
    assert asked.queries.rule_notes.mutes() == []
    assert all(each.mute is None for each in asked.queries.violations.all(hours=4).violations)


def test_mute_of_all_ends_when_it_is_taken_back(asked: Asked) -> None:
    asked.save("idle", IDLE)
    mute = asked.queries.rule_notes.mute(rule="idle", workload=None, reason="upgrade", author="ann", hours=24)
    assert asked.queries.rule_notes.mutes() == [mute]
    asked.queries.rule_notes.unmute(mute.key)
    assert asked.queries.rule_notes.mutes() == []
    with pytest.raises(NotFoundError, match="no mute"):
        asked.queries.rule_notes.unmute(mute.key)


def test_mutes_of_a_rule_go_when_it_is_removed(asked: Asked) -> None:
    asked.save("idle", IDLE)
    asked.queries.rule_notes.mute(rule="idle", workload=None, reason="upgrade", author="ann", hours=24)
    asked.queries.rules.remove("idle")
    assert asked.queries.rule_notes.mutes() == []


def test_comments_are_newest_first_when_several_are_written(asked: Asked) -> None:
    job = asked.site.start_job("idles", [0])
    notes = asked.queries.rule_notes
    first = notes.comment(workload=job, author="ann", text="  waits for data  ")
    asked.site.now = UnixMs(asked.site.now + 1)
    second = notes.comment(workload=job, author="bob", text="asked her")
    assert first.text == "waits for data"
    assert notes.comments(job) == [second, first]
    assert notes.comments("slurm:other") == []
    notes.remove_comment(first.key)
    assert notes.comments() == [second]
    with pytest.raises(NotFoundError, match="no comment"):
        notes.remove_comment(first.key)


@pytest.mark.parametrize("hours", [0, -1, float("nan"), float("inf"), 1e9])
def test_error_names_the_hours_when_they_make_no_sense(asked: Asked, hours: float) -> None:
    with pytest.raises(QueryError, match="hours"):
        asked.queries.violations.all(hours=hours)
    with pytest.raises(QueryError, match="hours"):
        asked.queries.rule_notes.mute(rule="idle-corner", workload=None, reason="x", author="y", hours=hours)


def test_error_says_so_when_the_time_ends_before_it_begins(asked: Asked) -> None:
    with pytest.raises(QueryError, match="before it begins"):
        asked.queries.violations.all(start=T0 + 5, end=T0)
    with pytest.raises(QueryError, match="before it begins"):
        asked.queries.violations.all(start=T0 + 24 * HOUR)
