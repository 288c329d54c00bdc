"""Reads the answers of Prometheus range-vector queries in bulk: their bytes become raw rows, each sample only once.

Owns the shape of the answers and the memory of what was already told. Knows no network and judges no value.
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
from clusterscape.model.samples import Float64s, Int32s, Int64s
from clusterscape.settings.limits import SourceLimits

# A table is given up for a fresh one when it holds more than this many times the series of its fullest round, and a spare.
STALE_FACTOR = 4
STALE_SPARE = 1_000

_NEVER = np.iinfo(np.int64).min
_UNKNOWN = -1
# A series' code and a time in one number: 42 bits hold milliseconds until 2109, 21 bits two million series.
_TIME_BITS = 42
_TIME_MASK = (1 << _TIME_BITS) - 1
TOO_MANY = Malformed.TOO_MANY

# How Prometheus, VictoriaMetrics and their kin write an answer. Quotes inside a label are escaped, so that none of these
# byte strings can stand within one.
_OPENING = b'{"status":"success",'
_MATRIX = b'"resultType":"matrix"'
_SERIES = b'{"metric":'
_VALUES = b'},"values":[['


@dataclass(frozen=True, slots=True)
class _Answer:
    """One answer as columns: ``count[i]`` samples belong to series ``head[i]``, which is the JSON of its labels."""

    head: Sequence[bytes]
    count: Sequence[int]
    time_ms: Int64s
    value: Float64s
    malformed: int = 0


class SampleReader:
    """Reads answers about metrics, and leaves out what the last answer about the same metric already told."""

    def __init__(self, limits: SourceLimits | None = None) -> None:
        self._limits = limits or SourceLimits()
        self._fullest = 0  # the most series that answered in one round, since the table began
        self._start_table()
        self._start_round()

    def read(self, metric: str, body: bytes) -> int:
        """Take in the answer about ``metric``; returns how many series it has. SourceError where it makes no sense."""
        answer = _split(body) or _parse(body)
        codes = self._code_all(answer.head)
        self._malformed["malformed_series"] += answer.malformed
        self._answered += len(answer.head)
        code = np.repeat(codes, np.asarray(answer.count, np.intp))
        known = code != _UNKNOWN
        self._take_new(metric, code[known], answer.time_ms[known], answer.value[known])
        return len(answer.head)

    def take(self, *, source: str, fetched_at: UnixMs, duration_s: float) -> RawScrape:
        """The rows of this round."""
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
        self._fullest = max(self._fullest, self._answered)
        most = min(STALE_FACTOR * self._fullest + STALE_SPARE, self._limits.series)
        if len(self._table) > most or self._malformed[TOO_MANY]:
            self._drop_stale()
        self._start_round()
        return scrape

    def _start_table(self) -> None:
        self._table = SeriesTable()
        self._codes: dict[bytes, int] = {}
        self._label_sets: dict[bytes, Mapping[str, str]] = {}
        self._told: dict[str, Int64s] = {}  # by metric: codes and times of the last answer
        self._oldest: Int64s = np.empty(0, np.int64)  # by code: the first time in the last answer
        self._fullest = 0

    def _drop_stale(self) -> None:
        """Begin a table of only those series of this round that were known before it: when there are too many, new ones go."""
        former, told, oldest = self._table.series, self._told, self._oldest
        is_known = np.zeros(len(former), np.bool_)
        for codes in self._known:
            is_known[codes] = True
        heads = [head for head, code in self._codes.items() if is_known[code]]
        kept = np.array([self._codes[head] for head in heads], np.int64)
        self._start_table()
        for head, code in zip(heads, kept.tolist(), strict=True):
            series = former[code]
            labels = self._label_sets.setdefault(orjson.dumps(series.labels), series.labels)
            self._codes[head] = self._table.add(RawSeries(series.name, labels))
        places = np.full(len(former), _UNKNOWN, np.int64)
        places[kept] = np.arange(len(kept))
        self._oldest = oldest[kept]
        for metric, key in told.items():
            code = places[key >> _TIME_BITS]
            is_kept = code != _UNKNOWN
            self._told[metric] = (code[is_kept] << _TIME_BITS) | (key[is_kept] & _TIME_MASK)

    def _start_round(self) -> None:
        self._series: list[Int32s] = []
        self._values: list[Float64s] = []
        self._times: list[Int64s] = []
        self._malformed: Counter[str] = Counter()
        self._answered = 0
        self._known: list[Int64s] = []  # codes of this round that were known before it

    def _code_all(self, heads: Sequence[bytes]) -> Int64s:
        """Codes of series; those that are new and cannot be understood or are too many get none, and are counted."""
        codes = np.fromiter((self._codes.get(head, _UNKNOWN) for head in heads), np.int64, len(heads))
        self._known.append(codes[codes != _UNKNOWN])
        for at in np.flatnonzero(codes == _UNKNOWN).tolist():
            codes[at] = self._add(heads[at])
        return codes

    def _add(self, head: bytes) -> int:
        """The code of a series on first sight; one that cannot be understood gets none, again and again."""
        try:
            labels = orjson.loads(head)
            name = labels.pop("__name__")
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
            return self._refuse("malformed_series")
        if not isinstance(name, str) or not all(isinstance(value, str) for value in labels.values()):
            return self._refuse("malformed_series")
        if any(len(value) > self._limits.label_length for value in labels.values()):
            return self._refuse(Malformed.LONG_LABEL)
        if len(self._table) >= self._limits.series:
            return self._refuse(TOO_MANY)
        shared = self._label_sets.setdefault(orjson.dumps(labels), labels)
        code = self._codes[head] = self._table.add(RawSeries(name, shared))
        return code

    def _refuse(self, reason: str) -> int:
        self._malformed[reason] += 1
        return _UNKNOWN

    def _take_new(self, metric: str, code: Int64s, time_ms: Int64s, value: Float64s) -> None:
        """Keep rows that the last answer did not hold. An older sample may become visible after a newer one.

        What is older than all of the last answer was told before it, whenever a look goes further back than the last.
        """
        if len(self._oldest) < len(self._table):
            more = np.full(2 * len(self._table) - len(self._oldest), _NEVER)
            self._oldest = np.concatenate([self._oldest, more])
        key = (code << _TIME_BITS) | time_ms
        is_new = time_ms > self._oldest[code]
        told = self._told.get(metric)
        if told is not None:
            is_new &= ~np.isin(key, told)
        self._told[metric] = key
        first = np.flatnonzero(np.diff(code, prepend=_UNKNOWN))
        self._oldest[code[first]] = time_ms[first]
        self._series.append(code[is_new].astype(np.int32))
        self._times.append(time_ms[is_new])
        self._values.append(value[is_new])


def read_data(body: bytes) -> object:
    """The ``data`` of a good answer; SourceError where it is none."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise nonsense() from None
    if not isinstance(answer, dict) or answer.get("status") != "success":
        raise nonsense()
    return answer.get("data")


def read_result(body: bytes, kind: str) -> Sequence[Any]:
    """The series of a query's answer, which must be of ``kind``."""
    data = read_data(body)
    if not isinstance(data, dict) or data.get("resultType") != kind or not isinstance(data.get("result"), list):
        raise nonsense()
    result: list[Any] = data["result"]
    return result


def nonsense() -> SourceError:
    """What to say of an answer that no Prometheus gives."""
    return SourceError(
        "its answer is not that of a Prometheus API",
        hint="Check collect.prometheus.url: a proxy or a login page may stand in between.",
    )


def _split(body: bytes) -> _Answer | None:
    """The answer without parsing its labels, where it is written as known servers write it; otherwise None."""
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


def _parse(body: bytes) -> _Answer:
    """The answer by its grammar, series by series; one that is damaged is counted and left out."""
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
) -> _Answer:
    """Samples at a time that no clock shows (negative, beyond 2100, no number) are set to 1970 and found late by ingest."""
    is_time = (time_s >= 0) & (time_s < 4.1e9)
    time_ms = np.rint(np.where(is_time, time_s, 0.0) * 1000).astype(np.int64)
    return _Answer(heads, counts, time_ms, value, malformed)
