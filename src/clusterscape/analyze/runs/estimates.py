"""Numbers over repeats and over runs that share: means with their confidence intervals, and fairness."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over ``count`` repeats. ``low`` and ``high`` bound the true mean at 95 % (Student's t); null for one repeat."""

    mean: float
    low: float | None
    high: float | None
    count: int


def estimate(values: Sequence[float]) -> Estimate | None:
    """None where there is nothing to take the mean of. Values are taken as independent and roughly normal."""
    if not values:
        return None
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean=mean, low=None, high=None, count=1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = t_quantile(count - 1) * deviation / math.sqrt(count)
    return Estimate(mean=mean, low=mean - half, high=mean + half, count=count)


def t_quantile(freedom: int) -> float:
    """Half-width of the 95 % interval in standard errors, for ``freedom`` degrees of freedom."""
    from scipy.special import stdtrit  # slow to import, and not needed for single runs

    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2))


def compute_fairness(progress: Sequence[float]) -> float | None:
    """Jain's index of what each got: 1 where all got the same, 1/n where one got everything; None below two.

    Jain, Chiu and Hawe, DEC-TR-301, 1984.
    """
    if len(progress) < 2 or not any(progress):
        return None
    return math.fsum(progress) ** 2 / (len(progress) * math.fsum(value * value for value in progress))
