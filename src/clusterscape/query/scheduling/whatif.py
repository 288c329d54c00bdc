"""What-ifs: the effect of another policy, placement, limit, node or priority on the current queue.

Reads the queue, its run times and past arrivals; `whatif_simulation` computes the answer.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.arrays import Float64s
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.live_queue import LiveQueue
from clusterscape.query.scheduling.placement_history import read_placement, read_room
from clusterscape.query.scheduling.queue import PlannedQueue, QueueQuery
from clusterscape.query.scheduling.waiting import WaitQuery
from clusterscape.query.scheduling.whatif_answers import MAX_ADDED_NODES, MAX_FUTURES, QueueWhatIf, WhatIfAnswer
from clusterscape.query.scheduling.whatif_course import HolderFacts
from clusterscape.query.scheduling.whatif_scenario import change_queue, check_choices
from clusterscape.query.scheduling.whatif_simulation import WhatIfTask, simulate_what_if
from clusterscape.query.search import find_id
from clusterscape.simulate.futures import LEVELS, RunQuantiles, SampledArrivals, sample_runs

ARRIVE_FOR_S = 6 * 3600
SEED = 7


class WhatIfQuery:
    """Simulates the live queue with and without a change."""

    def __init__(self, context: QueryContext, queue: QueueQuery, waits: WaitQuery) -> None:
        self._context = context
        self._queue = queue
        self._waits = waits

    def check(self, change: QueueWhatIf) -> PlannedQueue:
        """The current queue; raises QueryError if the change is invalid, or names something that does not exist."""
        if not 2 <= change.futures <= MAX_FUTURES:
            raise QueryError(f"futures must be 2–{MAX_FUTURES}")
        if min(change.added.values(), default=0) < 0 or sum(change.added.values()) > MAX_ADDED_NODES:
            raise QueryError(f"at most {MAX_ADDED_NODES:,} nodes can be added", hint="Add fewer nodes.")
        check_choices(change)
        planned = self._queue.planned_queue()
        if not planned.queue.nodes:
            raise QueryError("no node with GPUs", hint="GET /api/v1/sources shows the state of the collectors.")
        change_queue(planned.queue, self._resolve(change))
        return planned

    def _resolve(self, change: QueueWhatIf) -> QueueWhatIf:
        """Replaces scheduler ids of workloads by our ids."""
        ids = {name: find_id(self._context.records, name) for name in (*change.first, *change.priorities)}
        priorities = {ids[name]: priority for name, priority in change.priorities.items()}
        return replace(change, first=[ids[name] for name in change.first], priorities=priorities)

    def ask(self, change: QueueWhatIf, report: Callable[[float], None] = lambda _: None) -> WhatIfAnswer:
        """The differences; raises QueryError if the change is invalid, or names something that does not exist.

        ``report`` is called with the progress, 0–1, and may raise to cancel.
        """
        change = self._resolve(change)
        return self._context.compute(simulate_what_if, self._prepare(change, self.check(change)), report)

    def _prepare(self, change: QueueWhatIf, planned: PlannedQueue) -> WhatIfTask:
        """Samples futures evenly over the models' quantiles; deterministic for the same queue."""
        runs = self._queue.run_quantiles()
        names = sorted(runs)
        random = np.random.default_rng([SEED, len(names), change.futures])
        now_s = self._context.clock() / 1000
        elapsed_s = np.array([now_s - runs[name][0] for name in names])
        quantiles = np.array([runs[name][1] for name in names]).reshape(len(names), LEVELS.size)
        drawn_s = sample_runs(RunQuantiles(quantiles), change.futures, random)
        return WhatIfTask(
            change=change,
            queue=planned.queue,
            placement=read_placement(self._context),
            room=[] if change.placement is None else read_room(self._context, planned.queue, change.placement),
            holders={
                name: HolderFacts(workload.user, workload.gpus_requested)
                for name, workload in planned.workloads.items()
            },
            names=names,
            middle_s=_left_s(quantiles[:, LEVELS.size // 2], elapsed_s),
            drawn_s=_left_s(drawn_s, elapsed_s),
            arrivals=self._sample_arrivals(planned.queue, change.futures, random),
        )

    def _sample_arrivals(self, queue: LiveQueue, count: int, random: np.random.Generator) -> dict[str, SampledArrivals]:
        """Sampled arrivals by partition, of partitions with nodes in service."""
        learned = self._waits.models.current()
        arrivals = {}
        for partition in queue.max_times_s:
            if nodes := queue.open_nodes(partition):
                total = sum(node.gpus for node in nodes)
                past = learned.arrivals_of(partition)
                arrivals[partition] = past.sample(queue.now_s, ARRIVE_FOR_S, count, total, random)
        return arrivals


def _left_s(runs_s: Float64s, elapsed_s: Float64s) -> Float64s:
    """Remaining run times, at least one second, since the workloads have not ended."""
    left: Float64s = np.maximum(runs_s - elapsed_s, 1.0)
    return left
