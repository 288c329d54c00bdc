"""The picture of 10,000 units on the wire: server time, bytes and decoding in the browser, compared with JSON rows.

Budget: ≤ 50 ms uncached, ≤ 500 KB compressed, ≤ 5 ms to decode; a tick of 10 metrics ≤ 120 KB.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
from clusters.opened import open_queries
from numpy.typing import NDArray
from servers.browser import chromium
from servers.in_thread import served_in_thread

from benchmarks.report import Report
from clusterscape.model import (
    CATALOGUE,
    Allocation,
    Names,
    Node,
    NodeId,
    NodeState,
    Partition,
    SampleBatch,
    Unit,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.query import Queries, QueryContext
from clusterscape.query.picture import SNAPSHOT_COLUMNS
from clusterscape.serve.wire import compress, to_ipc
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store
from clusterscape.store.records.mirror import MirroredRecordStore

ROOT = Path(__file__).parents[1]
NOW = UnixMs(1_790_000_000_000)
SUMMARY_METRICS = [metric.name for metric in CATALOGUE if metric.summary][:10]


def build_site(folder: Path, gpus: int) -> Queries:
    """A full cluster in real stores: 8 GPUs a node, jobs of 1 to 64 GPUs, a queue."""
    random = np.random.default_rng(7)
    storage = StorageSettings(data_dir=folder)
    records = MirroredRecordStore(open_record_store(storage))
    metrics = open_metric_store(storage, RetentionSettings())
    nodes = [
        Node(
            id=NodeId(f"gpu-{n:04}"), partitions=(f"part-{n % 3}",), machine_type="A100-80G", state=NodeState.MIXED,
            gpu_count=8, rack=f"r{n // 16}", driver_version="570.86",
        )
        for n in range(gpus // 8)
    ]  # fmt: skip
    units = [
        Unit(id=gpu_unit_id(node.id, g), node=node.id, index=g, machine_type="A100-80G", memory_bytes=80 * 2**30,
             power_limit_watts=400.0, uuid=f"GPU-{random.bytes(8).hex()}-{random.bytes(8).hex()}")  # type: ignore[arg-type]
        for node in nodes
        for g in range(8)
    ]  # fmt: skip
    workloads: list[Workload] = []
    allocations: list[Allocation] = []
    allocated = 0
    while allocated < gpus * 0.88:
        size = int(random.choice([1, 1, 2, 4, 8, 8, 16, 32, 64]))
        job = _workload(len(workloads), size, WorkloadState.RUNNING, random)
        workloads.append(job)
        allocations += [
            Allocation(workload=job.id, unit=unit.id, from_at=UnixMs(NOW - 3_600_000))
            for unit in units[allocated : allocated + size]
        ]
        allocated += size
    for _ in range(60):
        workloads.append(_workload(len(workloads), int(random.choice([1, 8, 16])), WorkloadState.WAITING, random))
    partitions = [
        Partition(name=f"part-{p}", nodes=tuple(n.id for n in nodes if n.partitions == (f"part-{p}",)))
        for p in range(3)
    ]
    records.write_inventory(nodes=nodes, partitions=partitions, units=units, at_ms=NOW)
    records.write_workloads(workloads, at_ms=NOW)
    records.write_allocations(allocations)
    metrics.append(_samples(units, random))
    changes = Changes()
    changes.bump_tick(NOW)
    return open_queries(
        QueryContext(metrics=metrics, records=records, changes=changes, clock=lambda: NOW, cluster="bench")
    )


def _workload(number: int, size: int, state: WorkloadState, random: np.random.Generator) -> Workload:
    user = int(random.integers(200))
    waiting = state is WorkloadState.WAITING
    return Workload(
        id=WorkloadId(f"slurm:{100000 + number}"), state=state, name=f"train-{number % 97}", user=f"user-{user}",
        project=f"project-{user % 23}", experiment=f"exp-{number % 61}", partition=f"part-{number % 3}",
        resource_type=f"A100-{size}", qos="normal", priority=int(random.integers(1000, 9000)), gpus_requested=size,
        submitted_at=UnixMs(NOW - int(random.integers(10**8))), started_at=None if waiting else UnixMs(NOW - 3_600_000),
        time_limit_s=86400, pending_reason="Priority" if waiting else None,
    )  # fmt: skip


def _samples(units: list[Unit], random: np.random.Generator) -> SampleBatch:
    names, metrics, count = Names(unit.id for unit in units), Names(SUMMARY_METRICS), len(SUMMARY_METRICS)
    # Values as an exporter gives them: whole percent, tenths of a watt, whole MiB.
    level = random.beta(2, 1, len(units))
    columns: list[NDArray[np.float64]] = []
    for name in SUMMARY_METRICS:
        if name.endswith("_ratio"):
            columns.append(np.round(np.clip(level + random.normal(0, 0.05, len(units)), 0, 1), 2).astype(np.float64))
        elif name == "power_watts":
            columns.append(np.round(60 + 320 * level + random.normal(0, 4, len(units)), 1))
        elif name.endswith("_celsius"):
            columns.append(np.round(35 + 40 * level))
        else:
            columns.append(np.round(level * 70_000) * 2**20)
    return SampleBatch(
        names, metrics,
        np.tile(np.arange(len(units), dtype=np.int32), count),
        np.repeat(np.arange(count, dtype=np.int32), len(units)),
        np.full(len(units) * count, NOW - 1000, dtype=np.int64),
        np.concatenate(columns).astype(np.float64),
    )  # fmt: skip


def median_ms(work: Callable[[], object], repeat: int = 15) -> float:
    """Median wall time in ms."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


