"""What-if: the step re-simulated with other durations. S, M_W and M_S as published for stragglers in large model training.

start = latest end of what an operator waits for + its launch delay; a collective ends for all members at the latest start
plus the transfer.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.trace.operator_graph import GraphError, OperatorGraph

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CONCEPTUAL_COMMUNICATION = (
    "forward-send", "forward-recv", "backward-send", "backward-recv", "params-all-gather", "grads-reduce-scatter",
    "separate-grads-all-reduce", "layernorm-grads-all-reduce", "embedding-grads-all-reduce", "optimizer-clip-main-grad",
)  # fmt: skip
"""Their ideal is the median over all ranks and steps (outliers are the network's); that of compute is the mean."""
NEGATIVE_TRANSFER_S = 0.01  # clocks disagree: a transfer below minus this is taken as 0
TOP_WORKERS = 0.03


@dataclass(frozen=True, slots=True)
class StragglerAnswer:
    """Times are mean seconds per step. ``slowdown`` (S) = T without launch delay over T ideal; ``worker_share`` (M_W) and
    ``last_stage_share`` (M_S): how much of T − T_ideal goes away by mending the worst workers, or the last stage.
    """

    measured_s: float
    without_delay_s: float
    ideal_s: float
    without_worker_s: float
    without_last_stage_s: float
    slowdown: float
    worker_share: float | None
    last_stage_share: float | None
    worst_workers: tuple[tuple[int, int], ...]
    """(stage, data-parallel rank) of the workers that M_W mends."""
    stage_slowdown: tuple[float, ...]
    data_parallel_slowdown: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Simulation:
    """A graph ready to run: its actions in order."""

    graph: OperatorGraph
    actions: tuple[tuple[bool, int], ...]
    """(is_group, index): start an operator, or end a group or a lone operator."""
    group_of: NDArray[np.int64]

    def run(self, duration_s: Floats) -> Floats:
        """Seconds of each step, for durations (operator, dp, step); of a collective's member the transfer counts."""
        start, end = np.zeros_like(duration_s), np.zeros_like(duration_s)
        graph = self.graph
        for is_group, at in self.actions:
            if not is_group:
                before = graph.waits_for[at]
                if before:
                    start[at] = end[list(before)].max(axis=0)
                if self.group_of[at] < 0:
                    end[at] = start[at] + duration_s[at]
                continue
            members = list(graph.groups[at])
            begin = start[members].max(axis=0)
            if graph.is_data_parallel[members[0]]:
                begin = np.broadcast_to(begin.max(axis=0), begin.shape)
            end[members] = begin + duration_s[members]
        steps: Floats = end.max(axis=(0, 1)) - start.min(axis=(0, 1))
        return steps


def prepare_simulation(graph: OperatorGraph) -> Simulation:
    """Order the graph. Raises ``GraphError`` where it has a circle."""
    count = len(graph.operators)
    group_of = np.full(count, -1)
    for number, members in enumerate(graph.groups):
        group_of[list(members)] = number
    followers: list[list[int]] = [[] for _ in range(count)]
    missing = [len(before) for before in graph.waits_for]
    for operator, before in enumerate(graph.waits_for):
        for each in before:
            followers[each].append(operator)
    waiting = [len(members) for members in graph.groups]
    ready = deque(operator for operator in range(count) if not missing[operator])
    actions: list[tuple[bool, int]] = []
    while ready:
        operator = ready.popleft()
        actions.append((False, operator))
        group = int(group_of[operator])
        ended = [operator]
        if group >= 0:
            waiting[group] -= 1
            ended = list(graph.groups[group]) if not waiting[group] else []
            if ended:
                actions.append((True, group))
        for each in ended:
            for follower in followers[each]:
                missing[follower] -= 1
                if not missing[follower]:
                    ready.append(follower)
    if sum(not is_group for is_group, _ in actions) < count:
        raise GraphError("operators wait for one another in a circle")
    return Simulation(graph, tuple(actions), group_of)


def measured_durations(simulation: Simulation) -> Floats:
    """Durations as measured; of a collective's member what was left after the last member had come."""
    graph = simulation.graph
    duration = graph.end_s - graph.start_s
    for members in graph.groups:
        rows = list(members)
        begin = graph.start_s[rows].max(axis=0)
        if graph.is_data_parallel[rows[0]]:
            begin = np.broadcast_to(begin.max(axis=0), begin.shape)
        transfer = graph.end_s[rows] - begin
        duration[rows] = np.where(transfer <= -NEGATIVE_TRANSFER_S, 0.0, transfer)
    return duration


def ideal_durations(graph: OperatorGraph, duration_s: Floats) -> Floats:
    """Every operator of a type takes as long as the others: the mean of compute, the median of communication."""
    ideal = np.empty_like(duration_s)
    names = np.array([name for _, name, _ in graph.operators])
    for name in np.unique(names):
        rows = names == name
        middle = np.median if name in CONCEPTUAL_COMMUNICATION else np.mean
        ideal[rows] = middle(duration_s[rows])
    return ideal


def analyze_stragglers(graph: OperatorGraph, progress: Callable[[], None] | None = None) -> StragglerAnswer:
    """S, M_W and M_S of a run, and what each stage and data-parallel rank adds to an ideal one by itself."""
    simulation = prepare_simulation(graph)
    measured = measured_durations(simulation)
    ideal = ideal_durations(graph, measured)
    stage_of = np.array([stage for stage, _, _ in graph.operators])
    width = measured.shape[1]

    def mean_s(duration: Floats) -> float:
        if progress:
            progress()
        return float(simulation.run(duration).mean())

    def mixed_s(chosen: Flags, inside: Floats, outside: Floats) -> float:
        return mean_s(np.where(chosen[:, :, None], inside, outside))

    original_s, ideal_s = mean_s(measured), mean_s(ideal)
    stages = [
        mixed_s(_chosen(stage_of, width, stage, None), measured, ideal) / ideal_s for stage in range(graph.stages)
    ]
    parallel = [mixed_s(_chosen(stage_of, width, None, dp), measured, ideal) / ideal_s for dp in range(width)]
    workers = sorted(
        (
            (min(stages[stage], parallel[dp]), -stage * width - dp, (stage, dp))
            for stage in range(graph.stages)
            for dp in range(width)
        ),
        reverse=True,
    )
    worst = tuple(worker for _, _, worker in workers[: math.ceil(TOP_WORKERS * len(workers))])
    mended = np.zeros((stage_of.size, width), bool)
    for stage, dp in worst:
        mended |= _chosen(stage_of, width, stage, dp)
    without_worker_s = mixed_s(mended, ideal, measured)
    without_stage_s = mixed_s(_chosen(stage_of, width, graph.stages - 1, None), ideal, measured)
    lost_s = original_s - ideal_s
    is_slow = lost_s > 1e-9 * max(original_s, 1e-9)
    whole = graph.end_s.max(axis=(0, 1)) - graph.start_s.min(axis=(0, 1))
    return StragglerAnswer(
        measured_s=float(whole.mean()),
        without_delay_s=original_s,
        ideal_s=ideal_s,
        without_worker_s=without_worker_s,
        without_last_stage_s=without_stage_s,
        slowdown=original_s / ideal_s,
        worker_share=(original_s - without_worker_s) / lost_s if is_slow else None,
        last_stage_share=(original_s - without_stage_s) / lost_s if is_slow else None,
        worst_workers=worst,
        stage_slowdown=tuple(stages),
        data_parallel_slowdown=tuple(parallel),
    )


def _chosen(stage_of: NDArray[np.int64], width: int, stage: int | None, dp: int | None) -> Flags:
    rows = np.ones(stage_of.size, bool) if stage is None else stage_of == stage
    columns = np.ones(width, bool) if dp is None else np.arange(width) == dp
    chosen: Flags = rows[:, None] & columns[None, :]
    return chosen
