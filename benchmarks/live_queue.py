"""The live queue at scale: 1,000 waiting workloads on 10,000 GPUs; the tracking of promised starts, an explanation, a what-if.

Budget: 50 ms of processor time for a look at an unchanged order (one plan), after the first, which compiles.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.report import Report
from clusterscape.query.scheduling.explaining import find_changes
from clusterscape.query.scheduling.live_queue import Holding, LiveQueue, QueueJob, QueueNode
from clusterscape.query.scheduling.queue_plan import plan_queue
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf
from clusterscape.query.scheduling.whatif_scenario import Future, prepare_scenario
from clusterscape.services.promises import PromiseBook
from clusterscape.simulate.cluster.engine import simulate_from_now

NODES, GPUS, WAITING = 1_250, 8, 1_000
HOUR_S = 3600


def make_queue(seed: int = 0) -> LiveQueue:
    """Three partitions, every GPU held, sizes and limits as on a training cluster."""
    random = np.random.default_rng(seed)
    parts = ("large", "small", "old")
    nodes = {f"n{at}": QueueNode(f"n{at}", GPUS, "A100", (parts[at % 3],), True) for at in range(NODES)}
    held = tuple(
        Holding(f"run:{at}.{half}", f"n{at}", GPUS // 2, int(random.integers(60, 48 * HOUR_S)))
        for at in range(NODES)
        for half in range(2)
    )
    counts = random.choice([1, 1, 1, 1, 2, 4, 16], WAITING).tolist()
    sizes = random.choice([1, 2, 4, 8], WAITING).tolist()
    hours = random.choice([1, 4, 24, 72], WAITING).tolist()
    jobs = [
        QueueJob(
            workload=f"wait:{at}",
            partition=parts[at % 3],
            machine_type="A100",
            nodes=counts[at],
            gpus=GPUS if counts[at] > 1 else sizes[at],
            limit_s=hours[at] * HOUR_S,
            priority=int(random.integers(0, 5)) * 1000,
            queued_s=-int(random.integers(0, 48 * HOUR_S)),
            is_planned=True,
        )
        for at in range(WAITING)
    ]
    return LiveQueue(0, nodes, held, (), dict.fromkeys(parts)).with_jobs(jobs)


def measure_ms(work: Callable[[], object], runs: int = 5) -> float:
    """The median of processor time."""
    times = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return float(np.median(times)) * 1000


def main() -> None:
    """Measure and print."""
    queue = make_queue()
    starts, _ = plan_queue(queue)  # compiles
    report = Report(f"The live queue: 1,000 waiting workloads, 10,000 GPUs (load average {os.getloadavg()[0]:.1f})")
    report.add("one plan by limits", measure_ms(lambda: plan_queue(queue)), "ms", budget=50.0)
    changed = replace(queue, now_s=15, held=queue.held[1:])
    changed_ms = measure_ms(lambda: _look(queue, changed))
    report.add("two looks: a plan, and why it moved when one workload ended", changed_ms, "ms")
    last = queue.waiting[-1]
    report.add(
        "what would start the last one sooner",
        measure_ms(lambda: find_changes(queue, last, starts[last.workload]), 2),
        "ms",
    )
    prepared = prepare_scenario(queue, QueueWhatIf(), Future({}), own_placement="most-allocated")
    simulate_from_now(prepared.scenario, prepared.standing)  # compiles
    report.add("one future on nodes, EASY", measure_ms(lambda: _play(queue), 3), "ms")
    report.publish()


def _look(before: LiveQueue, after: LiveQueue) -> None:
    book = PromiseBook()
    book.update(before, {})
    book.update(after, {})


def _play(queue: LiveQueue) -> None:
    prepared = prepare_scenario(queue, QueueWhatIf(), Future({}), own_placement="most-allocated")
    simulate_from_now(prepared.scenario, prepared.standing)


if __name__ == "__main__":
    main()
