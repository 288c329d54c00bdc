"""Parses responses to Prometheus range-vector queries in bulk into raw rows, and drops samples that were already returned.

Owns the response format and the deduplication. Does no network I/O and does not interpret values.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from clusterscape.collect.exposition import Malformed
from clusterscape.errors import SourceError
from clusterscape.model import RawScrape, RawSeries, SeriesTable, UnixMs
from clusterscape.model.arrays import Float64s, Int32s, Int64s
from clusterscape.settings.limits import SourceLimits

# A series table is rebuilt when it has more than STALE_FACTOR times the series of its largest round, plus STALE_SPARE.
STALE_FACTOR = 4
STALE_SPARE = 1_000

_NEVER = np.iinfo(np.int64).min
_UNKNOWN = -1
# A series' code and a time in one number: 42 bits hold milliseconds until 2109, 21 bits two million series.
_TIME_BITS = 42
_TIME_MASK = (1 << _TIME_BITS) - 1
TOO_MANY = Malformed.TOO_MANY

# How Prometheus, VictoriaMetrics and compatible servers write a response. Quotes in labels are escaped, so none of these byte
# strings can occur inside a label.
_OPENING = b'{"status":"success",'
_MATRIX = b'"resultType":"matrix"'
_SERIES = b'{"metric":'
_VALUES = b'},"values":[['


@dataclass(frozen=True, slots=True)
class _Response:
    """One response as columns: ``count[i]`` samples belong to series ``head[i]``, the JSON of its labels."""

    head: Sequence[bytes]
    count: Sequence[int]
    time_ms: Int64s
    value: Float64s
    malformed: int = 0


class SampleReader:
    """Reads responses metric by metric, without the samples that the last response for the same metric already had."""

    def __init__(self, limits: SourceLimits | None = None) -> None:
        self._limits = limits or SourceLimits()
        self._most_series = 0  # the largest number of series in one round, since the table was started
        self._start_table()
        self._start_round()

    def read(self, metric: str, body: bytes) -> int:
        """Add the response for ``metric`` and return its number of series. Raises SourceError if it is invalid."""
        response = _split(body) or _parse(body)
        codes = self._find_codes(response.head)
        self._malformed["malformed_series"] += response.malformed
        self._series_count += len(response.head)
        code = np.repeat(codes, np.asarray(response.count, np.intp))
        has_code = code != _UNKNOWN
        self._append_new(metric, code[has_code], response.time_ms[has_code], response.value[has_code])
        return len(response.head)

    def take(self, *, source: str, fetched_at: UnixMs, duration_s: float) -> RawScrape:
        """Return the rows of this round and start the next round."""
        scrape = RawScrape(
            source=source,
            node=None,
            fetched_at=fetched_at,
            duration_s=duration_s,
            table=self._table,
            series=np.concatenate([np.empty(0, np.int32), *self._series]),
            value=np.concatenate([np.empty(0), *self._values]),
            time_ms=np.concatenate([np.empty(0, np.int64), *self._times]),
            malformed={reason: count for reason, count in self._malformed.items() if count},
        )
        self._most_series = max(self._most_series, self._series_count)
        most = min(STALE_FACTOR * self._most_series + STALE_SPARE, self._limits.series)
        if len(self._table) > most or self._malformed[TOO_MANY]:
            self._drop_stale()
        self._start_round()
        return scrape

    def _start_table(self) -> None:
        self._table = SeriesTable()
        self._codes: dict[bytes, int] = {}
        self._label_sets: dict[bytes, Mapping[str, str]] = {}
        self._last_keys: dict[str, Int64s] = {}  # by metric: codes and times in the last response
        self._oldest: Int64s = np.empty(0, np.int64)  # by code: the earliest time in the last response
        self._most_series = 0

    def _drop_stale(self) -> None:
        """Start a table with only the series of this round that existed before it: above the limit, new ones are dropped."""
        former, last_keys, oldest = self._table.series, self._last_keys, self._oldest
        is_existing = np.zeros(len(former), np.bool_)
        for codes in self._existing:
            is_existing[codes] = True
        heads = [head for head, code in self._codes.items() if is_existing[code]]
        kept_codes = np.array([self._codes[head] for head in heads], np.int64)
        self._start_table()
        for head, code in zip(heads, kept_codes.tolist(), strict=True):
            series = former[code]
            labels = self._label_sets.setdefault(orjson.dumps(series.labels), series.labels)
            self._codes[head] = self._table.add(RawSeries(series.name, labels))
        new_codes = np.full(len(former), _UNKNOWN, np.int64)
        new_codes[kept_codes] = np.arange(len(kept_codes))
        self._oldest = oldest[kept_codes]
        for metric, key in last_keys.items():
            code = new_codes[key >> _TIME_BITS]
            is_kept = code != _UNKNOWN
            self._last_keys[metric] = (code[is_kept] << _TIME_BITS) | (key[is_kept] & _TIME_MASK)

    def _start_round(self) -> None:
        self._series: list[Int32s] = []
        self._values: list[Float64s] = []
        self._times: list[Int64s] = []
        self._malformed: Counter[str] = Counter()
        self._series_count = 0
        self._existing: list[Int64s] = []  # codes of this round that existed before it

    def _find_codes(self, heads: Sequence[bytes]) -> Int64s:
        """Return the codes of series. New series that are malformed or above the limit get ``_UNKNOWN`` and are counted."""
        codes = np.fromiter((self._codes.get(head, _UNKNOWN) for head in heads), np.int64, len(heads))
        self._existing.append(codes[codes != _UNKNOWN])
        for at in np.flatnonzero(codes == _UNKNOWN).tolist():
            codes[at] = self._add(heads[at])
        return codes

    def _add(self, head: bytes) -> int:
        """Add a new series and return its code, or ``_UNKNOWN`` if it is malformed or above a limit."""
        try:
            labels = orjson.loads(head)
            name = labels.pop("__name__")
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
            return self._reject("malformed_series")
        if not isinstance(name, str) or not all(isinstance(value, str) for value in labels.values()):
            return self._reject("malformed_series")
        if any(len(value) > self._limits.label_length for value in labels.values()):
            return self._reject(Malformed.LONG_LABEL)
        if len(self._table) >= self._limits.series:
            return self._reject(TOO_MANY)
        shared = self._label_sets.setdefault(orjson.dumps(labels), labels)
        code = self._codes[head] = self._table.add(RawSeries(name, shared))
        return code

    def _reject(self, reason: str) -> int:
        self._malformed[reason] += 1
        return _UNKNOWN

    def _append_new(self, metric: str, code: Int64s, time_ms: Int64s, value: Float64s) -> None:
        """Append the rows that the last response did not have. An older sample may become visible after a newer one.

        Samples older than the whole last response were returned earlier: a query may reach further back than the last one.
        """
        if len(self._oldest) < len(self._table):
            more = np.full(2 * len(self._table) - len(self._oldest), _NEVER)
            self._oldest = np.concatenate([self._oldest, more])
        key = (code << _TIME_BITS) | time_ms
        is_new = time_ms > self._oldest[code]
        last_keys = self._last_keys.get(metric)
        if last_keys is not None:
            is_new &= ~np.isin(key, last_keys)
        self._last_keys[metric] = key
        first = np.flatnonzero(np.diff(code, prepend=_UNKNOWN))
        self._oldest[code[first]] = time_ms[first]
        self._series.append(code[is_new].astype(np.int32))
        self._times.append(time_ms[is_new])
        self._values.append(value[is_new])


def read_data(body: bytes) -> object:
    """Return ``data`` of a successful response. Raises SourceError for any other response."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise invalid_response() from None
    if not isinstance(document, dict) or document.get("status") != "success":
        raise invalid_response()
    return document.get("data")


