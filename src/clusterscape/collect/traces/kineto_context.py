"""Adds the context of Kineto spans: step, phase, micro-batch, namespace, and when the input of a collective was ready.

A device span has the context of its launch; a thread of the backward pass has the context of the main thread.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl

from clusterscape.model.arrays import Int64s
from clusterscape.model.spans import INFERRED_STEP, Phase, SpanClass

_MICRO_BATCH = re.compile(r"(?:\bmb|micro[-_ ]?batch)[-_ #:]?(\d{1,9})(?!\d)", re.IGNORECASE)
_PHASES = (
    (Phase.DATA, re.compile(r"data[-_ ]?load|dataloader|load[-_ ]?batch|next[-_ ]?batch|copy_batch", re.IGNORECASE)),
    (Phase.OPTIMIZER, re.compile(r"^optimizer|optimizer\.|## *optimizer|zero_grad", re.IGNORECASE)),
    (Phase.FORWARD, re.compile(r"(?:^|[^a-z])(?:forward|fwd)(?![a-z])", re.IGNORECASE)),
    (Phase.BACKWARD, re.compile(r"(?:^|[^a-z])(?:backward|bwd)(?![a-z])", re.IGNORECASE)),
)
OPTIMIZER_CALL = "Optimizer.step#"
WHOLE_SHARE = 0.9
"""Of the operators of a step, at the median."""
SYNC_CALLS = ("cudaStreamSynchronize", "cudaEventSynchronize", "hipStreamSynchronize", "hipEventSynchronize")
READY_SLACK_NS = 1_000_000
"""A synchronization that starts within this time after a host collective waits for the collective's own input."""


@lru_cache(maxsize=65536)
def find_phase(name: str) -> Phase | None:
    """The phase in the name of an annotation."""
    return next((phase for phase, pattern in _PHASES if pattern.search(name)), None)


@lru_cache(maxsize=65536)
def find_micro_batch(name: str) -> int | None:
    """The micro-batch in the name of an annotation."""
    match = _MICRO_BATCH.search(name)
    return int(match[1]) if match else None


def add_step_context(spans: pl.DataFrame) -> pl.DataFrame:
    """Fill in step, phase, micro_batch, namespace and ready_ns of the spans of one rank; without marked steps, add those that end
    with calls of the optimizer.
    """
    spans = _mark_steps(spans)
    call_times = _call_times(spans)
    spans = spans.with_columns(_steps(spans, call_times))
    changes = _context_changes(spans)
    if changes is not None:
        at = np.searchsorted(changes["at_ns"].to_numpy(), call_times, side="right") - 1
        change_rows = pl.Series(at).set(pl.Series(at < 0), None)  # null before the first change
        spans = spans.with_columns(changes[name].gather(change_rows) for name in ("phase", "micro_batch", "namespace"))
        spans = _remove_own_names(spans)
    return _add_ready_times(spans)


