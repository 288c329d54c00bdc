"""Reads recorded logs: the CSV of ``nvidia-smi --query-gpu=… --format=csv`` (with or without units) as canonical samples, and
the events of the runs on these GPUs, one JSON object per line.

A run starts with its first event (phase ``start``) and ends with phase ``end``.
"""

import codecs
import csv
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import numpy as np

from clusterscape.errors import SourceError
from clusterscape.model import METRICS, Names, NodeId, SampleBatch, UnitId, UnixMs, WorkloadId, gpu_unit_id

# Field of nvidia-smi → canonical metric. If several fields give one metric, the first that exists is used.
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
MAX_INDEX_DIGITS = 6
_TIMESTAMPS = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S")


@dataclass(frozen=True, slots=True)
class SmiLog:
    """Canonical samples of every GPU in a log, and how many lines were skipped."""

    samples: SampleBatch
    gpu_names: Mapping[UnitId, str]
    skipped_lines: int  # truncated, or with a different number of columns than the header
    read_lines: int


def read_smi_log(path: Path, *, node: NodeId, zone: tzinfo = UTC) -> SmiLog:
    """Read the log at ``path``. ``zone`` is the time zone of its timestamps, which do not state one."""
    return parse_smi_log(_read_text(path), node=node, zone=zone, name=str(path))


def _read_text(path: Path) -> str:
    """The text of a file in UTF-8 or, as nvidia-smi's output under PowerShell, UTF-16."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_wide else "utf-8-sig", "replace")


def parse_smi_log(text: str, *, node: NodeId, zone: tzinfo = UTC, name: str = "the log") -> SmiLog:
    """Parse the log in ``text``. A last line without a line end is truncated and is skipped."""
    lines = text.splitlines()
    is_truncated = bool(lines) and not text.endswith(("\n", "\r"))
    if is_truncated:
        lines.pop()
    header, *others = lines or [""]
    columns = _Columns(_parse_row(header), name)
    reader = _RowReader(columns, node, zone)
    for line in others:
        reader.read(_parse_row(line))
    log = reader.finish(skipped_before=int(is_truncated))
    if not len(log.samples):
        if reader.has_rows:
            raise SourceError(
                f"{name} has no values: all its metrics are [N/A]",
                hint="nvidia-smi gives no utilization of a GPU in MIG mode: record with dcgm-exporter, which measures instances.",
            )
        if log.skipped_lines > is_truncated:
            raise SourceError(
                f"{name}: none of its {log.skipped_lines:,} lines has a time and as many columns as the header",
                hint="Is the file damaged, or in another encoding?",
            )
        raise SourceError(f"{name} has no samples", hint="Was nvidia-smi stopped before it wrote its first line?")
    return log


def _parse_row(line: str) -> list[str]:
    """The fields of a line; one field if its quotes cannot be read."""
    try:
        return next(csv.reader([line], skipinitialspace=True), [])
    except csv.Error:  # such as a field of more than 131,072 characters
        return [line]


class _Columns:
    """The meaning of each column, from the header."""

    def __init__(self, header: list[str], name: str) -> None:
        matches = [_HEADING.match(cell) for cell in header]
        fields = {match.group(1): column for column, match in enumerate(matches) if match}
        smi_fields = {field for field, _ in _FIELDS} | {"timestamp", "name", *_IDENTITY}
        if not smi_fields & set(fields):
            raise SourceError(
                f"the first line of {name} is not a header of nvidia-smi",
                hint="Record with `--format=csv` or `--format=csv,nounits`, without `noheader`.",
            )
        if "timestamp" not in fields:
            raise SourceError(f"{name} has no timestamps", hint="Add `timestamp` to --query-gpu.")
        self.header = header
        self.timestamp = fields["timestamp"]
        self.identity = next(((field, fields[field]) for field in _IDENTITY if field in fields), None)
        self.gpu_name = fields.get("name")
        self.metrics: dict[str, tuple[int, str]] = {}  # canonical metric → column, unit in the header
        for field, metric in _FIELDS:
            match = matches[fields[field]] if field in fields else None
            if match is not None and metric not in self.metrics:
                self.metrics[metric] = fields[field], match.group(2) or ""
        if not self.metrics:
            raise SourceError(
                f"{name} has no metrics", hint="Add `utilization.gpu,power.draw,power.limit` to --query-gpu."
            )


class _RowReader:
    """Collects samples line by line. Values repeat, so each distinct text is parsed once."""

    def __init__(self, columns: _Columns, node: NodeId, zone: tzinfo) -> None:
        self._columns = columns
        self._node = node
        self._zone = zone
        self._units = Names()
        self._gpu_names: dict[UnitId, str] = {}
        self._rows: list[tuple[int, int]] = []  # unit code, Unix ms
        self._values: dict[str, list[float]] = {metric: [] for metric in columns.metrics}
        self._parsed: dict[str, dict[str, float]] = {metric: {} for metric in columns.metrics}
        self._skipped = 0

    @property
    def has_rows(self) -> bool:
        """Whether any line could be read, with or without values."""
        return bool(self._rows)

    def read(self, row: list[str]) -> None:
        columns = self._columns
        if row == columns.header or not row:
            return  # a recording that was restarted writes its header again
        time_ms = self._parse_time(row[columns.timestamp]) if len(row) == len(columns.header) else None
        if time_ms is None:
            self._skipped += 1
            return
        unit = self._unit(row)
        self._rows.append((self._units.code(unit), time_ms))
        if columns.gpu_name is not None:
            self._gpu_names.setdefault(unit, row[columns.gpu_name].strip())
        for metric, (column, header_unit) in columns.metrics.items():
            parsed, text = self._parsed[metric], row[column]
            value = parsed.get(text)
            if value is None:
                value = parsed[text] = _parse_value(text.strip(), header_unit)
            self._values[metric].append(value)

    def _unit(self, row: list[str]) -> UnitId:
        if self._columns.identity is None:
            return gpu_unit_id(self._node, 0)
        field, column = self._columns.identity
        text = row[column].strip()
        is_index = field == "index" and text.isascii() and text.isdecimal() and len(text) <= MAX_INDEX_DIGITS
        return gpu_unit_id(self._node, int(text)) if is_index else UnitId(text)

    def _parse_time(self, text: str) -> int | None:
        for pattern in _TIMESTAMPS:
            try:
                moment = datetime.strptime(text.strip(), pattern)
            except ValueError:
                continue
            with suppress(OverflowError):  # the year 1 in a zone east of Greenwich
                return round(moment.replace(tzinfo=self._zone).timestamp() * 1000)
        return None

    def finish(self, *, skipped_before: int) -> SmiLog:
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, 2)
        metrics = Names()
        parts = []
        for metric, values in self._values.items():
            value = np.array(values)
            is_valid = ~np.isnan(value)
            low, high = METRICS[metric].lower, METRICS[metric].upper
            is_valid &= (value >= low) & (value <= (np.inf if high is None else high))
            if is_valid.any():
                parts.append((metrics.code(metric), rows[is_valid], value[is_valid]))
        samples = SampleBatch(
            units=self._units,
            metrics=metrics,
            unit=_concatenate(part[:, 0] for _, part, _ in parts).astype(np.int32),
            metric=_concatenate(np.full(len(value), code) for code, _, value in parts).astype(np.int32),
            time_ms=_concatenate(part[:, 1] for _, part, _ in parts).astype(np.int64),
            value=_concatenate(value for _, _, value in parts).astype(np.float64),
        )
        return SmiLog(samples, self._gpu_names, self._skipped + skipped_before, len(self._rows))


def _parse_value(text: str, header_unit: str) -> float:
    """The value in the canonical unit; NaN if the GPU gives none (``[N/A]``, ``[Not Supported]``, ``[GPU requires reset]`` …)."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    match = _VALUE.match(text)
    scale = _SCALES.get(match.group(2) or header_unit) if match else None
    return np.nan if match is None or scale is None else float(match.group(1)) * scale


