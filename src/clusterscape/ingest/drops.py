"""Counts dropped rows and irregular rows by reason, and resolves several rows of the same unit, metric and time.
Keeps counts only, never rows.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from clusterscape.model.arrays import Float64s, Int8s, Int32s, Int64s


class DropReason(StrEnum):
    """Why a row of an exporter was not stored. Parsers and schedulers have further reasons."""

    UNKNOWN_METRIC = "unknown_metric"
    NO_NODE = "no_node"
    NO_GPU = "no_gpu"
    NO_JOB = "no_job"
    PART_OF_JOB = "part_of_job"
    UNCOUNTED_DEVICE = "uncounted_device"
    NOT_A_NUMBER = "not_a_number"
    BLANK = "blank_value"
    OUT_OF_RANGE = "out_of_range"
    LATE = "late"
    REPEATED = "repeated_timestamp"
    DUPLICATE = "duplicate_row"
    CONFLICT = "conflicting_row"
    OTHER_NAME = "other_name_preferred"
    MERGED = "merged_into_one_row"
    TOO_MANY_UNITS = "too_many_units"


REASONS: tuple[DropReason, ...] = tuple(DropReason)
REASON_CODES: Mapping[DropReason, int] = {reason: code for code, reason in enumerate(REASONS, 1)}
"""From 1; code 0 marks a row that is kept."""


class NoteReason(StrEnum):
    """An irregularity of a row that was stored nevertheless."""

    CLOCK_SKEW = "clock_skew_corrected"
    COUNTER_RESET = "counter_reset"
    NODE_DIFFERS = "node_label_differs"
    TOO_MANY_HOLDERS = "too_many_holders"


class LimitReason(StrEnum):
    """Limits of ``limits.sources`` beyond which data is dropped; parsers count the first three."""

    SERIES = "too_many_series"
    LONG_LINE = "line_too_long"
    LONG_LABEL = "label_too_long"
    NODES = "too_many_nodes"
    PARTITIONS = "too_many_partitions"
    WORKLOADS = "too_many_workloads"
    LONG_ID = "workload_id_too_long"


MEANINGS: Mapping[str, str] = {
    DropReason.UNKNOWN_METRIC: "The metric is not in the catalogue.",
    DropReason.NO_NODE: "Neither the row nor the target names a node.",
    DropReason.NO_GPU: "The row names no GPU.",
    DropReason.NO_JOB: "The row is of a cgroup that belongs to no job.",
    DropReason.PART_OF_JOB: "The row is of a step or task; the row of the whole job is stored.",
    DropReason.UNCOUNTED_DEVICE: "The device is virtual, or a part of one that is counted.",
    DropReason.NOT_A_NUMBER: "The value is NaN or infinite.",
    DropReason.BLANK: "A blank value of DCGM: not supported, not found or not permitted.",
    DropReason.OUT_OF_RANGE: "The value is physically impossible.",
    DropReason.LATE: "The row's own timestamp is too old.",
    DropReason.REPEATED: "A sample of the same time is already stored.",
    DropReason.DUPLICATE: "The same value again: exporters repeat a shared GPU's row for each of its jobs.",
    DropReason.CONFLICT: "A different value for the same GPU, metric and time; the first was kept.",
    DropReason.OTHER_NAME: "The metric was reported under two names; the catalogue's first was kept.",
    DropReason.MERGED: "Rows that split one number by a label (XID, link, processor, device) were merged.",
    DropReason.TOO_MANY_UNITS: "More GPUs, jobs or nodes than limits.sources allows; known ones are stored.",
    LimitReason.SERIES: "More series than limits.sources allows; known ones are stored.",
    LimitReason.NODES: "More nodes than limits.sources allows; known ones are kept.",
    LimitReason.PARTITIONS: "More partitions than limits.sources allows; known ones are kept.",
    LimitReason.WORKLOADS: "More workloads than limits.sources allows; known ones are kept.",
    LimitReason.LONG_LINE: "The line is longer than limits.sources.line_bytes.",
    LimitReason.LONG_LABEL: "A label is longer than limits.sources.label_length.",
    LimitReason.LONG_ID: "The name of a workload is longer than limits.sources.label_length.",
    NoteReason.CLOCK_SKEW: "The row's timestamp is in the future; the time of the fetch was used.",
    NoteReason.COUNTER_RESET: "A counter decreased, as after a restart; it is stored unchanged, and increases allow for resets.",
    NoteReason.TOO_MANY_HOLDERS: "Labels name more jobs or pods for one GPU than limits.sources allows; the rest is ignored.",
    NoteReason.NODE_DIFFERS: "The exporter names a different host than the configured node, which was used.",
}


@dataclass(frozen=True, slots=True)
class DropCount:
    """Rows of one kind of source, by reason. ``is_stored``: the rows were irregular but stored."""

    kind: str
    reason: str
    count: int
    is_stored: bool
    meaning: str | None


class Drops:
    """Counters by (source kind, reason). Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._dropped: dict[tuple[str, str], int] = {}
        self._noted: dict[tuple[str, str], int] = {}

    def add(self, kind: str, reason: str, count: int = 1) -> None:
        """``count`` rows were not stored."""
        self.add_all(kind, {reason: count})

    def add_all(self, kind: str, counts: Mapping[str, int]) -> None:
        """Rows not stored, by reason."""
        self._count(self._dropped, kind, counts)

    def note_all(self, kind: str, counts: Mapping[str, int]) -> None:
        """Irregular rows that were stored, by reason."""
        self._count(self._noted, kind, counts)

    def counts(self) -> dict[tuple[str, str], int]:
        """Rows not stored, by (kind, reason)."""
        with self._lock:
            return dict(self._dropped)

    def notes(self) -> dict[tuple[str, str], int]:
        """Irregular rows that were stored, by (kind, reason)."""
        with self._lock:
            return dict(self._noted)

    def table(self) -> list[DropCount]:
        """Drops, then notes, each by decreasing count and with its meaning."""
        return [
            DropCount(kind, str(reason), count, is_stored, MEANINGS.get(reason))
            for is_stored, counts in ((False, self.counts()), (True, self.notes()))
            for (kind, reason), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ]

    def _count(self, into: dict[tuple[str, str], int], kind: str, counts: Mapping[str, int]) -> None:
        with self._lock:
            for reason, count in counts.items():
                if count:
                    key = (kind, str(reason))
                    into[key] = into.get(key, 0) + count


