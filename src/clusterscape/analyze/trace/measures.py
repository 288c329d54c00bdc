"""The measurements that verdicts are based on: all measures of a run, the part of the model that one rank runs beyond its peers,
and the variance of sequence lengths.

For sequence lengths, the mean of each stage and position in the step (warm-up, a slow stage) is removed first, so that only the
variation that follows a micro-batch through all stages is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.trace.attribution import Attribution
from clusterscape.analyze.trace.breakdown import WORK
from clusterscape.analyze.trace.causes import Work
from clusterscape.analyze.trace.changes import ChangeAnswer
from clusterscape.analyze.trace.match import Slack
from clusterscape.analyze.trace.pipeline import Bubble, simulate_recorded
from clusterscape.analyze.trace.savings import Saving
from clusterscape.analyze.trace.whatif import StragglerAnswer
from clusterscape.model.arrays import Int64s
from clusterscape.model.spans import RankFacts

MIN_STEP_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class TraceMeasures:
    """All inputs of the verdicts, of the steps after the warm-up. ``slack``: in pipelines, only of collectives within a stage;
    ``changes``: answers to the what-if questions, which verdicts take their seconds from.
    """

    spans: pl.DataFrame
    steps: pl.DataFrame
    ranks: Sequence[RankFacts]
    breakdown: pl.DataFrame
    collectives: pl.DataFrame
    messages: pl.DataFrame
    slack: Sequence[Slack]
    passes: pl.DataFrame
    bubble: Bubble | None
    stragglers: StragglerAnswer | None
    error_ns: float | None
    attribution: Attribution
    work: Work
    groups: Sequence[Int64s]
    """Rows of the attribution that are peers."""
    savings: Sequence[Saving]
    changes: Sequence[ChangeAnswer]
    generator: np.random.Generator
    origin_ns: int
    """The first start of the trace."""

    @property
    def step_s(self) -> float:
        """Mean seconds of a step."""
        return float(self.breakdown["step_ns"].to_numpy().mean()) / 1e9 if self.breakdown.height else 0.0

    @property
    def min_gain_s(self) -> float:
        """Threshold: smaller costs get no verdict."""
        return max(MIN_STEP_SHARE * self.step_s, (self.error_ns or 0.0) / 1e9)

    @property
    def step_count(self) -> int:
        """Number of steps."""
        return int(self.steps["step"].n_unique())


def find_extra_work(spans: pl.DataFrame, rank: int, steps: int) -> tuple[str, float] | None:
    """The namespace whose device time most exceeds the median of the peers: its name and the excess in seconds per step."""
    work = spans.filter(pl.col("span_class").cast(pl.String).is_in(WORK) & pl.col("namespace").is_not_null())
    if not work.height:
        return None
    part = pl.col("namespace").cast(pl.String).str.split("/").list.first().alias("part")
    length = ((pl.col("end_ns") - pl.col("start_ns")).sum() / 1e9 / max(1, steps)).alias("length_s")
    table = work.group_by("rank", part).agg(length)
    wide = table.pivot("rank", index="part", values="length_s").fill_null(0.0)
    mine, others = str(rank), [name for name in wide.columns if name not in ("part", str(rank))]
    if mine not in wide.columns or not others:
        return None
    usual = np.median(wide.select(others).to_numpy(), axis=1)
    excess = wide[mine].to_numpy() - usual
    at = int(np.argmax(excess))
    return str(wide["part"][at]), float(excess[at])


MIN_SAMPLES = 12
MIN_CORRELATION = 0.7  # with 12 samples, p < 0.01
MIN_VARIATION = 0.1


@dataclass(frozen=True, slots=True)
class SequenceVariance:
    """``correlation``: of the excess time of micro-batches, mean over pairs of stages; ``variation``: standard deviation of the
    excess relative to the mean time; ``gain_s``: seconds per step saved with equal micro-batches, re-simulated; ``longest``:
    max/mean.
    """

    correlation: float
    variation: float
    gain_s: float
    longest: float


def measure_sequences(passes: pl.DataFrame) -> SequenceVariance | None:
    """The variation that micro-batches carry through the pipeline; None without a pipeline or with too few samples."""
    if not passes.height or passes["stage"].n_unique() < 2 or passes["chunk"].n_unique() > 1:
        return None
    first_ranks = passes.filter(pl.col("rank") == pl.col("rank").min().over("stage"))
    length = (pl.col("end_ns") - pl.col("start_ns")).cast(pl.Float64)
    usual = length.mean().over("stage", "phase", "micro_batch")
    mean = length.mean().over("stage", "phase")
    excess = ((length - usual) / mean).alias("beyond")
    table = first_ranks.select("stage", "step", "phase", "micro_batch", excess, (length / mean).alias("ratio"))
    wide = table.pivot("stage", index=["step", "phase", "micro_batch"], values="beyond").drop_nulls()
    values = wide.select(pl.exclude("step", "phase", "micro_batch")).to_numpy()
    if values.shape[0] < MIN_SAMPLES or not (values.std(axis=0) > 0).all():
        return None
    correlations = np.corrcoef(values.T)
    pairs = correlations[np.triu_indices_from(correlations, 1)]
    simulated = simulate_recorded(first_ranks)
    if simulated is None:
        return None
    return SequenceVariance(
        correlation=float(pairs.mean()),
        variation=float(values.std()),
        gain_s=simulated[0] - simulated[1],
        longest=float(table["ratio"].to_numpy().max()),
    )


def is_significant(variance: SequenceVariance) -> bool:
    """Whether sequences of different lengths explain the variation."""
    return variance.correlation >= MIN_CORRELATION and variance.variation >= MIN_VARIATION
