"""Lists and describes job traces: this cluster's history, and uploads, which are stored as artifacts.

The uploaded file is the source of truth; a document caches what lists show of it. Written by `services/job_traces.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from clusterscape.analyze.jobs.describe import TracesDescription, describe_traces
from clusterscape.analyze.jobs.features import find_starts, select_ran_jobs
from clusterscape.analyze.jobs.runtime_report import PredictionReport, compare_predictors
from clusterscape.errors import NotFoundError, StoreError
from clusterscape.executors import Report, ignore_progress
from clusterscape.model import UnixMs
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.jobs import CleaningNote, JobTrace, SizeUnit
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.history import FORMAT, read_history

__all__ = ["OWN", "JobTraceList", "JobTraceQuery", "JobTraceRow", "TracePredictions", "TracesDescription"]

OWN = "cluster"
"""The id of this cluster's history."""
KIND = "job_trace"
PREFIX = "job-traces"
KEEP_MS = 60_000
"""The description of this cluster's history is computed again after this time, since every job changes it."""


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class JobTraceRow:
    """A job trace in the list. ``trace``: its id; ``cluster`` is this cluster's history, which has no precomputed counts.

    ``notes``: problems in its rows and how they were handled, with the first line numbers. ``total_units``: the cluster's size.
    """

    trace: str
    name: str
    is_own: bool
    format: str
    size_unit: SizeUnit
    jobs: int | None
    dropped: int | None
    total_units: int | None
    size_bytes: int | None
    uploaded_at: int | None
    notes: list[CleaningNote]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTraceList:
    """This cluster's history first, then uploads, newest first."""

    traces: list[JobTraceRow]


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TracePredictions:
    """How well run times of a trace are predicted: models trained on its first jobs, tested on the last."""

    trace: str
    name: str
    report: PredictionReport


class JobTraceQuery:
    """Queries on job traces."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context

    def all(self) -> JobTraceList:
        """All traces."""
        uploads = [describe_upload(document.key, document.body) for document in self._context.records.documents(KIND)]
        uploads.sort(key=lambda row: (-(row.uploaded_at or 0), row.trace))
        return JobTraceList(traces=[self._own(), *uploads])

    def check(self, trace_id: str) -> None:
        """Raise NotFoundError if the trace does not exist."""
        if trace_id != OWN:
            self.find(trace_id)

    def trace(self, trace_id: str) -> JobTrace:
        """The jobs of a trace, uncached."""
        if trace_id == OWN:
            return read_history(self._context.records, name=self._context.cluster, now_ms=self._now())
        return self.read(self.find(trace_id))

    def description(self, trace_id: str, compare: Sequence[str] = (), *, timezone: str = "UTC") -> TracesDescription:
        """The descriptions of one to four traces, for comparison. This cluster's history is at most a minute old."""
        ids = list(dict.fromkeys([trace_id, *compare]))
        versions = tuple(self._now() // KEEP_MS if id == OWN else str(self.find(id).get("uploaded_at")) for id in ids)

        def describe() -> TracesDescription:
            task = _DescriptionTask(_rename_duplicates([self.trace(id) for id in ids]), timezone)
            return self._context.compute(_describe, task, ignore_progress)

        return self._context.cache.get(("job-traces", *ids, timezone), versions, describe)

    def predictions(self, trace_id: str) -> TracePredictions:
        """Run-time predictors compared on a trace. Raises QueryError if too few jobs ended."""
        version = self._now() // KEEP_MS if trace_id == OWN else str(self.find(trace_id).get("uploaded_at"))

        def compare() -> TracePredictions:
            trace = self.trace(trace_id)
            report = self._context.compute(_compare_predictors, trace, ignore_progress)
            return TracePredictions(trace=trace_id, name=trace.name, report=report)

        return self._context.cache.get(("job-trace-predictions", trace_id), (version,), compare)

    def _own(self) -> JobTraceRow:
        return JobTraceRow(
            trace=OWN,
            name=self._context.cluster,
            is_own=True,
            format=FORMAT,
            size_unit="gpus",
            jobs=None,
            dropped=None,
            total_units=None,
            size_bytes=None,
            uploaded_at=None,
            notes=[],
        )

    def _now(self) -> UnixMs:
        return self._context.clock()

    def find(self, trace_id: str) -> dict[str, Any]:
        """The document of an uploaded trace. Raises NotFoundError if it does not exist."""
        document = self._context.records.document(KIND, trace_id)
        if document is None:
            raise NotFoundError(f"no job trace {trace_id!r}", hint="GET /api/v1/job-traces lists them.")
        return dict(document.body)

    def read(self, body: dict[str, Any]) -> JobTrace:
        """The jobs of an uploaded trace. ``body``: its document."""
        artifacts, read = self._context.artifacts, self._context.read_job_trace
        if artifacts is None or read is None:
            raise missing_store_error()
        trace = read(artifacts.path(str(body["key"])), body["asked_format"], body["timezone"])
        return replace(trace, name=body["name"], total=trace.total or body["total_units"])


@dataclass(frozen=True, slots=True)
class _DescriptionTask:
    traces: list[JobTrace]
    timezone: str


def _describe(task: _DescriptionTask, _: Report) -> TracesDescription:
    return describe_traces(task.traces, timezone=task.timezone)


def _compare_predictors(trace: JobTrace, _: Report) -> PredictionReport:
    return compare_predictors(select_ran_jobs(trace, find_starts(trace)))


def missing_store_error() -> StoreError:
    """The error of a server without an artifact store."""
    return StoreError(
        "this server does not store job traces", hint="Use a server that was started with `clusterscape serve`."
    )


def _rename_duplicates(traces: Sequence[JobTrace]) -> list[JobTrace]:
    """Charts identify traces by name, so the second trace of the same name gets the suffix (2)."""
    counts: dict[str, int] = {}
    renamed = []
    for trace in traces:
        counts[trace.name] = count = counts.get(trace.name, 0) + 1
        renamed.append(trace if count == 1 else replace(trace, name=f"{trace.name} ({count})"))
    return renamed


def describe_upload(trace_id: str, body: Any) -> JobTraceRow:
    """The list row of an upload, from its document."""
    return JobTraceRow(
        trace=trace_id,
        name=body["name"],
        is_own=False,
        format=body["format"],
        size_unit=body["size_unit"],
        jobs=body["jobs"],
        dropped=body["dropped"],
        total_units=body["total_units"],
        size_bytes=body["size_bytes"],
        uploaded_at=body["uploaded_at"],
        notes=[CleaningNote(**(note | {"lines": tuple(note["lines"])})) for note in body["notes"]],
    )
