"""Comparison of two runs: planted changes are found, random differences are not reported."""

from typing import Any

import numpy as np
import polars as pl
from unit.analyze.trace.made_traces import analyze, collective, kernel, step_of

from clusterscape.analyze.trace.diff import RunTables, TraceDiff, compare_runs
from clusterscape.analyze.trace.document import pack_trace

MS = 1_000_000


def run_of(
    gemm_ms: float, *, seed: int, steps: int = 6, extra: str | None = None, slow_rank: int | None = None
) -> RunTables:
    """Two ranks: a matrix product, a normalization of 2 ms and an all-reduce of 3 ms; lengths vary by 2 %."""
    generator = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    now = 0
    for step in range(steps):
        begin, arrivals = now, []
        for rank in range(2):
            at = begin
            parts = [("gemm", gemm_ms * (2 if rank == slow_rank else 1), "forward"), ("norm", 2.0, "backward")]
            parts += [(extra, 4.0, "backward")] if extra else []
            for name, length_ms, phase in parts:
                end = at + int(length_ms * MS * generator.uniform(0.99, 1.01))
                rows.append(kernel(rank, at, end, name=name, step=step, phase=phase))
                at = end
            arrivals.append(at)
        now = max(arrivals) + 3 * MS
        for rank, at in enumerate(arrivals):
            rows += [collective(rank, at, now, step=step, phase="backward"), step_of(rank, step, begin, now)]
    packed = pack_trace(analyze(rows, dict.fromkeys(range(2))))
    return RunTables(packed.spans, packed.steps)


def compare(before: RunTables, after: RunTables) -> TraceDiff:
    return compare_runs(before, after, np.random.default_rng(0))


def test_slower_operator_is_named_when_only_it_changed() -> None:
    diff = compare(run_of(10, seed=1), run_of(15, seed=2))
    significant = [change for change in diff.changes if change.is_significant]
    assert diff.changes[0].kind == "step"
    assert diff.changes[0].is_significant
    operator = next(change for change in significant if change.kind == "operator")
    assert operator.name == "gemm"
    assert abs(operator.difference_s - 0.005) < 0.0005
    assert operator.low_s is not None
    assert operator.low_s < 0.005 < (operator.high_s or 0.0)
    assert {change.name for change in significant if change.kind == "phase"} == {"forward"}
    assert not any(change.name == "norm" for change in significant)
    assert any("gemm" in sentence and "longer" in sentence for sentence in diff.sentences)


def test_no_change_is_reported_when_the_runs_are_equal() -> None:
    diff = compare(run_of(10, seed=1), run_of(10, seed=2))
    assert not any(change.is_significant for change in diff.changes)
    assert diff.sentences[0].startswith("A step takes as long as before")
    assert diff.sentences[1].startswith("Nothing else differs")


def test_operator_is_reported_as_new_when_the_first_run_lacks_it() -> None:
    diff = compare(run_of(10, seed=1), run_of(10, seed=2, extra="checkpoint"))
    new = next(change for change in diff.changes if change.name == "checkpoint")
    assert new.before_s is None
    assert new.is_significant
    assert "is new" in new.sentence


def test_rank_is_named_when_only_it_became_slow() -> None:
    diff = compare(run_of(10, seed=1), run_of(10, seed=2, slow_rank=1))
    ranks = [change for change in diff.changes if change.kind == "rank" and change.is_significant]
    assert (ranks[0].rank, ranks[0].name) == (1, "forward")
    assert any("waiting" in change.name for change in diff.changes if change.is_significant)


def test_chance_is_left_open_when_there_are_too_few_steps() -> None:
    diff = compare(run_of(10, seed=1, steps=2), run_of(15, seed=2))
    assert not any(change.is_significant for change in diff.changes)
    assert any("fewer than 3 steps" in note for note in diff.notes)


def test_different_programs_are_noticed_when_they_share_few_operators() -> None:
    before = run_of(10, seed=1)
    renamed = before.spans.with_columns((pl.col("name").cast(pl.String) + "_v2").cast(pl.Categorical).alias("name"))
    diff = compare(before, RunTables(renamed, before.steps))
    assert any("same model" in note for note in diff.notes)
