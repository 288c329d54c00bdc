"""How a rank spends its step: compute, exposed communication (waiting and transferring) and idle time add up to the step."""

import re

import numpy as np
import polars as pl

from clusterscape.analyze.trace.intervals import Times, clip_times, join_times, subtract_times
from clusterscape.analyze.trace.match import Matches
from clusterscape.model.spans import SpanClass

_BREAKDOWN_SCHEMA = {
    "rank": pl.Int64(),
    "step": pl.Int64(),
    "step_ns": pl.Int64(),
    "compute_ns": pl.Int64(),
    "exposed_ns": pl.Int64(),
    "waiting_ns": pl.Int64(),
    "transferring_ns": pl.Int64(),
    "idle_ns": pl.Int64(),
    "communication_ns": pl.Int64(),
}
_BUSY = ("rank", "span_class", "start_ns", "end_ns", "name")
WORK = (SpanClass.COMPUTE.value, SpanClass.MEMORY.value)
_PYTHON = r"\.py\(\d+\): |^<built-in |^nn\.Module: |^<frozen "


def is_python_name(name: str) -> bool:
    """Whether a host span of this name is a Python function: it encloses work, and is none itself."""
    return re.search(_PYTHON, name) is not None


def find_steps(spans: pl.DataFrame) -> pl.DataFrame:
    """rank, step, start_ns, end_ns of every step: from step markers, else from step numbers of spans, else the whole trace as
    step 0.

    Markers are the host's. Where the device lags behind, a step begins when the device has finished the one before.
    """
    marked = spans.filter((pl.col("span_class") == SpanClass.STEP.value) & pl.col("step").is_not_null())
    if marked.height:
        marked = marked.select("rank", "step", "start_ns", "end_ns").sort("rank", "step")
        return _follow_devices(spans, marked.unique(["rank", "step"], keep="first", maintain_order=True))
    numbered = spans.drop_nulls("step")
    if numbered.height:
        whole = numbered.group_by("step").agg(pl.col("start_ns").min(), pl.col("end_ns").max())
        ranks = numbered.select("rank", "step").unique()
        return ranks.join(whole, on="step").select("rank", "step", "start_ns", "end_ns").sort("rank", "step")
    start, end = spans["start_ns"].to_numpy(), spans["end_ns"].to_numpy()
    low, high = (int(start.min()), int(end.max())) if start.size else (0, 0)
    ranks = spans.select("rank").unique().sort("rank")
    return ranks.with_columns(
        pl.lit(0, pl.Int32).alias("step"), pl.lit(low).alias("start_ns"), pl.lit(high).alias("end_ns")
    )


def _follow_devices(spans: pl.DataFrame, marked: pl.DataFrame) -> pl.DataFrame:
    """The steps, each from when its device has finished the one before, or has begun this one; not before the host's mark. The
    one before the first is not recorded: the first begins with its mark, unless its first kernel had to wait for the device.
    """
    kinds = [SpanClass.COMPUTE.value, SpanClass.COMMUNICATION.value]
    on_device = pl.col("is_device") & pl.any_horizontal(pl.col("span_class") == kind for kind in kinds)
    work = spans.lazy().filter(on_device & pl.col("step").is_not_null()).group_by("rank", "step")
    extent = work.agg(pl.col("start_ns").min().alias("first_ns"), pl.col("end_ns").max().alias("last_ns")).collect()
    if not extent.height:
        return marked
    table = marked.join(extent, on=["rank", "step"], how="left").sort("rank", "step")
    before = pl.col("last_ns").shift(1).over("rank")
    table = table.join(_find_prompt(spans, table), on=["rank", "step"], how="left")
    lagging = pl.min_horizontal(before, pl.col("first_ns").fill_null(before)).fill_null(pl.col("start_ns"))
    lagging = pl.when(pl.col("is_prompt").fill_null(False)).then(pl.col("start_ns")).otherwise(lagging)
    table = table.with_columns(pl.max_horizontal("start_ns", lagging).alias("begin_ns"))
    following = pl.col("begin_ns").shift(-1).over("rank")
    end = pl.max_horizontal("end_ns", pl.col("last_ns").fill_null(pl.col("end_ns")))
    end = pl.min_horizontal(end, following.fill_null(end))
    return table.select("rank", "step", pl.col("begin_ns").alias("start_ns"), end.alias("end_ns")).filter(
        pl.col("end_ns") > pl.col("start_ns")
    )


