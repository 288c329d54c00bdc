"""The metric store in VictoriaMetrics or another Prometheus-compatible server, with its addresses, tenants and credentials.

Maps the contract to queries: a metric is the series ``clusterscape_<name>{unit=…}``, with an optional ``cluster`` label;
``sample_writers`` send them. The server's own settings control retention and downsampling.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.errors import StoreError
from clusterscape.model import SampleBatch, UnitId, UnixMs
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.durations import DAY_MS
from clusterscape.settings import MetricsServerSettings, RemoteWriteSettings
from clusterscape.store.metrics.contract import DayContents, MetricStoreInfo, SeriesStatistic
from clusterscape.store.metrics.kernels import QUANTILES, aggregate_samples, compute_increase, group_steps, is_counter
from clusterscape.store.metrics.prometheus_api import NotSupportedError, Points, PrometheusApi, quote
from clusterscape.store.metrics.sample_writers import PREFIX, ImportWriter, NoWriter, RemoteWriter, SampleWriter

_MAX_NAMED_UNITS = 256  # above this, all series are read and filtered here
_MAX_STEPS = 10_000  # a range query; Prometheus allows 11,000
_FUNCTIONS: Mapping[SeriesStatistic, str] = {
    SeriesStatistic.MIN: "min_over_time(",
    SeriesStatistic.MAX: "max_over_time(",
    SeriesStatistic.MEAN: "avg_over_time(",
    SeriesStatistic.STD: "stddev_over_time(",
    SeriesStatistic.COUNT: "count_over_time(",
    SeriesStatistic.FIRST: "first_over_time(",
    SeriesStatistic.LAST: "last_over_time(",
} | {statistic: f"quantile_over_time({quantile}, " for statistic, quantile in QUANTILES.items()}

_FROM_SAMPLES: Mapping[SeriesStatistic, Callable[[Float64s], float]] = {
    SeriesStatistic.INCREASE: lambda value: float(compute_increase(value, np.array([0, len(value)]))[0]),
    SeriesStatistic.FIRST: lambda value: float(value[0]),
}


@dataclass(frozen=True, slots=True)
class _Series:
    """Rows of one unit: times, and one or three columns."""

    unit: str
    time_ms: Int64s
    columns: tuple[Float64s, ...]


class VictoriaMetricStore:
    """A :class:`MetricStore` in VictoriaMetrics (single node or cluster) or another Prometheus-compatible server.

    Deviations from the contract: duplicates of (metric, unit, time) are removed only with ``-dedup.minScrapeInterval=1ms``, and
    the server chooses which one is kept; the first samples of a new series are visible after some seconds; a crash of the server
    may lose the last seconds; values of very different magnitude within one series lose digits; infinities are not stored.

    Reading works with any Prometheus-compatible server that has these series; ``writer`` sends samples.
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
        self._computed = frozenset({SeriesStatistic.INCREASE})

    @property
    def address(self) -> str:
        """Address of the server, without a password."""
        return self._api.address

    # -- writing -----------------------------------------------------------------------------------------------------

    def append(self, batch: SampleBatch) -> None:
        """Send ``batch``; VictoriaMetrics writes it to its disk within seconds."""
        self._writer.write(batch)

    def append_history(self, batches: Sequence[SampleBatch]) -> None:
        """Send older data, series by series, in requests of bounded size."""
        for batch in batches:
            self._writer.write_history(batch)

    # -- reading -----------------------------------------------------------------------------------------------------

    def latest(self, metrics: Sequence[str], *, at_ms: UnixMs, lookback_ms: int) -> pl.DataFrame:
        """The last value of each unit in [at − lookback, at]. One request per metric."""
        expressions = {
            metric: f"max by (unit) (last_over_time({self._selector(metric)}{self._range(lookback_ms + 1)}))"
            for metric in metrics
        }
        return self._table(expressions, time_ms=at_ms, units=None)

    def statistics(
        self,
        metric: str,
        statistics: Sequence[SeriesStatistic],
        *,
        start_ms: UnixMs,
        end_ms: UnixMs,
        units: Sequence[UnitId] | None = None,
    ) -> pl.DataFrame:
        """One row per unit. One request per statistic; those without a function on the server are computed here from samples."""
        selector = self._selector(metric, units)
        window = f"{selector}{self._range(max(1, end_ms - start_ms))}"
        queried = [statistic for statistic in statistics if statistic not in self._computed]
        expressions = {str(statistic): f"max by (unit) ({_FUNCTIONS[statistic]}{window}))" for statistic in queried}
        is_empty = end_ms <= start_ms or (units is not None and not units)
        try:
            table = self._table(expressions, time_ms=end_ms - 1, units=[] if is_empty else units)
        except StoreError as error:
            if "unknown function" not in error.message or SeriesStatistic.FIRST not in queried:
                raise
            self._computed = frozenset(_FROM_SAMPLES)  # Prometheus 2 or older
            return self.statistics(metric, statistics, start_ms=start_ms, end_ms=end_ms, units=units)
        computed = [statistic for statistic in dict.fromkeys(statistics) if statistic in self._computed]
        if computed:
            series = [] if is_empty else list(self._samples(metric, units, start_ms, end_ms))
            columns = {
                str(statistic): [_FROM_SAMPLES[statistic](unit_series.columns[0]) for unit_series in series]
                for statistic in computed
            }
            schema = {"unit": pl.String, **dict.fromkeys(columns, pl.Float64)}
            local = pl.DataFrame({"unit": [unit_series.unit for unit_series in series], **columns}, schema=schema)
            table = table.join(local, on="unit", how="full", coalesce=True)
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
        """Samples as the server exports them; steps as it computes them, except partial steps at the ends of the range."""
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
        """The steps in [start, end), which are multiples of the step: three range queries, evaluated at the end of each step."""
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
            # A closed range also returns the sample before the first one.
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
        """A range ``[…]`` of ``length_ms`` that ends with the query's time.

        VictoriaMetrics and Prometheus 3 exclude the first instant of a range, Prometheus 2 includes it.
        """
        if self._extra_ms is None:
            now_ms = time.time_ns() // 1_000_000  # any time that the server accepts
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
        """The days with samples in [start, end), oldest first. One request per day, and one per metric of the day."""
        cluster = "" if self._cluster is None else f",cluster={quote(self._cluster)}"
        selector = f"{{__name__=~{quote(PREFIX + '.+')}{cluster}}}"
        days = []
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
                days.append(DayContents(day, tuple(counts), sum(counts.values())))
        return days

    def read_all(self, metrics: Sequence[str], *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Samples of all units. One request per metric."""
        schema = {"unit": pl.String, "time_ms": pl.Int64, "value": pl.Float64}
        frames = [pl.DataFrame(schema={"metric": pl.String, **schema})]
        for metric in metrics:
            rows = _concat(list(self._samples(metric, None, start_ms, end_ms)), schema)
            frames.append(rows.select(pl.lit(metric).alias("metric"), pl.all()))
        return pl.concat(frames)

    def flush(self) -> bool:
        """Make written samples readable now; False if the server cannot, and does so by itself within seconds."""
        try:
            self._api.get_text("/internal/force_flush")
        except StoreError:
            return False
        return True

    # -- the rest ----------------------------------------------------------------------------------------------------

    def remove_unit(self, unit: UnitId, *, start_ms: UnixMs, end_ms: UnixMs) -> bool:
        """Delete entire series: VictoriaMetrics cannot delete a time range of them."""
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
        """Contents of the whole server, from its own metrics; None if they are missing."""
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
    values = aggregate_samples(series.columns[0], steps)
    return _Series(series.unit, steps.time_ms, (values.last if of_counter else values.mean, values.min, values.max))


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


WRITE_PATH = "/api/v1/write"
"""Path of remote write of Prometheus and VictoriaMetrics; Mimir has /api/v1/push, Thanos /api/v1/receive."""


def open_server_store(url: str, server: MetricsServerSettings, *, cluster: str | None) -> VictoriaMetricStore:
    """The store at ``url``, with the settings of ``server``. Does not connect yet."""
    api = PrometheusApi(
        read_url(url, server),
        timeout_s=server.timeout_s,
        headers=access_headers(server),
        parameters=server.query_parameters,
    )
    return VictoriaMetricStore(api, cluster=cluster, writer=_writer(url, server, cluster))


def read_url(url: str, server: MetricsServerSettings) -> str:
    """The URL of queries."""
    return f"{url.rstrip('/')}/select/{server.tenant}/prometheus" if server.layout == "cluster" else url


def write_url(url: str, server: MetricsServerSettings) -> str:
    """The URL of writes: the base of ``/api/v1/import``, or the complete remote-write URL."""
    base = (server.write_url or url).rstrip("/")
    if server.layout == "cluster":
        base = f"{base}/insert/{server.tenant}/prometheus"
    is_whole = server.write_protocol == "remote_write" and server.write_url is not None and server.layout == "single"
    return base if server.write_protocol != "remote_write" or is_whole else base + WRITE_PATH


def access_headers(server: MetricsServerSettings | RemoteWriteSettings) -> dict[str, str]:
    """Authentication headers of every request."""
    headers: dict[str, str] = {}
    if server.token is not None:
        headers["Authorization"] = f"Bearer {server.token}"
    if server.org_id is not None:
        headers["X-Scope-OrgID"] = server.org_id
    return headers | server.headers


def open_remote_writer(settings: RemoteWriteSettings, labels: Mapping[str, str]) -> RemoteWriter | None:
    """The writer to ``remote_write.url``; None if it is not set."""
    if settings.url is None:
        return None
    api = PrometheusApi(
        settings.url, timeout_s=settings.timeout_s, headers=access_headers(settings), setting="remote_write.url"
    )
    return RemoteWriter(api, labels={**settings.labels, **labels})


def _writer(url: str, server: MetricsServerSettings, cluster: str | None) -> SampleWriter:
    if server.write_protocol == "off":
        return NoWriter()
    setting = "storage.metrics" if server.write_url is None else "storage.metrics_server.write_url"
    api = PrometheusApi(
        write_url(url, server), timeout_s=server.timeout_s, headers=access_headers(server), setting=setting
    )
    if server.write_protocol == "import":
        return ImportWriter(api, cluster=cluster)
    return RemoteWriter(api, labels={} if cluster is None else {"cluster": cluster})
