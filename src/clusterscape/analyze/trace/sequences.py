"""Sequences of different lengths: some micro-batches take longer than others, on every stage they pass through.

What a stage or a place in the step adds by itself (warming up, being slow) is taken out first: only what travels with a
micro-batch is left.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.trace.pipeline import simulate_recorded

MIN_SAMPLES = 12
MIN_CORRELATION = 0.7  # with 12 samples, chance gives more in fewer than 1 of 100 traces
MIN_VARIATION = 0.1


@dataclass(frozen=True, slots=True)
class SequenceVariance:
    """``correlation``: mean over pairs of stages of what micro-batches take beyond the usual; ``variation``: its standard
    deviation over the mean; ``gain_s``: what a step would be shorter with micro-batches alike, re-simulated;
    ``longest``: max/mean of one.
    """

    correlation: float
    variation: float
    gain_s: float
    longest: float


def measure_sequences(passes: pl.DataFrame) -> SequenceVariance | None:
    """The variation that micro-batches carry through the pipeline; None where there is no pipeline or too little to tell."""
    if not passes.height or passes["stage"].n_unique() < 2 or passes["chunk"].n_unique() > 1:
        return None
    one = passes.filter(pl.col("rank") == pl.col("rank").min().over("stage"))
    length = (pl.col("end_ns") - pl.col("start_ns")).cast(pl.Float64)
    usual = length.mean().over("stage", "phase", "micro_batch")
    mean = length.mean().over("stage", "phase")
    beyond = ((length - usual) / mean).alias("beyond")
    table = one.select("stage", "step", "phase", "micro_batch", beyond, (length / mean).alias("ratio"))
    wide = table.pivot("stage", index=["step", "phase", "micro_batch"], values="beyond").drop_nulls()
    values = wide.select(pl.exclude("step", "phase", "micro_batch")).to_numpy()
    if values.shape[0] < MIN_SAMPLES or not (values.std(axis=0) > 0).all():
        return None
    together = np.corrcoef(values.T)
    pairs = together[np.triu_indices_from(together, 1)]
    simulated = simulate_recorded(one)
    if simulated is None:
        return None
    return SequenceVariance(
        correlation=float(pairs.mean()),
        variation=float(values.std()),
        gain_s=simulated[0] - simulated[1],
        longest=float(table["ratio"].to_numpy().max()),
    )


def is_variance(found: SequenceVariance) -> bool:
    """Whether sequences of different lengths explain what is seen."""
    return found.correlation >= MIN_CORRELATION and found.variation >= MIN_VARIATION