def _find_prompt(spans: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """rank, step, is_prompt of each rank's first step: whether its first kernel began right after its launch, so that the device
    had nothing else to do. ``steps``: rank, step, first_ns.
    """
    first = steps.group_by("rank", maintain_order=True).first().select("rank", "step", "first_ns")
    if "correlation" not in spans.columns:
        return first.select("rank", "step", pl.lit(None, pl.Boolean).alias("is_prompt"))
    correlated = spans.lazy().filter(pl.col("correlation").is_not_null())
    kernels = correlated.filter(pl.col("is_device")).select("rank", pl.col("start_ns").alias("first_ns"), "correlation")
    launches = correlated.filter(pl.col("span_class") == SpanClass.LAUNCH.value).select("rank", "correlation", "end_ns")
    delays = (
        first.lazy()
        .join(kernels, on=["rank", "first_ns"])
        .join(launches, on=["rank", "correlation"])
        .group_by("rank", "step")
        .agg((pl.col("first_ns") - pl.col("end_ns") < PROMPT_NS).any().alias("is_prompt"))
    )
    return delays.collect()


def find_warm_up(breakdown: pl.DataFrame) -> tuple[int, ...]:
    """The first steps in which every rank needs longer than in any later step, waits for others aside: they pay for allocations,
    compilation and caches. At most ``MAX_WARM_UP``, and only if ``MIN_STEADY`` steps remain.

    ``breakdown``: rank, step, step_ns, waiting_ns.
    """
    own = breakdown.select("step", "rank", (pl.col("step_ns") - pl.col("waiting_ns")).alias("own_ns"))
    shortest = own.group_by("step").agg(pl.col("own_ns").min().alias("low"), pl.col("own_ns").max().alias("high"))
    rows = shortest.sort("step").rows()
    count = 0
    for number in range(min(MAX_WARM_UP, max(0, len(rows) - MIN_STEADY))):
        if rows[number][1] <= WARM_UP_RATIO * max(high for _, _, high in rows[number + 1 :]):
            break
        count = number + 1
    return tuple(step for step, _, _ in rows[:count])


PROMPT_NS = 100_000
"""An idle device begins a kernel within a few microseconds of its launch, with a profiler within some tens."""
MAX_WARM_UP = 2
MIN_STEADY = 3
WARM_UP_RATIO = 1.15


def communication_parts(spans: pl.DataFrame, matches: Matches) -> pl.DataFrame:
    """Every communication span: span, rank, process_group, arrive_ns, wait_end_ns (null if unknown), end_ns.

    A rank arrives at a collective when its input is ready. It waits until the last member arrives, or in a receive until the
    matching send starts.
    """
    table = spans.with_row_index("span").filter(pl.col("span_class") == SpanClass.COMMUNICATION.value)
    table = table.select(
        "span",
        "rank",
        pl.col("process_group").cast(pl.String).fill_null("world"),
        pl.max_horizontal("start_ns", pl.col("ready_ns").fill_null(pl.col("start_ns"))).alias("arrive_ns"),
        "end_ns",
    )
    wait_ends = []
    if matches.members.height:
        last = pl.col("arrive_ns").max().over("instance").alias("wait_end_ns")
        wait_ends.append(matches.members.select("span", last))
    if matches.messages.height:
        received = matches.messages.select(
            pl.col("recv_span").alias("span"), pl.col("send_start_ns").alias("wait_end_ns")
        )
        wait_ends.append(received)
    if not wait_ends:
        return table.with_columns(pl.lit(None, pl.Int64).alias("wait_end_ns"))
    return table.join(pl.concat(wait_ends), on="span", how="left")


def measure_breakdown(spans: pl.DataFrame, steps: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    """One row per rank and step, all nanoseconds: step_ns = compute_ns + exposed_ns + idle_ns.

    compute_ns: kernels and device memory copies (host operators if the rank has no device); exposed_ns: communication that does
    not overlap with compute, the sum of waiting_ns and transferring_ns; communication_ns: all communication, overlapped or not.
    """
    rows = []
    spans = spans.select(_BUSY)
    for (rank,), windows in steps.group_by("rank", maintain_order=True):
        busy = compute_times(spans, int(str(rank)))
        mine = parts.filter(pl.col("rank") == rank)
        arrive, end = mine["arrive_ns"].to_numpy(), mine["end_ns"].to_numpy()
        communicating = join_times(arrive, end)
        waited = mine.drop_nulls("wait_end_ns")
        waiting = join_times(
            waited["arrive_ns"].to_numpy(), np.minimum(waited["wait_end_ns"].to_numpy(), waited["end_ns"].to_numpy())
        )
        for step, low, high in windows.select("step", "start_ns", "end_ns").iter_rows():
            compute, comm = clip_times(busy, low, high), clip_times(communicating, low, high)
            exposed = subtract_times(comm, compute)
            transferring = subtract_times(exposed, clip_times(waiting, low, high))
            rows.append(
                {
                    "rank": rank,
                    "step": step,
                    "step_ns": high - low,
                    "compute_ns": compute.length_ns,
                    "exposed_ns": exposed.length_ns,
                    "waiting_ns": exposed.length_ns - transferring.length_ns,
                    "transferring_ns": transferring.length_ns,
                    "idle_ns": high - low - compute.length_ns - exposed.length_ns,
                    "communication_ns": comm.length_ns,
                }
            )
    return pl.DataFrame(rows, schema=_BREAKDOWN_SCHEMA)


def compute_times(spans: pl.DataFrame, rank: int) -> Times:
    """The times in which the rank computes."""
    mine = spans.select(_BUSY).filter(pl.col("rank") == rank)
    work = mine.filter(pl.any_horizontal(pl.col("span_class") == kind for kind in WORK))
    if not work.height:
        work = spans.filter((pl.col("rank") == rank) & (pl.col("span_class") == SpanClass.HOST.value))
        if "name" in work.columns:
            work = work.filter(~pl.col("name").cast(pl.String).str.contains(_PYTHON))
    return join_times(work["start_ns"].to_numpy(), work["end_ns"].to_numpy())


def measure_exposed_by_group(spans: pl.DataFrame, steps: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    """process_group, ranks, exposed_ns and waiting_ns per rank and step (means), largest first."""
    rows = []
    count = steps.group_by("rank").len()
    per_rank = dict(count.iter_rows())
    for (group, rank), mine in parts.group_by("process_group", "rank"):
        busy = compute_times(spans, int(str(rank)))
        exposed = subtract_times(join_times(mine["arrive_ns"].to_numpy(), mine["end_ns"].to_numpy()), busy)
        waited = mine.drop_nulls("wait_end_ns")
        ends = np.minimum(waited["wait_end_ns"].to_numpy(), waited["end_ns"].to_numpy())
        waiting = subtract_times(join_times(waited["arrive_ns"].to_numpy(), ends), busy)
        step_count = per_rank.get(rank, 1)
        rows.append((group, rank, exposed.length_ns / step_count, waiting.length_ns / step_count))
    schema = {"process_group": pl.String, "rank": pl.Int32, "exposed_ns": pl.Float64, "waiting_ns": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    means = table.group_by("process_group").agg(
        pl.len().alias("ranks"), pl.col("exposed_ns").mean(), pl.col("waiting_ns").mean()
    )
    return means.sort("exposed_ns", "process_group", descending=[True, False])
