"""Metrics of many runs as downsampled lines over seconds, steps or epochs, and repeats as bands."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.runs.lines import Line, cut, join_repeats, over_epochs, over_seconds, over_steps, thin
from clusterscape.errors import QueryError
from clusterscape.model import UnitId, UnixMs
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.runs import RunMark
from clusterscape.query.context import QueryContext
from clusterscape.query.runs.query import RunQuery
from clusterscape.query.runs.rows import DERIVED, Pieces, derive, find_sources, metrics_of

_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
MAX_LINES = 2000
MAX_REPEATS = 10_000
"""Upper bound of lines that are joined to bands."""
MAX_VALUES = 4_000_000
STEP = "step"
AXES = ("time", "step", "epoch")
BANDS = ("interval", "range", "deviation")
NARROW_FIRST = ("process", "tree", "run", "mig", "device", "host")

Named = tuple[tuple[str, str, str | None, str | None], Line]
"""(run, metric, place, scope) and the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRequest:
    """Selects lines. ``axis`` is time (seconds since the start, or since the first ``phase`` of that name), step or epoch."""

    runs: Sequence[str]
    metrics: Sequence[str]
    scope: str | None = None
    axis: str = "time"
    phase: str | None = None
    start: float | None = None
    end: float | None = None
    points: int = 1000


class RunSeriesQuery:
    """Queries on metrics of runs."""

    def __init__(self, context: QueryContext, runs: RunQuery) -> None:
        self._metrics = context.metrics
        self._clock = context.clock
        self._runs = runs

    def lines(self, request: LineRequest) -> pl.DataFrame:
        """``run``, ``metric``, ``place`` (null: the whole run), ``scope``, ``x``, ``value``; x increases within a line.

        Strings are dictionary-encoded (Enum). Columns are built without polars' engine: it uses its own threads, and on a busy
        machine waiting for them costs more than the work.
        """
        _check(request)
        parts = [part for run in self._runs.existing(request.runs) for part in self._lines_of(run, request)]
        if len(parts) > MAX_LINES:
            raise QueryError(f"{len(parts)} lines are too many", hint=f"Request at most {MAX_LINES}.")
        part_of_row = np.repeat(np.arange(len(parts)), [len(line.x) for _, line in parts])
        columns = [
            _encode(name, [key[index] for key, _ in parts])[part_of_row]
            for index, name in enumerate(("run", "metric", "place", "scope"))
        ]
        x = np.concatenate([line.x for _, line in parts] or [np.empty(0)])
        value = np.concatenate([line.y for _, line in parts] or [np.empty(0)])
        return pl.DataFrame([*columns, pl.Series("x", x), pl.Series("value", value)])

    def bands(self, groups: Sequence[Sequence[str]], request: LineRequest, *, band: str) -> pl.DataFrame:
        """``group`` (index in ``groups``), ``metric``, ``x``, ``mean``, ``low``, ``high``, ``lines``.

        A run with several lines of a metric (GPUs, ranks) contributes each of them. If they have several scopes and none is
        requested, only the narrowest counts: the memory of its process, not that of the whole GPU.
        """
        if band not in BANDS:
            raise QueryError(f"unknown band `{band}`", hint=f"Choose one of {', '.join(BANDS)}.")
        _check_bands(groups, request)
        existing = set(self._runs.existing([run for group in groups for run in group]))
        frames = []
        for number, group in enumerate(groups):
            group_request = LineRequest(
                runs=group,
                metrics=request.metrics,
                scope=request.scope,
                axis=request.axis,
                phase=request.phase,
                start=request.start,
                end=request.end,
                points=MAX_VALUES,
            )
            _check(group_request, is_thinned=False)
            runs = [run for run in dict.fromkeys(group) if run in existing]
            lines = [part for run in runs for part in _narrowest(self._lines_of(run, group_request))]
            for metric in dict.fromkeys(request.metrics):
                joined = join_repeats(
                    [line for key, line in lines if key[1] == metric], points=request.points, band=band
                )
                columns = {"x": joined.x, "mean": joined.mean, "low": joined.low, "high": joined.high}
                frame = pl.DataFrame({**columns, "lines": joined.lines})
                frames.append(
                    frame.select(pl.lit(number, pl.Int32).alias("group"), pl.lit(metric).alias("metric"), pl.all())
                )
        return pl.concat(frames)

    def _lines_of(self, run: str, request: LineRequest) -> list[Named]:
        stored = self._runs.stored(run)
        series = [
            metric
            for metric in metrics_of(stored)
            if metric.metric in request.metrics and metric.count and request.scope in (None, metric.scope)
        ]
        derived = [name for name in request.metrics if name in DERIVED and request.scope in (None, "run")]
        sources = find_sources(stored) if derived else None
        begin, end = stored.summary.moments.running, stored.summary.moments.ended
        if not (series or sources) or begin is None:
            return []
        names = [*(metric.metric for metric in series), *([STEP] if request.axis == "step" else [])]
        units = [*(metric.unit for metric in series), f"run:{run}"]
        if sources is not None:
            names, units = [*names, *sources.metrics], [*units, *sources.units]
        # Ingest shifts samples of the same millisecond to later ones, at most by their number.
        max_shift = max((figures.count for figures in stored.detail.series.values()), default=0)
        pieces = self._read(names, units, begin, (end or self._clock()) + max_shift + 1)
        axis = _Axis(request, stored.detail.marks, begin, end or self._clock(), pieces, f"run:{run}")
        lines: list[Named] = []
        for metric in series:
            key = (metric.metric, metric.unit)
            if key in pieces:
                line = cut(axis.place(*pieces[key], unit=metric.unit), start=request.start, end=request.end)
                lines.append(((run, metric.metric, metric.place, metric.scope), thin(line, request.points)))
        if sources is not None:
            for name, (times, values) in derive(derived, sources, pieces).items():
                line = cut(axis.place(times, values, unit=f"run:{run}"), start=request.start, end=request.end)
                lines.append(((run, name, None, "run"), thin(line, request.points)))
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
    """For each metric of one run, only the lines of the narrowest scope."""
    ranks = {scope: rank for rank, scope in enumerate(NARROW_FIRST)}
    narrowest: dict[str, int] = {}
    for (_, metric, _, scope), _ in lines:
        narrowest[metric] = min(narrowest.get(metric, len(ranks)), ranks.get(scope or "", len(ranks)))
    return [part for part in lines if ranks.get(part[0][3] or "", len(ranks)) == narrowest[part[0][1]]]


