"""Opening the diagnosis of a long run: 64 GPUs over 7 days at 15 s (18 million samples of 7 metrics) in the embedded store.

Budgets: the first picture (diagnosis, histograms and lines of one metric) within 1.5 s, a zoom to two hours within 0.3 s. Each
round asks fresh queries, so that nothing is loaded yet; only the analysis is compiled. Wall time is that of a shared machine:
the processor time in the same row is the cost.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from clusters.opened import open_queries

from benchmarks.report import Report
from clusterscape.model import (
    Allocation,
    Names,
    Node,
    NodeId,
    Partition,
    SampleBatch,
    Unit,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.query import Queries, QueryContext
from clusterscape.serve.wire import to_ipc
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records import open_record_store
from clusterscape.store.records.contract import RecordStore

NOW = UnixMs(1_790_000_000_000)
HOUR_MS, DAY_MS, STEP_MS = 3_600_000, 86_400_000, 15_000
GPUS_PER_NODE = 8
WORKLOAD = WorkloadId("slurm:1")
METRICS = (
    "gpu_util_ratio",
    "power_watts",
    "memory_used_bytes",
    "sm_active_ratio",
    "tensor_active_ratio",
    "sm_clock_hertz",
    "energy_joules",
)


def fill_records(records: RecordStore, gpus: int, days: int) -> list[UnitId]:
    """One job on whole nodes; its units."""
    nodes = [NodeId(f"n{i:03}") for i in range(-(-gpus // GPUS_PER_NODE))]
    units = [gpu_unit_id(node, index) for node in nodes for index in range(GPUS_PER_NODE)][:gpus]
    start = UnixMs(NOW - days * DAY_MS)
    records.write_inventory(
        nodes=[Node(id=node, partitions=("main",), machine_type="H100", gpu_count=GPUS_PER_NODE) for node in nodes],
        partitions=[Partition(name="main", nodes=tuple(nodes))],
        units=[
            Unit(id=unit, node=nodes[i // GPUS_PER_NODE], index=i % GPUS_PER_NODE, memory_bytes=80 * 2**30)
            for i, unit in enumerate(units)
        ],
        at_ms=NOW,
    )
    job = Workload(id=WORKLOAD, state=WorkloadState.RUNNING, gpus_requested=gpus, started_at=start, nodes=tuple(nodes))
    records.write_workloads([job], at_ms=NOW)
    records.write_allocations([Allocation(workload=job.id, unit=unit, from_at=start) for unit in units])
    return units


def fill_metrics(metrics: MetricStore, units: Sequence[UnitId], days: int) -> int:
    """Telemetry of a job whose first GPU of each node is less busy; each node is scraped at an offset of its own."""
    rng = np.random.default_rng(0)
    unit_names, metric_names = Names(units), Names(METRICS)
    offsets = np.repeat(rng.integers(0, 1000, -(-len(units) // GPUS_PER_NODE)), GPUS_PER_NODE)[: len(units)]
    energy = np.zeros(len(units))
    written = 0
    for begin in range(NOW - days * DAY_MS, NOW, DAY_MS):
        times = np.arange(begin, begin + DAY_MS, STEP_MS, dtype=np.int64)
        shape = (times.size, len(units))
        wave = 0.85 + 0.08 * np.sin(times / 600_000)[:, None]
        master = np.where(np.arange(len(units)) % GPUS_PER_NODE == 0, 0.25, 0.0)
        util = np.clip(np.round(wave - master + rng.normal(0, 0.04, shape), 2), 0, 1)
        power = np.round(100 + 550 * util + rng.normal(0, 8, shape), 1)
        energy_so_far = energy + np.cumsum(power * STEP_MS / 1000, axis=0)
        energy = energy_so_far[-1]
        memory = np.round(60e9 + rng.normal(0, 2e7, shape), -6)
        columns = [util, power, memory, util * 0.9, util * 0.6, np.full(shape, 1.98e9), energy_so_far]
        size = times.size * len(units)
        batch = SampleBatch(
            unit_names,
            metric_names,
            np.tile(np.tile(np.arange(len(units), dtype=np.int32), times.size), len(columns)),
            np.repeat(np.arange(len(columns), dtype=np.int32), size),
            np.tile((times[:, None] + offsets).reshape(-1), len(columns)),
            np.concatenate([column.reshape(-1) for column in columns]),
        )
        metrics.append_history([batch])
        written += len(batch)
    metrics.maintain(now_ms=NOW)
    return written


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor time, ms."""
    start, start_processor = time.perf_counter(), time.process_time()
    work()
    return 1e3 * (time.perf_counter() - start), 1e3 * (time.process_time() - start_processor)


def open_once(make: Callable[[], Queries]) -> dict[str, tuple[float, float]]:
    """One round of the page's queries, with nothing loaded."""
    queries = make().diagnosis
    took = {
        "diagnosis": measure(lambda: queries.diagnosis(WORKLOAD)),
        "histograms": measure(lambda: to_ipc(queries.histograms(WORKLOAD, metric=METRICS[0]).table)),
        "lines of all GPUs": measure(lambda: to_ipc(queries.lines(WORKLOAD, metrics=METRICS[:1], summary="clusters"))),
    }
    took["first picture"] = (sum(times[0] for times in took.values()), sum(times[1] for times in took.values()))
    took["lines of 7 metrics"] = measure(lambda: to_ipc(queries.lines(WORKLOAD, metrics=METRICS)))
    noon = NOW - 3 * DAY_MS
    took["zoom: lines of 2 h"] = measure(
        lambda: to_ipc(queries.lines(WORKLOAD, metrics=METRICS[:1], start_ms=noon, end_ms=noon + 2 * HOUR_MS))
    )
    took["zoom: diagnosis of 2 h"] = measure(
        lambda: queries.diagnosis(WORKLOAD, start_ms=noon, end_ms=noon + 2 * HOUR_MS)
    )
    took["scatter of two metrics, robust"] = measure(
        lambda: to_ipc(queries.scatter(WORKLOAD, x=METRICS[0], y=METRICS[1], robust=True).table)
    )
    return took


BUDGETS_MS = {"first picture": 1500.0, "zoom: lines of 2 h": 300.0}


def main() -> int:
    """Build the store, open the diagnosis a few times, print the best round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="Keep the store here, and use it where it is there already.")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        is_there = (folder / "data").is_dir()
        storage = StorageSettings(data_dir=folder / "data")
        metrics, records = open_metric_store(storage, RetentionSettings()), open_record_store(storage)
        if not is_there:
            fill_metrics(metrics, fill_records(records, options.gpus, options.days), options.days)
        samples = metrics.info().samples or 0

        def make() -> Queries:
            context = QueryContext(
                metrics=metrics, records=records, changes=Changes(), clock=lambda: NOW, cluster="benchmark"
            )
            return open_queries(context)

        open_once(make)  # compiles
        rounds = [open_once(make) for _ in range(options.rounds)]
        metrics.close()
        records.close()
    report = Report(f"Diagnosis of {options.gpus} GPUs over {options.days} days: {samples:,} samples")
    for name in rounds[0]:
        report.add(name, min(times[name][0] for times in rounds), "ms", budget=BUDGETS_MS.get(name))
        report.add("  processor time", min(times[name][1] for times in rounds), "ms")
    report.publish(as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
