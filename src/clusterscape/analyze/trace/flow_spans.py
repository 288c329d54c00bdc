"""An operator graph from a trace's spans: the operators of one rank per stage in the typical step, in execution order, with
shapes and shards from captured modules (``clusterscape.trace.capture``).
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from clusterscape.model.spans import (
    OPERATOR_SCHEMA,
    Activation,
    FlowMark,
    ModuleFacts,
    Phase,
    SpanClass,
    StageModules,
    make_operators,
)

WORK = (SpanClass.COMPUTE.value, SpanClass.COMMUNICATION.value, SpanClass.MEMORY.value)
MOST_OPERATORS = 20_000
"""Maximum per stage; a longer step is cut there."""
MESSAGES = ("send", "recv")
KINDS = {"tp": FlowMark.TENSOR, "dp": FlowMark.DATA, "pp": FlowMark.PIPELINE, "ep": FlowMark.EXPERT}
COMMUNICATION_CALLS = r"^(c10d::|_c10d_functional::|record_param_comms$)"
"""Host operators around a communication that has its own span."""
SHARDED_KINDS = ("tp", "cp")
"""Kinds of process groups whose ranks hold shards of one tensor."""
MOVING = ("all_gather", "all_to_all", "gather", "scatter", "broadcast")
SUMMING = ("all_reduce", "reduce_scatter", "reduce")


def spans_to_operators(
    spans: pl.DataFrame,
    stages: Mapping[int, int | None],
    *,
    step: int | None,
    origin_ns: int,
    group_kinds: Mapping[str, str | None] | None = None,
) -> pl.DataFrame:
    """Spans to operators. ``spans`` with the columns of ``relations.py``; ``group_kinds``: kind (tp, dp, …) by process group."""
    rank_of_stage: dict[int | None, int] = {}
    for rank in sorted(stages):
        rank_of_stage.setdefault(stages[rank], rank)
    table = spans.with_row_index("span")
    if step is not None:
        table = table.filter(pl.col("step") == step)
    tables = [
        _select_rank(table, stage, rank) for stage, rank in sorted(rank_of_stage.items(), key=lambda item: item[0] or 0)
    ]
    tables = [rank_table for rank_table in tables if rank_table.height]
    if not tables:
        return pl.DataFrame(schema=dict(OPERATOR_SCHEMA))
    chosen = pl.concat(tables)
    names = [shorten_kernel(name) for name in chosen["name"].cast(pl.String)]
    start = chosen["start_ns"] - origin_ns
    end = chosen["end_ns"] - origin_ns
    collective = chosen["collective"].cast(pl.String)
    return make_operators(
        {
            "stage": chosen["shown_stage"],
            "name": names,
            "type": [_type_of(name) for name in names],
            "namespace": chosen["namespace"].cast(pl.String).fill_null("").str.strip_chars("/"),
            "inputs": _inputs(chosen),
            "mark": _marks(chosen, group_kinds or {}),
            "message": pl.select(pl.when(collective.is_in(MESSAGES)).then(collective)).to_series(),
            "message_key": _message_keys(chosen),
            "span": chosen["span"],
            "start_ns": start,
            "end_ns": end,
            "duration_ns": end - start,
        },
        chosen.height,
    )


def shorten_kernel(name: str) -> str:
    """``void at::native::elementwise_kernel<8, …>(…)`` → ``elementwise_kernel``."""
    plain = name.replace("(anonymous namespace)::", "")
    # Some recorders truncate names: then no bracket follows.
    match = re.match(r"(?:void\s+)?((?:[\w.]+::)*)([\w.#/-]+)\s*[<(]", plain) or re.match(
        r"void\s+((?:[\w.]+::)+)([\w.#/-]+)$", plain
    )
    return match[2] if match and (match[1] or plain.startswith("void ")) else plain


def _type_of(name: str) -> str:
    """The name without numbers: micro-batch and layer numbers do not make another type."""
    return re.sub(r"\d+", "#", name)


def _select_rank(table: pl.DataFrame, stage: int | None, rank: int) -> pl.DataFrame:
    mine = table.filter(pl.col("rank") == rank)
    work = mine.filter(pl.col("span_class").cast(pl.String).is_in(WORK))
    if not (work["span_class"].cast(pl.String) == SpanClass.COMPUTE.value).any():
        is_host = pl.col("span_class").cast(pl.String) == SpanClass.HOST.value
        is_call = pl.col("name").cast(pl.String).str.contains(COMMUNICATION_CALLS)
        work = mine.filter(
            (is_host & pl.col("is_outer") & ~is_call)
            | (pl.col("span_class").cast(pl.String) == SpanClass.COMMUNICATION.value)
        )
    return work.sort("start_ns", "span").head(MOST_OPERATORS).with_columns(pl.lit(stage, pl.Int32).alias("shown_stage"))


def _inputs(chosen: pl.DataFrame) -> list[list[int]]:
    """Every operator depends on the previous one of its lane; communication also on the last compute before it."""
    last: dict[tuple[int, str], int] = {}
    last_compute: dict[int, int] = {}
    inputs: list[list[int]] = []
    rows = chosen.select(
        "rank", pl.col("lane").cast(pl.String).fill_null(""), pl.col("span_class").cast(pl.String)
    ).iter_rows()
    for row, (rank, lane, kind) in enumerate(rows):
        sources = {last[rank, lane]} if (rank, lane) in last else set()
        if rank in last_compute and (kind == SpanClass.COMMUNICATION.value or not sources):
            sources.add(last_compute[rank])
        inputs.append(sorted(sources))
        last[rank, lane] = row
        if kind != SpanClass.COMMUNICATION.value:
            last_compute[rank] = row
    return inputs


def _marks(chosen: pl.DataFrame, kinds: Mapping[str, str | None]) -> list[str | None]:
    rows = chosen.select(
        pl.col("collective").cast(pl.String),
        pl.col("process_group").cast(pl.String),
        pl.col("phase").cast(pl.String),
        pl.col("span_class").cast(pl.String),
    ).iter_rows()
    return [
        None
        if collective is None and kind != SpanClass.COMMUNICATION.value
        else mark_communication(collective, kinds.get(group) or group, phase).value
        for collective, group, phase, kind in rows
    ]


def mark_communication(collective: str | None, kind: str | None, phase: str | None) -> FlowMark:
    """The part of the parallel strategy that a communication belongs to, from the kind of its process group (tp, dp, …) and its
    collective. A sum over data-parallel ranks in the backward pass aggregates gradients; a collective that only moves shards
    between tensor-parallel ranks redistributes a tensor.
    """
    mark = KINDS.get(kind or "")
    if collective in MESSAGES:
        return mark or (FlowMark.COMMUNICATION if kind in SHARDED_KINDS else FlowMark.PIPELINE)
    if kind in SHARDED_KINDS and collective in MOVING:
        return FlowMark.REDISTRIBUTION
    if mark in (None, FlowMark.DATA) and collective in SUMMING and phase == Phase.BACKWARD.value:
        return FlowMark.GRADIENT_AGGREGATION
    if mark is None and collective == "all_to_all":
        return FlowMark.EXPERT
    return mark or FlowMark.COMMUNICATION


def _message_keys(chosen: pl.DataFrame) -> pl.Series:
    """The key of a matched message is the row of its send."""
    return chosen.select(
        pl.when(pl.col("partner").is_not_null()).then(
            pl.when(pl.col("collective").cast(pl.String) == "send").then("span").otherwise("partner").cast(pl.String)
        )
    ).to_series()


Shards = list[list[int]] | None


class NamedModules:
    """Modules of all stages, looked up by the namespaces of their calls in the trace."""

    def __init__(self, stages: Sequence[StageModules]) -> None:
        self._by_path = {
            stage_modules.stage: {module.path: module for module in stage_modules.modules} for stage_modules in stages
        }
        self._cache: dict[tuple[int | None, str], ModuleFacts | None] = {}

    def find(self, stage: int | None, namespace: str) -> ModuleFacts | None:
        """The module that the namespace is a call of; None if it is an annotation or unknown."""
        key = (stage, namespace)
        if key not in self._cache:
            self._cache[key] = self._match(self._by_path.get(stage, {}), namespace)
        return self._cache[key]

    def around(self, stage: int | None, namespace: str) -> Iterator[tuple[str, ModuleFacts]]:
        """The modules around an operator of the namespace, outermost first, with their namespaces."""
        for path in paths_of(namespace):
            module = self.find(stage, path)
            if module is not None:
                yield path, module

    def _match(self, modules: Mapping[str, ModuleFacts], namespace: str) -> ModuleFacts | None:
        """``forward mb0/Stage/blocks.1/down`` → ``blocks.1.down``: the longest suffix that is a module's path."""
        parts = namespace.split("/")
        for start in range(len(parts)):
            module = modules.get(".".join(parts[start:]))
            if module is not None:
                return module
        root = modules.get("")
        return root if root is not None and parts[-1] == root.class_name else None


