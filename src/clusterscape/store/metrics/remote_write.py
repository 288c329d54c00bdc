"""Prometheus' remote write, version 1, encoded by hand: a protobuf ``WriteRequest`` of labelled series, then snappy.

Source: prometheus/prompb/types.proto and remote.proto. Owns bytes only; sending them is another's.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import orjson
from numpy.typing import NDArray

from clusterscape.model import Names, SampleBatch
from clusterscape.model.samples import Float64s, Int64s

# Field 2 of TimeSeries (tag, length 16): Sample with field 1, the value as a double, and field 2, Unix ms as a varint.
_RECORD = np.dtype([("head", "3u1"), ("value", "<f8"), ("tag", "u1"), ("time", "6u1")])
_HEAD = (0x12, 0x10, 0x09)
_TIME_TAG = 0x10
_LIMIT_MS = 1 << 42  # six groups of seven bits: the year 2109
_SHIFTS = np.arange(6, dtype=np.int64) * 7


class SeriesEncoder:
    """Encodes samples; the labels of a series are encoded once and remembered."""

    def __init__(self, prefix: str, labels: Mapping[str, str]) -> None:
        self._prefix = prefix
        self._labels = dict(labels)
        self._names: tuple[Names, Names] = (Names(), Names())
        self._encoded: dict[int, bytes] = {}  # by series: metric code and unit code

    def encode(self, batch: SampleBatch, rows: NDArray[np.intp]) -> bytes:
        """The ``WriteRequest`` of these rows of ``batch``, the samples of one series together and in the order of rows."""
        if self._names != (batch.units, batch.metrics):  # batches of one source share their dictionaries
            self._names, self._encoded = (batch.units, batch.metrics), {}
        rows = rows[(batch.time_ms[rows] >= 0) & (batch.time_ms[rows] < _LIMIT_MS)]
        if not len(rows):
            return b""
        series = (batch.metric[rows].astype(np.int64) << 32) | batch.unit[rows]
        order = np.argsort(series, kind="stable")
        rows, series = rows[order], series[order]
        samples = _encode_samples(batch.value[rows], batch.time_ms[rows])
        starts = np.flatnonzero(np.r_[True, np.diff(series) != 0])
        ends = np.r_[starts[1:], len(series)]
        size = _RECORD.itemsize
        known = self._encoded
        parts: list[bytes] = []
        for start, end, code in zip(starts.tolist(), ends.tolist(), series[starts].tolist(), strict=True):
            labels = known.get(code)
            if labels is None:
                labels = known[code] = self._encode_labels(batch, code)
            parts += [
                b"\x0a" + _varint(len(labels) + (end - start) * size) + labels,
                samples[start * size : end * size],
            ]
        return b"".join(parts)

    def _encode_labels(self, batch: SampleBatch, code: int) -> bytes:
        metric, unit = batch.metrics.values[code >> 32], batch.units.values[code & 0xFFFF_FFFF]
        own = orjson.loads(unit) if unit.startswith("{") else {"unit": unit}
        return encode_labels({**own, **self._labels, "__name__": self._prefix + metric})


def labelled_unit(labels: Mapping[str, str]) -> str:
    """What stands in the place of a unit for a series with other labels than that; no unit's name begins with a brace."""
    return orjson.dumps(dict(sorted(labels.items()))).decode()


def encode_labels(labels: Mapping[str, str]) -> bytes:
    """Field 1 of TimeSeries, once for each label, sorted by name as receivers require. An empty label is no label."""
    found = bytearray()
    for name, value in sorted(labels.items()):
        if value:
            pair = _text(0x0A, name) + _text(0x12, value)
            found += b"\x0a" + _varint(len(pair)) + pair
    return bytes(found)


def compress(request: bytes) -> bytes:
    """Snappy's block format."""
    from cramjam import snappy  # loaded only where something is sent

    return bytes(snappy.compress_raw(request))


def _encode_samples(value: Float64s, time_ms: Int64s) -> bytes:
    """The samples as records of equal length.

    A varint may be longer than it need be, so that all times take six bytes.
    """
    records = np.empty(len(value), _RECORD)
    records["head"] = _HEAD
    records["value"] = value
    records["tag"] = _TIME_TAG
    groups = (time_ms[:, None] >> _SHIFTS) & 0x7F
    groups[:, :-1] |= 0x80
    records["time"] = groups
    return records.tobytes()


def _text(tag: int, text: str) -> bytes:
    content = text.encode("utf-8", errors="replace")
    return bytes([tag]) + _varint(len(content)) + content


@lru_cache(4096)
def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
