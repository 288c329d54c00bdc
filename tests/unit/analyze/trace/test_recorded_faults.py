"""Verdicts on faults that were recorded on one H200 (4 ranks, gloo; cuts of cases of ``benchmarks/faults``, of the half of its
seeds that thresholds may be chosen by): the situations in which a report once named the wrong cause or none.
"""

from pathlib import Path

import numpy as np
import pytest

from clusterscape.analyze.trace.report import TraceReport, analyze_trace
from clusterscape.collect.traces import read_traces
from clusterscape.model.trace_report import VerdictKind

CASES = Path(__file__).parents[3] / "data/h200/faults"


def report_on(case: str) -> TraceReport:
    return analyze_trace(read_traces(sorted(CASES.glob(f"{case}-rank*.json.gz"))), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("case", "kind", "rank", "words"),
    [
        ("slow_loader", VerdictKind.INPUT_STALL, 2, "Rank 2 waits for its input"),
        ("sleep", VerdictKind.HOST_PAUSE, 2, "Rank 2 pauses on the host in 4 of 10 steps"),
        ("checkpoint", VerdictKind.HOST_PAUSE, 0, "Rank 0 copies to the host and pauses, as in a save"),
        (
            "sequence_lengths",
            VerdictKind.UNEVEN_WORK,
            None,
            "Work differs between ranks by step, because input shapes do",
        ),
        ("reads_per_parameter", VerdictKind.SCALAR_READS, None, "waits for the device 64 times a step"),
        ("many_small_kernels", VerdictKind.LAUNCH_BOUND, None, "Devices are idle while the host prepares launches"),
    ],
)
def test_cause_and_rank_are_right_when_the_fault_was_recorded_on_a_gpu(
    case: str, kind: VerdictKind, rank: int | None, words: str
) -> None:
    first = report_on(case).verdicts[0]
    assert (first.kind, first.rank) == (kind, rank)
    assert words in first.sentence


def test_no_rank_is_blamed_when_a_recorded_run_is_healthy() -> None:
    assert not [verdict for verdict in report_on("synced_log-healthy").verdicts if verdict.rank is not None]
