"""The statistic catalogue: every statistic of rules with its names, what it measures, and its PromQL expression.

To add a statistic that can be derived from others (the range from smallest and largest), add a member and an entry here; one
that needs additional state also needs the kernels of ``analyze/stats``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from clusterscape.model.arrays import Float64s


class StatisticKind(StrEnum):
    """A summary of a series."""

    MIN = "min"
    MAX = "max"
    MEAN = "mean"
    STD = "std"  # population standard deviation
    PERCENTILE = "percentile"  # linearly interpolated (numpy's default)
    ABOVE = "above"  # share of the time, 0–1, in which the value was above the threshold
    BELOW = "below"
    LONGEST_ABOVE = "longest_above"  # seconds of the longest uninterrupted time above the threshold
    LONGEST_BELOW = "longest_below"
    NOW = "now"  # the last value
    SLOPE = "slope"  # least-squares growth per hour, in the metric's unit
    INCREASE = "increase"  # of a counter, corrected for resets


class MeasuredThing(StrEnum):
    """The dimension of a statistic's value."""

    VALUE = "value"  # in the metric's unit
    SHARE = "share"  # of the time, 0–1
    DURATION = "duration"  # seconds
    RATE = "rate"  # the metric's unit per hour


class Argument(StrEnum):
    """The argument of a statistic."""

    PERCENTILE = "percentile"  # 0–100
    THRESHOLD = "threshold"  # a value of the metric


Columns = Callable[[StatisticKind], Float64s]
"""Returns the column of another statistic of the same metric over the same time; NaN where there are no samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticEntry:
    """One statistic.

    ``words``: its names in rules, in addition to its kind. ``written``: how the reference shows it, if not by its kind.
    ``is_above``: which side of a threshold counts. ``promql``: its expression, with ``{series}`` and ``{window}``, and with
    ``{rank}`` or ``{bound}`` and ``{step}`` if it has an argument; None if PromQL has none. ``derive``: computes it from other
    statistics; None if the kernels compute it.
    """

    kind: StatisticKind
    label: str
    help: str
    words: tuple[str, ...] = ()
    written: str | None = None
    measures: MeasuredThing = MeasuredThing.VALUE
    argument: Argument | None = None
    is_above: bool | None = None
    promql: str | None = None
    promql_note: str | None = None
    derive: Callable[[Columns], Float64s] | None = None


_STEPS_NOTE = "Shares of time are counted at steps of 1m."

STATISTIC_CATALOGUE: tuple[StatisticEntry, ...] = (
    StatisticEntry(
        kind=StatisticKind.MIN,
        label="smallest",
        help="The smallest value.",
        promql="min_over_time({series}[{window}])",
    ),
    StatisticEntry(
        kind=StatisticKind.MAX, label="largest", help="The largest value.", promql="max_over_time({series}[{window}])"
    ),
    StatisticEntry(
        kind=StatisticKind.MEAN,
        label="mean",
        help="The mean of all values.",
        words=("avg", "average"),
        promql="avg_over_time({series}[{window}])",
    ),
    StatisticEntry(
        kind=StatisticKind.STD,
        label="standard deviation",
        help="How much the values scatter around their mean.",
        words=("stddev",),
        promql="stddev_over_time({series}[{window}])",
    ),
    StatisticEntry(
        kind=StatisticKind.PERCENTILE,
        label="percentile",
        help="So many percent of the values are below it.",
        written="p95, p99.9, median",
        argument=Argument.PERCENTILE,
        promql="quantile_over_time({rank}, {series}[{window}])",
    ),
    StatisticEntry(
        kind=StatisticKind.ABOVE,
        label="share of time above",
        help="Share of the time in which the value was above the argument.",
        written="share of … above 90%",
        measures=MeasuredThing.SHARE,
        argument=Argument.THRESHOLD,
        is_above=True,
        promql="avg_over_time(({series} > bool {bound})[{window}:{step}])",
        promql_note=_STEPS_NOTE,
    ),
    StatisticEntry(
        kind=StatisticKind.BELOW,
        label="share of time below",
        help="Share of the time in which the value was below the argument.",
        written="share of … below 5%",
        measures=MeasuredThing.SHARE,
        argument=Argument.THRESHOLD,
        is_above=False,
        promql="avg_over_time(({series} < bool {bound})[{window}:{step}])",
        promql_note=_STEPS_NOTE,
    ),
    StatisticEntry(
        kind=StatisticKind.LONGEST_ABOVE,
        label="longest run above",
        help="The longest time without a break above the argument.",
        written="longest … above 90%",
        measures=MeasuredThing.DURATION,
        argument=Argument.THRESHOLD,
        is_above=True,
    ),
    StatisticEntry(
        kind=StatisticKind.LONGEST_BELOW,
        label="longest run below",
        help="The longest time without a break below the argument.",
        written="longest … below 5%",
        measures=MeasuredThing.DURATION,
        argument=Argument.THRESHOLD,
        is_above=False,
    ),
    StatisticEntry(kind=StatisticKind.NOW, label="now", help="The last value.", words=("last",), promql="{series}"),
    StatisticEntry(
        kind=StatisticKind.SLOPE,
        label="slope per hour",
        help="Growth per hour, by least squares.",
        measures=MeasuredThing.RATE,
        promql="deriv({series}[{window}]) * 3600",
    ),
    StatisticEntry(
        kind=StatisticKind.INCREASE,
        label="increase",
        help="How much a counter grew, restarts of the counter added up.",
        promql="increase({series}[{window}])",
        promql_note="increase() extrapolates to the window's ends.",
    ),
)

STATISTICS: Mapping[StatisticKind, StatisticEntry] = MappingProxyType(
    {entry.kind: entry for entry in STATISTIC_CATALOGUE}
)

SHARES = frozenset(entry.kind for entry in STATISTIC_CATALOGUE if entry.measures is MeasuredThing.SHARE)
RUNS = frozenset(entry.kind for entry in STATISTIC_CATALOGUE if entry.measures is MeasuredThing.DURATION)
"""Statistics of one side of a threshold: share of the time there, and the longest uninterrupted time there."""