def read_result(body: bytes, kind: str) -> Sequence[Any]:
    """Return the series of a query response, whose result type must be ``kind``."""
    data = read_data(body)
    if not isinstance(data, dict) or data.get("resultType") != kind or not isinstance(data.get("result"), list):
        raise invalid_response()
    result: list[Any] = data["result"]
    return result


def invalid_response() -> SourceError:
    """The error for a response that is not of the Prometheus API."""
    return SourceError(
        "its response is not of the Prometheus API",
        hint="Check collect.prometheus.url: a proxy or a login page may be in between.",
    )


def _split(body: bytes) -> _Response | None:
    """Parse a response without parsing its labels (fast path); None if it is not formatted as expected."""
    if not body.startswith(_OPENING) or _MATRIX not in body[:200]:
        return None
    heads, counts, cells = [], [], []
    for piece in body.split(_SERIES)[1:]:
        head, marker, tail = piece.partition(_VALUES)
        end = tail.find(b"]]")
        if not marker or end < 0:
            return None
        cell = tail[:end]
        heads.append(head + b"}")
        counts.append(cell.count(b"],[") + 1)
        cells.append(cell)
    numbers = b",".join(cells).replace(b'"', b"").replace(b"],[", b",").split(b",") if cells else []
    if len(numbers) != 2 * sum(counts):
        return None
    try:
        columns = np.array(numbers, np.bytes_).astype(np.float64)
    except ValueError:
        return None
    return _columns(heads, counts, columns[0::2], columns[1::2])


def _parse(body: bytes) -> _Response:
    """Parse a response as JSON, series by series (slow path). A malformed series is counted and skipped."""
    heads: list[bytes] = []
    counts: list[int] = []
    times: list[float] = []
    values: list[float] = []
    malformed = 0
    for entry in read_result(body, "matrix"):
        try:
            head = orjson.dumps(entry["metric"])
            rows = [(float(time_s), float(text)) for time_s, text in entry["values"]]
        except (TypeError, KeyError, ValueError, OverflowError):
            malformed += 1
            continue
        heads.append(head)
        counts.append(len(rows))
        times += [row[0] for row in rows]
        values += [row[1] for row in rows]
    return _columns(heads, counts, np.array(times), np.array(values), malformed)


def _columns(
    heads: Sequence[bytes], counts: Sequence[int], time_s: Float64s, value: Float64s, malformed: int = 0
) -> _Response:
    """Build the columns. Impossible times (negative, beyond 2100, NaN) become 0, so ingest drops these samples as late."""
    is_time = (time_s >= 0) & (time_s < 4.1e9)
    time_ms = np.rint(np.where(is_time, time_s, 0.0) * 1000).astype(np.int64)
    return _Response(heads, counts, time_ms, value, malformed)
