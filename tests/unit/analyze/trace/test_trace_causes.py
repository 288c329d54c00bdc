"""Verdicts on planted causes: the situations in which a report once named the wrong cause or none, with other ranks, sizes and
steps. Devices are simulated by ``benchmarks/faults``; its injectors also give the true seconds.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from unit.collect.traces.trace_files import document, host, kernel, step, write

from clusterscape.analyze.trace.document import write_report
from clusterscape.analyze.trace.report import TraceReport, analyze_trace
from clusterscape.collect.traces import read_traces
from clusterscape.model.trace_report import TraceVerdict, VerdictKind, decode_report, encode_report

sys.path.insert(0, str(Path(__file__).parents[4]))
from benchmarks.faults.kinds import Case
from benchmarks.faults.simulated import simulate_cases


def plant(
    folder: Path,
    kind: str | None,
    rank: int | None,
    at: tuple[int, ...],
    *,
    ranks: int = 6,
    steps: int = 12,
    size: float = 1.5,
) -> tuple[TraceReport, float]:
    """The report of a simulated run with a fault, and the true seconds per step."""
    case = Case(
        "planted", source="simulated", seed=901, kind=kind, ranks=ranks, steps=steps, rank=rank, rhythm=None,
        steps_with_fault=at, size=size, place="between", twin=None,
    )  # fmt: skip
    simulate_cases([replace(case)], folder)
    truth = json.loads((folder / "planted.json").read_text())["truth"]
    report = analyze_trace(read_traces(sorted(folder.glob("*rank*"))), np.random.default_rng(1))
    return report, (truth or {}).get("seconds_per_step") or 0.0


def check(verdict: TraceVerdict, kind: VerdictKind, rank: int | None, at: tuple[int, ...], true_s: float) -> None:
    assert (verdict.kind, verdict.rank) == (kind, rank)
    assert verdict.rhythm is not None
    assert tuple(verdict.rhythm.steps) == at
    own_s = verdict.rhythm.seconds_per_affected_step * verdict.rhythm.step_share
    assert own_s == pytest.approx(true_s, rel=0.2)
    assert verdict.advice
    assert verdict.spans


EVERY = tuple(range(12))


@pytest.mark.parametrize(
    ("fault", "rank", "at", "kind", "words"),
    [
        ("device_slow_loader", 4, EVERY[1:], VerdictKind.INPUT_STALL, "Rank 4 waits for its input"),
        ("device_pause", 5, (1, 6, 7), VerdictKind.HOST_PAUSE, "in 3 of 12 steps"),
        ("device_garbage_collection", 2, (3, 5, 10), VerdictKind.GARBAGE_COLLECTION, "Python's garbage collection"),
        ("device_checkpoint", 1, (2, 8), VerdictKind.CHECKPOINT, "copies to the host and saves a checkpoint in 2 of 12"),
        ("blocking_allocation", 0, (4, 9), VerdictKind.ALLOCATION, "cudaMalloc"),
        ("long_call", 3, (6, 11), VerdictKind.RUNTIME_CALL, "cudaModuleLoadDataEager"),
        ("slow_clock", 2, (5, 6, 7, 8, 9, 10, 11), VerdictKind.SLOW_WORKER, "since step 5"),
        ("slow_clock", 2, (1, 4, 7, 10), VerdictKind.SLOW_WORKER, "every 3 steps"),
    ],
)  # fmt: skip
def test_cause_rank_steps_and_seconds_are_right_when_one_rank_is_at_fault(
    tmp_path: Path, fault: str, rank: int, at: tuple[int, ...], kind: VerdictKind, words: str
) -> None:
    report, true_s = plant(tmp_path, fault, rank, at)
    check(report.verdicts[0], kind, rank, at, true_s)
    assert words in report.verdicts[0].sentence


def test_work_is_named_before_any_rank_when_sequence_lengths_differ(tmp_path: Path) -> None:
    report, _ = plant(tmp_path, "device_sequence_lengths", None, EVERY)
    first = report.verdicts[0]
    assert (first.kind, first.rank) == (VerdictKind.UNEVEN_WORK, None)
    assert "input shapes" in first.sentence
    assert not [verdict for verdict in report.verdicts if verdict.kind is VerdictKind.SLOW_WORKER]


def test_scalar_reads_are_counted_when_every_rank_reads_values(tmp_path: Path) -> None:
    report, _ = plant(tmp_path, "scalar_reads", None, EVERY)
    first = report.verdicts[0]
    assert (first.kind, first.rank) == (VerdictKind.SCALAR_READS, None)
    assert float(first.evidence["reads_per_step"]) > 20
    assert "aten::item" in first.sentence


def test_verdicts_are_in_the_order_of_seconds_when_all_ranks_are_launch_bound(tmp_path: Path) -> None:
    report, _ = plant(tmp_path, "tiny_kernels", None, EVERY)
    assert (report.verdicts[0].kind, report.verdicts[0].rank) == (VerdictKind.LAUNCH_BOUND, None)
    seconds = [verdict.seconds_per_step for verdict in report.verdicts]
    assert seconds == sorted(seconds, reverse=True)


def test_no_rank_is_blamed_when_nothing_was_planted(tmp_path: Path) -> None:
    report, _ = plant(tmp_path, None, None, ())
    assert not [verdict for verdict in report.verdicts if verdict.rank is not None]


@pytest.mark.parametrize("fault", ["device_checkpoint", "scalar_reads", None])
def test_causes_add_up_to_the_step_when_it_is_attributed(tmp_path: Path, fault: str | None) -> None:
    report, _ = plant(tmp_path, fault, 1 if fault == "device_checkpoint" else None, (2, 8))
    stored = decode_report(encode_report(write_report(report)))
    assert stored.attribution is not None
    total = np.sum([np.array(part, float) for part in stored.attribution.seconds], axis=0)
    lengths = report.breakdown.pivot("step", index="rank", values="step_ns").sort("rank").drop("rank").to_numpy() / 1e9
    assert total == pytest.approx(lengths)


def test_verdict_points_to_the_pause_when_it_has_occurrences(tmp_path: Path) -> None:
    report, _ = plant(tmp_path, "device_pause", 5, (1, 6, 7))
    occurrences = report.verdicts[0].occurrences
    assert occurrences is not None
    assert (occurrences.ranks, occurrences.steps) == ([5, 5, 5], [1, 6, 7])
    lengths = (np.array(occurrences.end_ns) - np.array(occurrences.start_ns)) / 1e9
    assert lengths == pytest.approx(occurrences.seconds, rel=0.2)


def lagging_rank(steps: int = 4) -> list[dict[str, object]]:
    """A host that needs 100 µs a step, and a device that needs 300 µs; the first step takes 900 µs."""
    events: list[dict[str, object]] = []
    device = 1000.0
    for number in range(steps):
        begin = 1000.0 + 100 * number
        events += [step(number, begin, 100), host("aten::mm", begin + 5, 20)]
        launch = host("cudaLaunchKernel", begin + 10, 5)
        events.append(launch | {"cat": "cuda_runtime", "args": {"correlation": number}})
        length = 900.0 if number == 0 else 300.0
        device = max(device, begin + 20)
        events.append(kernel("gemm", device, length, correlation=number))
        device += length
    return events


def test_steps_follow_the_device_when_it_lags_behind_the_host(tmp_path: Path) -> None:
    report = analyze_trace(
        read_traces([write(tmp_path / "rank0.json", document(lagging_rank(), 0, 1))]), np.random.default_rng(0)
    )
    assert report.breakdown["compute_ns"].to_list() == [900_000, 300_000, 300_000, 300_000]


def test_warm_up_is_left_out_and_reported_when_the_first_step_is_longer(tmp_path: Path) -> None:
    report = analyze_trace(
        read_traces([write(tmp_path / "rank0.json", document(lagging_rank(6), 0, 1))]), np.random.default_rng(0)
    )
    assert report.warm_up == (0,)
    assert any("warm up" in note for note in report.notes)
    stored = write_report(report)
    assert stored.warm_up_steps == [0]
    assert stored.breakdown[0].compute_s == pytest.approx(300e-6)


def test_what_is_missing_is_said_when_a_trace_has_one_step_of_one_rank(tmp_path: Path) -> None:
    events = [step(0, 0, 1000), kernel("gemm", 100, 300)]
    notes = "\n".join(
        analyze_trace(
            read_traces([write(tmp_path / "rank0.json", document(events, 0, 2))]), np.random.default_rng(0)
        ).notes
    )
    for words in ("Rank 1 is missing", "Only one rank is here", "Only one step is here", "No rank records the host"):
        assert words in notes