def _mark_steps(spans: pl.DataFrame) -> pl.DataFrame:
    """With step spans between the ends of ``Optimizer.step`` if no steps are marked. What follows the last one is not a
    step. Neither is what precedes the first one, if it has fewer operators than a step.
    """
    name = pl.col("name").cast(pl.String)
    if (spans["span_class"] == SpanClass.STEP.value).any():
        return spans
    calls = spans.filter(
        (pl.col("span_class") == SpanClass.ANNOTATION.value)
        & ~pl.col("is_device")
        & name.str.starts_with(OPTIMIZER_CALL)
    )
    if not calls.height:
        return spans
    # Of several optimizers that take turns, one is enough.
    of_one = calls.group_by(name.alias("name"), "lane").len().sort("len", "name", descending=[True, False]).row(0)
    calls = calls.filter((name == of_one[0]) & (pl.col("lane").cast(pl.String) == str(of_one[1]))).sort("start_ns")
    on_lane = spans.filter(
        (pl.col("lane").cast(pl.String) == str(of_one[1]))
        & (pl.col("span_class").is_in([SpanClass.HOST.value, SpanClass.LAUNCH.value]))
    )["start_ns"].sort()
    ends = calls["end_ns"].to_numpy()
    starts = np.append(int(on_lane.min() or ends[0]), ends[:-1])  # type: ignore[arg-type] # times are integers
    counts = np.searchsorted(on_lane.to_numpy(), ends) - np.searchsorted(on_lane.to_numpy(), starts)
    is_whole = (ends > starts) & (counts >= WHOLE_SHARE * np.median(counts))
    steps = calls.with_columns(
        pl.Series("start_ns", starts, dtype=pl.Int64),
        pl.lit(SpanClass.STEP.value).cast(spans.schema["span_class"]).alias("span_class"),
        pl.Series("name", [f"{INFERRED_STEP}{number}" for number in range(ends.size)]).cast(spans.schema["name"]),
    )
    return pl.concat([spans, steps.filter(pl.Series(is_whole))])


def _call_times(spans: pl.DataFrame) -> Int64s:
    """When each span was issued: the launch of a device span, else its own start."""
    times = spans["start_ns"].to_numpy().copy()
    has_correlation = pl.col("correlation").is_not_null()
    calls = spans.select("span_class", "correlation", "start_ns").filter(
        (pl.col("span_class") == SpanClass.LAUNCH.value) & has_correlation
    )
    calls = calls.sort("correlation", maintain_order=True)
    numbers, starts = calls["correlation"].to_numpy(), calls["start_ns"].to_numpy()
    if not numbers.size:
        return times
    device_rows = spans.select(pl.arg_where(pl.col("is_device") & has_correlation)).to_series()
    correlations = spans["correlation"].gather(device_rows).to_numpy()
    at = np.minimum(np.searchsorted(numbers, correlations), numbers.size - 1)
    is_found = numbers[at] == correlations
    times[device_rows.to_numpy()[is_found]] = starts[at[is_found]]
    return times


def _steps(spans: pl.DataFrame, call_times: Int64s) -> pl.Series:
    steps = spans.filter(pl.col("span_class") == SpanClass.STEP.value).sort("start_ns")
    if not steps.height:
        return pl.Series("step", [None], dtype=pl.Int32).new_from_index(0, spans.height)
    starts, ends = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    # Some readers set the step numbers; Kineto has them in the names.
    numbers_in_names = steps["name"].cast(pl.String).str.extract(r"(\d+)$").cast(pl.Int32)
    numbers = steps["step"].fill_null(numbers_in_names).fill_null(0).to_numpy()
    at = np.searchsorted(starts, call_times, side="right") - 1
    is_inside = (at >= 0) & (call_times < ends[np.maximum(at, 0)])
    return (
        pl.select(
            pl.when(pl.Series(is_inside)).then(pl.Series(numbers[np.maximum(at, 0)])).otherwise(None).cast(pl.Int32)
        )
        .to_series()
        .alias("step")
    )


def _context_changes(spans: pl.DataFrame) -> pl.DataFrame | None:
    """The times at which the main thread enters or leaves an annotation, with phase, micro-batch and path from then on."""
    steps = spans.filter(pl.col("span_class") == SpanClass.STEP.value)
    annotations = spans.filter((pl.col("span_class") == SpanClass.ANNOTATION.value) & ~pl.col("is_device"))
    if not annotations.height:
        return None
    main = steps["lane"][0] if steps.height else annotations["lane"].cast(pl.String).mode()[0]
    annotations = annotations.filter(pl.col("lane").cast(pl.String) == str(main)).sort(
        "start_ns", "end_ns", descending=[False, True]
    )
    times: list[int] = []
    contexts: list[_Context] = []
    stack: list[_Context] = []

    def leave() -> None:
        times.append(stack.pop().end_ns)
        contexts.append(stack[-1] if stack else _OUTSIDE)

    for name, start, end in annotations.select(pl.col("name").cast(pl.String), "start_ns", "end_ns").iter_rows():
        while stack and stack[-1].end_ns <= start:
            leave()
        stack.append((stack[-1] if stack else _OUTSIDE).enter(name, end))
        times.append(start)
        contexts.append(stack[-1])
    while stack:
        leave()
    columns = [
        pl.Series("at_ns", times, dtype=pl.Int64),
        pl.Series("phase", [context.phase for context in contexts], dtype=spans.schema["phase"]),
        pl.Series("micro_batch", [context.micro_batch for context in contexts], dtype=pl.Int32),
        pl.Series("namespace", [context.path or None for context in contexts], dtype=pl.Categorical()),
    ]
    return pl.DataFrame(columns).sort("at_ns", maintain_order=True)


