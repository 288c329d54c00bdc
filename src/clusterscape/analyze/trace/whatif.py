"""What-if analysis: the step as a dependency graph of its operators, re-simulated with other durations. Operators, dependencies
and the measures S, M_W and M_S follow Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis".

All steps and data-parallel ranks share one graph, built from the first step of the first rank. An operator starts at the
latest end of its dependencies plus its launch delay; a collective ends for all members one transfer after the latest start.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.model.arrays import Bools, Float64s
from clusterscape.model.spans import Trace

COMPUTE = ("forward-compute", "backward-compute")
MESSAGES = ("forward-send", "forward-recv", "backward-send", "backward-recv")
OVER_DATA_PARALLEL = (
    "params-all-gather",
    "grads-reduce-scatter",
    "separate-grads-all-reduce",
    "optimizer-clip-main-grad",
)
"""Collectives that end at the same time on all data-parallel ranks."""

Operator = tuple[int, str, int]
"""(stage, type, number)."""


@dataclass(frozen=True, slots=True)
class OperatorGraph:
    """``waits_for`` and ``groups`` by operator index; times of shape (operator, data-parallel rank, step), seconds."""

    operators: tuple[Operator, ...]
    waits_for: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    is_data_parallel: tuple[bool, ...]
    start_s: Float64s
    end_s: Float64s
    steps: tuple[int, ...]

    @property
    def stages(self) -> int:
        """Number of pipeline stages."""
        return 1 + max(stage for stage, _, _ in self.operators)


class GraphError(ValueError):
    """The trace lacks data that the graph needs; the message names it."""


def is_operator_trace(trace: Trace) -> bool:
    """Whether the trace is recorded operator by operator with pipeline and data-parallel ranks."""
    names = set(trace.spans["name"].unique().cast(pl.String))
    return {*COMPUTE, "optimizer"} <= names and all(
        facts.stage is not None and facts.data_parallel_rank is not None for facts in trace.ranks
    )


def build_operator_graph(trace: Trace) -> OperatorGraph:
    """Build the graph. Raises ``GraphError`` if steps or ranks do not have the same operators."""
    parallel = {facts.rank: facts.data_parallel_rank for facts in trace.ranks}
    table = trace.spans.select(
        "stage", pl.col("name").cast(pl.String), "sequence", "step", "start_ns", "end_ns",
        pl.col("rank").replace_strict(parallel).alias("dp"),
    ).drop_nulls(["stage", "sequence", "step"])  # fmt: skip
    steps = sorted(table["step"].unique())
    width = 1 + max(number for number in parallel.values() if number is not None)
    template = table.filter((pl.col("dp") == 0) & (pl.col("step") == steps[0])).sort("start_ns", "sequence", "name")
    operators: list[Operator] = [tuple(row) for row in template.select("stage", "name", "sequence").iter_rows()]
    if table.height != len(operators) * width * len(steps):
        raise GraphError("steps or data-parallel ranks differ in their operators")
    start_s, end_s = _times(table, operators, steps, width)
    stages = 1 + max(stage for stage, _, _ in operators)
    dependencies = _Dependencies(operators)
    for stage in range(stages):
        _add_stage(dependencies, [operator for operator in operators if operator[0] == stage], stage, stages, width)
    groups = _find_groups(operators, stages, width)
    return OperatorGraph(
        tuple(operators),
        dependencies.freeze(),
        groups,
        tuple(width > 1 and name in OVER_DATA_PARALLEL for _, name, _ in operators),
        start_s,
        end_s,
        tuple(steps),
    )


def _times(
    table: pl.DataFrame, operators: Sequence[Operator], steps: Sequence[int], width: int
) -> tuple[Float64s, Float64s]:
    """Arrays (operator, dp, step), in seconds since the start of the step: relative times keep full precision."""
    keys = pl.DataFrame(operators, schema={"stage": pl.Int32, "name": pl.String, "sequence": pl.Int64}, orient="row")
    keyed = table.join(keys.with_row_index("operator"), on=["stage", "name", "sequence"])
    begin = pl.col("start_ns").min().over("step")
    keyed = keyed.with_columns(
        ((pl.col("start_ns") - begin) / 1e9).alias("start_s"), ((pl.col("end_ns") - begin) / 1e9).alias("end_s")
    ).sort("operator", "dp", "step")
    shape = (len(operators), width, len(steps))
    if keyed.height != np.prod(shape):
        raise GraphError("steps or data-parallel ranks differ in their operators")
    return keyed["start_s"].to_numpy().reshape(shape), keyed["end_s"].to_numpy().reshape(shape)


class _Dependencies:
    """Dependencies between operators; a dependency on an operator that the trace lacks is ignored."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self.index = {operator: place for place, operator in enumerate(operators)}
        self.before: list[set[int]] = [set() for _ in operators]

    def add(self, operator: Operator, *before: Operator) -> None:
        """``operator`` starts after each of ``before``."""
        if operator in self.index:
            self.before[self.index[operator]] |= {self.index[other] for other in before if other in self.index}

    def chain(self, operators: Iterable[Operator], after: Sequence[Operator] = ()) -> None:
        """Each operator starts after the previous one, the first after ``after``."""
        last = list(after)
        for operator in operators:
            if operator in self.index:
                self.add(operator, *last)
                last = [operator]

    def freeze(self) -> tuple[tuple[int, ...], ...]:
        """Dependencies by operator index."""
        return tuple(tuple(sorted(indexes)) for indexes in self.before)