Reasons = Int8s


def resolve_duplicates(
    *, cell: Int64s, time_ms: Int64s, part: Int32s, rank: Int32s, is_counter: NDArray[np.bool_], value: Float64s
) -> tuple[Reasons, Float64s]:
    """Reason codes (0: the row is kept) and values, in the order of the input rows.

    Rows of one (cell, time, part) repeat the same number: the metric name of the lowest rank wins, then the first row.
    Different parts of one (cell, time) are one number split by a label: counters are summed, and of states the maximum is
    kept, which for health checks and links is the worst.
    """
    count = len(cell)
    order = np.lexsort((np.arange(count), rank, part, time_ms, cell))
    ranks, values = rank[order], value[order]
    new_cell = _starts(cell[order], time_ms[order])
    new_part = new_cell | _starts(part[order])
    first = np.maximum.accumulate(np.where(new_part, np.arange(count), 0))
    repeated = np.where(
        ranks != ranks[first],
        REASON_CODES[DropReason.OTHER_NAME],
        np.where(values == values[first], REASON_CODES[DropReason.DUPLICATE], REASON_CODES[DropReason.CONFLICT]),
    )
    reasons = np.where(new_part, 0, repeated)

    numbers = np.flatnonzero(new_part)
    wholes = np.flatnonzero(new_cell[numbers])
    keepers = numbers[wholes]
    sums = np.add.reduceat(values[numbers], wholes)
    greatest = np.maximum.reduceat(values[numbers], wholes)
    values[keepers] = np.where(is_counter[order][keepers], sums, greatest)
    reasons[numbers[~new_cell[numbers]]] = REASON_CODES[DropReason.MERGED]

    settled_reasons, settled_values = np.empty(count, np.int8), np.empty(count)
    settled_reasons[order], settled_values[order] = reasons, values
    return settled_reasons, settled_values


def _starts(*columns: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.bool_]:
    """Where a run of equal rows begins."""
    begins = np.zeros(len(columns[0]), np.bool_)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return begins
