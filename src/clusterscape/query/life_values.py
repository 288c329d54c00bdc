"""Statistics over a workload's life as columns beside the metrics of now: ``gpu_util_ratio:p50`` is the median since it began."""

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from clusterscape.errors import QueryError
from clusterscape.model import METRICS
from clusterscape.model.rules import Statistic, StatisticKind
from clusterscape.model.statistics import STATISTIC_CATALOGUE, Measures
from clusterscape.watch.watcher import Watch

SEPARATOR = ":"
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?|100)")
_KINDS = {
    entry.kind.value: entry.kind
    for entry in STATISTIC_CATALOGUE
    if entry.measures is Measures.VALUE and entry.argument is None
}


def is_life_column(name: str) -> bool:
    """Whether a column is asked for over the life, not of now."""
    return SEPARATOR in name


def metric_of(name: str) -> str:
    """The metric that a column shows."""
    return name.partition(SEPARATOR)[0]


def parse_life_column(name: str) -> tuple[str, Statistic]:
    """The metric and the statistic of a column's name; raises QueryError."""
    metric, _, word = name.partition(SEPARATOR)
    if metric not in METRICS:
        raise QueryError(f"unknown metric {metric[:80]}", hint="GET /api/v1/metrics lists them.")
    if word in _KINDS:
        return metric, Statistic(_KINDS[word])
    found = _PERCENTILE.fullmatch(word)
    if found is None:
        raise QueryError(f"unknown statistic {word[:40]!r}", hint=f"One of {', '.join(_KINDS)}, and p0 to p100.")
    return metric, Statistic(StatisticKind.PERCENTILE, percentile=float(found[1]))


def read_life_columns(watch: Watch, names: Sequence[str]) -> pl.DataFrame:
    """``unit``, ``workload`` and a column for each name, one row per life that goes on; null where there are no samples.

    Metrics that nobody keeps statistics of (SHOWN_METRICS and those of rules are kept) are null throughout.
    """
    parsed = [(name, *parse_life_column(name)) for name in names]
    statistics = watch.statistics
    schema = {"unit": pl.String, "workload": pl.String} | dict.fromkeys(names, pl.Float64)
    if statistics is None:
        return pl.DataFrame(schema=schema)
    view = statistics.columns()
    rows = np.flatnonzero(view.is_open)
    units, workloads = view.units, view.workloads
    columns: dict[str, object] = {
        "unit": [units[code] for code in view.unit[rows].tolist()],
        "workload": [workloads[code] for code in view.workload[rows].tolist()],
    }
    for name, metric, statistic in parsed:
        columns[name] = view.column(metric, statistic)[rows]
    return pl.DataFrame(columns, schema=schema).with_columns(pl.col(list(names)).fill_nan(None))
