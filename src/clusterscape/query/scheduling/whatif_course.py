"""Which workload would hold which GPUs over time, with and without the change, for the overview of future moments. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from clusterscape.query.scheduling.live_queue import LiveQueue
from clusterscape.query.scheduling.whatif_answers import HeldSpans, WhatIfCourse, WhatIfHolder, WhatIfNode
from clusterscape.query.scheduling.whatif_scenario import PreparedScenario
from clusterscape.simulate.cluster.contract import ClusterSchedule

MAX_NODES = 2_000
MIN_SPAN_S = 3_600
MAX_SPAN_S = 14 * 86_400
AFTER_S = 1_800
"""The course continues this long after the last waiting workload has started."""

Course = tuple[ClusterSchedule, PreparedScenario]


@dataclass(frozen=True, slots=True)
class HolderFacts:
    """The fields of a workload that are shown."""

    user: str | None
    gpus: int | None


def describe_course(
    queue: LiveQueue, changed: LiveQueue, courses: tuple[Course, Course], workloads: Mapping[str, HolderFacts]
) -> WhatIfCourse:
    """One future, simulated with and without the change. Includes added and drained nodes."""
    nodes = sorted(changed.nodes.values(), key=lambda node: (node.partitions, node.name))[:MAX_NODES]
    index_of = {node.name: index for index, node in enumerate(nodes)}
    until_s = min(max(_last_start(*course, queue.now_s) for course in courses) + AFTER_S, queue.now_s + MAX_SPAN_S)
    until_s = max(until_s, queue.now_s + MIN_SPAN_S)
    holders: dict[str, int] = {}
    spans = [_list_spans(schedule, prepared, index_of, holders, until_s) for schedule, prepared in courses]
    waiting = {job.workload for job in queue.waiting}
    return WhatIfCourse(
        from_at=queue.now_s * 1000,
        until_at=until_s * 1000,
        nodes=[
            WhatIfNode(
                node=node.name,
                partition=node.partitions[0] if node.partitions else "",
                gpus=node.gpus,
                is_added=node.name not in queue.nodes,
                is_open=queue.nodes[node.name].is_open if node.name in queue.nodes else False,
                will_be_open=node.is_open,
            )
            for node in nodes
        ],
        left_out=max(0, len(changed.nodes) - len(nodes)),
        holders=[
            WhatIfHolder(
                workload=name,
                user=workloads[name].user if name in workloads else None,
                gpus=workloads[name].gpus if name in workloads else None,
                is_waiting=name in waiting,
            )
            for name in holders
        ],
        baseline=spans[0],
        changed=spans[1],
    )


def _last_start(schedule: ClusterSchedule, prepared: PreparedScenario, now_s: int) -> int:
    rows = np.fromiter(prepared.rows.values(), np.int64)
    started = rows[schedule.has_started[rows]]
    return int(schedule.start_s[started].max()) if started.size else now_s


def _list_spans(
    schedule: ClusterSchedule,
    prepared: PreparedScenario,
    index_of: Mapping[str, int],
    holders: dict[str, int],
    until_s: int,
) -> HeldSpans:
    """A row for each workload and node; adds new workloads to ``holders``."""
    jobs, names = prepared.scenario.jobs, prepared.scenario.cluster.names
    rows = []
    for row in np.flatnonzero(schedule.has_started & (schedule.start_s < until_s)).tolist():
        name = prepared.holders[row]
        first, start = int(schedule.first_pod[row]), int(schedule.start_s[row])
        end = min(int(schedule.end_s[row]), until_s) if schedule.has_ended[row] else until_s
        if name is None:
            continue
        holder = holders.setdefault(name, len(holders))
        for node in schedule.nodes[first : first + int(jobs.nodes[row])].tolist():
            node_index = index_of.get(names[node]) if node >= 0 else None
            if node_index is not None:
                rows.append((start, node_index, holder, int(jobs.gpus[row]), end))
    rows.sort()
    return HeldSpans(
        node=[row[1] for row in rows],
        holder=[row[2] for row in rows],
        gpus=[row[3] for row in rows],
        from_at=[row[0] * 1000 for row in rows],
        to_at=[row[4] * 1000 for row in rows],
    )
