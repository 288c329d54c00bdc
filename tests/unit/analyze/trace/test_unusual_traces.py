"""Verdicts on traces that lack marks or steps, on two causes at once, and on runs of two ranks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.collect.traces.trace_files import Json, document, host, kernel, step, write

from clusterscape.analyze.trace.report import TraceReport, analyze_trace
from clusterscape.collect.traces import read_traces
from clusterscape.model.trace_report import VerdictKind

STEPS = 6


def span(category: str, name: str, start_us: float, length_us: float, **arguments: Any) -> Json:
    return host(name, start_us, length_us) | {"cat": category, "args": arguments}


def make_ranks(
    ranks: int,
    held_us: Callable[[int, int], float],
    *,
    name: str | None = None,
    mark: str = "steps",
    transfer_us: float = 400.0,
    compute_us: float = 2000.0,
    thread: int = 1,
) -> list[Json]:
    """Data-parallel ranks: the host is held up for a time, launches two kernels and an all-reduce, and calls the optimizer.

    ``held_us`` (rank, step); ``name``: of what holds it up; ``mark``: "steps", "optimizer" or "none"; ``thread``: which launches.
    """
    events: list[list[Json]] = [[] for _ in range(ranks)]
    begin = [1000.0] * ranks
    for number in range(STEPS):
        ready = [begin[rank] + held_us(rank, number) + 20 + compute_us for rank in range(ranks)]
        end = max(ready) + transfer_us
        for rank, mine in enumerate(events):
            start, held = begin[rank], held_us(rank, number)
            if name is not None and held:
                if name.startswith("train.py"):
                    mine.append(span("python_function", "train.py(10): main", start, held + 10))
                    mine.append(span("python_function", name, start, held) | {"tid": thread})
                else:
                    mine.append(span("cuda_runtime", name, start, held))
            for at, kind in enumerate(("aten::mm", "aten::add")):
                launch = start + held + 8 * at
                correlation = 1000 * number + at
                mine.append(host(kind, launch, 7))
                mine.append(
                    span("cuda_runtime", "cudaLaunchKernel", launch + 2, 4, correlation=correlation) | {"tid": thread}
                )
                mine.append(
                    kernel("gemm", start + held + 20 + at * compute_us / 2, compute_us / 2, correlation=correlation)
                )
            mine.append(
                span("cuda_runtime", "cudaLaunchKernelExC", start + held + 16, 3, correlation=1000 * number + 9)
            )
            reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
            mine.append(kernel(reduce, ready[rank], end - ready[rank], 9, correlation=1000 * number + 9))
            launch = end - 20
            mine.append(span("user_annotation", "Optimizer.step#AdamW.step", launch - 5, 20))
            mine.append(span("cuda_runtime", "cudaLaunchKernel", launch, 4, correlation=1000 * number + 8))
            mine.append(
                kernel("adam", end - 0.001, 100, correlation=1000 * number + 8)
            )  # rounded: it follows the all-reduce
            done = end + 101
            if mark == "steps":
                mine.append(step(number, start, done - start))
            begin[rank] = done
    if mark == "none":
        events = [[event for event in mine if event["cat"] != "user_annotation"] for mine in events]
    return [document(mine, rank, ranks) for rank, mine in enumerate(events)]


def report_of(folder: Path, ranks: list[Json]) -> TraceReport:
    paths = [write(folder / f"rank{rank}.json", content) for rank, content in enumerate(ranks)]
    return analyze_trace(read_traces(paths), np.random.default_rng(0))


def test_rank_is_blamed_for_all_its_seconds_when_kernels_follow_a_collective_at_once(tmp_path: Path) -> None:
    """Times are rounded, so the next kernel may begin before the collective ends: it depends on it nevertheless."""
    report = report_of(tmp_path, make_ranks(3, lambda rank, _: 5000.0 if rank == 1 else 0.0, name="cudaMalloc"))
    first = report.verdicts[0]
    assert (first.kind, first.rank, first.is_hidden) == (VerdictKind.ALLOCATION, 1, False)
    assert first.seconds_per_step == pytest.approx(5e-3, rel=0.05)
    assert first.rhythm is not None
    assert len(first.rhythm.steps) == STEPS, "the first step begins with its mark, not with its first kernel"


def test_nothing_is_shared_when_one_of_two_ranks_is_held_up(tmp_path: Path) -> None:
    report = report_of(tmp_path, make_ranks(2, lambda rank, _: 5000.0 if rank == 0 else 0.0, name="cudaMalloc"))
    assert [verdict.rank for verdict in report.verdicts if verdict.kind is VerdictKind.ALLOCATION] == [0]


def test_both_ranks_are_named_when_two_delay_the_same_steps(tmp_path: Path) -> None:
    report = report_of(tmp_path, make_ranks(4, lambda rank, _: 5000.0 if rank in (1, 2) else 0.0, name="cudaMalloc"))
    assert {verdict.rank for verdict in report.verdicts[:2]} == {1, 2}
    for verdict in report.verdicts[:2]:
        assert verdict.seconds_per_step == pytest.approx(5e-3, rel=0.05), "what both together cost"
        assert "only without both" in verdict.sentence


def test_smaller_cause_stays_hidden_when_a_larger_one_delays_the_same_steps(tmp_path: Path) -> None:
    report = report_of(
        tmp_path, make_ranks(4, lambda rank, _: {1: 9000.0, 2: 4000.0}.get(rank, 0.0), name="cudaMalloc")
    )
    first = report.verdicts[0]
    assert (first.rank, first.is_hidden) == (1, False)
    assert first.seconds_per_step == pytest.approx(5e-3, rel=0.05)
    assert [verdict.is_hidden for verdict in report.verdicts if verdict.rank == 2] == [True]


def test_steps_end_with_the_optimizer_when_none_are_marked(tmp_path: Path) -> None:
    held = make_ranks(3, lambda rank, number: 8000.0 if rank == 2 and number in (1, 4) else 0.0, mark="optimizer")
    report = report_of(tmp_path, held)
    assert "No steps are marked: each is taken to end with a call of Optimizer.step." in report.notes
    assert report.steps["step"].n_unique() == STEPS
    first = report.verdicts[0]
    assert (first.kind, first.rank) == (VerdictKind.HOST_PAUSE, 2)
    assert first.rhythm is not None
    assert first.rhythm.steps == [1, 4]


def test_rank_is_blamed_when_the_whole_trace_is_one_step(tmp_path: Path) -> None:
    report = report_of(tmp_path, make_ranks(3, lambda rank, _: 5000.0 if rank == 1 else 0.0, mark="none"))
    assert any("the whole trace counts as one step" in note for note in report.notes)
    first = report.verdicts[0]
    assert (first.kind, first.rank, first.is_hidden) == (VerdictKind.HOST_PAUSE, 1, False)
    assert first.seconds_per_step == pytest.approx(STEPS * 5e-3, rel=0.1)


def test_links_are_named_when_transfers_are_longer_than_compute(tmp_path: Path) -> None:
    report = report_of(tmp_path, make_ranks(3, lambda *_: 0.0, transfer_us=9000.0, compute_us=300.0))
    first = report.verdicts[0]
    assert (first.kind, first.rank) == (VerdictKind.EXPOSED_COMMUNICATION, None)
    assert "links or the amount of data limit this run" in first.sentence


def test_report_is_made_when_collectives_are_of_no_step(tmp_path: Path) -> None:
    """A profiler that stops while its device lags behind leaves kernels outside of all marked steps."""
    ranks = make_ranks(3, lambda rank, number: 900.0 * ((rank + number) % 3 == 0), mark="steps")
    for content in ranks:
        events = content["traceEvents"]
        for event in events:
            if event["name"] == "cudaLaunchKernelExC":
                event["ts"] = 1e6  # launched after the last mark
    assert report_of(tmp_path, ranks).collectives["step"].null_count() == 3 * 2


@pytest.mark.parametrize("thread", [1, 2])
def test_function_is_named_when_python_stacks_are_recorded(tmp_path: Path, thread: int) -> None:
    """Also in a hook of the backward pass, which has a thread of its own."""
    name = "train.py(99): compute_metrics"
    ranks = make_ranks(3, lambda rank, _: 4000.0 if rank == 2 else 0.0, name=name, thread=thread)
    first = report_of(tmp_path, ranks).verdicts[0]
    assert (first.kind, first.rank) == (VerdictKind.HOST_CODE, 2)
    assert f"(mostly {name})" in first.sentence
    assert first.evidence["call"] == name
