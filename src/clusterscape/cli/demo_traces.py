"""Gives two running workloads of the demo a real trace each, beside the running server."""

import asyncio
from typing import TYPE_CHECKING

from clusterscape import executors
from clusterscape.demo.recorded_traces import RANKS, RECORDED_TRACES, RecordedTrace, trace_files
from clusterscape.model import Workload, WorkloadState
from clusterscape.store.records.contract import WorkloadFilter

if TYPE_CHECKING:
    from clusterscape.runtime.site import Site

RECORDED_AGO_MS = 10 * 60_000
"""When the traces are said to have been recorded: while the workload ran, and its metrics are there."""
PATIENCE_S = 120.0
LOOK_EVERY_S = 1.0
MOST_LOOKED_AT = 2000


async def import_demo_traces(site: "Site") -> None:
    """Take the recorded traces in, unless an earlier start of the same demo did."""
    if await executors.UPKEEP.run(lambda: site.queries.traces.all().traces):
        return
    waited_s = 0.0
    while len(chosen := await executors.UPKEEP.run(_choose, site)) < len(RECORDED_TRACES) and waited_s < PATIENCE_S:
        await asyncio.sleep(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S
    for trace, workload in zip(RECORDED_TRACES, chosen, strict=False):
        await executors.UPKEEP.run(_take, site, trace, workload)


def _choose(site: "Site") -> list[Workload]:
    """Running workloads with a GPU for each rank, long enough ago; those with no more GPUs than ranks first."""
    now = site.clock()
    page = site.records.workloads(WorkloadFilter(states=frozenset({WorkloadState.RUNNING})), limit=MOST_LOOKED_AT)
    fitting = [
        each
        for each in page.workloads
        if each.gpus_requested >= RANKS and each.started_at is not None and each.started_at < now - 2 * RECORDED_AGO_MS
    ]
    fitting.sort(key=lambda each: (each.gpus_requested, str(each.id)))
    return fitting[: len(RECORDED_TRACES)]


def _take(site: "Site", trace: RecordedTrace, workload: Workload) -> None:
    with trace_files(trace) as paths:
        site.traces.take(paths, trace.name, str(workload.id), origin_ms=float(site.clock() - RECORDED_AGO_MS))
