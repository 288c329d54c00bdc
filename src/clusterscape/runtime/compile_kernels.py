"""Compiles the numba kernels of a server in a child process: each area runs a small workload on a synthetic site of 16 GPUs.

numba caches compiled functions in files, so that the server loads in milliseconds what took seconds to compile. Prints the name
of every area once it is compiled; run as ``python -m clusterscape.runtime.compile_kernels FOLDER``. The server removes the
folder, because this process may be killed.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from clusterscape.executors import compute_here
from clusterscape.model import (
    Allocation,
    InventoryObserved,
    Names,
    Node,
    NodeId,
    NodeState,
    Partition,
    QueueObserved,
    SampleBatch,
    Unit,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.runtime.site import Site, open_site, system_clock
from clusterscape.settings import Settings
from clusterscape.settings.storage import StorageSettings
from clusterscape.warm_up import Area

NODES = ("node-1", "node-2")
GPUS = range(8)
RUNNING, WAITING = WorkloadId("running"), WorkloadId("waiting")
MINUTES = 30
PR_SET_PDEATHSIG = 1
NICE = 5
"""The server has priority."""


def compile_rules(site: Site) -> None:
    """Compile statistics of lives and rules."""
    site.watch.open()
    units = Names(unit.id for unit in site.records.units())
    metrics = Names(("gpu_util_ratio", "power_watts"))
    for minute in range(3):
        site.ingest.accept_samples(_sample(units, metrics, UnixMs(site.clock() - (3 - minute) * 60_000)))
    site.watch.judge()


def compile_queue(site: Site) -> None:
    """Compile the plan of the queue, promises and forecasts."""
    site.services.promises.update()
    site.services.forecasts.update()
    site.queries.queue.all()
    site.queries.queue.story(WAITING)


def compile_diagnosis(site: Site) -> None:
    """Compile the clustering of GPUs."""
    site.queries.diagnosis.warm_up()


def compile_what_if(site: Site) -> None:
    """Compile what-if simulations."""
    from clusterscape.query.scheduling.whatif_answers import QueueWhatIf

    site.queries.what_if.ask(QueueWhatIf(placement="fgd", futures=2))


AREAS: Mapping[Area, Callable[[Site], None]] = {
    Area.RULES: compile_rules,
    Area.QUEUE: compile_queue,
    Area.DIAGNOSIS: compile_diagnosis,
    Area.WHAT_IF: compile_what_if,
}
"""In the order in which a server needs them."""


def compile_all(folder: Path, ready: Callable[[Area], None]) -> None:
    """Compile every area with a site in ``folder``; ``ready`` is called after each."""
    with _open_synthetic_site(folder) as site:
        for area, compile_area in AREAS.items():
            compile_area(site)
            ready(area)


@contextmanager
def _open_synthetic_site(folder: Path) -> Iterator[Site]:
    site = open_site(Settings(storage=StorageSettings(data_dir=folder)), compute=compute_here)
    now = system_clock()
    try:
        site.ingest.accept(_inventory(now))
        site.ingest.accept(_queue(now))
        yield site
    finally:
        site.close()


def _inventory(now: UnixMs) -> InventoryObserved:
    return InventoryObserved(
        source="slurm",
        at=now,
        nodes=[
            Node(id=NodeId(name), partitions=("gpu",), machine_type="GPU", state=NodeState.MIXED, gpu_count=len(GPUS))
            for name in NODES
        ],
        partitions=[Partition(name="gpu", nodes=tuple(NodeId(name) for name in NODES))],
        units=[
            Unit(id=gpu_unit_id(NodeId(name), index), node=NodeId(name), index=index, machine_type="GPU")
            for name in NODES
            for index in GPUS
        ],
    )


def _queue(now: UnixMs) -> QueueObserved:
    start = UnixMs(now - MINUTES * 60_000)
    common = {"partition": "gpu", "user": "somebody", "submitted_at": start, "eligible_at": start, "time_limit_s": 7200}
    running = Workload(
        id=RUNNING, state=WorkloadState.RUNNING, gpus_requested=8, nodes_requested=1, started_at=start,
        nodes=NODES[:1], **common,  # type: ignore[arg-type]
    )  # fmt: skip
    waiting = Workload(
        id=WAITING, state=WorkloadState.WAITING, gpus_requested=16, nodes_requested=2, priority=1,
        pending_reason="Resources", **common,  # type: ignore[arg-type]
    )  # fmt: skip
    allocations = [
        Allocation(workload=RUNNING, unit=gpu_unit_id(NodeId(NODES[0]), index), from_at=start) for index in GPUS
    ]
    return QueueObserved(source="slurm", at=now, workloads=[running, waiting], allocations=allocations)


def _sample(units: Names, metrics: Names, at: UnixMs) -> SampleBatch:
    unit, metric = np.divmod(np.arange(len(units) * len(metrics), dtype=np.int32), np.int32(len(metrics)))
    return SampleBatch(
        units=units,
        metrics=metrics,
        unit=unit,
        metric=metric,
        time_ms=np.full(len(unit), at, np.int64),
        value=np.linspace(0.1, 0.9, len(unit)),
    )


def _end_with_parent() -> None:
    """Ask Linux to kill this process when the server dies; on other systems it ends by itself after about a minute."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Compile all areas; print each to standard output, one per line."""
    _end_with_parent()
    os.nice(NICE)
    compile_all(Path(sys.argv[1]), lambda area: print(area.value, flush=True))


if __name__ == "__main__":
    main()
