"""Reads what ``nvidia-smi --query-gpu=… --format=csv`` wrote, with or without units, into canonical samples.

Only the log itself. Whose work it shows, ``run_events`` may say.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import numpy as np

from clusterscape.errors import SourceError
from clusterscape.model import METRICS, Names, NodeId, SampleBatch, UnitId, gpu_unit_id

# nvidia-smi's fields → canonical metric. Of several for one metric the first that is there is taken.
_FIELDS: tuple[tuple[str, str], ...] = (
    ("utilization.gpu", "gpu_util_ratio"),
    ("utilization.memory", "memory_copy_util_ratio"),
    ("utilization.encoder", "encoder_util_ratio"),
    ("utilization.decoder", "decoder_util_ratio"),
    ("memory.used", "memory_used_bytes"),
    ("memory.free", "memory_free_bytes"),
    ("memory.reserved", "memory_reserved_bytes"),
    ("memory.total", "memory_total_bytes"),
    ("power.draw.instant", "power_watts"),
    ("power.draw", "power_watts"),
    ("power.draw.average", "power_watts"),
    ("enforced.power.limit", "power_limit_watts"),
    ("power.limit", "power_limit_watts"),
    ("temperature.gpu", "gpu_temperature_celsius"),
    ("temperature.memory", "memory_temperature_celsius"),
    ("clocks.current.sm", "sm_clock_hertz"),
    ("clocks.sm", "sm_clock_hertz"),
    ("clocks.current.memory", "memory_clock_hertz"),
    ("clocks.mem", "memory_clock_hertz"),
    ("ecc.errors.corrected.volatile.total", "ecc_sbe_volatile_count"),
    ("ecc.errors.uncorrected.volatile.total", "ecc_dbe_volatile_count"),
    ("ecc.errors.corrected.aggregate.total", "ecc_sbe_aggregate_count"),
    ("ecc.errors.uncorrected.aggregate.total", "ecc_dbe_aggregate_count"),
    ("retired_pages.single_bit_ecc.count", "retired_pages_sbe_count"),
    ("retired_pages.double_bit.count", "retired_pages_dbe_count"),
    ("retired_pages.pending", "retired_pages_pending_count"),
    ("remapped_rows.correctable", "remapped_rows_correctable_count"),
    ("remapped_rows.uncorrectable", "remapped_rows_uncorrectable_count"),
    ("remapped_rows.failure", "row_remap_failure"),
)
_IDENTITY = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id")
_SCALES = {"%": 0.01, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "W": 1.0, "MHz": 1e6, "C": 1.0, "": 1.0}
_WORDS = {"yes": 1.0, "no": 0.0, "active": 1.0, "not active": 0.0, "enabled": 1.0, "disabled": 0.0}
_HEADING = re.compile(r"^\s*([\w.]+)\s*(?:\[([^\]]*)\])?\s*$")
_VALUE = re.compile(r"^([+-]?\d+(?:\.\d+)?)\s*(%|[A-Za-z]+)?$")
_TIMESTAMPS = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S")


@dataclass(frozen=True, slots=True)
class SmiLog:
    """Canonical samples of every GPU in a log, and what of it was not understood."""

    samples: SampleBatch
    gpu_names: Mapping[UnitId, str]
    skipped_lines: int  # torn, or with another number of columns than the heading


def read_smi_log(path: Path, *, node: NodeId, zone: tzinfo = UTC) -> SmiLog:
    """The log at ``path``; ``zone`` is that of its timestamps, which name none."""
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            text = file.read()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    return parse_smi_log(text, node=node, zone=zone, name=str(path))


def parse_smi_log(text: str, *, node: NodeId, zone: tzinfo = UTC, name: str = "the log") -> SmiLog:
    """The log in ``text``. A last line without its end is torn and left out."""
    lines = text.splitlines()
    is_torn = bool(lines) and not text.endswith(("\n", "\r"))
    if is_torn:
        lines.pop()
    rows = csv.reader(lines, skipinitialspace=True)
    columns = _Columns(next(rows, []), name)
    reader = _RowReader(columns, node, zone)
    for row in rows:
        reader.read(row)
    log = reader.finish(skipped_before=int(is_torn))
    if not len(log.samples):
        raise SourceError(f"{name} holds no samples", hint="Was nvidia-smi stopped before its first line was written?")
    return log


class _Columns:
    """Which column holds what."""

    def __init__(self, heading: list[str], name: str) -> None:
        found = [_HEADING.match(cell) for cell in heading]
        fields = {match.group(1): place for place, match in enumerate(found) if match}
        known = {field for field, _ in _FIELDS} | {"timestamp", "name", *_IDENTITY}
        if not known & set(fields):
            raise SourceError(
                f"the first line of {name} names no columns of nvidia-smi",
                hint="Record with `--format=csv` or `--format=csv,nounits`, without `noheader`.",
            )
        if "timestamp" not in fields:
            raise SourceError(f"{name} has no timestamps", hint="Add `timestamp` to --query-gpu.")
        self.heading = heading
        self.timestamp = fields["timestamp"]
        self.identity = next(((field, fields[field]) for field in _IDENTITY if field in fields), None)
        self.gpu_name = fields.get("name")
        self.metrics: dict[str, tuple[int, str]] = {}  # canonical metric → column, unit of the heading
        for field, metric in _FIELDS:
            match = found[fields[field]] if field in fields else None
            if match is not None and metric not in self.metrics:
                self.metrics[metric] = fields[field], match.group(2) or ""
        if not self.metrics:
            raise SourceError(
                f"{name} holds no metric", hint="Add `utilization.gpu,power.draw,power.limit` to --query-gpu."
            )


class _RowReader:
    """Collects samples line by line. Values repeat, so each distinct text is understood once."""

    def __init__(self, columns: _Columns, node: NodeId, zone: tzinfo) -> None:
        self._columns = columns
        self._node = node
        self._zone = zone
        self._units = Names()
        self._gpu_names: dict[UnitId, str] = {}
        self._rows: list[tuple[int, int]] = []  # unit code, Unix ms
        self._values: dict[str, list[float]] = {metric: [] for metric in columns.metrics}
        self._known: dict[str, dict[str, float]] = {metric: {} for metric in columns.metrics}
        self._skipped = 0

    def read(self, row: list[str]) -> None:
        columns = self._columns
        if row == columns.heading or not row:
            return  # a recording that was started again writes its heading again
        time_ms = self._parse_time(row[columns.timestamp]) if len(row) == len(columns.heading) else None
        if time_ms is None:
            self._skipped += 1
            return
        unit = self._unit(row)
        self._rows.append((self._units.code(unit), time_ms))
        if columns.gpu_name is not None:
            self._gpu_names.setdefault(unit, row[columns.gpu_name].strip())
        for metric, (place, heading_unit) in columns.metrics.items():
            known, text = self._known[metric], row[place]
            value = known.get(text)
            if value is None:
                value = known[text] = _parse_value(text.strip(), heading_unit)
            self._values[metric].append(value)

    def _unit(self, row: list[str]) -> UnitId:
        if self._columns.identity is None:
            return gpu_unit_id(self._node, 0)
        field, place = self._columns.identity
        text = row[place].strip()
        return gpu_unit_id(self._node, int(text)) if field == "index" and text.isdecimal() else UnitId(text)

    def _parse_time(self, text: str) -> int | None:
        for pattern in _TIMESTAMPS:
            try:
                moment = datetime.strptime(text.strip(), pattern)
            except ValueError:
                continue
            return round(moment.replace(tzinfo=self._zone).timestamp() * 1000)
        return None

    def finish(self, *, skipped_before: int) -> SmiLog:
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, 2)
        metrics = Names()
        parts = []
        for metric, values in self._values.items():
            value = np.array(values)
            is_there = ~np.isnan(value)
            low, high = METRICS[metric].lower, METRICS[metric].upper
            is_there &= (value >= low) & (value <= (np.inf if high is None else high))
            if is_there.any():
                parts.append((metrics.code(metric), rows[is_there], value[is_there]))
        samples = SampleBatch(
            units=self._units,
            metrics=metrics,
            unit=_concatenate(part[:, 0] for _, part, _ in parts).astype(np.int32),
            metric=_concatenate(np.full(len(value), code) for code, _, value in parts).astype(np.int32),
            time_ms=_concatenate(part[:, 1] for _, part, _ in parts).astype(np.int64),
            value=_concatenate(value for _, _, value in parts).astype(np.float64),
        )
        return SmiLog(samples, self._gpu_names, self._skipped + skipped_before)


def _parse_value(text: str, heading_unit: str) -> float:
    """Canonical; NaN where the GPU does not say (``[N/A]``, ``[Not Supported]``, ``[GPU requires reset]`` …)."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    match = _VALUE.match(text)
    scale = _SCALES.get(match.group(2) or heading_unit) if match else None
    return np.nan if match is None or scale is None else float(match.group(1)) * scale


def _concatenate(parts: Iterable[np.ndarray]) -> np.ndarray:
    collected = list(parts)
    return np.concatenate(collected) if collected else np.empty(0)
