"""Sends what ClusterScape finds out to a Prometheus-compatible server by remote write: state, violations, figures of runs.

Owns which series these are. Sending, and waiting while the server is away, is ``store/metrics/spooled``'s.
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
from clusterscape.model.run_units import is_run_unit
from clusterscape.model.samples import Float64s
from clusterscape.settings import RemoteWriteSettings
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.metrics.remote_write import labelled_unit
from clusterscape.store.metrics.spooled import SpoolSender
from clusterscape.store.records.contract import RecordStore
from clusterscape.supervision import BackgroundLoops
from clusterscape.watch.rulebook import RuleBook

log = logging.getLogger(__name__)

LOOKBACK_MS = 120_000
CLUSTER_METRICS: Mapping[str, Callable[[Float64s], float]] = {
    "gpu_util_ratio": lambda values: float(values.mean()),
    "power_watts": lambda values: float(values.sum()),
}
"""Told of the whole cluster, and how."""

Labels = Mapping[str, str]
Row = tuple[str, Labels, int, float]  # name, labels, Unix ms, value


class Exporting:
    """An ``IngestListener`` that passes samples on; ``look`` adds what is known beside them. Without a sender it does nothing."""

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
        """``decides``: of several processes one tells of the whole; samples are passed on by the one that stores them."""
        self._settings = settings
        self._sender = sender
        self._records = records
        self._metrics = metrics
        self._book = book
        self._clock = clock
        self._decides = decides
        self._looked_at = UnixMs(0)
        self._wanted: tuple[Names, list[bool]] = (Names(), [])
        self._loop = (loops or BackgroundLoops()).loop(
            "remote write", log, fails="what is known could not be sent", works="what is known is sent again"
        )

    async def run(self) -> None:
        """Look every ``every_s`` until cancelled."""
        while self._sender is not None:
            await asyncio.sleep(self._settings.every_s)
            if not self._decides():
                continue
            with self._loop:
                await executors.UPKEEP.run(self.look)

    def look(self) -> None:
        """Send the state of now."""
        now = self._clock()
        rows = [
            *self._describe_cluster(now),
            *self._describe_violations(now),
            *self._describe_runs(self._looked_at),
        ]
        self._looked_at = now
        if self._sender is not None and rows:
            self._sender.accept(batch_of(rows))

    def close(self) -> None:
        """Stop sending; what waits is sent after the next start."""
        if self._sender is not None:
            self._sender.close()

    # what ingest tells

    def on_samples(self, batch: SampleBatch) -> None:
        """A scrape was stored."""
        if self._sender is None or not self._settings.samples:
            return
        known, wanted = self._wanted
        if known is not batch.metrics or len(wanted) != len(batch.metrics):
            patterns = self._settings.samples
            wanted = [any(fnmatch.fnmatchcase(name, each) for each in patterns) for name in batch.metrics.values]
            self._wanted = (batch.metrics, wanted)
        keep = np.flatnonzero(np.array(wanted, np.bool_)[batch.metric])
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
        """A past was stored: servers refuse old samples, so it is not passed on."""

    def on_allocations(self, open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Told by ``look``."""

    def on_units(self, units: Iterable[Unit]) -> None:
        """Told by ``look``."""

    # what is told

    def _describe_cluster(self, now: UnixMs) -> Iterator[Row]:
        units, nodes = self._records.units(), self._records.nodes()
        held = {each.unit for each in self._records.open_allocations()}
        yield "cluster_units", {"state": "allocated"}, now, sum(unit.id in held for unit in units)
        yield "cluster_units", {"state": "free"}, now, sum(unit.id not in held for unit in units)
        for state, count in Counter(node.state.value for node in nodes).items():
            yield "cluster_nodes", {"state": state}, now, count
        active = self._records.active_workloads()
        for state, count in Counter(workload.state.value for workload in active).items():
            yield "cluster_workloads", {"state": state}, now, count
        asked: Counter[str] = Counter()
        for workload in active:
            asked[workload.state.value] += workload.gpus_requested
        for state, gpus in asked.items():
            yield "cluster_gpus_requested", {"state": state}, now, gpus
        latest = self._metrics.latest(list(CLUSTER_METRICS), at_ms=now, lookback_ms=LOOKBACK_MS)
        latest = latest.filter(pl.Series([not is_run_unit(unit) for unit in latest["unit"]], dtype=pl.Boolean))
        for metric, reduce in CLUSTER_METRICS.items():
            values = latest[metric].drop_nulls().to_numpy()
            if len(values):
                yield f"cluster_{metric}", {}, now, reduce(values)

    def _describe_violations(self, now: UnixMs) -> Iterator[Row]:
        """All rules, those that nobody breaks with 0: a series that ends could mean anything."""
        broken = self._records.open_violations()
        counts, gpus = Counter(each.rule for each in broken), Counter[str]()
        for each in broken:
            gpus[each.rule] += each.gpus
        for rule in self._book.enabled():
            labels = {"rule": rule.key, "severity": rule.severity.value}
            yield "violations_open", labels, now, counts[rule.key]
            yield "violations_gpus", labels, now, gpus[rule.key]

    def _describe_runs(self, since: UnixMs) -> Iterator[Row]:
        """The figures of runs that were written since, at that time."""
        for record in self._records.runs().records:
            figures, about = record.summary.figures, record.summary.about
            if record.written_at > since and figures is not None:
                labels = {"experiment": about.experiment, "workload": about.workload, "user": record.owned_by}
                names = {key: label for key, label in labels.items() if label}
                for name, value in _flatten("run", msgspec.to_builtins(figures)):
                    yield name, {"run": record.run, **names}, record.written_at, value


def batch_of(rows: Sequence[Row]) -> SampleBatch:
    """Rows as samples; what labels a row stands in the place of its unit."""
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