def paths_of(namespace: str) -> Iterator[str]:
    """``a/b/c`` → ``a``, ``a/b``, ``a/b/c``."""
    parts = namespace.split("/") if namespace else []
    for depth in range(len(parts)):
        yield "/".join(parts[: depth + 1])


def add_shards(operators: pl.DataFrame, modules: NamedModules) -> pl.DataFrame:
    """The operators with ``shards`` where a tensor enters or leaves a module, and with the shape and type of the output on the
    last operator of a module.
    """
    stages, spaces = operators["stage"].to_list(), operators["namespace"].to_list()
    counts = operators["inputs"].list.len().to_list()
    calls = [dict(modules.around(stage, space)) for stage, space in zip(stages, spaces, strict=True)]
    shards: list[Shards] = []
    outputs: list[Activation | None] = []
    for row, (stage, inside) in enumerate(zip(stages, calls, strict=True)):
        is_first = row == 0 or stages[row - 1] != stage
        is_last = row + 1 == len(stages) or stages[row + 1] != stage
        tensor = _find_input({} if is_first else calls[row - 1], inside)
        shards.append([list(tensor.splits)] * max(1, counts[row]) if tensor is not None and tensor.splits else None)
        outputs.append(_find_output(inside, {} if is_last else calls[row + 1]))
    shards = _fill_receives(shards, operators["message"].to_list(), stages)
    return operators.with_columns(
        pl.Series("shards", shards, dtype=operators.schema["shards"]),
        pl.Series("shape", [None if output is None else _format_shape(output) for output in outputs], dtype=pl.String),
        pl.Series("data_type", [None if output is None else output.data_type for output in outputs], dtype=pl.String),
    )


