"""Re-simulates a run's steps from the dependencies between ranks: every communication starts some time (its lag) after the one
that its rank was blocked by; a collective ends one transfer after its last member has arrived; a receive waits for its send.

With measured lags and transfers it reproduces the measured steps; with others it predicts the step. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from clusterscape.analyze.trace.breakdown import compute_times
from clusterscape.analyze.trace.intervals import Times, cover_until, join_times
from clusterscape.model.arrays import Float64s
from clusterscape.model.spans import SpanClass

QUEUED_NS = 500_000
QUEUED_ON_DEVICE_NS = 20_000
"""A communication that starts this soon after another one on its lane was queued behind it; a device needs less time than a
thread.
"""
ROUNDED_NS = 2_000
"""By as much may times that were rounded to microseconds overlap."""


@dataclass(frozen=True, slots=True)
class Event:
    """A communication of one rank, or the end of its step (``kind`` "end").

    It starts ``lag_ns`` after ``anchor`` (an earlier event of the rank; None: the start of its step); during ``work_ns`` of the
    lag its device computes. ``transfer_ns``: from the last arrival to its end; ``group``: equal for members of a collective;
    ``waits_for``: the send of a receive; ``begin_ns``: start of the rank's step, relative to the first rank's; ``since_ns``: when
    the lag starts, in the time of the trace.
    """

    rank: int
    kind: str
    process_group: str | None
    anchor: int | None
    begin_ns: int
    since_ns: int
    lag_ns: float
    work_ns: float
    transfer_ns: float
    group: int | None
    waits_for: int | None

    @property
    def is_collective(self) -> bool:
        """Whether it is a collective; the two ends of a message are not."""
        return self.group is not None and self.group >= 0


@dataclass(frozen=True, slots=True)
class StepGraph:
    """Events of one step in topological order, members of a collective next to each other."""

    step: int
    events: tuple[Event, ...]
    measured_ns: int

    def run(self, lag_ns: Float64s, transfer_ns: Float64s) -> Float64s:
        """Nanoseconds from the start of the first rank to the end of the last, of every variant (event, variant) at once."""
        begin, end = np.zeros_like(lag_ns), np.zeros_like(lag_ns)
        latest, place = np.zeros(lag_ns.shape[1]), 0
        events = self.events
        while place < len(events):
            last = place + 1
            group = events[place].group
            while group is not None and last < len(events) and events[last].group == group:
                last += 1
            for at in range(place, last):
                event = events[at]
                since = event.begin_ns if event.anchor is None else end[event.anchor]
                begin[at] = since + lag_ns[at]
            arrived = begin[place] if last == place + 1 else begin[place:last].max(axis=0)
            for at in range(place, last):
                event = events[at]
                ready = arrived if event.waits_for is None else np.maximum(arrived, begin[event.waits_for])
                end[at] = ready + transfer_ns[at]
                if event.kind == "end":
                    latest = np.maximum(latest, end[at])
            place = last
        return latest

    @property
    def lags(self) -> Float64s:
        """Measured lags, in nanoseconds."""
        return np.array([event.lag_ns for event in self.events])

    @property
    def transfers(self) -> Float64s:
        """Measured transfers, in nanoseconds."""
        return np.array([event.transfer_ns for event in self.events])


@dataclass(frozen=True, slots=True)
class _Busy:
    """When a rank computes: ``kernels`` only; ``work`` also includes device copies and pipeline passes."""

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
    """One graph per step. ``spans`` with the columns of ``match.py``; ``steps``: rank, step, start_ns, end_ns; ``passes``
    as ``pipeline.find_passes`` returns them.
    """
    numbered = spans if "span" in spans.columns else spans.with_row_index("span")
    communication = numbered.filter(pl.col("collective").is_not_null() & pl.col("step").is_not_null())
    communication = communication.select(
        "span", "rank", "step", pl.col("lane").cast(pl.String), "is_device", pl.col("collective").cast(pl.String),
        pl.col("process_group").cast(pl.String), "drawn_ns", "end_ns", "matched", "partner",
    )  # fmt: skip
    busy = {int(rank): _Busy.find(spans, passes, int(rank)) for rank in steps["rank"].unique().sort()}
    return [
        _build_step_graph(int(str(step)), window, communication.filter(pl.col("step") == step), busy)
        for (step,), window in sorted(steps.group_by("step"), key=lambda item: int(str(item[0][0])))
    ]


def _build_step_graph(
    step: int, window: pl.DataFrame, communication: pl.DataFrame, busy: Mapping[int, _Busy]
) -> StepGraph:
    windows = {rank: (start, end) for rank, start, end in window.select("rank", "start_ns", "end_ns").iter_rows()}
    origin = min(start for start, _ in windows.values())
    rows = [row for row in communication.sort("drawn_ns").iter_rows(named=True) if row["rank"] in windows]
    _assign_groups(rows)
    last_arrival = _find_last_arrivals(rows)
    rows.sort(key=lambda row: (last_arrival[row["span"]], row["group"] or 0))
    place = {row["span"]: at for at, row in enumerate(rows)}
    anchors = _find_anchors(rows, windows, busy)
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
                since_ns=since,
                lag_ns=float(row["drawn_ns"] - since),
                work_ns=_compute_work(busy[rank], since, row["drawn_ns"]),
                transfer_ns=float(row["end_ns"] - last_arrival[span]),
                group=row["group"],
                waits_for=place[row["partner"]] if is_buffered else None,
            )
        )
    events += [
        _make_step_end(rank, (start, end, origin), [row for row in rows if row["rank"] == rank], place, busy[rank])
        for rank, (start, end) in sorted(windows.items())
    ]
    return StepGraph(step, tuple(events), max(end for _, end in windows.values()) - origin)


def _assign_groups(rows: list[dict[str, Any]]) -> None:
    """Set ``group`` of each row: equal for members of a collective, and for a send and its receive if one waited for the other. A
    send that ends before its receive starts was buffered: only the receive depends on it.
    """
    by_span = {row["span"]: row for row in rows}
    for row in rows:
        other = by_span.get(row["partner"])
        row["group"] = row["matched"]
        if other is not None:
            send, receive = (row, other) if row["collective"] == "send" else (other, row)
            if send["end_ns"] > receive["drawn_ns"]:
                row["group"] = -1 - send["span"]


def _find_last_arrivals(rows: list[dict[str, Any]]) -> dict[int, int]:
    """For each communication, when the last member that it waits for arrives."""
    arrive = {row["span"]: row["drawn_ns"] for row in rows}
    group_arrivals: dict[int, int] = {}
    for row in rows:
        if row["group"] is not None:
            group_arrivals[row["group"]] = max(group_arrivals.get(row["group"], row["drawn_ns"]), row["drawn_ns"])
    last_arrivals = {}
    for row in rows:
        arrived = group_arrivals.get(row["group"], row["drawn_ns"])
        if row["collective"] == "recv":
            arrived = max(arrived, arrive.get(row["partner"], arrived))
        last_arrivals[row["span"]] = arrived
    return last_arrivals


def _find_anchors(
    rows: list[dict[str, Any]], windows: Mapping[int, tuple[int, int]], busy: Mapping[int, _Busy]
) -> dict[int, dict[str, Any]]:
    """For each communication the last earlier one that blocked its rank: nothing was computed when it ended, or it directly
    preceded this one on the same lane.
    """
    anchors: dict[int, dict[str, Any]] = {}
    for rank in windows:
        mine = [row for row in rows if row["rank"] == rank]
        blocking = [row for row in mine if not _is_busy(busy[rank], row["end_ns"])]
        ends = sorted(blocking, key=lambda row: row["end_ns"])
        keys = np.array([row["end_ns"] for row in ends], np.int64)
        by_lane: dict[object, dict[str, Any]] = {}
        for row in sorted(mine, key=lambda other: other["drawn_ns"]):
            at = int(np.searchsorted(keys, row["drawn_ns"], side="right")) - 1
            anchor = ends[at] if at >= 0 and ends[at]["span"] != row["span"] else None
            queued = by_lane.get(row["lane"])
            queued_ns = QUEUED_ON_DEVICE_NS if row["is_device"] else QUEUED_NS
            if queued is not None and -ROUNDED_NS <= row["drawn_ns"] - queued["end_ns"] < queued_ns:
                anchor = queued
            if anchor is not None:
                anchors[row["span"]] = anchor
            by_lane[row["lane"]] = row
    return anchors


def _make_step_end(
    rank: int, window: tuple[int, int, int], mine: list[dict[str, Any]], place: Mapping[int, int], busy: _Busy
) -> Event:
    """The end of the step, anchored at the last blocking communication before it. ``window``: start, end, the step's origin."""
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
        since_ns=since,
        lag_ns=float(end - since),
        work_ns=_compute_work(busy, since, end),
        transfer_ns=0.0,
        group=None,
        waits_for=None,
    )


def _is_busy(busy: _Busy, at: int) -> bool:
    """Whether a kernel runs at ``at`` that began earlier, rounding of times aside. Copies do not count: gloo copies after it has
    finished.
    """
    place = int(np.searchsorted(busy.kernels.starts, at - ROUNDED_NS, side="left")) - 1
    return place >= 0 and bool(busy.kernels.ends[place] > at)


def _compute_work(busy: _Busy, start: int, end: int) -> float:
    low, high = cover_until(busy.work, np.array([start, end], np.int64))
    return max(0.0, float(high - low))
