"""Telemetry of a synchronous training in which one GPU delays the others, made up from what such a step consists of."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STEP_MS = 15_000
SPIN_SM = 0.1
"""SM activity of a GPU that waits in a collective."""


class Delay(StrEnum):
    """Why the planted GPU is late."""

    CLOCK = "clock"
    LOADER = "loader"
    PAUSES = "pauses"
    """In one step of 5 or 20, long enough to cost as much as the others."""
    COPIES = "copies"
    MORE_WORK = "more_work"


KINDS = {
    Delay.CLOCK: "clock", Delay.LOADER: "host", Delay.PAUSES: "host", Delay.COPIES: "host", Delay.MORE_WORK: "work",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlantedRun:
    """``metrics``: (time × GPU); ``guilty``: a column, None in a healthy run; ``onset``: the first affected sample."""

    times_ms: NDArray[np.int64]
    metrics: dict[str, Floats]
    guilty: int | None
    onset: int


def make_run(rng: np.random.Generator, delay: Delay | None) -> PlantedRun:
    """A run of 4 to 64 GPUs, 30 to 120 minutes; delays of 8 to 80 % of a step, some of them later than from the beginning."""
    gpus, points = int(rng.choice([4, 8, 16, 64])), int(rng.integers(120, 480))
    guilty = None if delay is None else int(rng.integers(gpus))
    onset = int(rng.integers(points // 4, points // 2)) if rng.random() < 0.4 else 0
    late = np.zeros(points)
    late[onset:] = rng.uniform(0.08, 0.8)
    if delay is Delay.PAUSES:
        # Pauses of one step in 5 or 20, and a sample contains 1 to 30 steps.
        share, steps = float(rng.choice([0.2, 0.05])), int(rng.integers(1, 31))
        late[onset:] *= rng.binomial(steps, share, points - onset) / (steps * share)
    if delay is None:
        late[:] = 0.0
    work = (1.0 + rng.normal(0, 0.01, gpus))[None, :] * np.ones((points, 1))
    held, slow = np.zeros((2, points, gpus))
    if guilty is not None:
        if delay in (Delay.LOADER, Delay.PAUSES, Delay.COPIES):
            held[:, guilty] = late
        elif delay is Delay.CLOCK:
            slow[:, guilty] = late
        else:
            work[:, guilty] += late
    gap = 0.01 + 0.02 * rng.random()
    own = work * (1 + slow) + gap + held
    step = own.max(axis=1, keepdims=True) + rng.uniform(0.05, 0.3)
    computing, waiting = work * (1 + slow) / step, (step - own) / step
    noise = rng.normal(0, 1, (5, points, gpus))
    busy = 1 - (gap + held) / step
    clock = 1.98e9 * (1 + rng.normal(0, 0.008, gpus)) / (1 + slow)
    power = 110 + (520 + 8 * rng.normal(0, 1, gpus)) * computing / (1 + slow) ** 1.5 + 90 * waiting
    metrics = {
        "gpu_util_ratio": np.round(np.clip(busy + 0.006 * noise[0], 0, 1), 2),
        "sm_active_ratio": np.clip(0.85 * computing + SPIN_SM * waiting + 0.01 * noise[1], 0, 1),
        "power_watts": power + 12 * noise[2],
        "sm_clock_hertz": clock + 6e6 * noise[3],
        "pcie_rx_bytes_per_second": 1e9 * (1 + 0.1 * noise[4]) + (2e10 * held / step if delay is Delay.COPIES else 0.0),
    }
    # All pause together for checkpoints, and an exporter misses a sample now and then.
    period = int(rng.integers(40, 90))
    paused = np.arange(points) % period < 2
    for name in ("gpu_util_ratio", "sm_active_ratio"):
        metrics[name][paused] *= 0.3
    metrics["power_watts"][paused] = 160.0
    for values in metrics.values():
        values[rng.random(values.shape) < 0.003] = np.nan
    return PlantedRun(np.arange(points) * STEP_MS + 1_700_000_000_000, metrics, guilty, onset)
