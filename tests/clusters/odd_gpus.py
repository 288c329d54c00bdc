"""Telemetry of a training on many GPUs, made up with all its usual unrest, and one GPU that is odd in a chosen way."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STEP_MS = 15_000


class Oddness(StrEnum):
    """How the planted GPU differs from the others."""

    SLOWER = "slower"
    DRIFTING = "drifting"
    SPIKY = "spiky"
    LAGGING = "lagging"
    DYING = "dying"


def make_power(
    rng: np.random.Generator, gpus: int, *, points: int = 480, oddness: Oddness | None = None
) -> tuple[NDArray[np.int64], Floats, int | None]:
    """(times_ms, watts (time × GPU), odd GPU). Steps, checkpoints with uneven edges, AR noise, GPUs and nodes that differ."""
    phase = np.arange(points)
    period, cycle = int(rng.integers(40, 90)), int(rng.integers(9, 17))
    common = 560.0 + 30.0 * np.sin(2 * np.pi * phase / cycle) + _autoregress(rng.normal(0, 6, (points, 1)), 0.7)[:, 0]
    common[phase % period < 3] = 230.0
    common[:4] = 130.0
    level = 1.0 + rng.normal(0, 0.012, gpus) + np.repeat(rng.normal(0, 0.008, -(-gpus // 8)), 8)[:gpus]
    unrest = rng.lognormal(np.log(9.0), 0.15, gpus)
    # A sample of a GPU falls somewhere into its step: edges are uneven, but by no more than that.
    offset = rng.uniform(0, 0.4, gpus)
    odd = int(rng.integers(gpus)) if oddness is not None else None
    if odd is not None and oddness is Oddness.LAGGING:
        offset[odd] = rng.uniform(2.0, 5.0)
    late = np.clip(phase[:, None] - offset[None, :], 0, points - 1)
    before = np.floor(late).astype(np.int64)
    share = late - before
    watts = common[before] * (1 - share) + common[np.minimum(before + 1, points - 1)] * share
    watts = watts * level + _autoregress(rng.normal(0, 1, (points, gpus)), 0.5) * unrest
    watts *= 1.0 + rng.normal(0, 0.01, gpus) * (phase[:, None] / points - 0.5)
    if odd is not None:
        watts[:, odd] = _plant(rng, watts[:, odd], phase / points, oddness)
    watts[rng.random(watts.shape) < 0.002] = np.nan
    return phase * STEP_MS, np.clip(watts, 60.0, 720.0), odd


def make_utilization(
    rng: np.random.Generator, gpus: int, *, points: int = 480, level: float = 0.97
) -> tuple[NDArray[np.int64], Floats]:
    """(times_ms, utilization (time × GPU)) in whole percents, none of them odd.

    GPUs lie within a percent of each other, some of them a sample behind, as exporters that are read between two updates.
    """
    phase = np.arange(points)
    period = int(rng.integers(30, 80))
    common = np.where(phase % period < 3, 0.35, level) + _autoregress(rng.normal(0, 0.002, (points, 1)), 0.7)[:, 0]
    behind = (rng.random(gpus) < 0.02).astype(np.int64)
    own = rng.uniform(-0.006, 0.006, gpus)
    values = common[np.maximum(phase[:, None] - behind, 0)] + own + rng.normal(0, 0.003, (points, gpus))
    return phase * STEP_MS, np.clip(np.rint(100 * values) / 100, 0.0, 1.0)


def _plant(rng: np.random.Generator, watts: Floats, elapsed: Floats, oddness: Oddness | None) -> Floats:
    watts = watts.copy()
    match oddness:
        case Oddness.SLOWER:
            watts *= rng.uniform(0.78, 0.86)
        case Oddness.DRIFTING:
            watts *= 1.0 - rng.uniform(0.12, 0.25) * elapsed
        case Oddness.SPIKY:
            is_spike = rng.random(watts.size) < rng.uniform(0.015, 0.04)
            watts[is_spike] -= rng.uniform(150.0, 300.0, int(is_spike.sum()))
        case Oddness.DYING:
            is_gone = elapsed > rng.uniform(0.85, 0.97)
            watts[is_gone] = 75.0 + rng.normal(0, 2.0, int(is_gone.sum()))
        case _:
            pass
    return watts


def _autoregress(noise: Floats, memory: float) -> Floats:
    out = noise.copy()
    for k in range(1, len(out)):
        out[k] += memory * out[k - 1]
    return out
