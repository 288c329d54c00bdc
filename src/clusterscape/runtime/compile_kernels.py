"""Compiles what a server computes with, in a process of its own: each area asks a made-up site of sixteen GPUs a small question.

numba keeps compiled functions in files, so that the server loads in milliseconds what took seconds to compile. Prints the name
of every area once it is compiled; run as ``python -m clusterscape.runtime.compile_kernels``.
"""

import ctypes
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

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
"""The server goes first."""


def compile_rules(site: Site) -> None:
    """Statistics of lives, and rules judged by them."""
    site.watch.open()
    units = Names(unit.id for unit in site.records.units())
    metrics = Names(("gpu_util_ratio", "power_watts"))
    for minute in range(3):
        site.ingest.accept_samples(_sample(units, metrics, UnixMs(site.clock() - (3 - minute) * 60_000)))
    site.watch.judge()


def compile_queue(site: Site) -> None:
    """The plan of the queue, promises and forecasts."""
    site.queries.promises.look()
    site.queries.waits.tend()
    site.queries.queue.all()
    site.queries.queue.story(WAITING)


def compile_diagnosis(site: Site) -> None:
    """Groups of GPUs that behave alike."""
    site.queries.diagnosis.warm_up()


def compile_what_if(site: Site) -> None:
    """The cluster simulated ahead."""
    from clusterscape.query.scheduling.whatif_answers import QueueWhatIf

    site.queries.what_if.ask(QueueWhatIf(futures=2))


AREAS: Mapping[Area, Callable[[Site], None]] = {
    Area.RULES: compile_rules,
    Area.QUEUE: compile_queue,
    Area.DIAGNOSIS: compile_diagnosis,
    Area.WHAT_IF: compile_what_if,
}
"""In the order in which a server needs them."""


def compile_all(ready: Callable[[Area], None]) -> None:
    """Compile every area; ``ready`` is told after each."""
    with tempfile.TemporaryDirectory(prefix="clusterscape-compile-") as folder, _made_up_site(Path(folder)) as site:
        for area, compile_area in AREAS.items():
            compile_area(site)
            ready(area)


@contextmanager
def _made_up_site(folder: Path) -> Iterator[Site]:
    site = open_site(Settings(storage=StorageSettings(data_dir=folder)))
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
    began = UnixMs(now - MINUTES * 60_000)
    about = {"partition": "gpu", "user": "somebody", "submitted_at": began, "eligible_at": began, "time_limit_s": 7200}
    running = Workload(
        id=RUNNING, state=WorkloadState.RUNNING, gpus_requested=8, nodes_requested=1, started_at=began,
        nodes=NODES[:1], **about,  # type: ignore[arg-type]
    )  # fmt: skip
    waiting = Workload(
        id=WAITING, state=WorkloadState.WAITING, gpus_requested=16, nodes_requested=2, priority=1,
        pending_reason="Resources", **about,  # type: ignore[arg-type]
    )  # fmt: skip
    held = [Allocation(workload=RUNNING, unit=gpu_unit_id(NodeId(NODES[0]), index), from_at=began) for index in GPUS]
    return QueueObserved(source="slurm", at=now, workloads=[running, waiting], allocations=held)


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
    """Ask Linux to end this process when the server is killed; elsewhere it goes on for a minute and ends by itself."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """For ``python -m``: areas to standard output, one in a line."""
    _end_with_parent()
    os.nice(NICE)
    compile_all(lambda area: print(area.value, flush=True))


if __name__ == "__main__":
    main()
