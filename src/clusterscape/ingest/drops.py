"""Counts what was not stored, and why, and what was stored though it looked odd. Keeps numbers only, never rows."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class DropReason(StrEnum):
    """Why a row of an exporter was not stored. Parsers and schedulers add reasons of their own."""

    UNKNOWN_METRIC = "unknown_metric"
    NO_NODE = "no_node"
    NO_GPU = "no_gpu"
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
"""From 1; in a column of codes 0 is a row that stays."""


class NoteReason(StrEnum):
    """What was odd about a row that was stored all the same."""

    CLOCK_SKEW = "clock_skew_corrected"
    COUNTER_RESET = "counter_reset"
    NODE_DIFFERS = "node_label_differs"
    TOO_MANY_HOLDERS = "too_many_holders"


class LimitReason(StrEnum):
    """What else is not stored because there is more of it than ``limits.sources`` allows; parsers count the first ones."""

    SERIES = "too_many_series"
    LONG_LINE = "line_too_long"
    LONG_LABEL = "label_too_long"
    NODES = "too_many_nodes"
    PARTITIONS = "too_many_partitions"
    WORKLOADS = "too_many_workloads"
    LONG_ID = "workload_id_too_long"


MEANINGS: Mapping[str, str] = {
    DropReason.UNKNOWN_METRIC: "The metric is not in the catalogue.",
    DropReason.NO_NODE: "Neither the row nor the target says which node it belongs to.",
    DropReason.NO_GPU: "The row does not say which GPU it belongs to.",
    DropReason.NOT_A_NUMBER: "The value is NaN or infinite.",
    DropReason.BLANK: "DCGM's sign for a value that is not supported, not found or not permitted.",
    DropReason.OUT_OF_RANGE: "The value is physically impossible.",
    DropReason.LATE: "The row's own timestamp is too old.",
    DropReason.REPEATED: "A sample of the same time was stored before.",
    DropReason.DUPLICATE: "The same value once more: exporters repeat a shared GPU's row for each of its jobs.",
    DropReason.CONFLICT: "Another value for the same GPU, metric and time; the first was kept.",
    DropReason.OTHER_NAME: "The metric came under two names; the catalogue's first was kept.",
    DropReason.MERGED: "Rows that split one number by a label (XID, link, health check) became one.",
    DropReason.TOO_MANY_UNITS: "More GPUs than limits.sources allows; those known before are stored.",
    LimitReason.SERIES: "More series than limits.sources allows; those known before are stored.",
    LimitReason.NODES: "More nodes than limits.sources allows; those known before stay.",
    LimitReason.PARTITIONS: "More partitions than limits.sources allows; those known before stay.",
    LimitReason.WORKLOADS: "More workloads than limits.sources allows; those known before stay.",
    LimitReason.LONG_LINE: "The line is longer than limits.sources.line_bytes.",
    LimitReason.LONG_LABEL: "A label is longer than limits.sources.label_length.",
    LimitReason.LONG_ID: "The name of a workload is longer than limits.sources.label_length.",
    NoteReason.CLOCK_SKEW: "The row's timestamp lay in the future; the time of the fetch was taken.",
    NoteReason.COUNTER_RESET: "A counter fell, as after a restart; it is stored as it is, and its increase adds up.",
    NoteReason.TOO_MANY_HOLDERS: "Labels name more jobs or pods for one GPU than limits.sources allows; the rest is left out.",
    NoteReason.NODE_DIFFERS: "The exporter names another host than the configured node, which was believed.",
}


@dataclass(frozen=True, slots=True)
class DropCount:
    """One line of the table: rows of one kind of source that shared one fate. ``is_stored`` tells notes from drops."""

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
        """Rows stored though odd, by reason."""
        self._count(self._noted, kind, counts)

    def counts(self) -> dict[tuple[str, str], int]:
        """Rows not stored, by (kind, reason)."""
        with self._lock:
            return dict(self._dropped)

    def notes(self) -> dict[tuple[str, str], int]:
        """Rows stored though odd, by (kind, reason)."""
        with self._lock:
            return dict(self._noted)

    def table(self) -> list[DropCount]:
        """Drops, then notes, each with the greatest first and in plain words."""
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