def _encode(name: str, values: Sequence[str | None]) -> pl.Series:
    return pl.Series(name, values, dtype=pl.Enum([value for value in dict.fromkeys(values) if value is not None]))


def _split(table: pl.DataFrame) -> dict[tuple[str, str], tuple[Int64s, Float64s]]:
    """Times and values of each (metric, unit) of a table that is sorted by them; finds the ends of groups by bisection."""
    metric, unit = table["metric"], table["unit"]
    times, values = table["time_ms"].to_numpy(), table["value"].to_numpy()

    def key_of(row: int) -> tuple[str, str]:
        return metric[row], unit[row]

    pieces = {}
    begin = 0
    while begin < len(table):
        key, reach = key_of(begin), 1
        while begin + reach < len(table) and key_of(begin + reach) == key:
            reach *= 2
        inside = begin + reach // 2  # the last row known to have this key
        end = inside + bisect_right(range(inside, min(begin + reach, len(table))), key, key=key_of)
        pieces[key] = (times[begin:end], values[begin:end])
        begin = end
    return pieces


class _Axis:
    """Maps samples to the x axis."""

    def __init__(
        self,
        request: LineRequest,
        marks: Sequence[RunMark],
        begin_ms: int,
        end_ms: int,
        pieces: Mapping[tuple[str, str], tuple[Int64s, Float64s]],
        run_unit: str,
    ) -> None:
        self._request = request
        self._end_ms = end_ms
        self._zero_ms = begin_ms
        self._pieces = pieces
        self._run_unit = run_unit
        if request.phase is not None:
            begins = [mark.at for mark in marks if mark.kind == "phase" and mark.name == request.phase and mark.at]
            self._zero_ms = min(begins, default=end_ms + 1)
            self._has_zero = bool(begins)
        else:
            self._has_zero = True
        epochs = sorted(epoch for mark in marks if (epoch := _epoch_of(mark)) is not None)
        self._epoch_times = np.array([at for at, _ in epochs], np.int64)
        self._epochs = np.array([number for _, number in epochs])

    def place(self, times_ms: Int64s, values: Float64s, *, unit: str) -> Line:
        """The line of one series."""
        if self._request.axis == "epoch":
            return over_epochs(times_ms, values, self._epoch_times, self._epochs, end_ms=self._end_ms)
        if self._request.axis == "step":
            steps = self._pieces.get((STEP, unit)) or self._pieces.get((STEP, self._run_unit))
            return over_steps(times_ms, values, *steps) if steps else Line(np.empty(0), np.empty(0))
        if not self._has_zero:
            return Line(np.empty(0), np.empty(0))
        return over_seconds(times_ms, values, zero_ms=self._zero_ms)


def _epoch_of(mark: RunMark) -> tuple[int, float] | None:
    """The start and number of an epoch; None for other marks, and for names that are not numbers, which old versions stored."""
    if mark.kind != "epoch" or mark.at is None or mark.name is None or _NUMBER.fullmatch(mark.name) is None:
        return None
    return mark.at, float(mark.name)


def _check_bands(groups: Sequence[Sequence[str]], request: LineRequest) -> None:
    lines = sum(map(len, groups)) * len(request.metrics)
    if lines > MAX_REPEATS or len(groups) * len(request.metrics) * request.points > MAX_VALUES:
        raise QueryError(
            f"{lines} lines of {len(groups)} groups with {request.points} points each are too many",
            hint=f"Request at most {MAX_REPEATS} lines and {MAX_VALUES} values.",
        )


def _check(request: LineRequest, *, is_thinned: bool = True) -> None:
    if not request.runs or not request.metrics:
        raise QueryError(
            "pass at least one run and one metric", hint="GET /api/v1/runs/metrics lists the metrics of runs."
        )
    if request.axis not in AXES:
        raise QueryError(f"unknown axis `{request.axis}`", hint=f"Choose one of {', '.join(AXES)}.")
    if request.phase is not None and request.axis != "time":
        raise QueryError("phase requires the axis time", hint="Omit phase, or choose the axis time.")
    if is_thinned and len(request.runs) * len(request.metrics) * request.points > MAX_VALUES:
        raise QueryError(
            f"{len(request.runs)} runs × {len(request.metrics)} metrics × {request.points} points are too many",
            hint=f"Request fewer: at most {MAX_VALUES} values.",
        )
