"""Whether the time a job has run already says how long it will run: takeaway 7, tested without any learned model.

Prediction proper is not here; this asks only whether the elapsed time carries information.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.columns import JobColumns
from clusterscape.analyze.jobs.intervals import Measured, Resamples, Z, measure_draws
from clusterscape.model.samples import Float64s

TRAIN_SHARE = 0.7
ELAPSED_SHARE = 0.25
FEWEST_EARLIER = 5
FEWEST_TESTED = 100
_KEYS: tuple[list[str], ...] = (["user", "size"], ["user"], [])


@dataclass(frozen=True, slots=True, kw_only=True)
class ElapsedTest:
    """The last 30 % of jobs by submission that ran longer than ``elapsed_s``, a quarter of the earlier jobs' mean run time.

    Each is predicted by the median of earlier jobs of its user and size (else of its user, else of all; five at least): all of
    them, raised to the elapsed time (``unaware``), or only those that ran past it (``aware``). Accuracy: the smaller of
    prediction and run time over the larger, mean over jobs. ``gain``: aware minus unaware; interval for these jobs, and with
    users resampled.
    """

    elapsed_s: float
    jobs: int
    aware_accuracy: float
    unaware_accuracy: float
    request_accuracy: float | None
    gain: Measured
    gain_by_user: Measured | None


def measure_elapsed(jobs: JobColumns, random: np.random.Generator) -> ElapsedTest | None:
    """None where fewer than 100 jobs are left to test on. n log n."""
    ran = np.flatnonzero(~np.isnan(jobs.run_s) & (jobs.run_s > 0))
    cut = int(len(ran) * TRAIN_SHARE)
    if cut == 0:
        return None
    elapsed = ELAPSED_SHARE * float(jobs.run_s[ran[:cut]].mean())
    later = ran[cut:]
    tested = later[jobs.run_s[later] > elapsed]
    if len(tested) < FEWEST_TESTED:
        return None
    frame = pl.DataFrame({"user": jobs.user, "size": jobs.size, "run_s": jobs.run_s})
    earlier, asked = frame[ran[:cut]], frame[tested]
    survivors = earlier.filter(pl.col("run_s") > elapsed)
    if survivors.height < FEWEST_EARLIER:
        return None
    run = jobs.run_s[tested]
    aware = _accuracy(_predict(survivors, asked), run)
    unaware = _accuracy(np.maximum(_predict(earlier, asked), elapsed), run)
    requested = jobs.requested_s[tested]
    is_asked = ~np.isnan(requested)
    request = _accuracy(np.maximum(requested, elapsed)[is_asked], run[is_asked]) if is_asked.mean() > 0.5 else None
    gain = aware - unaware
    half = Z * float(gain.std(ddof=1)) / len(gain) ** 0.5
    value = float(gain.mean())
    return ElapsedTest(
        elapsed_s=elapsed,
        jobs=len(tested),
        aware_accuracy=float(aware.mean()),
        unaware_accuracy=float(unaware.mean()),
        request_accuracy=None if request is None else float(request.mean()),
        gain=Measured(value=value, low=value - half, high=value + half),
        gain_by_user=_by_user(jobs, tested, gain, random),
    )


def _by_user(
    jobs: JobColumns, tested: np.typing.NDArray[np.int64], gain: Float64s, random: np.random.Generator
) -> Measured | None:
    if not jobs.has_users:
        return None
    codes = np.unique(jobs.user[tested], return_inverse=True)[1].astype(np.int64)
    draws = Resamples(codes, random).shares(gain, np.ones(len(gain)))
    return measure_draws(float(gain.mean()), draws[:, 0])


def _accuracy(predicted: Float64s, run_s: Float64s) -> Float64s:
    return np.minimum(predicted, run_s) / np.maximum(predicted, run_s)


def _predict(earlier: pl.DataFrame, asked: pl.DataFrame) -> Float64s:
    """The median of the nearest earlier jobs of which there are enough."""
    asked = asked.select("user", "size").with_row_index("job")
    columns = []
    for place, keys in enumerate(_KEYS):
        name = f"median_{place}"
        columns.append(name)
        if not keys:
            asked = asked.with_columns(pl.lit(earlier["run_s"].median(), pl.Float64).alias(name))
            continue
        medians = (
            earlier.filter(pl.col("user") >= 0)
            .group_by(keys)
            .agg(pl.col("run_s").median().alias(name), pl.len())
            .filter(pl.col("len") >= FEWEST_EARLIER)
            .drop("len")
        )
        asked = asked.join(medians, on=keys, how="left")
    return asked.sort("job").select(pl.coalesce(columns))["median_0"].to_numpy()
