"""Who would hold which GPUs over time, as it is and changed: the overview as it would be, at any moment ahead. Pure."""

from collections.abc import Mapping

import numpy as np

from clusterscape.model import Workload
from clusterscape.query.scheduling.live_queue import LiveQueue
from clusterscape.query.scheduling.whatif_answers import HeldSpans, WhatIfCourse, WhatIfHolder, WhatIfNode
from clusterscape.query.scheduling.whatif_scenario import Prepared
from clusterscape.simulate.cluster.contract import ClusterSchedule

MOST_NODES = 2_000
SHORTEST_S = 3_600
LONGEST_S = 14 * 86_400
AFTER_S = 1_800
"""The course goes on for so long after the last of the queue has started."""

Course = tuple[ClusterSchedule, Prepared]


def describe_course(
    queue: LiveQueue, changed: LiveQueue, courses: tuple[Course, Course], workloads: Mapping[str, Workload]
) -> WhatIfCourse:
    """Of one future, played as it is and changed. Added nodes are in it; drained ones, too."""
    nodes = sorted(changed.nodes.values(), key=lambda node: (node.partitions, node.name))[:MOST_NODES]
    places = {node.name: place for place, node in enumerate(nodes)}
    until_s = min(max(_last_start(*course, queue.now_s) for course in courses) + AFTER_S, queue.now_s + LONGEST_S)
    until_s = max(until_s, queue.now_s + SHORTEST_S)
    holders: dict[str, int] = {}
    spans = [_list_spans(schedule, prepared, places, holders, until_s) for schedule, prepared in courses]
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
                gpus=workloads[name].gpus_requested if name in workloads else None,
                is_waiting=name in waiting,
            )
            for name in holders
        ],
        baseline=spans[0],
        changed=spans[1],
    )


def _last_start(schedule: ClusterSchedule, prepared: Prepared, now_s: int) -> int:
    rows = np.fromiter(prepared.rows.values(), np.int64)
    started = rows[schedule.has_started[rows]]
    return int(schedule.start_s[started].max()) if started.size else now_s


def _list_spans(
    schedule: ClusterSchedule, prepared: Prepared, places: Mapping[str, int], holders: dict[str, int], until_s: int
) -> HeldSpans:
    """A row for each workload and node; ``holders`` grows by those it meets."""
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
            place = places.get(names[node]) if node >= 0 else None
            if place is not None:
                rows.append((start, place, holder, int(jobs.gpus[row]), end))
    rows.sort()
    return HeldSpans(
        node=[row[1] for row in rows],
        holder=[row[2] for row in rows],
        gpus=[row[3] for row in rows],
        from_at=[row[0] * 1000 for row in rows],
        to_at=[row[4] * 1000 for row in rows],
    )
