"""Exports to a Prometheus-compatible server by remote write: cluster state, violations, figures of runs.

Owns the set of series. ``store/metrics/spool.py`` sends them and buffers them while the server is down.
"""

import asyncio
import fnmatch
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
import polars as pl

from clusterscape import executors
from clusterscape.model import Allocation, Names, SampleBatch, Unit, UnixMs
from clusterscape.model.arrays import Float64s
from clusterscape.model.runs import is_run_unit
from clusterscape.settings import RemoteWriteSettings
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.metrics.sample_writers import labelled_unit
from clusterscape.store.metrics.spool import SpoolSender
from clusterscape.store.records.contract import RecordStore
from clusterscape.supervision import BackgroundLoops
from clusterscape.watch.rulebook import RuleBook

log = logging.getLogger(__name__)

LOOKBACK_MS = 120_000
CLUSTER_METRICS: Mapping[str, Callable[[Float64s], float]] = {
    "gpu_util_ratio": lambda values: float(values.mean()),
    "power_watts": lambda values: float(values.sum()),
}
"""Metrics that are exported for the whole cluster, and how they are aggregated."""

Labels = Mapping[str, str]
Row = tuple[str, Labels, int, float]  # name, labels, Unix ms, value


class RemoteWriteExporter:
    """An ``IngestListener`` that forwards samples; ``export`` adds series about the cluster. Does nothing without a sender."""

    def __init__(
        self,
        settings: RemoteWriteSettings,
        sender: SpoolSender | None,
        *,
        records: RecordStore,
        metrics: MetricStore,
        book: RuleBook,
        clock: Callable[[], UnixMs],
        decides: Callable[[], bool] = lambda: True,
        loops: BackgroundLoops | None = None,
    ) -> None:
        """``decides``: whether this process exports cluster series; samples are forwarded by the process that stores them."""
        self._settings = settings
        self._sender = sender
        self._records = records
        self._metrics = metrics
        self._book = book
        self._clock = clock
        self._decides = decides
        self._exported_at = UnixMs(0)
        self._selection: tuple[Names, list[bool]] = (Names(), [])
        self._loop = (loops or BackgroundLoops()).loop(
            "remote write", log, fails="remote write failed", works="remote write works again"
        )

    async def run(self) -> None:
        """Export every ``every_s`` until cancelled."""
        while self._sender is not None:
            await asyncio.sleep(self._settings.interval_s)
            if not self._decides():
                continue
            with self._loop:
                await executors.UPKEEP.run(self.export)

    def export(self) -> None:
        """Send the current state."""
        now = self._clock()
        rows = [
            *self._describe_cluster(now),
            *self._describe_violations(now),
            *self._describe_runs(self._exported_at),
        ]
        self._exported_at = now
        if self._sender is not None and rows:
            self._sender.accept(batch_of(rows))

    def close(self) -> None:
        """Stop sending; spooled samples are sent after the next start."""
        if self._sender is not None:
            self._sender.close()

    # Hooks of ingest

    def on_samples(self, batch: SampleBatch) -> None:
        """Forward the samples of a scrape."""
        if self._sender is None or not self._settings.samples:
            return
        names, is_selected = self._selection
        if names is not batch.metrics or len(is_selected) != len(batch.metrics):
            patterns = self._settings.samples
            is_selected = [
                any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns) for name in batch.metrics.values
            ]
            self._selection = (batch.metrics, is_selected)
        keep = np.flatnonzero(np.array(is_selected, np.bool_)[batch.metric])
        if len(keep):
            self._sender.accept(
                SampleBatch(
                    batch.units,
                    batch.metrics,
                    batch.unit[keep],
                    batch.metric[keep],
                    batch.time_ms[keep],
                    batch.value[keep],
                )
            )

    def on_history(self, batches: Sequence[SampleBatch]) -> None:
        """Ignore past samples: servers refuse them."""

    def on_allocations(self, open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Do nothing: ``export`` covers it."""

    def on_units(self, units: Iterable[Unit]) -> None:
        """Do nothing: ``export`` covers it."""

    # Series

    def _describe_cluster(self, now: UnixMs) -> Iterator[Row]:
        units, nodes = self._records.units(), self._records.nodes()
        held = {allocation.unit for allocation in self._records.open_allocations()}
        yield "cluster_units", {"state": "allocated"}, now, sum(unit.id in held for unit in units)
        yield "cluster_units", {"state": "free"}, now, sum(unit.id not in held for unit in units)
        for state, count in Counter(node.state.value for node in nodes).items():
            yield "cluster_nodes", {"state": state}, now, count
        active = self._records.active_workloads()
        for state, count in Counter(workload.state.value for workload in active).items():
            yield "cluster_workloads", {"state": state}, now, count
        requested: Counter[str] = Counter()
        for workload in active:
            requested[workload.state.value] += workload.gpus_requested
        for state, gpus in requested.items():
            yield "cluster_gpus_requested", {"state": state}, now, gpus
        latest = self._metrics.latest(list(CLUSTER_METRICS), at_ms=now, lookback_ms=LOOKBACK_MS)
        latest = latest.filter(pl.Series([not is_run_unit(unit) for unit in latest["unit"]], dtype=pl.Boolean))
        for metric, reduce in CLUSTER_METRICS.items():
            values = latest[metric].drop_nulls().to_numpy()
            if len(values):
                yield f"cluster_{metric}", {}, now, reduce(values)

    def _describe_violations(self, now: UnixMs) -> Iterator[Row]:
        """Open violations of all rules, also those with 0: a series that ends would be ambiguous."""
        violations = self._records.open_violations()
        counts, gpus = Counter(violation.rule for violation in violations), Counter[str]()
        for violation in violations:
            gpus[violation.rule] += violation.gpus
        for rule in self._book.enabled():
            labels = {"rule": rule.key, "severity": rule.severity.value}
            yield "violations_open", labels, now, counts[rule.key]
            yield "violations_gpus", labels, now, gpus[rule.key]

    def _describe_runs(self, since: UnixMs) -> Iterator[Row]:
        """The figures of runs that were written since then, with the time of writing."""
        for record in self._records.runs().records:
            figures, about = record.summary.figures, record.summary.about
            if record.written_at > since and figures is not None:
                labels = {"experiment": about.experiment, "workload": about.workload, "user": record.owned_by}
                names = {key: label for key, label in labels.items() if label}
                for name, value in _flatten("run", msgspec.to_builtins(figures)):
                    yield name, {"run": record.run, **names}, record.written_at, value


def batch_of(rows: Sequence[Row]) -> SampleBatch:
    """Rows as samples; the labels of a row are encoded as its unit."""
    units, metrics = Names(), Names()
    return SampleBatch(
        units,
        metrics,
        np.array([units.code(labelled_unit(labels)) for _, labels, _, _ in rows], np.int32),
        np.array([metrics.code(name) for name, _, _, _ in rows], np.int32),
        np.array([at for _, _, at, _ in rows], np.int64),
        np.array([value for _, _, _, value in rows], np.float64),
    )


def _flatten(prefix: str, figures: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    for key, value in figures.items():
        name = f"{prefix}_{re.sub(r'[^a-zA-Z0-9_]', '_', str(key))}"
        if isinstance(value, Mapping):
            yield from _flatten(name, value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value):
            yield name, float(value)
