"""Re-simulated steps: equal to the measured ones when unchanged, to hand-computed ones when changed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.analyze.trace.made_traces import analyze, collective, kernel, pipeline_rows, step_of

from clusterscape.analyze.trace.changes import Change, ChangedRun, ChangeError
from clusterscape.analyze.trace.match import add_counterparts
from clusterscape.analyze.trace.pipeline import find_passes, simulate_schedule
from clusterscape.analyze.trace.report import TraceReport, analyze_trace
from clusterscape.collect.traces import read_traces

DEMO = Path(__file__).parents[4] / "src/clusterscape/demo/traces"
MS = 1_000_000


def run_of(report: TraceReport) -> ChangedRun:
    spans = add_counterparts(report.trace.spans, report.parts, report.matches)
    return ChangedRun(spans, report.steps, np.random.default_rng(0))


def late_rank(steps: int = 3) -> list[dict[str, Any]]:
    """Three ranks compute 10 ms (the last 30 ms), reduce in 5 ms, then 2 ms more."""
    rows: list[dict[str, Any]] = []
    for step in range(steps):
        begin = step * 50 * MS
        for rank in range(3):
            work = (30 if rank == 2 else 10) * MS
            rows += [
                step_of(rank, step, begin, begin + 37 * MS),
                kernel(rank, begin, begin + work, step=step),
                collective(rank, begin + work, begin + 35 * MS, step=step),
                kernel(rank, begin + 35 * MS, begin + 37 * MS, step=step, name="adam"),
            ]
    return rows


@pytest.fixture(scope="module")
def late() -> ChangedRun:
    return run_of(analyze(late_rank(), dict.fromkeys(range(3))))


def test_step_is_shorter_by_the_lateness_when_the_straggler_is_as_fast_as_its_peers(late: ChangedRun) -> None:
    answer = late.ask(Change("straggler", rank=2))
    assert (answer.now_s, answer.then_s) == pytest.approx((0.037, 0.017))
    assert answer.error_s == pytest.approx(0.0, abs=1e-12)
    assert answer.low == pytest.approx(37 / 17)


@pytest.mark.parametrize(
    ("change", "then_ms"),
    [
        (Change("straggler", rank=0), 37.0),
        (Change("link", factor=5.0), 33.0),
        (Change("overlap"), 32.0),
        (Change("link", factor=5.0, process_group="other"), 37.0),
        (Change("compute", rank=2, factor=2.0), 22.0),
        (Change("compute", factor=2.0), 21.0),
    ],
)
def test_step_matches_the_calculation_when_something_is_changed(
    late: ChangedRun, change: Change, then_ms: float
) -> None:
    assert late.ask(change).then_s * 1e3 == pytest.approx(then_ms)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change("straggler", rank=9), "no rank 9"),
        (Change("balance"), "no pipeline stages"),
        (Change("schedule", micro_batches=4), "no pipeline"),
        (Change("compute", stage=3), "no such rank or stage of stage 3"),
    ],
)
def test_reason_is_reported_when_a_question_cannot_be_answered(late: ChangedRun, change: Change, words: str) -> None:
    with pytest.raises(ChangeError, match=words):
        late.ask(change)


@pytest.fixture(scope="module", params=["ddp", "pipe"])
def recorded(request: pytest.FixtureRequest) -> TraceReport:
    paths = sorted(DEMO.glob(f"{request.param}_rank*"))
    return analyze_trace(read_traces(paths, workers=1), np.random.default_rng(0))


def test_measured_step_comes_back_when_nothing_is_changed(recorded: TraceReport) -> None:
    answer = run_of(recorded).ask(Change("compute", factor=1.0))
    assert answer.then_s == pytest.approx(answer.now_s, rel=1e-9)
    assert answer.error_s < 1e-3 * answer.now_s


def test_report_answers_the_usual_questions_when_traces_are_recorded(recorded: TraceReport) -> None:
    answers = {answer.question: answer for answer in recorded.changes}
    if recorded.bubble is None:
        straggler = answers["rank 0 as fast as its peers"]
        assert straggler.now_s - straggler.then_s == pytest.approx(recorded.slack[0].slack_ns / 1e9, rel=0.1)
    else:
        balanced = answers["stages balanced"]
        gain_s = recorded.bubble.resimulated_s - recorded.bubble.balanced_s
        assert balanced.now_s - balanced.then_s == pytest.approx(gain_s, rel=0.2)
        assert any("1F1B" in question for question in answers)


def test_schedule_follows_the_formula_when_stages_are_equal() -> None:
    stages, count = 4, 8
    report = analyze(pipeline_rows(np.full((1, stages, 2, count), MS)), {rank: rank for rank in range(stages)})
    passes = find_passes(report.trace.spans)
    now = simulate_schedule(passes, None, None)
    assert now is not None
    assert now.now_s == now.then_s == pytest.approx(2 * (count + stages - 1) / 1e3)
    more = simulate_schedule(passes, 16, None)
    assert more is not None
    assert more.then_s == pytest.approx(2 * (16 + stages - 1) * (count / 16) / 1e3)
    other = simulate_schedule(passes, None, "1f1b")
    assert other is not None
    assert other.then_s == pytest.approx(now.then_s)  # the same bubble, less memory