def _concatenate(parts: Iterable[np.ndarray]) -> np.ndarray:
    collected = list(parts)
    return np.concatenate(collected) if collected else np.empty(0)


START, END = "start", "end"
MAX_TIME_S = 4e9
"""In the year 2096. A larger time is not in seconds; NaN is none."""


@dataclass(frozen=True, slots=True)
class RunSpan:
    """When a run used the GPUs. ``gpus`` are the indices that it gave; empty means all GPUs of the machine."""

    workload: WorkloadId
    name: str
    from_at: UnixMs
    until_at: UnixMs | None
    gpus: tuple[int, ...] = ()


def read_run_events(path: Path) -> list[RunSpan]:
    """Read the runs at ``path``, ordered by their start."""
    return parse_run_events(_read_text(path), name=str(path))


def parse_run_events(text: str, *, name: str = "the events") -> list[RunSpan]:
    """Parse the runs in ``text``, ordered by their start. Lines that are not events are skipped, as is a truncated last line."""
    spans: dict[tuple[str, int], RunSpan] = {}
    ended: list[RunSpan] = []
    for line in text.splitlines():
        event = _parse(line)
        if event is None:
            continue
        at, mode, pid, phase = event
        key = (mode, pid)
        if key in spans and phase == START:
            ended.append(spans.pop(key))
        span = spans.setdefault(key, RunSpan(WorkloadId(f"{mode}-{pid}"), mode, at, None, _gpus(line)))
        if phase == END:
            ended.append(RunSpan(span.workload, span.name, span.from_at, at, span.gpus))
            del spans[key]
    runs = sorted([*ended, *spans.values()], key=lambda span: span.from_at)
    if not runs:
        raise SourceError(
            f"{name} has no runs",
            hint='A line looks like {"t": 1700000000.0, "pid": 1, "mode": "train", "phase": "start"}.',
        )
    return runs


def _parse(line: str) -> tuple[UnixMs, str, int, str] | None:
    event = _object(line)
    at, pid = event.get("t"), event.get("pid", 0)
    if not isinstance(at, int | float) or not abs(at) <= MAX_TIME_S or not isinstance(pid, int):
        return None
    mode, phase = event.get("mode"), event.get("phase")
    return UnixMs(round(at * 1000)), str(mode if mode is not None else "run"), pid, str(phase)


def _gpus(line: str) -> tuple[int, ...]:
    """``"gpu": 3`` or ``"gpus": [0, 1]``."""
    event = _object(line)
    value = event.get("gpus", event.get("gpu"))
    indices = value if isinstance(value, list) else [value]
    return tuple(index for index in indices if isinstance(index, int))


def _object(line: str) -> Mapping[str, object]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}
