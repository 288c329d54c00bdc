"""The dependency graph of a training step recorded operator by operator (forward-compute, forward-send, …, optimizer).

All steps and data-parallel ranks share one graph; it is built from the first step of the first. Which operators there are
and what they wait for follows the published analysis (Lin et al., "Understanding Stragglers in Large Model Training Using
What-if Analysis").
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.model.spans import Trace

COMPUTE = ("forward-compute", "backward-compute")
MESSAGES = ("forward-send", "forward-recv", "backward-send", "backward-recv")
OVER_DATA_PARALLEL = (
    "params-all-gather",
    "grads-reduce-scatter",
    "separate-grads-all-reduce",
    "optimizer-clip-main-grad",
)
"""These end together on all data-parallel ranks."""

Floats = NDArray[np.float64]
Operator = tuple[int, str, int]
"""(stage, type, number)."""


@dataclass(frozen=True, slots=True)
class OperatorGraph:
    """``waits_for`` and ``groups`` by operator index; times of shape (operator, data-parallel rank, step), seconds."""

    operators: tuple[Operator, ...]
    waits_for: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    is_data_parallel: tuple[bool, ...]
    start_s: Floats
    end_s: Floats
    steps: tuple[int, ...]

    @property
    def stages(self) -> int:
        """How many pipeline stages there are."""
        return 1 + max(stage for stage, _, _ in self.operators)


class GraphError(ValueError):
    """The trace lacks what the graph needs; the message says what."""


def is_operator_trace(trace: Trace) -> bool:
    """Whether the trace is recorded operator by operator with pipeline and data-parallel ranks."""
    names = set(trace.spans["name"].unique().cast(pl.String))
    return {*COMPUTE, "optimizer"} <= names and all(
        facts.stage is not None and facts.data_parallel_rank is not None for facts in trace.ranks
    )


def build_operator_graph(trace: Trace) -> OperatorGraph:
    """The graph. Raises ``GraphError`` where steps or ranks do not have the same operators."""
    parallel = {facts.rank: facts.data_parallel_rank for facts in trace.ranks}
    table = trace.spans.select(
        "stage", pl.col("name").cast(pl.String), "sequence", "step", "start_ns", "end_ns",
        pl.col("rank").replace_strict(parallel).alias("dp"),
    ).drop_nulls(["stage", "sequence", "step"])  # fmt: skip
    steps = sorted(table["step"].unique())
    width = 1 + max(each for each in parallel.values() if each is not None)
    template = table.filter((pl.col("dp") == 0) & (pl.col("step") == steps[0])).sort("start_ns", "sequence", "name")
    operators: list[Operator] = [tuple(row) for row in template.select("stage", "name", "sequence").iter_rows()]
    if table.height != len(operators) * width * len(steps):
        raise GraphError("steps or data-parallel ranks differ in their operators")
    start_s, end_s = _times(table, operators, steps, width)
    stages = 1 + max(stage for stage, _, _ in operators)
    waits = _Waits(operators)
    for stage in range(stages):
        _add_stage(waits, [each for each in operators if each[0] == stage], stage, stages, width)
    groups = _groups(operators, stages, width)
    return OperatorGraph(
        tuple(operators),
        waits.freeze(),
        groups,
        tuple(width > 1 and name in OVER_DATA_PARALLEL for _, name, _ in operators),
        start_s,
        end_s,
        tuple(steps),
    )


def _times(
    table: pl.DataFrame, operators: Sequence[Operator], steps: Sequence[int], width: int
) -> tuple[Floats, Floats]:
    """Arrays (operator, dp, step), seconds since the step began: whole-trace times lose no digits that way."""
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


class _Waits:
    """Edges between operators by name; an edge to an operator that is not there is no edge."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self.index = {operator: place for place, operator in enumerate(operators)}
        self.found: list[set[int]] = [set() for _ in operators]

    def add(self, operator: Operator, *before: Operator) -> None:
        """``operator`` starts after each of ``before``."""
        if operator in self.index:
            self.found[self.index[operator]] |= {self.index[each] for each in before if each in self.index}

    def chain(self, operators: Iterable[Operator], after: Sequence[Operator] = ()) -> None:
        """One after another."""
        last = list(after)
        for operator in operators:
            if operator in self.index:
                self.add(operator, *last)
                last = [operator]

    def freeze(self) -> tuple[tuple[int, ...], ...]:
        """By operator index."""
        return tuple(tuple(sorted(each)) for each in self.found)


def _add_stage(waits: _Waits, mine: Sequence[Operator], stage: int, stages: int, width: int) -> None:
    compute = [each for each in mine if each[1] in COMPUTE]
    waits.chain(compute)
    for kind in MESSAGES:
        waits.chain([each for each in mine if each[1] == kind])
    for _, name, number in compute:
        phase = name.removesuffix("-compute")
        receive, send = (stage, f"{phase}-recv", number), (stage, f"{phase}-send", number)
        waits.add((stage, name, number), receive)
        waits.add(receive, (stage, name, number - 1))
        waits.add(send, (stage, name, number))
    first_backward = next((at for at, each in enumerate(compute) if each[1] == "backward-compute"), 0)
    if first_backward >= 2:
        for kind in ("backward-recv", "backward-send"):
            waits.add((stage, kind, 0), compute[first_backward - 2])
    exchange = [each for each in mine if each[1] in ("params-all-gather", "grads-reduce-scatter")]
    if width > 1:
        waits.chain(exchange)
        gathers = [each for each in exchange if each[1] == "params-all-gather"]
        forward = next(each for each in compute if each[1] == "forward-compute")
        waits.add(forward, *gathers[-1:])
    waits.add((stage, "gc", 0), compute[-1])
    tail: list[Operator] = [(stage, "layernorm-grads-all-reduce", 0)]
    if stage in (0, stages - 1):
        tail.append((stage, "embedding-grads-all-reduce", 0))
    if width > 1:
        tail += [each for each in exchange if each[1] == "grads-reduce-scatter"]
    tail += [(stage, "optimizer-clip-main-grad", 0), (stage, "optimizer", 0)]
    waits.chain(tail, after=[(stage, "gc", 0)])


def _groups(operators: Sequence[Operator], stages: int, width: int) -> tuple[tuple[int, ...], ...]:
    """Operators that end together; a send or receive without its other end stands alone."""
    index = {operator: place for place, operator in enumerate(operators)}
    groups: dict[Operator, tuple[int, ...]] = {}
    for stage, name, number in operators:
        own = (stage, name, number)
        if name in MESSAGES:
            phase, kind = name.split("-")
            up = (phase == "forward") == (kind == "send")
            other = (stage + (1 if up else -1), f"{phase}-{'recv' if kind == 'send' else 'send'}", number)
            members = [own, other] if other in index else [own]
        elif name == "embedding-grads-all-reduce":
            members = [(0, name, number), (stages - 1, name, number)]
        elif name == "optimizer-clip-main-grad":
            members = [(each, name, number) for each in range(stages)]
        elif width > 1 and name in OVER_DATA_PARALLEL:
            members = [own]
        else:
            continue
        present = sorted({each for each in members if each in index})
        groups.setdefault(present[0], tuple(index[each] for each in present))
    return tuple(groups.values())
