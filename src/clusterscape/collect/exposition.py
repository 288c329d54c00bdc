"""Parses the Prometheus text format in bulk: the bytes of one scrape become one RawScrape, even if they are malformed.

Owns the grammar and the series table of a target. Does not interpret values: ingest handles blanks, duplicates and units.
Most scrapes differ from the previous one only in their values; the fast path relies on that.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import orjson

from clusterscape.model import NodeId, RawScrape, RawSeries, SeriesTable, UnixMs
from clusterscape.model.arrays import Float64s, Int32s, Int64s
from clusterscape.settings.limits import SourceLimits

# A series table is rebuilt when it has more than STALE_FACTOR times the rows of the current scrape, plus STALE_SPARE.
STALE_FACTOR = 4
STALE_SPARE = 1_000

_INT64_LIMIT = 2**63
_PLAIN_BYTES = b"0123456789.eE+-, \r"

# Possessive quantifiers, so that malformed text causes no backtracking.
_QUOTED = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_HEAD = re.compile(
    rb"[ \t]*+([a-zA-Z_:][a-zA-Z0-9_:]*+)"
    rb"(?:[ \t]*+\{([^\"}]*+(?:" + _QUOTED + rb"[^\"}]*+)*+)\}[ \t]*+|[ \t]++)",
    re.DOTALL,
)
_LABEL = re.compile(rb"[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+(" + _QUOTED + rb")[ \t]*+(?:,|\Z)", re.DOTALL)
_ESCAPE = re.compile(r'\\([\\n"])')
_ESCAPED = {"\\": "\\", "n": "\n", '"': '"'}


class Malformed(StrEnum):
    """Why a line was rejected."""

    HEAD = "malformed_line"  # no metric name, or braces and quotes that do not match
    LABELS = "malformed_labels"
    ENCODING = "invalid_utf8"
    VALUE = "malformed_value"
    TIMESTAMP = "malformed_timestamp"
    LONG_LINE = "line_too_long"
    LONG_LABEL = "label_too_long"
    TOO_MANY = "too_many_series"  # above the limit of one target; existing series take precedence
    TRUNCATED = "truncated_line"  # the text ends within a line, so its value may be cut off


class _MalformedLine(Exception):
    def __init__(self, reason: Malformed) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class _Columns:
    """The samples of the current scrape, one entry per valid line."""

    line: list[int] = field(default_factory=list)
    series: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    time_ms: list[int | None] = field(default_factory=list)

    def sorted(self) -> "_Columns":
        """Sorted by line."""
        order = sorted(range(len(self.line)), key=self.line.__getitem__)
        return _Columns(
            [self.line[row] for row in order],
            [self.series[row] for row in order],
            [self.value[row] for row in order],
            [self.time_ms[row] for row in order],
        )


@dataclass(frozen=True, slots=True)
class _Shape:
    """A scrape without its values, to recognize the next scrape with the same series."""

    line_count: int
    sample_lines: Sequence[int]
    prefixes: Sequence[bytes]  # of the sample lines: the text before the value
    other_lines: Sequence[int]  # comments, empty lines
    other_texts: Sequence[bytes]
    fixed_bytes: int  # length of the text minus that of its values joined by commas
    series: Int32s


class ExpositionParser:
    """Parses successive scrapes of one target. Series codes are valid for the table in the same RawScrape."""

    _table: SeriesTable
    _prefixes: list[bytes]  # by code: the text of a line before its value
    _codes: dict[bytes, int]  # by prefix
    _labels: dict[bytes, Mapping[str, str]]  # by the text between the braces
    _names: dict[bytes, str]  # of metrics and labels
    _shape: _Shape | None  # of the previous scrape, if it had no timestamps and no malformed lines

    def __init__(
        self,
        source: str,
        node: NodeId | None = None,
        *,
        address: str | None = None,
        limits: SourceLimits | None = None,
    ) -> None:
        """``node`` is the name in the settings; ``address`` is the host and port of the target."""
        self._source = source
        self._node = node
        self._address = address
        self._limits = limits or SourceLimits()
        self._start_table()

    def parse(self, text: bytes, *, fetched_at: UnixMs, duration_s: float = 0.0) -> RawScrape:
        """Parse the samples in ``text``. Never raises: a malformed line is counted in ``malformed``."""
        lines = text.split(b"\n")
        malformed: Counter[str] = Counter()
        times: Int64s | None = None
        unchanged = self._read_same_shape(text, lines)
        if unchanged is not None:
            series, values = unchanged
        else:
            columns = self._read_lines(lines, malformed)
            series, values = np.array(columns.series, np.int32), np.array(columns.value, np.float64)
            series.flags.writeable = False  # later scrapes of the same shape share it
            times = _column_of_times(columns.time_ms, fetched_at)
            self._shape = self._shape_of(text, lines, columns, series) if times is None and not malformed else None
        scrape = RawScrape(
            source=self._source,
            node=self._node,
            fetched_at=fetched_at,
            duration_s=duration_s,
            table=self._table,
            series=series,
            value=values,
            time_ms=times,
            malformed=malformed,
            address=self._address,
        )
        if len(self._table) > STALE_FACTOR * len(series) + STALE_SPARE:
            self._start_table([self._prefixes[code] for code in dict.fromkeys(series.tolist())])
        return scrape

    def _start_table(self, kept_prefixes: Sequence[bytes] = ()) -> None:
        """Start a table with only the series of the last scrape: when there are too many, new ones are dropped."""
        former, codes = (self._table.series, self._codes) if kept_prefixes else ([], {})
        self._table = SeriesTable()
        self._prefixes = list(kept_prefixes)
        self._codes = {prefix: self._table.add(former[codes[prefix]]) for prefix in kept_prefixes}
        self._labels = {}
        self._names = {}
        self._shape = None

    def _read_same_shape(self, text: bytes, lines: list[bytes]) -> tuple[Int32s, Float64s] | None:
        """Fast path: series and values of a scrape that differs from the previous one only in values; otherwise None."""
        shape = self._shape
        if shape is None or len(lines) != shape.line_count:
            return None
        if [lines[number] for number in shape.other_lines] != shape.other_texts:
            return None
        texts = list(map(bytes.removeprefix, [lines[number] for number in shape.sample_lines], shape.prefixes))
        joined = b",".join(texts)
        # removeprefix leaves a line with another prefix unchanged, so the lengths no longer add up.
        if len(text) != shape.fixed_bytes + len(joined):
            return None
        values = _parse_plain_numbers(joined, len(texts))
        if values is None:
            values = _parse_numbers(texts)
        return None if values is None else (shape.series, values)

    def _shape_of(self, text: bytes, lines: list[bytes], columns: _Columns, series: Int32s) -> _Shape:
        prefixes = [self._prefixes[code] for code in columns.series]
        sample_lines = set(columns.line)
        other_lines = [number for number in range(len(lines)) if number not in sample_lines]
        value_bytes = sum(len(lines[number]) for number in columns.line) - sum(map(len, prefixes))
        commas = max(len(prefixes) - 1, 0)
        return _Shape(
            line_count=len(lines),
            sample_lines=columns.line,
            prefixes=prefixes,
            other_lines=other_lines,
            other_texts=[lines[number] for number in other_lines],
            fixed_bytes=len(text) - value_bytes - commas,
            series=series,
        )

    def _read_lines(self, lines: list[bytes], malformed: Counter[str]) -> _Columns:
        columns = _Columns()
        *finished, unfinished = lines
        if unfinished.strip() and not unfinished.startswith(b"#"):
            malformed[Malformed.TRUNCATED] += 1
        # OpenMetrics, recognized by its last line, has timestamps in seconds; the older format in milliseconds.
        ms_per_tick = 1_000 if finished and finished[-1].rstrip() == b"# EOF" else 1
        new_lines: list[int] = []  # lines with new series: they are read last, so existing series take precedence
        for number, line in enumerate(finished):
            if line.startswith(b"#"):
                continue
            start = line.rfind(b"} ") + 2
            code = self._codes.get(line[:start])
            if code is None:
                new_lines.append(number)
            else:
                _read_line(columns, number, code, line[start:], ms_per_tick, malformed)
        most = self._limits.series_per_target
        for number in new_lines:
            try:
                series = self._find_series(finished[number], is_full=len(columns.line) >= most)
            except _MalformedLine as problem:
                malformed[problem.reason] += 1
                continue
            if series is not None:
                code, start = series
                _read_line(columns, number, code, finished[number][start:], ms_per_tick, malformed)
        return columns.sorted() if new_lines else columns

    def _find_series(self, line: bytes, *, is_full: bool) -> tuple[int, int] | None:
        """The series code of a line and where its value starts; None for a blank line or a comment."""
        if not line.strip() or line.lstrip().startswith(b"#"):
            return None
        if len(line) > self._limits.line_bytes:
            raise _MalformedLine(Malformed.LONG_LINE)
        head = _HEAD.match(line)
        if head is None:
            raise _MalformedLine(Malformed.HEAD)
        start = head.end()
        prefix = line[:start]
        code = self._codes.get(prefix)
        if code is None:
            if is_full:
                raise _MalformedLine(Malformed.TOO_MANY)
            series = RawSeries(self._share(head[1]), self._label_set(head[2] or b""))
            code = self._codes[prefix] = self._table.add(series)
            self._prefixes.append(prefix)
        return code, start

    def _share(self, name: bytes) -> str:
        """One string object per name. Not ``sys.intern``, which could keep names of hostile exporters forever."""
        return self._names.setdefault(name, name.decode("ascii"))

    def _label_set(self, text: bytes) -> Mapping[str, str]:
        labels = self._labels.get(text)
        if labels is None:
            labels = self._labels[text] = _parse_labels(text.strip(), self._share, self._limits.label_length)
        return labels


def _read_line(
    columns: _Columns, number: int, code: int, text: bytes, ms_per_tick: int, malformed: Counter[str]
) -> None:
    try:
        value, time_ms = _parse_value_and_time(text, ms_per_tick)
    except _MalformedLine as problem:
        malformed[problem.reason] += 1
        return
    columns.line.append(number)
    columns.series.append(code)
    columns.value.append(value)
    columns.time_ms.append(time_ms)


def _parse_labels(text: bytes, share: Callable[[bytes], str], most_length: int) -> Mapping[str, str]:
    labels: dict[str, str] = {}
    position = 0
    while position < len(text):
        label = _LABEL.match(text, position)
        if label is None:
            raise _MalformedLine(Malformed.LABELS)
        position = label.end()
        name = share(label[1])
        if name in labels or name == "__name__":
            raise _MalformedLine(Malformed.LABELS)
        try:
            value = label[2][1:-1].decode("utf-8")
        except UnicodeDecodeError:
            raise _MalformedLine(Malformed.ENCODING) from None
        if len(value) > most_length:
            raise _MalformedLine(Malformed.LONG_LABEL)
        labels[name] = _ESCAPE.sub(lambda escape: _ESCAPED[escape[1]], value) if "\\" in value else value
    return labels


def _parse_plain_numbers(joined: bytes, count: int) -> Float64s | None:
    """Parse ``count`` comma-separated numbers as JSON, which is fastest; None if one is not plain (+Inf, NaN, 007)."""
    if joined.translate(None, _PLAIN_BYTES):
        return None
    try:
        numbers = orjson.loads(b"[%b]" % joined)
    except orjson.JSONDecodeError:
        return None
    return np.array(numbers, np.float64) if len(numbers) == count else None


def _parse_numbers(texts: Sequence[bytes]) -> Float64s | None:
    try:
        return np.array([_parse_number(text, Malformed.VALUE) for text in texts], np.float64)
    except _MalformedLine:
        return None


def _parse_value_and_time(text: bytes, ms_per_tick: int) -> tuple[float, int | None]:
    """Parse ``value [timestamp] [# exemplar]`` into the value and the timestamp in milliseconds, if there is one."""
    try:
        if b"_" in text:
            raise ValueError
        return float(text), None
    except ValueError:
        fields = text.partition(b"#")[0].split()
    if not fields or len(fields) > 2:
        raise _MalformedLine(Malformed.VALUE)
    value = _parse_number(fields[0], Malformed.VALUE)
    if len(fields) == 1:
        return value, None
    time_ms = _parse_number(fields[1], Malformed.TIMESTAMP) * ms_per_tick
    if not -_INT64_LIMIT < time_ms < _INT64_LIMIT:  # NaN fails this too
        raise _MalformedLine(Malformed.TIMESTAMP)
    return value, round(time_ms)


def _parse_number(text: bytes, reason: Malformed) -> float:
    try:
        if b"_" not in text:
            return float(text)
    except ValueError:
        pass
    raise _MalformedLine(reason)


def _column_of_times(times: list[int | None], fetched_at: UnixMs) -> Int64s | None:
    """Explicit timestamps, with ``fetched_at`` for lines without one; None if no line has one."""
    if all(time is None for time in times):
        return None
    return np.array([fetched_at if time is None else time for time in times], np.int64)
