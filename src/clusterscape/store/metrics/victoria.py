"""The metric store in VictoriaMetrics or another Prometheus-compatible server, for sites that outgrow one machine.

Owns how the contract maps to queries: a metric is the series ``clusterscape_<name>{unit=…}``, with a ``cluster`` label where
one is given; ``sample_writers`` send them. Retention and downsampling are the server's own settings, not ours.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.errors import StoreError
from clusterscape.model import SampleBatch, UnitId, UnixMs
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.store.metrics.contract import DayContents, MetricStoreInfo, Statistic
from clusterscape.store.metrics.kernels import QUANTILES, aggregate_samples, compute_increase, group_steps, is_counter
from clusterscape.store.metrics.prometheus_api import NotSupportedError, Points, PrometheusApi, quote
from clusterscape.store.metrics.sample_writers import PREFIX, ImportWriter, SampleWriter

_MAX_NAMED_UNITS = 256  # above this, all series are read and chosen from here
DAY_MS = 86_400_000
_MAX_STEPS = 10_000  # a range query; Prometheus allows 11,000
_FUNCTIONS: Mapping[Statistic, str] = {
    Statistic.MIN: "min_over_time(",
    Statistic.MAX: "max_over_time(",
    Statistic.MEAN: "avg_over_time(",
    Statistic.STD: "stddev_over_time(",
    Statistic.COUNT: "count_over_time(",
    Statistic.FIRST: "first_over_time(",
    Statistic.LAST: "last_over_time(",
} | {statistic: f"quantile_over_time({quantile}, " for statistic, quantile in QUANTILES.items()}

_FROM_SAMPLES: Mapping[Statistic, Callable[[Float64s], float]] = {
    Statistic.INCREASE: lambda value: float(compute_increase(value, np.array([0, len(value)]))[0]),
    Statistic.FIRST: lambda value: float(value[0]),
}


@dataclass(frozen=True, slots=True)
class _Series:
    """One unit's rows: times, and a column or three."""

    unit: str
    time_ms: Int64s
    columns: tuple[Float64s, ...]


