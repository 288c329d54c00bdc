"""Where in the step a Kineto span belongs: step, phase, micro-batch, namespace, and when a collective's input was ready.

A device span belongs where its launch was called; a thread of the backward pass belongs where the main thread is.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.model.spans import Phase, SpanClass

_MICRO_BATCH = re.compile(r"(?:\bmb|micro[-_ ]?batch)[-_ #:]?(\d+)", re.IGNORECASE)
_PHASES = (
    (Phase.DATA, re.compile(r"data[-_ ]?load|dataloader|load[-_ ]?batch|next[-_ ]?batch|copy_batch", re.IGNORECASE)),
    (Phase.OPTIMIZER, re.compile(r"^optimizer|optimizer\.|## *optimizer|zero_grad", re.IGNORECASE)),
    (Phase.FORWARD, re.compile(r"(?:^|[^a-z])(?:forward|fwd)(?![a-z])", re.IGNORECASE)),
    (Phase.BACKWARD, re.compile(r"(?:^|[^a-z])(?:backward|bwd)(?![a-z])", re.IGNORECASE)),
)
SYNC_CALLS = ("cudaStreamSynchronize", "cudaEventSynchronize", "hipStreamSynchronize", "hipEventSynchronize")
READY_SLACK_NS = 1_000_000
"""A synchronization that begins so soon after a host collective waits for the collective's own input."""

Ints = NDArray[np.int64]


@lru_cache(maxsize=65536)
def find_phase(name: str) -> Phase | None:
    """The phase an annotation names."""
    return next((phase for phase, pattern in _PHASES if pattern.search(name)), None)


@lru_cache(maxsize=65536)
def find_micro_batch(name: str) -> int | None:
    """The micro-batch an annotation names."""
    found = _MICRO_BATCH.search(name)
    return int(found[1]) if found else None


def place_in_steps(spans: pl.DataFrame) -> pl.DataFrame:
    """The spans of one rank with step, phase, micro_batch, namespace and ready_ns filled."""
    moments = _moments(spans)
    spans = spans.with_columns(_steps(spans, moments))
    changes = _context_changes(spans)
    if changes is not None:
        at = np.searchsorted(changes["at_ns"].to_numpy(), moments, side="right") - 1
        known = pl.Series(at).set(pl.Series(at < 0), None)  # a row of changes; null before the first
        spans = spans.with_columns(changes[name].gather(known) for name in ("phase", "micro_batch", "namespace"))
        spans = _own_names(spans)
    return _ready(spans)


def _moments(spans: pl.DataFrame) -> Ints:
    """When each span was asked for: a device span's launch, else its own start."""
    moments = spans["start_ns"].to_numpy().copy()
    is_known = pl.col("correlation").is_not_null()
    calls = spans.select("span_class", "correlation", "start_ns").filter(
        (pl.col("span_class") == SpanClass.LAUNCH.value) & is_known
    )
    calls = calls.sort("correlation", maintain_order=True)
    numbers, starts = calls["correlation"].to_numpy(), calls["start_ns"].to_numpy()
    if not numbers.size:
        return moments
    places = spans.select(pl.arg_where(pl.col("is_device") & is_known)).to_series()
    wanted = spans["correlation"].gather(places).to_numpy()
    at = np.minimum(np.searchsorted(numbers, wanted), numbers.size - 1)
    is_found = numbers[at] == wanted
    moments[places.to_numpy()[is_found]] = starts[at[is_found]]
    return moments


def _steps(spans: pl.DataFrame, moments: Ints) -> pl.Series:
    steps = spans.filter(pl.col("span_class") == SpanClass.STEP.value).sort("start_ns")
    if not steps.height:
        return pl.Series("step", [None], dtype=pl.Int32).new_from_index(0, spans.height)
    starts, ends = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    # A reader that knows the numbers has set them; Kineto's are in the names.
    named = steps["name"].cast(pl.String).str.extract(r"(\d+)$").cast(pl.Int32)
    numbers = steps["step"].fill_null(named).fill_null(0).to_numpy()
    at = np.searchsorted(starts, moments, side="right") - 1
    inside = (at >= 0) & (moments < ends[np.maximum(at, 0)])
    return (
        pl.select(pl.when(pl.Series(inside)).then(pl.Series(numbers[np.maximum(at, 0)])).otherwise(None).cast(pl.Int32))
        .to_series()
        .alias("step")
    )


