"""Metrics of many runs as lines over seconds, steps or epochs, thinned here; and repeats of them as bands."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.runs.lines import (
    Floats,
    Ints,
    Line,
    cut,
    join_repeats,
    over_epochs,
    over_seconds,
    over_steps,
    thin,
)
from clusterscape.errors import QueryError
from clusterscape.model import UnitId, UnixMs
from clusterscape.model.runs import RunMark
from clusterscape.query.context import QueryContext
from clusterscape.query.runs.derived import DERIVED, Pieces, derive, find_sources
from clusterscape.query.runs.query import RunQuery
from clusterscape.query.runs.rows import metrics_of

_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
MOST_LINES = 2000
MOST_REPEATS = 10_000
"""Lines that are joined to bands."""
MOST_VALUES = 4_000_000
STEP = "step"
AXES = ("time", "step", "epoch")
BANDS = ("interval", "range", "deviation")
NARROW_FIRST = ("process", "tree", "run", "mig", "device", "host")

Named = tuple[tuple[str, str, str | None, str | None], Line]
"""(run, metric, place, scope) and the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRequest:
    """Which lines. ``axis`` is time (seconds since the start, or since the first ``phase`` of that name), step or epoch."""

    runs: Sequence[str]
    metrics: Sequence[str]
    scope: str | None = None
    axis: str = "time"
    phase: str | None = None
    start: float | None = None
    end: float | None = None
    points: int = 1000


class RunSeriesQuery:
    """Lines and bands."""

    def __init__(self, context: QueryContext, runs: RunQuery) -> None:
        self._metrics = context.metrics
        self._clock = context.clock
        self._runs = runs

    def lines(self, asked: LineRequest) -> pl.DataFrame:
        """``run``, ``metric``, ``place`` (null: the run as a whole), ``scope``, ``x``, ``value``; x rises within a line.

        Words are codes of dictionaries (Enum). Columns are put together without polars' engine: it hands work to threads of
        its own, and on a busy machine waiting for each of them costs more than the work.
        """
        _check(asked)
        parts = [part for run in self._runs.existing(asked.runs) for part in self._lines_of(run, asked)]
        if len(parts) > MOST_LINES:
            raise QueryError(f"these are {len(parts)} lines", hint=f"Ask for at most {MOST_LINES}.")
        part_of_row = np.repeat(np.arange(len(parts)), [len(line.x) for _, line in parts])
        columns = [
            _words(name, [named[place] for named, _ in parts])[part_of_row]
            for place, name in enumerate(("run", "metric", "place", "scope"))
        ]
        x = np.concatenate([line.x for _, line in parts] or [np.empty(0)])
        value = np.concatenate([line.y for _, line in parts] or [np.empty(0)])
        return pl.DataFrame([*columns, pl.Series("x", x), pl.Series("value", value)])

    def bands(self, groups: Sequence[Sequence[str]], asked: LineRequest, *, band: str) -> pl.DataFrame:
        """``group`` (place among ``groups``), ``metric``, ``x``, ``mean``, ``low``, ``high``, ``lines``.

        A run with several lines of a metric (GPUs, ranks) takes part with each of them. Where it has them of several scopes
        and none is asked for, only the narrowest counts: the memory of its process, not that of the whole GPU.
        """
        if band not in BANDS:
            raise QueryError(f"unknown band `{band}`", hint=f"There are: {', '.join(BANDS)}.")
        _check_bands(groups, asked)
        existing = set(self._runs.existing([run for group in groups for run in group]))
        frames = []
        for number, group in enumerate(groups):
            whole = LineRequest(
                runs=group,
                metrics=asked.metrics,
                scope=asked.scope,
                axis=asked.axis,
                phase=asked.phase,
                start=asked.start,
                end=asked.end,
                points=MOST_VALUES,
            )
            _check(whole, is_thinned=False)
            runs = [run for run in dict.fromkeys(group) if run in existing]
            found = [part for run in runs for part in _narrowest(self._lines_of(run, whole))]
            for metric in dict.fromkeys(asked.metrics):
                joined = join_repeats(
                    [line for name, line in found if name[1] == metric], points=asked.points, band=band
                )
                columns = {"x": joined.x, "mean": joined.mean, "low": joined.low, "high": joined.high}
                frame = pl.DataFrame({**columns, "lines": joined.lines})
                frames.append(
                    frame.select(pl.lit(number, pl.Int32).alias("group"), pl.lit(metric).alias("metric"), pl.all())
                )
        return pl.concat(frames)

    def _lines_of(self, run: str, asked: LineRequest) -> list[Named]:
        stored = self._runs.stored(run)
        series = [
            metric
            for metric in metrics_of(stored)
            if metric.metric in asked.metrics and metric.count and asked.scope in (None, metric.scope)
        ]
        derived = [name for name in asked.metrics if name in DERIVED and asked.scope in (None, "run")]
        sources = find_sources(stored) if derived else None
        begin, end = stored.summary.moments.running, stored.summary.moments.ended
        if not (series or sources) or begin is None:
            return []
        names = [*(metric.metric for metric in series), *([STEP] if asked.axis == "step" else [])]
        units = [*(metric.unit for metric in series), f"run:{run}"]
        if sources is not None:
            names, units = [*names, *sources.metrics], [*units, *sources.units]
        # Of several samples in one millisecond ingest moves the later ones on: at most by their number.
        most = max((figures.count for figures in stored.detail.series.values()), default=0)
        pieces = self._read(names, units, begin, (end or self._clock()) + most + 1)
        axis = _Axis(asked, stored.detail.marks, begin, end or self._clock(), pieces, f"run:{run}")
        lines: list[Named] = []
        for metric in series:
            key = (metric.metric, metric.unit)
            if key in pieces:
                line = cut(axis.place(*pieces[key], unit=metric.unit), start=asked.start, end=asked.end)
                lines.append(((run, metric.metric, metric.place, metric.scope), thin(line, asked.points)))
        if sources is not None:
            for name, (times, values) in derive(derived, sources, pieces).items():
                line = cut(axis.place(times, values, unit=f"run:{run}"), start=asked.start, end=asked.end)
                lines.append(((run, name, None, "run"), thin(line, asked.points)))
        return lines

    def _read(self, names: Sequence[str], units: Sequence[str], start_ms: int, end_ms: int) -> Pieces:
        table = self._metrics.series(
            list(dict.fromkeys(names)),
            [UnitId(unit) for unit in dict.fromkeys(units)],
            start_ms=UnixMs(start_ms),
            end_ms=UnixMs(end_ms),
        )
        return _split(table)


