"""Traces in memory: the latest few that were requested. A trace that was replaced is read again."""

from dataclasses import dataclass
from functools import cached_property, partial

import msgspec
import numpy as np
import polars as pl

from clusterscape.analyze.trace.activity import RankActivity, measure_activity
from clusterscape.analyze.trace.changes import ChangedRun
from clusterscape.analyze.trace.drawn import DrawnTrace
from clusterscape.errors import QueryError
from clusterscape.model.spans import StageModules
from clusterscape.model.trace_report import TraceReportDocument, decode_report
from clusterscape.model.traces import (
    MEMORY_FILE,
    MODULES_FILE,
    OPERATORS_FILE,
    REPORT_FILE,
    SPANS_FILE,
    STEPS_FILE,
    TraceAbout,
    TraceState,
    trace_key,
)
from clusterscape.query.cache import VersionedCache
from clusterscape.settings.limits import UploadLimits
from clusterscape.store.artifacts.contract import ArtifactReader
from clusterscape.store.artifacts.traces import read_about

MAX_OPEN_TRACES = 4
SEED = 0
"""The seed of bootstraps, fixed so that answers are reproducible."""


@dataclass(frozen=True)
class OpenTrace:
    """One trace; its tables are read on first use."""

    about: TraceAbout
    artifacts: ArtifactReader

    @cached_property
    def spans(self) -> pl.DataFrame:
        """All spans with their relations; a span's id is its row."""
        return self._read_table(SPANS_FILE)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """The steps of every rank with their parts."""
        return self._read_table(STEPS_FILE)

    @cached_property
    def report(self) -> TraceReportDocument:
        """The document that ``trace report --json`` writes."""
        with self.artifacts.open(trace_key(self.about.trace_id, REPORT_FILE)) as file:
            return decode_report(file.read())

    @cached_property
    def drawn(self) -> DrawnTrace:
        """Arrays for drawing."""
        return DrawnTrace(self.spans, self.about.stages)

    @cached_property
    def activity(self) -> RankActivity:
        """When each rank computes and communicates."""
        return measure_activity(self.spans, self.drawn.origin_ns)

    @cached_property
    def operators(self) -> pl.DataFrame | None:
        """The operator graph, or None if the trace has none."""
        key = trace_key(self.about.trace_id, OPERATORS_FILE)
        return self._read_table(OPERATORS_FILE) if self.artifacts.list(key) else None

    @cached_property
    def modules(self) -> tuple[StageModules, ...]:
        """Modules of every stage; empty if the run was not captured."""
        key = trace_key(self.about.trace_id, MODULES_FILE)
        if not self.artifacts.list(key):
            return ()
        with self.artifacts.open(key) as file:
            return msgspec.json.decode(file.read(), type=tuple[StageModules, ...])

    @cached_property
    def memory(self) -> pl.DataFrame | None:
        """Bytes allocated over time, or None if that was not recorded."""
        key = trace_key(self.about.trace_id, MEMORY_FILE)
        return self._read_table(MEMORY_FILE) if self.artifacts.list(key) else None

    @cached_property
    def changed(self) -> ChangedRun:
        """The model of the run for what-ifs."""
        origin_ns = self.drawn.origin_ns
        start = (pl.col("start_ns").cast(pl.Int64) + origin_ns).alias("start_ns")
        steps = self.steps.with_columns(start).with_columns(
            (pl.col("start_ns") + pl.col("step_ns").cast(pl.Int64)).alias("end_ns")
        )
        return ChangedRun(self.spans, steps, np.random.default_rng(SEED))

    def _read_table(self, file: str) -> pl.DataFrame:
        with self.artifacts.open(trace_key(self.about.trace_id, file)) as opened:
            return pl.read_parquet(opened)


def new_trace_cache(limits: UploadLimits) -> VersionedCache:
    """A cache of values that hold traces in memory, weighed by their spans."""
    return VersionedCache(MAX_OPEN_TRACES, max_weight=limits.open_spans)


class OpenTraces:
    """Opens traces that are ready, and caches the latest."""

    def __init__(self, artifacts: ArtifactReader, limits: UploadLimits) -> None:
        self._artifacts = artifacts
        self._cache = new_trace_cache(limits)

    def find(self, trace_id: str) -> OpenTrace:
        """A trace that is ready. Raises ``NotFoundError``, or ``QueryError`` if it is not ready."""
        about = read_about(self._artifacts, trace_id)
        if about.state is TraceState.FAILED:
            raise QueryError(f"trace {trace_id} could not be read: {about.problem}", hint="Import it again.")
        if about.state is not TraceState.READY:
            raise QueryError(f"trace {trace_id} is still being read", hint="Try again when its state is ready.")
        opened = partial(OpenTrace, about, self._artifacts)
        return self._cache.get(trace_id, about.imported_at, opened, weight=about.spans)
