"""The watcher: rules are judged, violations survive restarts, turns are reported once, and trials agree with live results."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from unit.watch.site import MINUTE, T0, Curve, WatchedSite

from clusterscape.analyze.rules.reading import parse_rule
from clusterscape.model import UnixMs
from clusterscape.model.rules import Rule, Severity, Violation
from clusterscape.watch.trial import try_rule

STALL = "gpu_util p95 > 90% and power p50 < 70%"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[WatchedSite]:
    site = WatchedSite(tmp_path)
    for rule in site.watch.book.rules():
        site.watch.book.save(_switched_off(rule))
    yield site
    site.close()


def _switched_off(rule: Rule) -> Rule:
    from dataclasses import replace

    return replace(rule, is_enabled=False)


def rule(text: str, key: str = "mine") -> Rule:
    return parse_rule(text, key=key, name=key, severity=Severity.WARNING)


def busy(_: float) -> float:
    return 1.0


def idle(_: float) -> float:
    return 0.0


def every(curve: Curve) -> Sequence[Curve]:
    return [curve] * 8


def spans(violations: Sequence[Violation]) -> list[tuple[str | None, float, float | None]]:
    return [
        (
            violation.unit,
            (violation.since - T0) / MINUTE,
            None if violation.until is None else (violation.until - T0) / MINUTE,
        )
        for violation in violations
    ]


def test_only_the_stalled_gpus_break_the_rule_when_others_work(site: WatchedSite) -> None:
    site.watch.book.save(rule(STALL))
    site.start_job("stalls", [0, 1])
    site.start_job("works", [2, 3])
    power: list[Curve] = [lambda _: 80.0] * 2 + [lambda _: 380.0] * 6
    site.run_until(20, {"gpu_util_ratio": every(busy), "power_watts": power})
    violations = site.records.open_violations()
    assert sorted(str(violation.unit) for violation in violations) == ["n1:0", "n1:1"]
    assert {violation.workload for violation in violations} == {"slurm:stalls"}
    assert all(10 <= since <= 11 for _, since, _ in spans(violations)), "from the minimum age on"
    assert violations[0].values == {"gpu_util p95 > 90%": 1.0, "power p50 < 70%": pytest.approx(80.0, abs=4.0)}


def test_a_violation_is_past_when_the_statistic_recovers(site: WatchedSite) -> None:
    site.watch.book.save(rule("gpu_util mean over last 5m < 10%"))
    site.start_job("pauses", [0])
    site.run_until(40, {"gpu_util_ratio": every(lambda minute: 0.0 if 12 <= minute < 22 else 1.0)})
    ((unit, since, until),) = spans(site.records.violations())
    assert unit == "n1:0"
    assert 16 <= since <= 18
    assert until is not None
    assert 22 <= until <= 24


def test_violations_end_with_the_job_when_it_is_over(site: WatchedSite) -> None:
    site.watch.book.save(rule("gpu_util p95 < 50%"))
    job = site.start_job("idles", [0, 1])
    site.run_until(15, {"gpu_util_ratio": every(idle)})
    ended_at = site.now
    site.end_job(job)
    site.run_until(20, {"gpu_util_ratio": every(idle)})
    assert [violation.until for violation in site.records.violations()] == [ended_at, ended_at]


def test_a_new_life_is_judged_by_itself_when_the_same_job_runs_again(site: WatchedSite) -> None:
    site.watch.book.save(rule("gpu_util p95 < 50%"))
    job = site.start_job("restarts", [0])
    site.run_until(15, {"gpu_util_ratio": every(idle)})
    site.end_job(job)
    site.run_until(16, {"gpu_util_ratio": every(idle)})
    site.start_job("restarts", [0])
    site.run_until(40, {"gpu_util_ratio": every(busy)})
    assert site.records.open_violations() == []
    assert len(site.records.violations()) == 1


def test_nothing_is_written_twice_when_the_program_starts_again(site: WatchedSite) -> None:
    site.watch.book.save(rule("gpu_util p95 < 50%"))
    site.start_job("idles", [0])
    site.run_until(15, {"gpu_util_ratio": every(idle)})
    before = site.records.violations()
    site.watch.close()
    site.open_watch()
    site.run_until(20, {"gpu_util_ratio": every(idle)})
    assert site.records.violations() == before
    assert len(before) == 1


def test_a_violation_ends_when_its_rule_is_switched_off(site: WatchedSite) -> None:
    mine = site.watch.book.save(rule("gpu_util p95 < 50%"))
    site.start_job("idles", [0])
    site.run_until(15, {"gpu_util_ratio": every(idle)})
    site.watch.book.save(_switched_off(mine))
    site.watch.judge()
    assert site.records.open_violations() == []


def test_a_rule_with_a_new_metric_is_judged_on_the_whole_past_when_it_is_added_late(site: WatchedSite) -> None:
    site.start_job("hot", [0])
    curves = {"gpu_util_ratio": every(busy), "gpu_temperature_celsius": every(lambda m: 95.0 if m < 12 else 40.0)}
    site.run_until(20, curves)
    site.watch.book.save(rule("gpu_temperature max > 90C"))
    site.watch.judge()
    assert [violation.unit for violation in site.records.open_violations()] == ["n1:0"]


@pytest.mark.parametrize(
    "text", ["gpu_util p95 < 50%", "gpu_util mean over last 5m < 10%", "gpu_util p50 < 30% on any GPU"]
)
def test_a_trial_finds_what_was_found_live_when_the_same_past_is_judged(site: WatchedSite, text: str) -> None:
    mine = site.watch.book.save(rule(text))
    site.start_job("one", [0, 1])
    curves: list[Curve] = [idle, busy, lambda minute: 0.0 if 12 <= minute < 22 else 1.0, idle, *[busy] * 4]
    site.run_until(13, {"gpu_util_ratio": curves})
    two = site.start_job("two", [2, 3])
    site.run_until(45, {"gpu_util_ratio": curves})
    site.end_job(two)
    site.run_until(60, {"gpu_util_ratio": curves})
    live = sorted(spans(site.records.violations()), key=str)
    trial = try_rule(mine, records=site.records, metrics=site.metrics, start_ms=UnixMs(T0), end_ms=UnixMs(site.now))
    tried = sorted(spans(trial.violations), key=str)
    assert [unit for unit, _, _ in tried] == [unit for unit, _, _ in live]
    for (_, since, until), (_, since_live, until_live) in zip(tried, live, strict=True):
        assert since == pytest.approx(since_live, abs=1.5)
        assert (until is None) == (until_live is None)
        assert until is None or until == pytest.approx(until_live, abs=1.5)
    assert trial.lives == 4
    assert trial.judged == 4


def test_a_trial_is_empty_when_nothing_was_held(site: WatchedSite) -> None:
    trial = try_rule(
        rule("gpu_util p95 < 50%"),
        records=site.records,
        metrics=site.metrics,
        start_ms=UnixMs(T0),
        end_ms=UnixMs(T0 + 60 * MINUTE),
    )
    assert (trial.lives, list(trial.violations)) == (0, [])