class VictoriaMetricStore:
    """A :class:`MetricStore` in a VictoriaMetrics, one or a cluster of it, or in what speaks Prometheus' API.

    Differences that cannot be removed: two samples of the same (metric, unit, time) are one only where the server runs with
    ``-dedup.minScrapeInterval=1ms``, and which one stays is its choice; the first samples of a new series take some seconds
    to be seen; a crash of the server may lose the last seconds; values of very different size within one series lose digits;
    infinities are not stored.

    Reading works against any Prometheus-compatible server that holds such series; how samples are sent is ``writer``'s.
    """

    def __init__(
        self,
        server: str | PrometheusApi,
        *,
        cluster: str | None = None,
        timeout_s: float = 30.0,
        writer: SampleWriter | None = None,
    ) -> None:
        self._api = PrometheusApi(server, timeout_s=timeout_s) if isinstance(server, str) else server
        self._cluster = cluster
        self._writer = writer or ImportWriter(self._api, cluster=cluster)
        self._has_export = True
        self._extra_ms: int | None = None
        self._computed = frozenset({Statistic.INCREASE})

    @property
    def address(self) -> str:
        """Of the server, without a password."""
        return self._api.address

    # -- writing -----------------------------------------------------------------------------------------------------

    def append(self, batch: SampleBatch) -> None:
        """Send ``batch``; VictoriaMetrics writes it to its disk within seconds."""
        self._writer.write(batch)

    def append_history(self, batches: Sequence[SampleBatch]) -> None:
        """Send much older data, series by series, in requests of bounded size."""
        for batch in batches:
            self._writer.write_history(batch)

    # -- reading -----------------------------------------------------------------------------------------------------

    def latest(self, metrics: Sequence[str], *, at_ms: UnixMs, lookback_ms: int) -> pl.DataFrame:
        """The last value of each unit in [at − lookback, at]. One request a metric."""
        expressions = {
            metric: f"max by (unit) (last_over_time({self._selector(metric)}{self._range(lookback_ms + 1)}))"
            for metric in metrics
        }
        return self._table(expressions, time_ms=at_ms, units=None)

    def statistics(
        self,
        metric: str,
        statistics: Sequence[Statistic],
        *,
        start_ms: UnixMs,
        end_ms: UnixMs,
        units: Sequence[UnitId] | None = None,
    ) -> pl.DataFrame:
        """One row per unit. One request a statistic; what the server has no function for is computed here, from the samples."""
        selector = self._selector(metric, units)
        window = f"{selector}{self._range(max(1, end_ms - start_ms))}"
        asked = [statistic for statistic in statistics if statistic not in self._computed]
        expressions = {str(each): f"max by (unit) ({_FUNCTIONS[each]}{window}))" for each in asked}
        is_empty = end_ms <= start_ms or (units is not None and not units)
        try:
            table = self._table(expressions, time_ms=end_ms - 1, units=[] if is_empty else units)
        except StoreError as error:
            if "unknown function" not in error.message or Statistic.FIRST not in asked:
                raise
            self._computed = frozenset(_FROM_SAMPLES)  # it is Prometheus 2, or as old
            return self.statistics(metric, statistics, start_ms=start_ms, end_ms=end_ms, units=units)
        computed = [each for each in dict.fromkeys(statistics) if each in self._computed]
        if computed:
            series = [] if is_empty else list(self._samples(metric, units, start_ms, end_ms))
            columns = {str(each): [_FROM_SAMPLES[each](one.columns[0]) for one in series] for each in computed}
            schema = {"unit": pl.String, **dict.fromkeys(columns, pl.Float64)}
            found = pl.DataFrame({"unit": [one.unit for one in series], **columns}, schema=schema)
            table = table.join(found, on="unit", how="full", coalesce=True)
        return table.select("unit", *dict.fromkeys(map(str, statistics)))

    def series(
        self,
        metrics: Sequence[str],
        units: Sequence[UnitId],
        *,
        start_ms: UnixMs,
        end_ms: UnixMs,
        step_ms: int | None = None,
    ) -> pl.DataFrame:
        """Samples as VictoriaMetrics exports them; steps as it computes them, but those that the range cuts from samples."""
        columns = ["value"] if step_ms is None else ["value", "min", "max"]
        schema = {"unit": pl.String, "time_ms": pl.Int64, **dict.fromkeys(columns, pl.Float64)}
        frames = [pl.DataFrame(schema={"metric": pl.String, **schema})]
        for metric in sorted(set(metrics)) if units and start_ms < end_ms else ():
            if step_ms is None:
                parts = self._samples(metric, units, start_ms, end_ms)
            else:
                parts = self._steps(metric, units, start_ms, end_ms, step_ms)
            rows = _concat(list(parts), schema).sort("unit", "time_ms", maintain_order=True)
            frames.append(rows.select(pl.lit(metric).alias("metric"), pl.all()))
        return pl.concat(frames)

    def _steps(
        self, metric: str, units: Sequence[UnitId], start_ms: int, end_ms: int, step_ms: int
    ) -> Iterator[_Series]:
        first_ms = -(-start_ms // step_ms) * step_ms
        last_ms = max(first_ms, end_ms // step_ms * step_ms)
        for from_ms, to_ms in ((start_ms, min(first_ms, end_ms)), (last_ms, end_ms)):
            if from_ms < to_ms:
                for series in self._samples(metric, units, from_ms, to_ms):
                    yield _in_steps(series, step_ms, of_counter=is_counter(metric))
        for from_ms in range(first_ms, last_ms, _MAX_STEPS * step_ms):
            to_ms = min(last_ms, from_ms + _MAX_STEPS * step_ms)
            yield from self._whole_steps(metric, units, from_ms, to_ms, step_ms)

    def _whole_steps(
        self, metric: str, units: Sequence[UnitId], start_ms: int, end_ms: int, step_ms: int
    ) -> Iterator[_Series]:
        """The steps in [start, end), which are multiples of the step: three range queries, each step asked for at its end."""
        functions = ["last_over_time" if is_counter(metric) else "avg_over_time", "min_over_time", "max_over_time"]
        answers = []
        for function in functions:
            expression = f"max by (unit) ({function}({self._selector(metric, units)}{self._range(step_ms)}))"
            points = self._api.query_range(
                expression, start_ms=start_ms + step_ms - 1, last_ms=end_ms - 1, step_ms=step_ms
            )
            answers.append({series.labels.get("unit", ""): series for series in points})
        wanted = set(units)
        for unit, value in answers[0].items():
            if unit in wanted:
                low, high = answers[1][unit], answers[2][unit]
                yield _Series(unit, value.time_ms - step_ms + 1, (value.value, low.value, high.value))

    def _samples(self, metric: str, units: Sequence[UnitId] | None, start_ms: int, end_ms: int) -> Iterator[_Series]:
        """The raw samples in [start, end) of each unit that has any."""
        selector = self._selector(metric, units)
        for points in self._export(selector, start_ms, end_ms):
            unit = points.labels.get("unit")
            # A closed range brings the sample before the first one, too.
            keep = np.isfinite(points.value) & (points.time_ms >= start_ms) & (points.time_ms < end_ms)
            if unit is not None and (units is None or unit in units) and keep.any():
                yield _Series(unit, points.time_ms[keep], (points.value[keep],))

    def _export(self, selector: str, start_ms: int, end_ms: int) -> list[Points]:
        if self._has_export:
            try:
                return list(self._api.export(selector, start_ms=start_ms, end_ms=end_ms))
            except NotSupportedError:
                self._has_export = False
        return self._api.query_raw(selector, start_ms=start_ms, end_ms=end_ms)

    def _range(self, length_ms: int) -> str:
        """A range of so many milliseconds, the last one that of the query: ``[…]``.

        VictoriaMetrics and Prometheus 3 leave out the range's first instant, Prometheus 2 takes it in.
        """
        if self._extra_ms is None:
            now_ms = time.time_ns() // 1_000_000  # any time would do; one that every server accepts
            self._extra_ms = int(self._api.is_range_closed(time_ms=now_ms))
        return f"[{max(1, length_ms - self._extra_ms)}ms]"

    def _table(self, expressions: Mapping[str, str], *, time_ms: int, units: Sequence[UnitId] | None) -> pl.DataFrame:
        """One row per unit, one column per expression."""
        answers = [self._api.query(text, time_ms=time_ms, label="unit") for text in expressions.values()]
        row_of: dict[str, int] = {}
        wanted = None if units is None else set(map(str, units))
        for names, _ in answers:
            for name in names:
                if wanted is None or name in wanted:
                    row_of.setdefault(name, len(row_of))
        columns = {"unit": pl.Series(list(row_of), dtype=pl.String)}
        for column, (names, value) in zip(expressions, answers, strict=True):
            rows = np.array([row_of.get(name, -1) for name in names], dtype=np.int64)
            values = np.full(len(row_of), np.nan)
            values[rows[rows >= 0]] = value[rows >= 0]
            columns[column] = pl.Series(values, nan_to_null=True)
        return pl.DataFrame(columns)

    def _selector(self, metric: str, units: Sequence[UnitId] | None = None) -> str:
        matchers = [f"__name__={quote(PREFIX + metric)}"]
        if self._cluster is not None:
            matchers.append(f"cluster={quote(self._cluster)}")
        if units is not None and len(units) <= _MAX_NAMED_UNITS:
            matchers.append(f"unit=~{quote('|'.join(map(re.escape, units)))}")
        return "{" + ",".join(matchers) + "}"

    def days(self, *, start_ms: UnixMs, end_ms: UnixMs) -> list[DayContents]:
        """The days with samples in [start, end), oldest first. One request a day, and one for each metric it has."""
        cluster = "" if self._cluster is None else f",cluster={quote(self._cluster)}"
        selector = f"{{__name__=~{quote(PREFIX + '.+')}{cluster}}}"
        found = []
        for day in range(start_ms // DAY_MS, -(-end_ms // DAY_MS)):
            first_ms, last_ms = day * DAY_MS, (day + 1) * DAY_MS - 1
            names = self._api.label_values("__name__", selector, start_ms=first_ms, end_ms=last_ms + 1)
            counts = {}
            for metric in sorted(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)):
                counted = f"count_over_time({self._selector(metric)}{self._range(DAY_MS)})"
                expression = f'label_replace(sum({counted}), "all", "yes", "", "")'
                count = int(self._api.query(expression, time_ms=last_ms, label="all")[1].sum())
                if count:
                    counts[metric] = count
            if counts:
                found.append(DayContents(day, tuple(counts), sum(counts.values())))
        return found

    def read_all(self, metrics: Sequence[str], *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Samples of all units. One request a metric."""
        schema = {"unit": pl.String, "time_ms": pl.Int64, "value": pl.Float64}
        frames = [pl.DataFrame(schema={"metric": pl.String, **schema})]
        for metric in metrics:
            rows = _concat(list(self._samples(metric, None, start_ms, end_ms)), schema)
            frames.append(rows.select(pl.lit(metric).alias("metric"), pl.all()))
        return pl.concat(frames)

    def flush(self) -> bool:
        """Make what was written visible now; False where the server does that only by itself, within seconds."""
        try:
            self._api.get_text("/internal/force_flush")
        except StoreError:
            return False
        return True

    # -- the rest ----------------------------------------------------------------------------------------------------

    def remove_unit(self, unit: UnitId, *, start_ms: UnixMs, end_ms: UnixMs) -> bool:
        """Ask the server to delete series; whole ones, since VictoriaMetrics deletes no parts of them."""
        del start_ms, end_ms
        cluster = "" if self._cluster is None else f",cluster={quote(self._cluster)}"
        units = quote(f"{re.escape(unit)}(/.*)?")
        try:
            self._api.delete_series(f"{{__name__=~{quote(PREFIX + '.+')},unit=~{units}{cluster}}}")
        except NotSupportedError:
            return False
        return True

    def maintain(self, *, now_ms: UnixMs) -> None:
        """Nothing to do: the server maintains itself."""

    def info(self) -> MetricStoreInfo:
        """What the whole server holds, as its own metrics tell; None where it does not tell."""
        try:
            text = self._api.get_text("/metrics")
        except StoreError:
            text = ""
        return MetricStoreInfo(
            engine="prometheus" if "prometheus_build_info" in text else "victoriametrics",
            samples=_sum_of(text, "vm_rows"),
            bytes_on_disk=_sum_of(text, "vm_data_size_bytes"),
            oldest_at=None,
            newest_at=None,
        )

    def close(self) -> None:
        """Close the connections."""
        self._writer.close()
        self._api.close()


def _in_steps(series: _Series, step_ms: int, *, of_counter: bool) -> _Series:
    steps = group_steps(series.time_ms, np.array([0, len(series.time_ms)]), step_ms)
    found = aggregate_samples(series.columns[0], steps)
    return _Series(series.unit, steps.time_ms, (found.last if of_counter else found.mean, found.min, found.max))


def _concat(parts: Sequence[_Series], schema: Mapping[str, pl.DataType | type[pl.DataType]]) -> pl.DataFrame:
    if not parts:
        return pl.DataFrame(schema=schema)
    names = pl.Series([part.unit for part in parts], dtype=pl.String)
    lengths = [len(part.time_ms) for part in parts]
    arrays = [np.concatenate([part.time_ms for part in parts])]
    arrays += [np.concatenate(column) for column in zip(*(part.columns for part in parts), strict=True)]
    unit = names.gather(np.repeat(np.arange(len(parts)), lengths))
    return pl.DataFrame(dict(zip(schema, [unit, *arrays], strict=True)), schema=schema)


def _sum_of(metrics_text: str, name: str) -> int | None:
    """The sum of a metric's ``storage`` lines in exposition text."""
    lines = re.findall(rf'^{name}{{type="storage/[^"]*"}} (\S+)', metrics_text, flags=re.MULTILINE)
    return int(sum(map(float, lines))) if lines else None
