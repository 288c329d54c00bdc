"""How samples are sent to a metrics server: VictoriaMetrics' import, or Prometheus' remote write, which many take.

Owns the two wire formats. Knows nothing of queries, and nothing of what to do while the server is away (the spool).
"""

import json
from collections.abc import Mapping
from typing import Protocol

import numpy as np
import polars as pl

from clusterscape.errors import StoreError
from clusterscape.model import SampleBatch
from clusterscape.store.metrics.prometheus_api import PrometheusApi
from clusterscape.store.metrics.remote_write import SeriesEncoder, compress

PREFIX = "clusterscape_"
"""Of the names of all series that are ours."""

_SAMPLES_PER_IMPORT = 1_000_000
_SAMPLES_PER_WRITE = 50_000
"""Of a remote write: receivers limit the bytes of a request, and answer large ones late."""


class SampleWriter(Protocol):
    """Sends samples; raises StoreError where the server did not take them."""

    def write(self, batch: SampleBatch) -> None:
        """Send one scrape."""
        ...

    def write_history(self, batch: SampleBatch) -> None:
        """Send much at once, of any time."""
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
    """Remote write of the same series; the receiver may refuse what is old or out of order."""

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
        """Refuse."""
        del batch
        raise StoreError(
            "samples cannot be stored: `storage.metrics_server.writes` is `off`",
            hint="Collect nothing here (`serve --role web`), or set it to `import` or `remote_write`.",
        )

    def write_history(self, batch: SampleBatch) -> None:
        """Refuse."""
        self.write(batch)

    def close(self) -> None:
        """Nothing is open."""


def _rows(batch: SampleBatch) -> pl.DataFrame:
    """The batch's finite samples, numbers as texts."""
    rows = pl.DataFrame({"metric": batch.metric, "unit": batch.unit, "value": batch.value, "time": batch.time_ms})
    return rows.filter(pl.col("value").is_finite()).with_columns(pl.col("value", "time").cast(pl.String))
