"""The metric store in VictoriaMetrics, for sites that outgrow one machine or already run it.

Owns how the contract maps to series and queries: a metric is the series ``clusterscape_<name>{unit=…}``, with a ``cluster``
label where one is given. Retention and downsampling are VictoriaMetrics' own settings, not ours.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.errors import StoreError
from clusterscape.model import SampleBatch, UnitId, UnixMs
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.store.metrics.contract import MetricStoreInfo, Statistic
from clusterscape.store.metrics.kernels import QUANTILES, aggregate_samples, compute_increase, group_steps, is_counter
from clusterscape.store.metrics.prometheus_api import NotSupportedError, Points, PrometheusApi, quote

PREFIX = "clusterscape_"
_MAX_NAMED_UNITS = 256  # above this, all series are read and chosen from here
_MAX_STEPS = 10_000  # a range query; Prometheus allows 11,000
_SAMPLES_PER_IMPORT = 1_000_000
_INCREASE_SCHEMA = {"unit": pl.String, "increase": pl.Float64}
_FUNCTIONS: Mapping[Statistic, str] = {
    Statistic.MIN: "min_over_time(",
    Statistic.MAX: "max_over_time(",
    Statistic.MEAN: "avg_over_time(",
    Statistic.STD: "stddev_over_time(",
    Statistic.COUNT: "count_over_time(",
    Statistic.FIRST: "first_over_time(",
    Statistic.LAST: "last_over_time(",
} | {statistic: f"quantile_over_time({quantile}, " for statistic, quantile in QUANTILES.items()}


@dataclass(frozen=True, slots=True)
class _Series:
    """One unit's rows: times, and a column or three."""

    unit: str
    time_ms: Int64s
    columns: tuple[Float64s, ...]


class VictoriaMetricStore:
    """A :class:`MetricStore` in a VictoriaMetrics; a cluster of it is reached through vmauth.

    Differences that cannot be removed: two samples of the same (metric, unit, time) are one only where the server runs with
    ``-dedup.minScrapeInterval=1ms``, and which one stays is its choice; the first samples of a new series take some seconds
    to be seen; a crash of the server may lose the last seconds; values of very different size within one series lose digits;
    infinities are not stored.

    Reading works against any Prometheus-compatible server that holds such series; writing needs VictoriaMetrics' import.
    """

    def __init__(self, url: str, *, cluster: str | None = None, timeout_s: float = 30.0) -> None:
        self._api = PrometheusApi(url, timeout_s=timeout_s)
        self._cluster = cluster
        self._has_export = True

    # -- writing -----------------------------------------------------------------------------------------------------

    def append(self, batch: SampleBatch) -> None:
        """Send ``batch``; VictoriaMetrics writes it to its disk within seconds."""
        rows = _rows(batch)
        if len(rows):
            self._api.import_lines(self._lines(rows, batch))

    def append_history(self, batches: Sequence[SampleBatch]) -> None:
        """Send much older data, one line per series, in requests of bounded size."""
        for batch in batches:
            rows = _rows(batch).sort("metric", "unit", maintain_order=True)
            for part in rows.iter_slices(_SAMPLES_PER_IMPORT):
                series = part.group_by("metric", "unit", maintain_order=True).agg(pl.all().str.join(","))
                self._api.import_lines(self._lines(series, batch))

    def _lines(self, rows: pl.DataFrame, batch: SampleBatch) -> bytes:
        """JSON lines of rows of ``metric`` and ``unit`` (codes), ``value`` and ``time`` (texts, joined by commas)."""
        metrics = pl.Series([json.dumps(PREFIX + name) for name in batch.metrics.values], dtype=pl.String)
        units = pl.Series([json.dumps(name) for name in batch.units.values], dtype=pl.String)
        cluster = "" if self._cluster is None else f',"cluster":{json.dumps(self._cluster)}'
        lines = rows.select(
            pl.concat_str(
                pl.lit('{"metric":{"__name__":'),
                metrics.gather(rows["metric"]),
                pl.lit(cluster + ',"unit":'),
                units.gather(rows["unit"]),
                pl.lit('},"values":['),
                "value",
                pl.lit('],"timestamps":['),
                "time",
                pl.lit("]}"),
            ).str.join("\n")
        )
        text: str = lines.item()
        return text.encode()

    # -- reading -----------------------------------------------------------------------------------------------------

    def latest(self, metrics: Sequence[str], *, at_ms: UnixMs, lookback_ms: int) -> pl.DataFrame:
        """The last value of each unit in [at − lookback, at]. One request a metric."""
        expressions = {
            metric: f"max by (unit) (last_over_time({self._selector(metric)}[{lookback_ms + 1}ms]))"
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
        """One row per unit. One request a statistic; an increase is computed here, from the samples."""
        selector = self._selector(metric, units)
        window = f"{selector}[{max(1, end_ms - start_ms)}ms]"
        expressions = {
            str(statistic): f"max by (unit) ({_FUNCTIONS[statistic]}{window}))"
            for statistic in statistics
            if statistic is not Statistic.INCREASE
        }
        is_empty = end_ms <= start_ms or (units is not None and not units)
        table = self._table(expressions, time_ms=end_ms - 1, units=[] if is_empty else units)
        if Statistic.INCREASE in statistics:
            series = [] if is_empty else list(self._samples(metric, units, start_ms, end_ms))
            gains = [compute_increase(one.columns[0], np.array([0, len(one.time_ms)]))[0] for one in series]
            increase = pl.DataFrame({"unit": [one.unit for one in series], "increase": gains}, schema=_INCREASE_SCHEMA)
            table = table.join(increase, on="unit", how="full", coalesce=True)
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
            expression = f"max by (unit) ({function}({self._selector(metric, units)}[{step_ms}ms]))"
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
            keep = np.isfinite(points.value)
            if unit is not None and (units is None or unit in units) and keep.any():
                yield _Series(unit, points.time_ms[keep], (points.value[keep],))

    def _export(self, selector: str, start_ms: int, end_ms: int) -> list[Points]:
        if self._has_export:
            try:
                return list(self._api.export(selector, start_ms=start_ms, end_ms=end_ms))
            except NotSupportedError:
                self._has_export = False
        return self._api.query_raw(selector, start_ms=start_ms, end_ms=end_ms)

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

    # -- the rest ----------------------------------------------------------------------------------------------------

    def maintain(self, *, now_ms: UnixMs) -> None:
        """Nothing to do: VictoriaMetrics maintains itself."""

    def info(self) -> MetricStoreInfo:
        """What the whole server holds, as its own metrics tell; None where it does not tell."""
        try:
            text = self._api.get_text("/metrics")
        except StoreError:
            text = ""
        return MetricStoreInfo(
            engine="victoriametrics",
            samples=_sum_of(text, "vm_rows"),
            bytes_on_disk=_sum_of(text, "vm_data_size_bytes"),
            oldest_at=None,
            newest_at=None,
        )

    def close(self) -> None:
        """Close the connections."""
        self._api.close()


def _rows(batch: SampleBatch) -> pl.DataFrame:
    """The batch's finite samples, numbers as texts."""
    rows = pl.DataFrame({"metric": batch.metric, "unit": batch.unit, "value": batch.value, "time": batch.time_ms})
    return rows.filter(pl.col("value").is_finite()).with_columns(pl.col("value", "time").cast(pl.String))


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
