"""The critical path of a step across ranks: walked back from its end, through what the rank was doing at that moment, and in
a collective or a receive on to the rank that all waited for.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.trace.breakdown import compute_times
from clusterscape.analyze.trace.intervals import Times
from clusterscape.analyze.trace.match import Matches


@dataclass(frozen=True, slots=True)
class Segment:
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
    segments: tuple[Segment, ...]

    def seconds_by(self) -> dict[tuple[int, str], float]:
        """Seconds by (rank, kind), largest first."""
        found: dict[tuple[int, str], float] = {}
        for each in self.segments:
            key = (each.rank, each.kind)
            found[key] = found.get(key, 0.0) + (each.end_ns - each.start_ns) / 1e9
        return dict(sorted(found.items(), key=lambda item: -item[1]))


@dataclass(frozen=True, slots=True)
class _Lane:
    """What one rank did: when it computed, and its communication sorted by end."""

    busy: Times
    arrive: list[int]
    end: list[int]
    wait_end: list[int | None]
    partner: list[int | None]


def find_critical_path(
    spans: pl.DataFrame, steps: pl.DataFrame, parts: pl.DataFrame, matches: Matches, step: int
) -> CriticalPath | None:
    """The path of one step; None where the step is not there."""
    window = steps.filter(pl.col("step") == step)
    if not window.height:
        return None
    low, high = int(window["start_ns"].to_numpy().min()), int(window["end_ns"].to_numpy().max())
    rank = int(window.sort("end_ns")["rank"][-1])
    lanes = {int(each): _lane(spans, parts, matches, int(each), low, high) for each in window["rank"]}
    begin = dict(window.select("rank", "start_ns").iter_rows())
    segments: list[Segment] = []
    now, jumps = high, 0
    while now > begin[rank] and jumps <= len(lanes):
        kind, start, following = _look_back(lanes[rank], now, begin[rank])
        if start < now:
            segments.append(Segment(rank, kind, start, now))
            jumps = 0
        else:
            jumps += 1
        now = start
        rank = following if following is not None and following in lanes else rank
    return CriticalPath(step, high - now, tuple(reversed(segments)))


def _lane(spans: pl.DataFrame, parts: pl.DataFrame, matches: Matches, rank: int, low: int, high: int) -> _Lane:
    mine = parts.filter((pl.col("rank") == rank) & (pl.col("end_ns") > low) & (pl.col("arrive_ns") < high))
    partners: dict[int, int] = {}
    if matches.members.height:
        last = pl.col("rank").sort_by("arrive_ns").last().over("instance")
        partners |= dict(matches.members.select("span", last).filter(pl.lit(True)).iter_rows())
    if matches.messages.height:
        partners |= dict(matches.messages.select("recv_span", "from_rank").iter_rows())
    mine = mine.sort("end_ns")
    busy = compute_times(spans, rank)
    return _Lane(
        busy,
        mine["arrive_ns"].to_list(),
        mine["end_ns"].to_list(),
        mine["wait_end_ns"].to_list(),
        [partners.get(span) for span in mine["span"]],
    )


def _look_back(lane: _Lane, now: int, low: int) -> tuple[str, int, int | None]:
    """What led to ``now``: its kind, when it began, and the rank to go on with where that is another one."""
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
    talked_until = lane.end[ended] if ended >= 0 else low
    begun = max(low, computed_until, min(talked_until, now - 1 if talked_until >= now else talked_until))
    return ("host", begun, None) if begun < now else ("host", max(low, now - 1), None)


def middle_step(steps: pl.DataFrame) -> int | None:
    """The step whose length is the median."""
    lengths = (
        steps.group_by("step").agg((pl.col("end_ns").max() - pl.col("start_ns").min()).alias("length")).sort("length")
    )
    return int(np.asarray(lengths["step"])[lengths.height // 2]) if lengths.height else None