def _add_stage(dependencies: _Dependencies, mine: Sequence[Operator], stage: int, stages: int, width: int) -> None:
    compute = [operator for operator in mine if operator[1] in COMPUTE]
    dependencies.chain(compute)
    for kind in MESSAGES:
        dependencies.chain([operator for operator in mine if operator[1] == kind])
    for _, name, number in compute:
        phase = name.removesuffix("-compute")
        receive, send = (stage, f"{phase}-recv", number), (stage, f"{phase}-send", number)
        dependencies.add((stage, name, number), receive)
        dependencies.add(receive, (stage, name, number - 1))
        dependencies.add(send, (stage, name, number))
    first_backward = next((at for at, operator in enumerate(compute) if operator[1] == "backward-compute"), 0)
    if first_backward >= 2:
        for kind in ("backward-recv", "backward-send"):
            dependencies.add((stage, kind, 0), compute[first_backward - 2])
    exchange = [operator for operator in mine if operator[1] in ("params-all-gather", "grads-reduce-scatter")]
    if width > 1:
        dependencies.chain(exchange)
        gathers = [operator for operator in exchange if operator[1] == "params-all-gather"]
        forward = next(operator for operator in compute if operator[1] == "forward-compute")
        dependencies.add(forward, *gathers[-1:])
    dependencies.add((stage, "gc", 0), compute[-1])
    tail: list[Operator] = [(stage, "layernorm-grads-all-reduce", 0)]
    if stage in (0, stages - 1):
        tail.append((stage, "embedding-grads-all-reduce", 0))
    if width > 1:
        tail += [operator for operator in exchange if operator[1] == "grads-reduce-scatter"]
    tail += [(stage, "optimizer-clip-main-grad", 0), (stage, "optimizer", 0)]
    dependencies.chain(tail, after=[(stage, "gc", 0)])


def _find_groups(operators: Sequence[Operator], stages: int, width: int) -> tuple[tuple[int, ...], ...]:
    """Operators that end at the same time; a send or receive without counterpart is a group of one."""
    index = {key: place for place, key in enumerate(operators)}
    groups: dict[Operator, tuple[int, ...]] = {}
    for stage, name, number in operators:
        operator = (stage, name, number)
        if name in MESSAGES:
            phase, kind = name.split("-")
            up = (phase == "forward") == (kind == "send")
            other = (stage + (1 if up else -1), f"{phase}-{'recv' if kind == 'send' else 'send'}", number)
            members = [operator, other] if other in index else [operator]
        elif name == "embedding-grads-all-reduce":
            members = [(0, name, number), (stages - 1, name, number)]
        elif name == "optimizer-clip-main-grad":
            members = [(member_stage, name, number) for member_stage in range(stages)]
        elif width > 1 and name in OVER_DATA_PARALLEL:
            members = [operator]
        else:
            continue
        present = sorted({member for member in members if member in index})
        groups.setdefault(present[0], tuple(index[member] for member in present))
    return tuple(groups.values())


CONCEPTUAL_COMMUNICATION = (
    "forward-send", "forward-recv", "backward-send", "backward-recv", "params-all-gather", "grads-reduce-scatter",
    "separate-grads-all-reduce", "layernorm-grads-all-reduce", "embedding-grads-all-reduce", "optimizer-clip-main-grad",
)  # fmt: skip
"""Their ideal duration is the median over all ranks and steps (outliers come from the network); that of compute is the mean."""
NEGATIVE_TRANSFER_S = 0.01  # a transfer below minus this comes from clock errors and counts as 0
TOP_WORKERS = 0.03