class _Context(NamedTuple):
    """The context within an annotation: from its name, else from the enclosing annotations."""

    end_ns: int
    path: str | None
    phase: Phase | None
    micro_batch: int | None

    def enter(self, name: str, end_ns: int) -> "_Context":
        """The context in an annotation within this one."""
        micro_batch = find_micro_batch(name)
        return _Context(
            end_ns,
            name if self.path is None else f"{self.path}/{name}",
            find_phase(name) or self.phase,
            self.micro_batch if micro_batch is None else micro_batch,
        )


_OUTSIDE = _Context(0, None, None, None)


def _remove_own_names(spans: pl.DataFrame) -> pl.DataFrame:
    """Remove the annotation's own name from its namespace, which is the path to it."""
    is_annotation = (pl.col("span_class") == SpanClass.ANNOTATION.value) & ~pl.col("is_device")
    annotation_rows = spans.select(pl.arg_where(is_annotation)).to_series()
    path, name = pl.col("namespace").cast(pl.String), pl.col("name").cast(pl.String)
    parent_path = path.str.strip_suffix(name).str.strip_suffix("/")
    trimmed = pl.when(parent_path == "").then(None).otherwise(parent_path).cast(pl.Categorical()).alias("namespace")
    # Annotations are few: their paths are appended to the column and gathered from there.
    paths = pl.concat(
        [spans["namespace"], spans.select("namespace", "name")[annotation_rows].select(trimmed).to_series()]
    )
    path_rows = np.arange(spans.height)
    path_rows[annotation_rows.to_numpy()] = spans.height + np.arange(annotation_rows.len())
    return spans.with_columns(paths.gather(path_rows))


def _add_ready_times(spans: pl.DataFrame) -> pl.DataFrame:
    """Set ready_ns: a host collective on device data first waits for the device; only then has its rank arrived."""
    is_host = (pl.col("span_class") == SpanClass.COMMUNICATION.value) & ~pl.col("is_device")
    if not spans.select(is_host.any()).item():
        return spans
    calls = spans.filter(
        (pl.col("span_class") == SpanClass.LAUNCH.value) & pl.col("name").cast(pl.String).is_in(SYNC_CALLS)
    ).select("lane", "start_ns", pl.col("start_ns").alias("sync_ns"), pl.col("end_ns").alias("synced_ns"))
    if not calls.height:
        return spans
    numbered = spans.with_row_index("row")
    host = numbered.filter(is_host).select("row", "lane", "start_ns", "end_ns").sort("start_ns")
    syncs = host.join_asof(
        calls.sort("start_ns"), on="start_ns", by="lane", strategy="forward", check_sortedness=False
    ).filter((pl.col("sync_ns") - pl.col("start_ns") <= READY_SLACK_NS) & (pl.col("synced_ns") <= pl.col("end_ns")))
    ready = syncs.select("row", pl.col("synced_ns").alias("ready_ns"))
    return numbered.drop("ready_ns").join(ready, on="row", how="left", maintain_order="left").select(spans.columns)
