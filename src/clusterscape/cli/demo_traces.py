"""Imports a recorded trace for two running workloads of the demo, while the server runs."""

import asyncio
from typing import TYPE_CHECKING

from clusterscape import executors
from clusterscape.demo.recorded import RANKS, RECORDED_TRACES, RecordedTrace, trace_files
from clusterscape.model import Workload, WorkloadState
from clusterscape.store.records.contract import WorkloadFilter

if TYPE_CHECKING:
    from clusterscape.runtime.site import Site

RECORDED_AGO_MS = 10 * 60_000
"""Age of the traces: the workload was running then and has metrics."""
TIMEOUT_S = 120.0
POLL_INTERVAL_S = 1.0
MAX_WORKLOADS = 2000


async def import_demo_traces(site: "Site") -> None:
    """Import the recorded traces, unless an earlier start of the demo did."""
    if await executors.UPKEEP.run(lambda: site.queries.traces.all().traces):
        return
    waited_s = 0.0
    while (
        len(chosen := await executors.UPKEEP.run(_choose_workloads, site)) < len(RECORDED_TRACES)
        and waited_s < TIMEOUT_S
    ):
        await asyncio.sleep(POLL_INTERVAL_S)
        waited_s += POLL_INTERVAL_S
    for trace, workload in zip(RECORDED_TRACES, chosen, strict=False):
        await executors.UPKEEP.run(_import, site, trace, workload)


def _choose_workloads(site: "Site") -> list[Workload]:
    """Running workloads with a GPU for each rank that started long enough ago; fewest GPUs first."""
    now = site.clock()
    page = site.records.workloads(WorkloadFilter(states=frozenset({WorkloadState.RUNNING})), limit=MAX_WORKLOADS)
    fitting = [
        workload
        for workload in page.workloads
        if workload.gpus_requested >= RANKS
        and workload.started_at is not None
        and workload.started_at < now - 2 * RECORDED_AGO_MS
    ]
    fitting.sort(key=lambda workload: (workload.gpus_requested, str(workload.id)))
    return fitting[: len(RECORDED_TRACES)]


def _import(site: "Site", trace: RecordedTrace, workload: Workload) -> None:
    with trace_files(trace) as paths:
        site.traces.take(paths, trace.name, str(workload.id), origin_ms=float(site.clock() - RECORDED_AGO_MS))