@dataclass(frozen=True, slots=True)
class StragglerAnswer:
    """Times are mean seconds per step. ``slowdown`` (S): T without launch delay / T ideal; ``worker_share`` (M_W) and
    ``last_stage_share`` (M_S): share of T − T_ideal that is recovered by fixing the worst workers, or the last stage.
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
    """(stage, data-parallel rank) of the workers that M_W fixes."""
    stage_slowdown: tuple[float, ...]
    data_parallel_slowdown: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StepSimulation:
    """A graph ready to be simulated: its actions in topological order."""

    graph: OperatorGraph
    actions: tuple[tuple[bool, int], ...]
    """(is_group, index): start an operator, or end a group or a lone operator."""
    group_of: NDArray[np.int64]

    def run(self, duration_s: Float64s) -> Float64s:
        """Seconds of each step, for durations (operator, dp, step); for members of collectives, the duration is the transfer."""
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
        steps: Float64s = end.max(axis=(0, 1)) - start.min(axis=(0, 1))
        return steps


def prepare_simulation(graph: OperatorGraph) -> StepSimulation:
    """Sort the graph topologically. Raises ``GraphError`` if it has a cycle."""
    count = len(graph.operators)
    group_of = np.full(count, -1)
    for number, members in enumerate(graph.groups):
        group_of[list(members)] = number
    followers: list[list[int]] = [[] for _ in range(count)]
    missing = [len(before) for before in graph.waits_for]
    for operator, before in enumerate(graph.waits_for):
        for dependency in before:
            followers[dependency].append(operator)
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
        for finished in ended:
            for follower in followers[finished]:
                missing[follower] -= 1
                if not missing[follower]:
                    ready.append(follower)
    if sum(not is_group for is_group, _ in actions) < count:
        raise GraphError("the operator graph has a cycle")
    return StepSimulation(graph, tuple(actions), group_of)


def measured_durations(simulation: StepSimulation) -> Float64s:
    """Measured durations; for a member of a collective, the time after the last member has arrived."""
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


def ideal_durations(graph: OperatorGraph, duration_s: Float64s) -> Float64s:
    """All operators of a type take equally long: the mean for compute, the median for communication."""
    ideal = np.empty_like(duration_s)
    names = np.array([name for _, name, _ in graph.operators])
    for name in np.unique(names):
        rows = names == name
        middle = np.median if name in CONCEPTUAL_COMMUNICATION else np.mean
        ideal[rows] = middle(duration_s[rows])
    return ideal


def analyze_stragglers(graph: OperatorGraph, progress: Callable[[], None] | None = None) -> StragglerAnswer:
    """S, M_W and M_S of a run, and the slowdown that each stage and data-parallel rank causes alone."""
    simulation = prepare_simulation(graph)
    measured = measured_durations(simulation)
    ideal = ideal_durations(graph, measured)
    stage_of = np.array([stage for stage, _, _ in graph.operators])
    width = measured.shape[1]

    def mean_s(duration: Float64s) -> float:
        if progress:
            progress()
        return float(simulation.run(duration).mean())

    def mixed_s(chosen: Bools, inside: Float64s, outside: Float64s) -> float:
        return mean_s(np.where(chosen[:, :, None], inside, outside))

    original_s, ideal_s = mean_s(measured), mean_s(ideal)
    stages = [
        mixed_s(_select_workers(stage_of, width, stage, None), measured, ideal) / ideal_s
        for stage in range(graph.stages)
    ]
    parallel = [mixed_s(_select_workers(stage_of, width, None, dp), measured, ideal) / ideal_s for dp in range(width)]
    workers = sorted(
        (
            (min(stages[stage], parallel[dp]), -stage * width - dp, (stage, dp))
            for stage in range(graph.stages)
            for dp in range(width)
        ),
        reverse=True,
    )
    worst = tuple(worker for _, _, worker in workers[: math.ceil(TOP_WORKERS * len(workers))])
    is_fixed = np.zeros((stage_of.size, width), bool)
    for stage, dp in worst:
        is_fixed |= _select_workers(stage_of, width, stage, dp)
    without_worker_s = mixed_s(is_fixed, ideal, measured)
    without_stage_s = mixed_s(_select_workers(stage_of, width, graph.stages - 1, None), ideal, measured)
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


def _select_workers(stage_of: NDArray[np.int64], width: int, stage: int | None, dp: int | None) -> Bools:
    rows = np.ones(stage_of.size, bool) if stage is None else stage_of == stage
    columns = np.ones(width, bool) if dp is None else np.arange(width) == dp
    chosen: Bools = rows[:, None] & columns[None, :]
    return chosen
