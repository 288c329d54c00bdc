"""Sequence length variance is distinguished from slow stages and from chance."""

import numpy as np
import pytest
from numpy.typing import NDArray
from unit.analyze.trace.made_traces import analyze, pipeline_rows

from clusterscape.analyze.trace.report import TraceReport
from clusterscape.model.trace_report import TraceVerdict, VerdictKind

STEPS, STAGES, COUNT = 5, 4, 8
MS = 1_000_000


def verdicts_of(lengths: NDArray[np.float64]) -> tuple[TraceReport, list[TraceVerdict]]:
    report = analyze(pipeline_rows(lengths.astype(np.int64)), {rank: rank for rank in range(STAGES)})
    verdicts = [verdict for verdict in report.verdicts if verdict.kind is VerdictKind.SEQUENCE_LENGTH_VARIANCE]
    return report, verdicts


def test_variance_is_named_when_micro_batches_differ_on_all_stages_alike() -> None:
    generator = np.random.default_rng(3)
    sequence = generator.uniform(0.5, 2.0, (STEPS, 1, 1, COUNT))
    _, verdicts = verdicts_of(10 * MS * sequence * generator.uniform(0.98, 1.02, (STEPS, STAGES, 2, COUNT)))
    assert len(verdicts) == 1
    assert float(verdicts[0].evidence["correlation"]) > 0.95
    assert verdicts[0].seconds_per_step > 0.01
    assert verdicts[0].spans
    assert (verdicts[0].rank, verdicts[0].stage) == (None, None)


SHAPE = (STEPS, STAGES, 2, COUNT)
GENERATOR = np.random.default_rng(5)


@pytest.mark.parametrize(
    "lengths",
    [
        np.ones(SHAPE),
        GENERATOR.uniform(0.5, 2.0, SHAPE),
        np.ones(SHAPE) * np.array([1.0, 1.0, 2.0, 1.0])[None, :, None, None],
        np.ones(SHAPE) * np.r_[3.0, np.ones(COUNT - 1)],
        np.ones(SHAPE) * GENERATOR.uniform(0.97, 1.03, (STEPS, 1, 1, COUNT)),
    ],
    ids=["alike", "every stage by itself", "a slow stage", "the first is always slow", "too little to matter"],
)
def test_sequence_variance_is_not_reported_when_something_else_varies(lengths: NDArray[np.float64]) -> None:
    _, verdicts = verdicts_of(10 * MS * lengths)
    assert not verdicts
