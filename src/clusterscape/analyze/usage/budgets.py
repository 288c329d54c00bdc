"""What is left of a budget, and when it runs out at the recent pace, with an interval."""

from dataclasses import dataclass

import numpy as np

from clusterscape.model.arrays import Float64s

RECENT_DAYS = 56
BLOCK_DAYS = 7
"""Days are drawn in blocks of a week, because weekends differ."""
FUTURES = 400
LONGEST_DAYS = 1100
FEWEST_DAYS = 14
"""With less history there is no forecast."""


@dataclass(frozen=True, slots=True)
class BudgetForecast:
    """Days from today until the budget is used up: the median of the futures, and the middle 90 % of them.

    None: later than LONGEST_DAYS. ``by_end``: what will have been used by the end of the budget (median).
    """

    days: float | None
    days_low: float | None
    days_high: float | None
    by_end: float


def forecast_budget(
    daily: Float64s, *, left: float, days_to_end: int, used: float, seed: int = 0
) -> BudgetForecast | None:
    """Forecast from ``daily``, the use of each past day, oldest first; None if there are fewer than FEWEST_DAYS.

    Futures are weeks drawn from resamples of the last RECENT_DAYS days (a block bootstrap in two levels).
    """
    recent = np.asarray(daily[-RECENT_DAYS:], np.float64)
    if len(recent) < FEWEST_DAYS:
        return None
    random = np.random.default_rng(seed)
    horizon = max(LONGEST_DAYS, days_to_end)
    blocks = -(-horizon // BLOCK_DAYS)
    # Every future draws from its own resample of the history: the pace itself is only known from few weeks.
    weeks = random.integers(0, len(recent) - BLOCK_DAYS + 1, (FUTURES, len(recent) // BLOCK_DAYS))
    starts = np.take_along_axis(weeks, random.integers(0, weeks.shape[1], (FUTURES, blocks)), axis=1)
    drawn = recent[(starts[:, :, None] + np.arange(BLOCK_DAYS)).reshape(FUTURES, -1)]
    total = np.cumsum(drawn, axis=1)
    # The day in which the sum first reaches what is left, with the part of that day.
    day = (total < max(left, 0.0)).sum(axis=1).astype(np.float64)
    inside = day < LONGEST_DAYS
    place = np.minimum(day, total.shape[1] - 1).astype(np.int64)
    rows = np.arange(FUTURES)
    before = np.where(place > 0, total[rows, np.maximum(place - 1, 0)], 0.0)
    part = np.clip((left - before) / np.maximum(drawn[rows, place], 1e-12), 0.0, 1.0)
    days = np.where(inside, day + part, np.inf)
    low, middle, high = (float(value) for value in np.quantile(days, [0.05, 0.5, 0.95], method="nearest"))
    by_end = used + (float(np.median(total[:, days_to_end - 1])) if days_to_end > 0 else 0.0)
    return BudgetForecast(_finite(middle), _finite(low), _finite(high), by_end)


def _finite(days: float) -> float | None:
    return days if np.isfinite(days) else None
