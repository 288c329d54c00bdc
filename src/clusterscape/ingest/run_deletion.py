"""Deleted runs: that they were is remembered for a while, so that nobody sends them again, and their samples are erased.

What is left of one after a crash, or while a metrics server is away, is removed by the next upkeep.
"""

import logging

from clusterscape.errors import ClusterScapeError, GoneError
from clusterscape.model import UnixMs
from clusterscape.model.run_units import run_unit
from clusterscape.model.runs import DELETED_KIND, StoredRun, workload_id
from clusterscape.settings.limits import RunLimits
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import Document, RecordStore

log = logging.getLogger(__name__)

DAY_MS = 86_400_000
SETTLE_MS = 3_600_000
"""What is written of a workload by those who had begun before it was deleted, such as the end of a violation, comes by then."""


def note_deleted(records: RecordStore, run: StoredRun, *, now: UnixMs) -> None:
    """Remember that a run was deleted, and when its samples were taken."""
    start_ms, end_ms = _span_of(run)
    body = {"owned_by": run.record.owned_by, "start_ms": start_ms, "end_ms": end_ms, "is_erased": False}
    records.write_document(DELETED_KIND, run.run, body, at_ms=now)


def check_not_deleted(records: RecordStore, run: str) -> None:
    """Raise GoneError for a run that was deleted and is still remembered."""
    if records.document(DELETED_KIND, run) is not None:
        raise GoneError(
            f"run {run} was deleted",
            hint="It is not accepted again; `clusterscape runs delete --local` removes it here.",
        )


def erase_deleted_runs(records: RecordStore, metrics: MetricStore, limits: RunLimits, *, now: UnixMs) -> None:
    """Erase the samples of deleted runs, and forget those that were deleted long ago. Not by the thread that writes."""
    for document in records.documents(DELETED_KIND):
        age_ms = now - document.written_at
        if not document.body.get("is_erased") or age_ms < SETTLE_MS:
            _erase(document, records, metrics)
        elif age_ms >= limits.deleted_days * DAY_MS:
            records.remove_document(DELETED_KIND, document.key)


def _erase(document: Document, records: RecordStore, metrics: MetricStore) -> None:
    run, body = document.key, document.body
    records.remove_run(run)
    records.remove_workload(workload_id(run))
    if body.get("is_erased"):
        return
    start_ms, end_ms = body.get("start_ms"), body.get("end_ms")
    if isinstance(start_ms, int) and isinstance(end_ms, int):
        try:
            removed = metrics.remove_unit(run_unit(run), start_ms=UnixMs(start_ms), end_ms=UnixMs(end_ms))
        except ClusterScapeError as error:
            log.warning("samples of the deleted run %s are still stored: %s", run, error.message)
            return
        if not removed:
            log.warning("samples of the deleted run %s stay on the metrics server, which removes none", run)
    records.write_document(DELETED_KIND, run, {**body, "is_erased": True}, at_ms=document.written_at)


def _span_of(run: StoredRun) -> tuple[int | None, int | None]:
    """From the first to the last sample; several in one millisecond were moved on by their number at most."""
    spans = [(series.first_ms, series.last_ms + series.count) for series in run.detail.series.values() if series.count]
    steps = run.detail.steps
    if steps is not None:
        spans.append((min(steps.first_ms, steps.last_ms), max(steps.first_ms, steps.last_ms) + 1))
    if not spans:
        return None, None
    return min(first for first, _ in spans) - 1, max(last for _, last in spans) + DAY_MS
