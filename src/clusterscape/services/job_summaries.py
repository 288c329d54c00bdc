"""Summarizes ended jobs in the background, from samples while these are kept, and removes summaries that are too old."""

import logging
import threading
from collections.abc import Callable

from clusterscape.model import UnixMs, Workload
from clusterscape.model.durations import DAY_MS, HOUR_MS
from clusterscape.model.job_summaries import JobSummary, SummarySource, summarize
from clusterscape.query.context import QueryContext
from clusterscape.query.jobs.curves import read_peak_cores
from clusterscape.query.jobs.query import find_window
from clusterscape.query.jobs.usage import find_held, read_usage
from clusterscape.services.context import ServiceContext

log = logging.getLogger(__name__)

EVERY_S = 15.0
SETTLED_MS = 120_000
"""By then the last samples of a job have arrived."""
RECENT_MS = 2 * HOUR_MS
"""Usually only jobs that ended within this are looked for; once an hour, all."""
AT_ONCE = 200


class SummaryKeeper:
    """Writes a summary of every ended job. ``run`` in a thread of its own; ``decides``: whether this process may write."""

    def __init__(
        self, context: ServiceContext, *, keep_days: float = 1826.0, decides: Callable[[], bool] = lambda: True
    ) -> None:
        self._context = context
        self._reads = context.reads
        self._keep_ms = int(keep_days * DAY_MS)
        self._decides = decides
        self._stopped = threading.Event()
        self._looked_back_at: UnixMs | None = None

    def run(self) -> None:
        """Calls ``update`` periodically until ``stop``; a failure is logged and does not end the loop."""
        loop = self._reads.loops.loop(
            "job summaries", log, fails="ended jobs could not be summarized", works="ended jobs are summarized again"
        )
        while not self._stopped.wait(EVERY_S):
            with loop:
                self.update()

    def stop(self) -> None:
        """End ``run``."""
        self._stopped.set()

    def update(self) -> int:
        """Summarize what has ended since the last call; returns the number of jobs."""
        if not self._decides():
            return 0
        now, total = self._reads.clock(), 0
        is_hourly = self._looked_back_at is None or now - self._looked_back_at >= HOUR_MS
        since = UnixMs(0 if is_hourly else now - RECENT_MS)
        if is_hourly:
            self._context.records.remove_summaries_before(UnixMs(now - self._keep_ms))
            since = UnixMs(max(0, now - self._keep_ms))
        while not self._stopped.is_set():
            jobs = self._context.records.unsummarized(start_ms=since, end_ms=UnixMs(now - SETTLED_MS), limit=AT_ONCE)
            summaries = [summary for job in jobs if (summary := summarize_job(self._reads, job)) is not None]
            written = self._context.records.write_summaries(summaries)
            total += written
            if len(jobs) < AT_ONCE or not written:
                self._looked_back_at = now if is_hourly else self._looked_back_at
                break
        return total


def summarize_job(context: QueryContext, job: Workload) -> JobSummary | None:
    """The summary of an ended job, from its record and the samples that are still kept; None if it never ran."""
    window = find_window(job, context.clock())
    if window is None:
        return None
    usage = read_usage(context, window, find_held(context, window))
    return summarize(job, usage, source=SummarySource.SAMPLES, peak_cores=read_peak_cores(context, window))