def decode_in_browser(queries: Queries, rows: bytes) -> tuple[float, float]:
    """Median ms to decode the Arrow snapshot (every column touched) and to parse the same as JSON rows, in Chromium."""
    library = (ROOT / "web/node_modules/@uwdata/flechette/dist/flechette.min.js").read_text(encoding="utf-8")
    with served_in_thread(queries) as url, chromium() as browser:
        page = browser.new_page(bypass_csp=True)  # the library that decodes is handed in as text
        page.goto(f"{url}/healthz")
        page.add_script_tag(content=library)
        arrow, parse = page.evaluate(_DECODE, rows.decode())
    return arrow, parse


_DECODE = """async (rows) => {
  const bytes = new Uint8Array(await (await fetch('/api/v1/snapshot')).arrayBuffer());
  const median = (work) => {
    const times = [];
    for (let i = 0; i < 25; i++) {
      const begin = performance.now();
      work();
      times.push(performance.now() - begin);
    }
    return times.sort((a, b) => a - b)[12];
  };
  const decode = () => {
    const table = fl.tableFromIPC(bytes);
    for (const field of table.schema.fields) {
      const column = table.getChild(field.name);
      column.at(0);
      for (const batch of column.data) batch.values;
    }
  };
  return [median(decode), median(() => JSON.parse(rows))];
}"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = Report(f"Snapshot of {options.gpus:,} units × {len(SNAPSHOT_COLUMNS)} attributes")
    with tempfile.TemporaryDirectory() as folder:
        queries = build_site(Path(folder), options.gpus)
        cluster = queries.cluster
        picture = cluster.build_picture()
        ipc = to_ipc(picture)

        def answer() -> bytes:
            return compress(to_ipc(cluster.build_picture()), "zstd")

        def json_rows() -> bytes:
            return orjson.dumps(cluster.build_picture().to_dicts())

        rows = json_rows()
        report.add("server time, uncached", median_ms(answer), "ms", median_ms(json_rows, 3), "JSON rows", budget=50)
        report.add("  of it: joining the records", median_ms(cluster.build_picture), "ms")
        for encoding in ("zstd", "gzip"):
            packed = len(compress(rows, encoding)) / 1000
            report.add(
                f"on the wire, {encoding}", len(compress(ipc, encoding)) / 1000, "KB", packed, "JSON rows", budget=500
            )
        arrow_ms, json_ms = decode_in_browser(queries, rows)
        report.add("decoded in the browser", arrow_ms, "ms", json_ms, "JSON.parse", budget=5)
        tick = to_ipc(cluster.tick(SUMMARY_METRICS).table)
        for encoding in ("zstd", "gzip"):
            report.add(
                f"tick of {len(SUMMARY_METRICS)} metrics, {encoding}",
                len(compress(tick, encoding)) / 1000,
                "KB",
                budget=120,
            )
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