def _context_changes(spans: pl.DataFrame) -> pl.DataFrame | None:
    """Each moment at which the main thread enters or leaves an annotation: the phase, micro-batch and path from then on."""
    steps = spans.filter(pl.col("span_class") == SpanClass.STEP.value)
    marks = spans.filter((pl.col("span_class") == SpanClass.ANNOTATION.value) & ~pl.col("is_device"))
    if not marks.height:
        return None
    main = steps["lane"][0] if steps.height else marks["lane"].cast(pl.String).mode()[0]
    marks = marks.filter(pl.col("lane").cast(pl.String) == str(main)).sort(
        "start_ns", "end_ns", descending=[False, True]
    )
    times: list[int] = []
    contexts: list[_Context] = []
    stack: list[_Context] = []

    def leave() -> None:
        times.append(stack.pop().end_ns)
        contexts.append(stack[-1] if stack else _OUTSIDE)

    for name, start, end in marks.select(pl.col("name").cast(pl.String), "start_ns", "end_ns").iter_rows():
        while stack and stack[-1].end_ns <= start:
            leave()
        stack.append((stack[-1] if stack else _OUTSIDE).enter(name, end))
        times.append(start)
        contexts.append(stack[-1])
    while stack:
        leave()
    columns = [
        pl.Series("at_ns", times, dtype=pl.Int64),
        pl.Series("phase", [each.phase for each in contexts], dtype=spans.schema["phase"]),
        pl.Series("micro_batch", [each.micro_batch for each in contexts], dtype=pl.Int32),
        pl.Series("namespace", [each.path or None for each in contexts], dtype=pl.Categorical()),
    ]
    return pl.DataFrame(columns).sort("at_ns", maintain_order=True)


class _Context(NamedTuple):
    """Where the main thread is within an annotation: what it says, and what those around it do."""

    end_ns: int
    path: str | None
    phase: Phase | None
    micro_batch: int | None

    def enter(self, name: str, end_ns: int) -> "_Context":
        """In an annotation within this one."""
        micro_batch = find_micro_batch(name)
        return _Context(
            end_ns,
            name if self.path is None else f"{self.path}/{name}",
            find_phase(name) or self.phase,
            self.micro_batch if micro_batch is None else micro_batch,
        )


_OUTSIDE = _Context(0, None, None, None)


def _own_names(spans: pl.DataFrame) -> pl.DataFrame:
    """An annotation's own name is not part of the path that leads to it."""
    is_mark = (pl.col("span_class") == SpanClass.ANNOTATION.value) & ~pl.col("is_device")
    marks = spans.select(pl.arg_where(is_mark)).to_series()
    path, name = pl.col("namespace").cast(pl.String), pl.col("name").cast(pl.String)
    above = path.str.strip_suffix(name).str.strip_suffix("/")
    trimmed = pl.when(above == "").then(None).otherwise(above).cast(pl.Categorical()).alias("namespace")
    # Marks are few: their paths are put behind all others, and taken from there.
    paths = pl.concat([spans["namespace"], spans.select("namespace", "name")[marks].select(trimmed).to_series()])
    places = np.arange(spans.height)
    places[marks.to_numpy()] = spans.height + np.arange(marks.len())
    return spans.with_columns(paths.gather(places))


def _ready(spans: pl.DataFrame) -> pl.DataFrame:
    """A collective of the host on data of the device first waits for the device: only then has its rank arrived."""
    is_host = (pl.col("span_class") == SpanClass.COMMUNICATION.value) & ~pl.col("is_device")
    if not spans.select(is_host.any()).item():
        return spans
    calls = spans.filter(
        (pl.col("span_class") == SpanClass.LAUNCH.value) & pl.col("name").cast(pl.String).is_in(SYNC_CALLS)
    ).select("lane", "start_ns", pl.col("start_ns").alias("sync_ns"), pl.col("end_ns").alias("synced_ns"))
    if not calls.height:
        return spans
    numbered = spans.with_row_index("place")
    host = numbered.filter(is_host).select("place", "lane", "start_ns", "end_ns").sort("start_ns")
    found = host.join_asof(
        calls.sort("start_ns"), on="start_ns", by="lane", strategy="forward", check_sortedness=False
    ).filter((pl.col("sync_ns") - pl.col("start_ns") <= READY_SLACK_NS) & (pl.col("synced_ns") <= pl.col("end_ns")))
    ready = found.select("place", pl.col("synced_ns").alias("ready_ns"))
    return numbered.drop("ready_ns").join(ready, on="place", how="left", maintain_order="left").select(spans.columns)
