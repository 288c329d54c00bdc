"""The critical path of a step across ranks: walks back from the step's end through what the rank was doing at each moment; in a
collective or a receive it moves to the rank that the others waited for.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.trace.breakdown import compute_times
from clusterscape.analyze.trace.intervals import Times
from clusterscape.analyze.trace.match import Matches


@dataclass(frozen=True, slots=True)
class PathSegment:
    """A piece of the path. ``kind``: compute, transfer, communication (with an unknown partner) or host."""

    rank: int
    kind: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Segments in time order, without gaps, from the step's begin on the first rank of the path to its end on the last."""

    step: int
    length_ns: int
    segments: tuple[PathSegment, ...]

    def seconds_by(self) -> dict[tuple[int, str], float]:
        """Seconds by (rank, kind), largest first."""
        seconds: dict[tuple[int, str], float] = {}
        for segment in self.segments:
            key = (segment.rank, segment.kind)
            seconds[key] = seconds.get(key, 0.0) + (segment.end_ns - segment.start_ns) / 1e9
        return dict(sorted(seconds.items(), key=lambda item: -item[1]))


@dataclass(frozen=True, slots=True)
class _Rank:
    """One rank in the whole trace: when it computed, and its communication sorted by end."""

    busy: Times
    communication: pl.DataFrame


@dataclass(frozen=True, slots=True)
class _Lane:
    """One rank within one step; lists, because they are read element by element."""

    busy: Times
    arrive: list[int]
    end: list[int]
    wait_end: list[int | None]
    partner: list[int | None]


def find_critical_paths(
    spans: pl.DataFrame, steps: pl.DataFrame, parts: pl.DataFrame, matches: Matches, wanted: Sequence[int]
) -> tuple[CriticalPath, ...]:
    """The critical path of each of the ``wanted`` steps that the trace has."""
    communication = parts.join(_partners(matches), on="span", how="left").sort("end_ns", maintain_order=True)
    ranks = {
        int(rank): _Rank(compute_times(spans, int(rank)), communication.filter(pl.col("rank") == rank))
        for rank in steps["rank"].unique().sort()
    }
    windows = ((step, steps.filter(pl.col("step") == step)) for step in wanted)
    return tuple(_walk(ranks, window, step) for step, window in windows if window.height)


def _partners(matches: Matches) -> pl.DataFrame:
    """span, partner: the rank for which the rank of a collective or receive span waits."""
    tables = [pl.DataFrame(schema={"span": pl.UInt32, "partner": pl.Int32})]
    if matches.members.height:
        last = pl.col("rank").sort_by("arrive_ns").last().over("instance")
        tables.append(matches.members.select(pl.col("span").cast(pl.UInt32), last.cast(pl.Int32).alias("partner")))
    if matches.messages.height:
        tables.append(matches.messages.select(pl.col("recv_span").alias("span"), pl.col("from_rank").alias("partner")))
    return pl.concat(tables)


def _walk(ranks: Mapping[int, _Rank], window: pl.DataFrame, step: int) -> CriticalPath:
    low, high = int(window["start_ns"].to_numpy().min()), int(window["end_ns"].to_numpy().max())
    rank = int(window.sort("end_ns", "rank")["rank"][-1])
    lanes = {int(member): _lane(ranks[int(member)], low, high) for member in window["rank"]}
    begin = dict(window.select("rank", "start_ns").iter_rows())
    segments: list[PathSegment] = []
    now, jumps = high, 0
    while now > begin[rank] and jumps <= len(lanes):
        kind, start, following = _look_back(lanes[rank], now, begin[rank])
        if start < now:
            segments.append(PathSegment(rank, kind, start, now))
            jumps = 0
        else:
            jumps += 1
        now = start
        rank = following if following is not None and following in lanes else rank
    return CriticalPath(step, high - now, tuple(reversed(segments)))


def _lane(rank: _Rank, low: int, high: int) -> _Lane:
    mine = rank.communication.filter((pl.col("end_ns") > low) & (pl.col("arrive_ns") < high))
    return _Lane(
        rank.busy,
        mine["arrive_ns"].to_list(),
        mine["end_ns"].to_list(),
        mine["wait_end_ns"].to_list(),
        mine["partner"].to_list(),
    )


def _look_back(lane: _Lane, now: int, low: int) -> tuple[str, int, int | None]:
    """What precedes ``now``: its kind, its start, and the rank to continue with if it is another one."""
    at = bisect_left(lane.busy.starts, now) - 1
    computed_until = int(lane.busy.ends[at]) if at >= 0 else low
    if computed_until >= now:
        return "compute", max(low, int(lane.busy.starts[at])), None
    for place in range(bisect_left(lane.end, now), len(lane.end)):
        if lane.arrive[place] >= now:
            continue
        wait_end, partner = lane.wait_end[place], lane.partner[place]
        if wait_end is None or partner is None or wait_end <= lane.arrive[place]:
            return (
                "communication" if wait_end is None else "transfer",
                max(low, lane.arrive[place], computed_until),
                None,
            )
        return "transfer", max(low, min(now, wait_end)), partner
    ended = bisect_right(lane.end, now) - 1
    communicated_until = lane.end[ended] if ended >= 0 else low
    start = max(
        low, computed_until, min(communicated_until, now - 1 if communicated_until >= now else communicated_until)
    )
    return ("host", start, None) if start < now else ("host", max(low, now - 1), None)


def find_median_step(steps: pl.DataFrame) -> int | None:
    """The step with the median length; None if there are no steps."""
    lengths = (
        steps.group_by("step")
        .agg((pl.col("end_ns").max() - pl.col("start_ns").min()).alias("length"))
        .sort("length", "step")
    )
    return int(np.asarray(lengths["step"])[lengths.height // 2]) if lengths.height else None