def _find_input(before: Mapping[str, ModuleFacts], now: Mapping[str, ModuleFacts]) -> Activation | None:
    """The tensor that enters an operator: the input of the innermost module that starts here, else the output of the outermost
    module that has just ended.
    """
    entered = [module for path, module in now.items() if path not in before]
    for module in reversed(entered):
        if module.inputs and module.inputs[0].splits:
            return module.inputs[0]
    return _find_output(before, now)


def _find_output(before: Mapping[str, ModuleFacts], after: Mapping[str, ModuleFacts]) -> Activation | None:
    """The output of the outermost module that ends between ``before`` and ``after``."""
    return next((module.outputs[0] for path, module in before.items() if path not in after and module.outputs), None)


def _fill_receives(shards: list[Shards], messages: Sequence[str | None], stages: Sequence[int | None]) -> list[Shards]:
    """A received tensor has the shards of the next operator's input."""
    for row in range(len(shards) - 2, -1, -1):
        if messages[row] == "recv" and shards[row] is None and stages[row] == stages[row + 1]:
            following = shards[row + 1]
            shards[row] = None if following is None else following[:1]
    return shards


def _format_shape(tensor: Activation) -> str:
    return " × ".join(str(size) for size in tensor.shape) + (" (partial sums)" if tensor.is_partial else "")


def find_layers(namespaces: Sequence[str], stages: Sequence[int | None], modules: NamedModules) -> frozenset[str]:
    """Namespaces of layers: sibling modules of the same class whose names differ only in numbers."""
    groups: dict[tuple[str, str, str], set[str]] = {}
    for path in namespaces:
        module = next((facts for stage in stages if (facts := modules.find(stage, path)) is not None), None)
        if module is not None:
            parent, _, name = path.rpartition("/")
            groups.setdefault((parent, module.class_name, re.sub(r"\d+", "#", name)), set()).add(path)
    return frozenset(path for (_, _, name), paths in groups.items() if len(paths) > 1 and "#" in name for path in paths)
