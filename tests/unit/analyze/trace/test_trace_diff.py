"""Comparison of two runs: planted changes are found, random differences are not reported."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from unit.analyze.trace.made_traces import analyze, collective, kernel, step_of

from clusterscape.analyze.trace.diff import RunTables, TraceDiff, compare_runs
from clusterscape.analyze.trace.document import pack_trace, write_report
from clusterscape.analyze.trace.report import analyze_trace
from clusterscape.collect.traces import read_traces

sys.path.insert(0, str(Path(__file__).parents[4]))
from benchmarks.faults.kinds import Case
from benchmarks.faults.simulated import simulate_cases

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
    report = analyze(rows, dict.fromkeys(range(2)))
    packed = pack_trace(report)
    return RunTables(packed.spans, packed.steps, write_report(report))


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


def simulated_run(
    folder: Path, kind: str | None, *, rank: int | None = None, ranks: tuple[int, ...] = (0, 1, 2)
) -> RunTables:
    """A simulated run of three ranks, of which ``ranks`` were recorded, with a fault in every step."""
    case = Case(
        "run", source="simulated", seed=77, kind=kind, ranks=3, steps=8, rank=rank, rhythm=None,
        steps_with_fault=tuple(range(8)), size=1.0, place="between", twin=None,
    )  # fmt: skip
    simulate_cases([case], folder)
    files = [folder / f"run-rank{number}.json.gz" for number in ranks]
    report = analyze_trace(read_traces(files), np.random.default_rng(1))
    packed = pack_trace(report)
    return RunTables(packed.spans, packed.steps, write_report(report))


def test_cause_and_rank_are_named_when_a_data_loader_appears_in_one_run(tmp_path: Path) -> None:
    diff = compare(
        simulated_run(tmp_path / "before", None), simulated_run(tmp_path / "after", "device_slow_loader", rank=1)
    )
    cause = next(change for change in diff.changes if change.kind == "cause" and change.is_significant)
    assert (cause.name, cause.rank) == ("data loading", 1)
    assert diff.sentences[1].startswith("Data loading of rank 1")
    assert not any(sentence.startswith("Idle") for sentence in diff.sentences)


def test_cause_of_all_ranks_is_named_when_every_rank_reads_scalars(tmp_path: Path) -> None:
    diff = compare(simulated_run(tmp_path / "before", None), simulated_run(tmp_path / "after", "scalar_reads"))
    cause = next(change for change in diff.changes if change.kind == "cause" and change.is_significant)
    assert (cause.name, cause.rank) == ("reading scalars (aten::item)", None)


def test_only_common_ranks_are_compared_when_other_ranks_were_recorded(tmp_path: Path) -> None:
    diff = compare(
        simulated_run(tmp_path / "before", None, ranks=(0, 1)), simulated_run(tmp_path / "after", None, ranks=(1, 2))
    )
    assert (
        "Compared are only the ranks that both runs recorded: 1 (the first recorded 0, 1; the second 1, 2)."
        in diff.notes
    )
    assert not any("new" in sentence or "gone" in sentence for sentence in diff.sentences)
    assert {change.rank for change in diff.changes} <= {None, 1}


def test_world_sizes_are_mentioned_when_they_differ() -> None:
    before, after = run_of(10, seed=1), run_of(10, seed=2)
    assert before.report is not None
    assert after.report is not None
    sized = []
    for run, size in ((before, 2), (after, 4)):
        assert run.report is not None
        sized.append(
            replace(
                run, report=replace(run.report, ranks=[replace(rank, world_size=size) for rank in run.report.ranks])
            )
        )
    assert any("2 and 4 ranks" in note for note in compare(*sized).notes)
