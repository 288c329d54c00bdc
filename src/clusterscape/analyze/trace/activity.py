"""When ranks are active: the overview of a whole trace, and the active part of every step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.trace.breakdown import WORK
from clusterscape.analyze.trace.intervals import Times, cover_until, find_activity, join_times, subtract_times
from clusterscape.model.spans import SpanClass


@dataclass(frozen=True, slots=True)
class RankActivity:
    """By rank, times in which it computes (its host if it has no device), and in which it only communicates; nanoseconds since
    the origin of the trace.
    """

    compute: Mapping[int, Times]
    communication: Mapping[int, Times]

    def of_all(self) -> Times:
        """Times in which any rank is active."""
        parts = [*self.compute.values(), *self.communication.values()]
        empty = np.zeros(0, np.int64)
        return join_times(
            np.concatenate([empty, *(part.starts for part in parts)]),
            np.concatenate([empty, *(part.ends for part in parts)]),
        )


def measure_activity(spans: pl.DataFrame, origin_ns: int) -> RankActivity:
    """The activity of all ranks. ``spans`` with the columns of ``relations.py``. O(n log n), once per trace."""
    table = spans.select("rank", pl.col("span_class").cast(pl.String), pl.col("drawn_ns", "end_ns") - origin_ns)
    compute: dict[int, Times] = {}
    communication: dict[int, Times] = {}
    for (rank,), mine in table.group_by("rank"):
        work = mine.filter(pl.col("span_class").is_in(WORK))
        if not work.height:
            work = mine.filter(pl.col("span_class") == SpanClass.HOST.value)
        busy = join_times(work["drawn_ns"].to_numpy(), work["end_ns"].to_numpy())
        calls = mine.filter(pl.col("span_class") == SpanClass.COMMUNICATION.value)
        exposed = subtract_times(join_times(calls["drawn_ns"].to_numpy(), calls["end_ns"].to_numpy()), busy)
        compute[int(str(rank))], communication[int(str(rank))] = busy, exposed
    return RankActivity(compute, communication)


def find_step_activity(activity: RankActivity, steps: pl.DataFrame) -> pl.DataFrame:
    """The active part of every step over all ranks: step, active_start_ns, active_end_ns, busy_before_ns, busy_after_ns.

    ``steps``: step, start_ns and step_ns by rank, on the clock of ``activity``.
    """
    busy = activity.of_all()
    rows = []
    windows = steps.group_by("step").agg(
        pl.col("start_ns").min(), (pl.col("start_ns") + pl.col("step_ns")).max().alias("end_ns")
    )
    for step, start_ns, end_ns in windows.select("step", "start_ns", "end_ns").iter_rows():
        active = find_activity(busy, int(start_ns), int(end_ns))
        rows.append((step, active.start_ns, active.end_ns, active.busy_before_ns, active.busy_after_ns))
    names = ("active_start_ns", "active_end_ns", "busy_before_ns", "busy_after_ns")
    schema = {"step": steps["step"].dtype} | {name: pl.Float64() for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row")


def draw_overview(activity: RankActivity, rows: Sequence[Sequence[int]], extent_ns: float, pixels: int) -> pl.DataFrame:
    """The whole trace in bins of equal length: row, time_ns, and the shares ``compute`` and ``communication`` (only what no
    compute hides) of the bin, means over the ranks of each row. O(bins log intervals) per rank.
    """
    edges = np.linspace(0.0, max(1.0, extent_ns), pixels + 1)
    width = edges[1] - edges[0]
    frames = []
    for at, ranks in enumerate(rows):
        shares = {
            name: np.mean([np.diff(cover_until(times[rank], edges)) / width for rank in ranks if rank in times], axis=0)
            for name, times in (("compute", activity.compute), ("communication", activity.communication))
        }
        columns = {name: pl.Series(values).cast(pl.Float32) for name, values in shares.items()}
        frames.append(pl.DataFrame({"row": np.full(pixels, at, np.int32), "time_ns": edges[:-1], **columns}))
    return pl.concat(frames)
