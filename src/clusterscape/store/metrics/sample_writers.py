"""Sends samples to a metrics server: by VictoriaMetrics' import, or by Prometheus' remote write (version 1: a protobuf
``WriteRequest`` of labelled series, compressed with snappy), which many servers accept.

Remote write follows prometheus/prompb/types.proto and remote.proto. Owns the two wire formats; ``spool`` handles outages.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray

from clusterscape.errors import StoreError
from clusterscape.model import Names, SampleBatch
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.store.metrics.prometheus_api import PrometheusApi

# Field 2 of TimeSeries (tag, length 16): Sample with field 1, the value as a double, and field 2, Unix ms as a varint.
_RECORD = np.dtype([("head", "3u1"), ("value", "<f8"), ("tag", "u1"), ("time", "6u1")])
_HEAD = (0x12, 0x10, 0x09)
_TIME_TAG = 0x10
_LIMIT_MS = 1 << 42  # six groups of seven bits: the year 2109
_SHIFTS = np.arange(6, dtype=np.int64) * 7


class SeriesEncoder:
    """Encodes samples; the labels of a series are encoded once and cached."""

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
        encoded = self._encoded
        parts: list[bytes] = []
        for start, end, code in zip(starts.tolist(), ends.tolist(), series[starts].tolist(), strict=True):
            labels = encoded.get(code)
            if labels is None:
                labels = encoded[code] = self._encode_labels(batch, code)
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
    """Labels as a pseudo unit name, for series without a unit; no unit name starts with a brace."""
    return orjson.dumps(dict(sorted(labels.items()))).decode()


def encode_labels(labels: Mapping[str, str]) -> bytes:
    """Field 1 of TimeSeries, once for each label, sorted by name as receivers require. Empty labels are omitted."""
    encoded = bytearray()
    for name, value in sorted(labels.items()):
        if value:
            pair = _text(0x0A, name) + _text(0x12, value)
            encoded += b"\x0a" + _varint(len(pair)) + pair
    return bytes(encoded)


def compress(request: bytes) -> bytes:
    """Snappy's block format."""
    from cramjam import snappy  # imported only if samples are sent

    return bytes(snappy.compress_raw(request))


def _encode_samples(value: Float64s, time_ms: Int64s) -> bytes:
    """The samples as records of equal length.

    Varints are padded, so that all times take six bytes.
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
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


PREFIX = "clusterscape_"
"""Prefix of the names of all our series."""

_SAMPLES_PER_IMPORT = 1_000_000
_SAMPLES_PER_WRITE = 50_000
"""Samples of a remote write: receivers limit the size of requests, and process large ones slowly."""


class SampleWriter(Protocol):
    """Sends samples; raises StoreError if the server did not accept them."""

    def write(self, batch: SampleBatch) -> None:
        """Send one scrape."""
        ...

    def write_history(self, batch: SampleBatch) -> None:
        """Send many samples of any time."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class ImportWriter:
    """VictoriaMetrics' import of JSON lines: the fastest way into it, in any order of time."""

    def __init__(self, api: PrometheusApi, *, cluster: str | None) -> None:
        self._api = api
        self._cluster = cluster

    def write(self, batch: SampleBatch) -> None:
        """One line per sample: a scrape has one of each series."""
        rows = _rows(batch)
        if len(rows):
            self._api.import_lines(self._lines(rows, batch))

    def write_history(self, batch: SampleBatch) -> None:
        """One line per series, in requests of bounded size."""
        rows = _rows(batch).sort("metric", "unit", maintain_order=True)
        for part in rows.iter_slices(_SAMPLES_PER_IMPORT):
            series = part.group_by("metric", "unit", maintain_order=True).agg(pl.all().str.join(","))
            self._api.import_lines(self._lines(series, batch))

    def close(self) -> None:
        """Close the connections."""
        self._api.close()

    def _lines(self, rows: pl.DataFrame, batch: SampleBatch) -> bytes:
        """JSON lines of rows of ``metric`` and ``unit`` (codes), ``value`` and ``time`` (texts, joined by commas)."""
        metrics = pl.Series([json.dumps(PREFIX + name) for name in batch.metrics.values], dtype=pl.String)
        units = pl.Series([json.dumps(name) for name in batch.units.values], dtype=pl.String)
        cluster = "" if self._cluster is None else f',"cluster":{json.dumps(self._cluster)}'
        lines = rows.select(
            pl.concat_str(
                pl.lit('{"metric":{"__name__":'),
                metrics.gather(rows["metric"]),
                pl.lit(cluster + ',"unit":'),
                units.gather(rows["unit"]),
                pl.lit('},"values":['),
                "value",
                pl.lit('],"timestamps":['),
                "time",
                pl.lit("]}"),
            ).str.join("\n")
        )
        text: str = lines.item()
        return text.encode()


class RemoteWriter:
    """Remote write of the same series; the receiver may reject samples that are old or out of order."""

    def __init__(self, api: PrometheusApi, *, labels: Mapping[str, str]) -> None:
        self._api = api
        self._encoder = SeriesEncoder(PREFIX, labels)

    def write(self, batch: SampleBatch) -> None:
        """Send the batch, oldest samples first, in requests of bounded size."""
        finite = np.flatnonzero(np.isfinite(batch.value))
        order = finite[np.argsort(batch.time_ms[finite], kind="stable")]
        for start in range(0, len(order), _SAMPLES_PER_WRITE):
            self._api.write_remote(compress(self._encoder.encode(batch, order[start : start + _SAMPLES_PER_WRITE])))

    def write_history(self, batch: SampleBatch) -> None:
        """As ``write``."""
        self.write(batch)

    def close(self) -> None:
        """Close the connections."""
        self._api.close()


class NoWriter:
    """For servers that are only read."""

    def write(self, batch: SampleBatch) -> None:
        """Raise StoreError."""
        del batch
        raise StoreError(
            "samples cannot be stored: `storage.metrics_server.write_protocol` is `off`",
            hint="Do not collect here (`serve --role web`), or set it to `import` or `remote_write`.",
        )

    def write_history(self, batch: SampleBatch) -> None:
        """Raise StoreError."""
        self.write(batch)

    def close(self) -> None:
        """Nothing is open."""


def _rows(batch: SampleBatch) -> pl.DataFrame:
    """The batch's finite samples, numbers as texts."""
    rows = pl.DataFrame({"metric": batch.metric, "unit": batch.unit, "value": batch.value, "time": batch.time_ms})
    return rows.filter(pl.col("value").is_finite()).with_columns(pl.col("value", "time").cast(pl.String))
