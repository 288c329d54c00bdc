"""A run's steps re-simulated from what its ranks wait for: every communication begins some time after the one its rank was
blocked by, a collective ends when its last member has come and the transfer is over, a receive once its send has begun.

Left unchanged it gives the measured steps back; with other lags or transfers, the step there would be. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.breakdown import compute_times
from clusterscape.analyze.trace.intervals import Times, cover_until, join_times
from clusterscape.model.spans import SpanClass

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

QUEUED_NS = 500_000
"""A communication that begins so soon after another on its lane was queued behind it."""


@dataclass(frozen=True, slots=True)
class Event:
    """A communication of one rank, or the end of its step (``kind`` "end").

    ``lag_ns`` after ``anchor`` (an earlier event of the rank; None: its step's begin) it begins; ``work_ns`` of the lag its
    device computed. ``transfer_ns`` is from when all have come to its end; ``group`` joins members of a collective, ``waits_for``
    is the send of a receive. ``begin_ns`` is the rank's begin of the step, since that of the first rank.
    """

    rank: int
    kind: str
    process_group: str | None
    anchor: int | None
    begin_ns: int
    lag_ns: float
    work_ns: float
    transfer_ns: float
    group: int | None
    waits_for: int | None

    @property
    def is_collective(self) -> bool:
        """Whether it has peers; the two ends of a message are none."""
        return self.group is not None and self.group >= 0


@dataclass(frozen=True, slots=True)
class StepGraph:
    """Events of one step, in an order in which each comes after all it depends on (members of a collective together)."""

    step: int
    events: tuple[Event, ...]
    measured_ns: int

    def run(self, lag_ns: Floats, transfer_ns: Floats) -> float:
        """Nanoseconds from the first rank's begin to the last one's end."""
        begin, end = np.zeros(len(self.events)), np.zeros(len(self.events))
        latest, place = 0.0, 0
        while place < len(self.events):
            last = place + 1
            group = self.events[place].group
            while group is not None and last < len(self.events) and self.events[last].group == group:
                last += 1
            for at in range(place, last):
                event = self.events[at]
                since = event.begin_ns if event.anchor is None else end[event.anchor]
                begin[at] = since + lag_ns[at]
            come = begin[place:last].max()
            for at in range(place, last):
                event = self.events[at]
                sent = begin[event.waits_for] if event.waits_for is not None else come
                end[at] = max(come, sent) + transfer_ns[at]
                if event.kind == "end":
                    latest = max(latest, end[at])
            place = last
        return float(latest)

    @property
    def lags(self) -> Floats:
        """As measured."""
        return np.array([event.lag_ns for event in self.events])

    @property
    def transfers(self) -> Floats:
        """As measured."""
        return np.array([event.transfer_ns for event in self.events])


@dataclass(frozen=True, slots=True)
class _Busy:
    """When a rank computed: ``kernels`` alone, and ``work`` with the device's copies and the passes it launched."""

    kernels: Times
    work: Times

    @staticmethod
    def find(spans: pl.DataFrame, passes: pl.DataFrame, rank: int) -> "_Busy":
        work = compute_times(spans, rank)
        mine = spans.filter((pl.col("rank") == rank) & (pl.col("span_class") == SpanClass.COMPUTE.value))
        kernels = join_times(mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy()) if mine.height else work
        launched = passes.filter(pl.col("rank") == rank)
        both = join_times(
            np.concatenate([work.starts, launched["start_ns"].to_numpy()]),
            np.concatenate([work.ends, launched["end_ns"].to_numpy()]),
        )
        return _Busy(kernels, both)


def build_step_graphs(spans: pl.DataFrame, steps: pl.DataFrame, passes: pl.DataFrame) -> list[StepGraph]:
    """One graph per step. ``spans`` with the columns of ``counterparts.py``; ``steps``: rank, step, start_ns, end_ns; ``passes``
    as ``pipeline.find_passes`` gives them.
    """
    numbered = spans if "span" in spans.columns else spans.with_row_index("span")
    talk = numbered.filter(pl.col("collective").is_not_null() & pl.col("step").is_not_null())
    talk = talk.select(
        "span", "rank", "step", pl.col("lane").cast(pl.String), pl.col("collective").cast(pl.String),
        pl.col("process_group").cast(pl.String), "drawn_ns", "end_ns", "matched", "partner",
    )  # fmt: skip
    busy = {int(rank): _Busy.find(spans, passes, int(rank)) for rank in steps["rank"].unique().sort()}
    return [
        _build(int(str(step)), window, talk.filter(pl.col("step") == step), busy)
        for (step,), window in sorted(steps.group_by("step"), key=lambda item: int(str(item[0][0])))
    ]


def _build(step: int, window: pl.DataFrame, talk: pl.DataFrame, busy: Mapping[int, _Busy]) -> StepGraph:
    windows = {rank: (start, end) for rank, start, end in window.select("rank", "start_ns", "end_ns").iter_rows()}
    origin = min(start for start, _ in windows.values())
    rows = [row for row in talk.sort("drawn_ns").iter_rows(named=True) if row["rank"] in windows]
    _join_messages(rows)
    last_come = _last_come(rows)
    rows.sort(key=lambda row: (last_come[row["span"]], row["group"] or 0))
    place = {row["span"]: at for at, row in enumerate(rows)}
    anchors = _anchors(rows, windows, busy)
    events = []
    for row in rows:
        rank, span = row["rank"], row["span"]
        anchor = anchors.get(span)
        since = windows[rank][0] if anchor is None else anchor["end_ns"]
        is_buffered = row["collective"] == "recv" and row["group"] is None and row["partner"] in place
        events.append(
            Event(
                rank=rank,
                kind=row["collective"],
                process_group=row["process_group"],
                anchor=None if anchor is None else place[anchor["span"]],
                begin_ns=windows[rank][0] - origin,
                lag_ns=float(row["drawn_ns"] - since),
                work_ns=_worked(busy[rank], since, row["drawn_ns"]),
                transfer_ns=float(row["end_ns"] - last_come[span]),
                group=row["group"],
                waits_for=place[row["partner"]] if is_buffered else None,
            )
        )
    events += [
        _step_end(rank, (start, end, origin), [row for row in rows if row["rank"] == rank], place, busy[rank])
        for rank, (start, end) in sorted(windows.items())
    ]
    return StepGraph(step, tuple(events), max(end for _, end in windows.values()) - origin)


def _join_messages(rows: list[dict[str, Any]]) -> None:
    """``group`` of each: members of a collective, and a send with its receive where one waited for the other; a send that had
    ended before was buffered, and only the receive depends on it.
    """
    by_span = {row["span"]: row for row in rows}
    for row in rows:
        other = by_span.get(row["partner"])
        row["group"] = row["matched"]
        if other is not None:
            send, receive = (row, other) if row["collective"] == "send" else (other, row)
            if send["end_ns"] > receive["drawn_ns"]:
                row["group"] = -1 - send["span"]


def _last_come(rows: list[dict[str, Any]]) -> dict[int, int]:
    """When the last one that each communication waits for has come."""
    arrive = {row["span"]: row["drawn_ns"] for row in rows}
    groups: dict[int, int] = {}
    for row in rows:
        if row["group"] is not None:
            groups[row["group"]] = max(groups.get(row["group"], row["drawn_ns"]), row["drawn_ns"])
    found = {}
    for row in rows:
        come = groups.get(row["group"], row["drawn_ns"])
        if row["collective"] == "recv":
            come = max(come, arrive.get(row["partner"], come))
        found[row["span"]] = come
    return found


def _anchors(
    rows: list[dict[str, Any]], windows: Mapping[int, tuple[int, int]], busy: Mapping[int, _Busy]
) -> dict[int, dict[str, Any]]:
    """For each communication the one that its rank was blocked by last before it: nothing was computed when that ended, or it
    was next on the same lane.
    """
    found: dict[int, dict[str, Any]] = {}
    for rank in windows:
        mine = [row for row in rows if row["rank"] == rank]
        blocking = [row for row in mine if not _is_busy(busy[rank], row["end_ns"])]
        ends = sorted(blocking, key=lambda row: row["end_ns"])
        keys = np.array([row["end_ns"] for row in ends], np.int64)
        by_lane: dict[object, dict[str, Any]] = {}
        for row in sorted(mine, key=lambda one: one["drawn_ns"]):
            at = int(np.searchsorted(keys, row["drawn_ns"], side="right")) - 1
            anchor = ends[at] if at >= 0 and ends[at]["span"] != row["span"] else None
            queued = by_lane.get(row["lane"])
            if queued is not None and 0 <= row["drawn_ns"] - queued["end_ns"] < QUEUED_NS:
                anchor = queued
            if anchor is not None:
                found[row["span"]] = anchor
            by_lane[row["lane"]] = row
    return found


def _step_end(
    rank: int, window: tuple[int, int, int], mine: list[dict[str, Any]], place: Mapping[int, int], busy: _Busy
) -> Event:
    """The step ends after the last communication that ended before it and blocked. ``window``: start, end, the step's origin."""
    start, end, origin = window
    before = [row for row in mine if row["end_ns"] <= end and not _is_busy(busy, row["end_ns"])]
    anchor = max(before, key=lambda row: row["end_ns"], default=None)
    since = start if anchor is None else anchor["end_ns"]
    return Event(
        rank=rank,
        kind="end",
        process_group=None,
        anchor=None if anchor is None else place[anchor["span"]],
        begin_ns=start - origin,
        lag_ns=float(end - since),
        work_ns=_worked(busy, since, end),
        transfer_ns=0.0,
        group=None,
        waits_for=None,
    )


def _is_busy(busy: _Busy, at: int) -> bool:
    """A copy does not count: gloo makes one when it has done."""
    place = int(np.searchsorted(busy.kernels.starts, at, side="left")) - 1
    return place >= 0 and bool(busy.kernels.ends[place] > at)


def _worked(busy: _Busy, start: int, end: int) -> float:
    low, high = cover_until(busy.work, np.array([start, end], np.int64))
    return max(0.0, float(high - low))