def _narrowest(lines: Sequence[Named]) -> list[Named]:
    """Of each metric of one run only the lines of the narrowest scope."""
    ranks = {scope: rank for rank, scope in enumerate(NARROW_FIRST)}
    least: dict[str, int] = {}
    for (_, metric, _, scope), _ in lines:
        least[metric] = min(least.get(metric, len(ranks)), ranks.get(scope or "", len(ranks)))
    return [part for part in lines if ranks.get(part[0][3] or "", len(ranks)) == least[part[0][1]]]


def _words(name: str, values: Sequence[str | None]) -> pl.Series:
    return pl.Series(name, values, dtype=pl.Enum([value for value in dict.fromkeys(values) if value is not None]))


def _split(table: pl.DataFrame) -> dict[tuple[str, str], tuple[Ints, Floats]]:
    """Times and values of each (metric, unit) of a table that is sorted by them: few long stretches, whose ends are sought."""
    metric, unit = table["metric"], table["unit"]
    times, values = table["time_ms"].to_numpy(), table["value"].to_numpy()

    def key_of(row: int) -> tuple[str, str]:
        return metric[row], unit[row]

    found = {}
    begin = 0
    while begin < len(table):
        key, reach = key_of(begin), 1
        while begin + reach < len(table) and key_of(begin + reach) == key:
            reach *= 2
        inside = begin + reach // 2  # the last row that is known to belong here
        end = inside + bisect_right(range(inside, min(begin + reach, len(table))), key, key=key_of)
        found[key] = (times[begin:end], values[begin:end])
        begin = end
    return found


class _Axis:
    """Where a sample stands on the x axis."""

    def __init__(
        self,
        asked: LineRequest,
        marks: Sequence[RunMark],
        begin_ms: int,
        end_ms: int,
        pieces: Mapping[tuple[str, str], tuple[Ints, Floats]],
        own: str,
    ) -> None:
        self._asked = asked
        self._end_ms = end_ms
        self._zero_ms = begin_ms
        self._pieces = pieces
        self._own = own
        if asked.phase is not None:
            begins = [mark.at for mark in marks if mark.kind == "phase" and mark.name == asked.phase and mark.at]
            self._zero_ms = min(begins, default=end_ms + 1)
            self._has_zero = bool(begins)
        else:
            self._has_zero = True
        epochs = sorted(epoch for mark in marks if (epoch := _epoch_of(mark)) is not None)
        self._epoch_times = np.array([at for at, _ in epochs], np.int64)
        self._epochs = np.array([number for _, number in epochs])

    def place(self, times_ms: Ints, values: Floats, *, unit: str) -> Line:
        """The line of one series."""
        if self._asked.axis == "epoch":
            return over_epochs(times_ms, values, self._epoch_times, self._epochs, end_ms=self._end_ms)
        if self._asked.axis == "step":
            known = self._pieces.get((STEP, unit)) or self._pieces.get((STEP, self._own))
            return over_steps(times_ms, values, *known) if known else Line(np.empty(0), np.empty(0))
        if not self._has_zero:
            return Line(np.empty(0), np.empty(0))
        return over_seconds(times_ms, values, zero_ms=self._zero_ms)


def _epoch_of(mark: RunMark) -> tuple[int, float] | None:
    """When a numbered epoch begins, and its number; None for other marks: earlier versions stored what they were sent."""
    if mark.kind != "epoch" or mark.at is None or mark.name is None or _NUMBER.fullmatch(mark.name) is None:
        return None
    return mark.at, float(mark.name)


def _check_bands(groups: Sequence[Sequence[str]], asked: LineRequest) -> None:
    lines = sum(map(len, groups)) * len(asked.metrics)
    if lines > MOST_REPEATS or len(groups) * len(asked.metrics) * asked.points > MOST_VALUES:
        raise QueryError(
            f"{lines} lines of {len(groups)} groups with {asked.points} points each are too many",
            hint=f"Ask for at most {MOST_REPEATS} lines and {MOST_VALUES} values.",
        )


def _check(asked: LineRequest, *, is_thinned: bool = True) -> None:
    if not asked.runs or not asked.metrics:
        raise QueryError("name at least one run and one metric", hint="GET /api/v1/runs/metrics lists what runs have.")
    if asked.axis not in AXES:
        raise QueryError(f"unknown axis `{asked.axis}`", hint=f"There are: {', '.join(AXES)}.")
    if asked.phase is not None and asked.axis != "time":
        raise QueryError("phases align lines over time only", hint="Leave the phase out, or choose the axis time.")
    if is_thinned and len(asked.runs) * len(asked.metrics) * asked.points > MOST_VALUES:
        raise QueryError(
            f"{len(asked.runs)} runs × {len(asked.metrics)} metrics × {asked.points} points are too many",
            hint=f"Ask for fewer: at most {MOST_VALUES} values.",
        )
