"""The embedded metric store: Parquet segments with Polars, no server to install.

``blocks``: samples in memory as wide tables, and their merging.
``coarse``: mean, min, max, last and count of each step.
``compaction``: merges and downsamples files.
``live``: the current files, and atomic changes of them.
``manifest``: the list of files, and consistent snapshots for backups.
``reading``: latest values, series, statistics.
``recent``: the latest writes in memory.
``segments``: one Parquet file, and a cache of decoded columns.
``store``: the store itself.
"""

from clusterscape.store.metrics.embedded.compaction import CompactionPolicy
from clusterscape.store.metrics.embedded.store import EmbeddedMetricStore

__all__ = ["CompactionPolicy", "EmbeddedMetricStore"]
