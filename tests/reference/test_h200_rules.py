"""The shipped rules on recorded H200 telemetry whose truth is known: what must fire, when, and on what nothing may fire."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from clusterscape.analyze.rules.reading import parse_rule
from clusterscape.analyze.rules.replay import ReplayedRow, replay, scale_times
from clusterscape.analyze.rules.shipped import find_shipped_rule, shipped_rules
from clusterscape.cli.recorded_lives import LOCAL, RecordedLives, build_recorded_lives, read_recorded_lives
from clusterscape.collect.recorded_logs import RunSpan, parse_smi_log
from clusterscape.model import UnixMs, WorkloadId
from clusterscape.model.rules import Rule

DATA = Path(__file__).parents[1] / "data/h200"
STEP_MS = 1000
SPEED = 60.0
"""The runs last half a minute and the rules speak of half an hour: a second of the recording stands for a minute."""

MODES = {"healthy", "mixed", "hang", "inputbound", "colo"}
PAPER_R2 = "gpu_util p95 > 90% and power p50 < 70%"

TABLE: dict[str, set[str]] = {
    "low-utilization": {"inputbound"},
    "stalled-training": {"hang"},
    "idle-corner": {"mixed"},
    "stalled-lately": set(),
    "idle-after-activity": set(),
    "never-used": set(),
    "memory-leak": set(),
    "gpu-imbalance": set(),
    "thermal-throttling": set(),
    "gpu-error": set(),
    "gpu-unused-1h": set(),
}
"""Rule → modes on which it fires, at SPEED, at any of the evaluations. Runs too short for a rule are not judged."""


@pytest.fixture(scope="module")
def lives() -> RecordedLives:
    return read_recorded_lives(DATA / "telemetry.csv", DATA / "events.jsonl", zone=UTC)


def shipped(key: str) -> Rule:
    entry = find_shipped_rule(key)
    assert entry is not None
    return entry.rule


def without_min_age(rule: Rule) -> Rule:
    return replace(rule, scope=replace(rule.scope, min_age_ms=0))


def judge(rules: Sequence[Rule], lives: RecordedLives) -> list[ReplayedRow]:
    return replay(rules, lives.columns, lives.facts, lives.from_at, lives.until_at, step_ms=STEP_MS)


def fired_on(rule: Rule, lives: RecordedLives) -> set[str]:
    return {row.workload.rpartition("-")[0] for row in judge([rule], lives) if row.broken}


def test_recording_is_whole_when_read(lives: RecordedLives) -> None:
    assert {name for name in lives.facts.names if name} == MODES
    assert lives.columns.row_count == 8  # colo twice with two runs each
    assert lives.skipped_lines == 0


def test_table_names_every_rule_when_one_is_shipped() -> None:
    assert set(TABLE) == {entry.rule.key for entry in shipped_rules() if not entry.rule.scope.subject.is_lifeless}


@pytest.mark.parametrize("key", TABLE)
def test_rule_fires_on_its_modes_only_when_the_runs_are_replayed(key: str, lives: RecordedLives) -> None:
    assert fired_on(scale_times(shipped(key), SPEED), lives) == TABLE[key]


def test_stall_is_found_on_the_hang_only_when_runs_are_judged_from_their_first_samples(lives: RecordedLives) -> None:
    assert fired_on(without_min_age(shipped("stalled-training")), lives) == {"hang"}


def test_warm_up_looks_stalled_when_the_bare_conditions_of_the_paper_are_judged_early(lives: RecordedLives) -> None:
    bare = parse_rule(f"{PAPER_R2} after 0s", key="paper-r2", name="R2")
    assert fired_on(bare, lives) == {"hang", "healthy"}
    grown_up = parse_rule(f"{PAPER_R2} after 10s", key="paper-r2", name="R2")
    assert fired_on(grown_up, lives) == {"hang"}


def test_stall_is_found_within_three_evaluations_when_the_samples_justify_it(lives: RecordedLives) -> None:
    rule = without_min_age(shipped("stalled-training"))
    (row,) = [row for row in judge([rule], lives) if row.workload == "hang-550"]
    assert row.first_at is not None
    assert row.first_at - _justified_ms(rule) <= 3 * STEP_MS
    end_ms = int(lives.until_at[lives.facts.workloads.index(row.workload)])
    assert row.last_at == end_ms  # and it stays found


def _justified_ms(rule: Rule) -> int:
    """From which sample on the conditions hold, computed from the file itself by numpy alone."""
    lines = (DATA / "telemetry.csv").read_text().splitlines()[1:]
    cells = [line.split(", ") for line in lines]
    moments = np.array([cell[0].replace("/", "-").replace(" ", "T") for cell in cells], dtype="datetime64[ms]")
    time_ms = moments.astype(np.int64)
    util = np.array([float(cell[2]) for cell in cells])
    power = np.array([float(cell[5]) for cell in cells]) / 700.0
    start_ms = 1794723999_329  # of the hang, from the events
    first = int(np.searchsorted(time_ms, start_ms))
    for last in range(first + rule.scope.min_samples, len(time_ms)):
        middle_util, high_util = np.percentile(util[first:last], [50, 95])
        if middle_util > 90 and high_util > 90 and np.median(power[first:last]) < 0.3:
            return int(time_ms[last - 1])
    raise AssertionError("the hang is not in the recording")


def test_idle_tail_is_caught_when_a_mean_over_the_life_misses_it() -> None:
    """Four healthy runs on end, then the quiet GPU: 1.8 hours of work and 45 idle minutes at SPEED."""
    worked = _healthy_then_idle(repeats=4, idle_s=45)
    mean_based = parse_rule("gpu_util mean < 50% after 10m", key="mean-based", name="By the mean")
    assert fired_on(scale_times(mean_based, SPEED), worked) == set()
    (row,) = [row for row in judge([scale_times(shipped("idle-after-activity"), SPEED)], worked) if row.broken]
    idle_from_ms = int(worked.until_at[0]) - 45_000
    assert row.first_at is not None
    # The window is half an hour; p95 overlooks the last second of work.
    assert 28_000 <= row.first_at - idle_from_ms <= 33_000


def _healthy_then_idle(*, repeats: int, idle_s: int) -> RecordedLives:
    heading, *lines = (DATA / "telemetry.csv").read_text().splitlines()
    healthy = [line for line in lines if "06:25:06" <= line[11:19] < "06:25:31"]
    idle = lines[:40]  # before the first run
    assert "100" in healthy[0]
    played = healthy * repeats + (idle * idle_s)[: idle_s * 5]
    start = datetime(2026, 11, 15, 9, tzinfo=UTC)
    moments = (start + timedelta(milliseconds=200 * place) for place in range(1, len(played) + 1))
    text = [f"{at:%Y/%m/%d %H:%M:%S.%f}"[:-3] + line[23:] for at, line in zip(moments, played, strict=True)]
    log = parse_smi_log("\n".join([heading, *text, ""]), node=LOCAL)
    begun = UnixMs(int(start.timestamp() * 1000))
    return build_recorded_lives(log, [RunSpan(WorkloadId("notebook-1"), "notebook", begun, None)])
