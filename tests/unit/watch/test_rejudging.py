"""After a change of a rule, its past violations are those of the new rule; open ones stay open, and no alerts are sent."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from unit.watch.site import MINUTE, T0, Curve, WatchedSite

from clusterscape.analyze.rules.reading import parse_rule
from clusterscape.model import Names, SampleBatch, UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import Rule, Severity, Violation
from clusterscape.watch.rejudging import merge_past

CUT = UnixMs(1_000_000)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[WatchedSite]:
    site = WatchedSite(tmp_path)
    for rule in site.watch.book.rules():
        site.watch.book.save(replace(rule, is_enabled=False))
    yield site
    site.close()


def rule(text: str) -> Rule:
    return parse_rule(text, key="mine", name="mine", severity=Severity.WARNING)


def constant(value: float) -> Curve:
    return lambda _: value


def found_on(violations: list[Violation]) -> list[tuple[str, bool]]:
    return [
        (str(violation.unit), violation.until is None)
        for violation in sorted(violations, key=lambda violation: str(violation.unit))
    ]


LEVELS = {"gpu_util_ratio": [constant(value) for value in (0.1, 0.4, 0.7, 1.0, 1.0, 1.0, 1.0, 1.0)]}


def test_past_is_that_of_the_new_rule_when_its_conditions_change(site: WatchedSite) -> None:
    watch = site.watch
    watch.save_rule(rule("gpu_util p95 < 50%"))
    watch.rejudging.rejudge_due()
    ended = site.start_job("ended", [0, 1, 2])
    site.run_until(60, LEVELS)
    site.end_job(ended)
    site.start_job("runs", [0, 2])
    site.run_until(120, LEVELS)
    assert found_on(site.records.violations()) == [("n1:0", False), ("n1:0", True), ("n1:1", False)]
    watch.save_rule(rule("gpu_util p95 < 20%"))
    assert watch.rejudging.due() == ["mine"]
    watch.judge()
    watch.rejudging.rejudge_due()
    assert watch.rejudging.due() == []
    assert found_on(site.records.violations()) == [("n1:0", False), ("n1:0", True)]
    watch.save_rule(rule("gpu_util p95 < 80%"))
    watch.rejudging.rejudge_due()
    watch.judge()
    violations = site.records.violations()
    assert found_on(violations) == [("n1:0", False), ("n1:0", True), ("n1:1", False), ("n1:2", False), ("n1:2", True)]
    assert {violation.workload for violation in violations if violation.until is None} == {"slurm:runs"}
    assert {(violation.unit, violation.since) for violation in watch.open_violations} == {
        (violation.unit, violation.since) for violation in violations if violation.until is None
    }


def test_past_is_found_when_a_rule_is_new(site: WatchedSite) -> None:
    job = site.start_job("idled", [0])
    site.run_until(60, LEVELS)
    site.end_job(job)
    site.run_until(61, LEVELS)
    site.watch.save_rule(rule("gpu_util p95 < 50%"))
    site.watch.rejudging.rejudge_due()
    (violation,) = site.records.violations()
    assert violation.until == T0 + 60 * MINUTE
    assert violation.values == {"gpu_util p95 < 50%": pytest.approx(0.1, abs=0.01)}


def test_nothing_is_judged_again_when_only_name_or_switch_change(site: WatchedSite) -> None:
    mine = site.watch.save_rule(rule("gpu_util p95 < 50%"))
    site.watch.rejudging.rejudge_due()
    site.watch.save_rule(replace(mine, name="other", is_enabled=False, color="#ff8800"))
    assert site.watch.rejudging.due() == []


def test_past_waits_when_the_rule_is_off_and_goes_when_it_is_removed(site: WatchedSite) -> None:
    site.watch.save_rule(replace(rule("gpu_util p95 < 50%"), is_enabled=False))
    site.watch.rejudging.rejudge_due()
    assert site.watch.rejudging.due() == ["mine"]
    site.watch.remove_rule("mine")
    assert site.watch.rejudging.due() == []


def test_shipped_rule_is_due_when_it_is_reset(site: WatchedSite) -> None:
    shipped = site.watch.book.shipped("low-utilization")
    assert shipped is not None
    site.watch.save_rule(replace(shipped, expression=rule("gpu_util p95 < 1%").expression))
    site.watch.rejudging.rejudge_due()
    site.watch.remove_rule("low-utilization")
    assert site.watch.rejudging.due() == ["low-utilization"]


def test_past_is_judged_again_when_the_program_was_ended_before(site: WatchedSite) -> None:
    job = site.start_job("idled", [0])
    site.run_until(60, LEVELS)
    site.end_job(job)
    site.watch.save_rule(rule("gpu_util p95 < 50%"))
    site.watch.close()
    site.open_watch()
    site.watch.rejudging.rejudge_due()
    assert len(site.records.violations()) == 1


def test_stored_past_is_judged_when_a_history_comes(site: WatchedSite) -> None:
    site.watch.save_rule(rule("gpu_util p95 < 50%"))
    site.watch.rejudging.rejudge_due()
    job = site.start_job("idled", [0])
    parts = []
    for minute in range(1, 61):
        site.now = UnixMs(T0 + minute * MINUTE)
        parts.append(site.sample(LEVELS))
    site.end_job(job)
    site.metrics.append_history(parts)
    site.watch.on_history(parts)
    assert site.watch.rejudging.due() == ["mine"]
    site.now = UnixMs(site.now + MINUTE)
    site.watch.rejudging.rejudge_due()
    (violation,) = site.records.violations()
    assert (violation.unit, violation.until) == ("n1:0", T0 + 60 * MINUTE)


def test_past_is_judged_once_when_runs_are_sent_late_again_and_again(site: WatchedSite) -> None:
    """Regression: every piece delayed the judging of all rules by 2 s, and results until then were discarded."""
    watch = site.watch
    watch.save_rule(rule("gpu_util p95 < 50%"))
    watch.rejudging.rejudge_due()
    late = SampleBatch(
        Names(["run:a", "run:a/at/n9:0"]),
        Names(["gpu_util_ratio"]),
        np.array([0, 1], np.int32),
        np.zeros(2, np.int32),
        np.array([T0, T0], np.int64),
        np.zeros(2),
    )
    before = watch.rejudging._history_at
    watch.on_history([late])
    watch.rejudging._mark_late_runs()
    assert watch.rejudging.due() == ["mine"]
    watch.rejudging.rejudge_due()
    assert watch.rejudging.due() == []
    for _ in range(5):
        watch.on_history([late])
        watch.rejudging._mark_late_runs()
    assert watch.rejudging.due() == [], "not before the pause is over"
    assert watch.rejudging._late_runs_due_in_s(), "but then"
    assert watch.rejudging._history_at == before


def test_run_ends_when_it_is_stopped(site: WatchedSite) -> None:
    runner = threading.Thread(target=site.watch.rejudging.run)
    runner.start()
    site.watch.rejudging.stop()
    runner.join(timeout=30)
    assert not runner.is_alive()


def violation(unit: str, since: int, until: int | None = None) -> Violation:
    return Violation(
        rule="mine",
        workload=WorkloadId("w"),
        unit=UnitId(unit),
        since=UnixMs(since),
        until=None if until is None else UnixMs(until),
    )


def test_violation_is_merged_when_it_spans_the_cut() -> None:
    tried = [violation("a", 100, 200), violation("a", 500), violation("b", 600), violation("c", 700)]
    stored = [violation("b", 900_000, CUT + 50), violation("d", 10, CUT + 5), violation("e", CUT + 1, CUT + 9)]
    opened = [violation("a", 300), violation("f", 400)]
    merged = sorted(
        merge_past(tried, stored, opened, CUT), key=lambda violation: (str(violation.unit), violation.since)
    )
    assert merged == [
        violation("a", 100, 200),
        violation("a", 500),
        violation("b", 600, CUT + 50),
        violation("c", 700, CUT),
        violation("e", CUT + 1, CUT + 9),
        violation("f", CUT),
    ]
