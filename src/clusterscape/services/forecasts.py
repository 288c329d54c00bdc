"""Wait forecasts in the background: trains models on ended jobs, logs forecasts, and records their outcomes.

Requests never train. Models are trained from the history at each start: that takes seconds, and a stored model could be
inconsistent with the history.
"""

import logging
import threading
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

import numpy as np

from clusterscape.analyze.jobs.features import JobTable, RunHistory, select_ran_jobs
from clusterscape.analyze.jobs.runtime_forest import train_elapsed
from clusterscape.analyze.jobs.runtime_report import compare_predictors
from clusterscape.errors import QueryError
from clusterscape.model import UnixMs, WorkloadId, WorkloadState
from clusterscape.query.scheduling.history import read_history
from clusterscape.query.scheduling.live_queue import read_live_queue
from clusterscape.query.scheduling.models import TrainedModels, split_arrivals
from clusterscape.query.scheduling.waiting import WaitQuery
from clusterscape.query.scheduling.waiting_log import KIND, Days, LoggedForecast, find_stage
from clusterscape.services.context import ServiceContext
from clusterscape.warm_up import Area

log = logging.getLogger(__name__)

KEEP_DAYS = 90


class ForecastKeeper:
    """Updates the models and the forecast log of ``waits``. One per site; ``run`` in a background thread."""

    def __init__(self, context: ServiceContext, waits: WaitQuery) -> None:
        self._context = context
        self._reads = context.reads
        self._waits = waits
        self._writing = threading.Lock()
        self._training = threading.Lock()
        self._stopped = threading.Event()

    def run(self, every_s: float) -> None:
        """Calls ``update`` periodically until ``stop``. A failure is logged and does not end the loop."""
        loop = self._reads.loops.loop(
            "forecasts", log, fails="wait forecasts could not be updated", works="wait forecasts are updated again"
        )
        while not self._stopped.wait(every_s):
            if not self._reads.warm_up.is_ready(Area.QUEUE):
                continue
            with loop:
                self.update()

    def stop(self) -> None:
        """End ``run``."""
        self._stopped.set()

    def update(self) -> None:
        """Records outcomes, trains if due, and forecasts workloads that are new or have reached another stage of waiting."""
        self.settle()
        if not self._stopped.is_set():
            self.train()
        logged = self._waits.log.logged_stages()
        queue, now = read_live_queue(self._reads), self._reads.clock()
        stages = {job.workload: find_stage(now / 1000 - job.queued_s) for job in queue.planned()}
        if self._stopped.is_set() or all((name, stage) in logged for name, stage in stages.items()):
            return
        sampled = self._waits.sample(queue, self._waits.models.current())
        forecasts = [
            LoggedForecast(
                workload=job.workload,
                made_at=now,
                sampled_s=np.round(sampled.sampled_s[index], 1).tolist(),
                told_s=np.round(sampled.reported.quantiles_s[index], 1).tolist(),
                size_ratio=float(sampled.bins.size_ratio[index]),
                ahead=int(sampled.bins.ahead[index]),
                stage=stages[job.workload],
                partition=job.partition,
                guesses_s=np.round(sampled.guesses_s[index], 1).tolist(),
            )
            for index, job in enumerate(sampled.jobs)
        ]
        self.add(forecasts)

    def add(self, forecasts: Sequence[LoggedForecast]) -> None:
        """Logs forecasts of workloads that have none of that stage yet."""
        with self._writing:
            logged_stages = self._waits.log.logged_stages()
            days = {day: list(logged) for day, logged in self._waits.log.days().items()}
            changed = set()
            for forecast in forecasts:
                if (forecast.workload, forecast.stage) not in logged_stages:
                    day = _day_of(forecast.made_at)
                    days.setdefault(day, []).append(forecast)
                    changed.add(day)
            self._write(days, changed)

    def settle(self) -> None:
        """Records the outcomes of open forecasts; removes days that are too old."""
        with self._writing:
            before = self._waits.log.days()
            oldest = _day_of(self._reads.clock() - KEEP_DAYS * 86_400_000)
            days = {
                day: [self._settle(forecast) for forecast in logged] for day, logged in before.items() if day >= oldest
            }
            for day in before.keys() - days.keys():
                self._context.remove_document(KIND, day)
            self._write(days, [day for day, logged in days.items() if logged != before[day]])

    def train(self) -> bool:
        """Trains the models if enough jobs have ended since the last training; returns whether it did. One at a time."""
        if not self._training.acquire(blocking=False):
            return False
        try:
            reads, models = self._reads, self._waits.models
            jobs = select_ran_jobs(read_history(reads.records, name=reads.cluster, now_ms=reads.clock()))
            models.ended = len(jobs)
            if len(jobs) < models.due_at:
                return False
            models.replace(_train_models(jobs, reads.clock()))
            return True
        finally:
            self._training.release()

    def _settle(self, forecast: LoggedForecast) -> LoggedForecast:
        if not forecast.is_open:
            return forecast
        workload = self._reads.records.workload(WorkloadId(forecast.workload))
        if workload is None or (not workload.state.is_active and workload.started_at is None):
            return replace(forecast, is_gone=True)
        if workload.state is WorkloadState.WAITING or workload.started_at is None:
            return forecast
        return replace(forecast, wait_s=max(0.0, (workload.started_at - forecast.made_at) / 1000))

    def _write(self, days: Days, changed: Collection[str]) -> None:
        for day in changed:
            newest = UnixMs(max(forecast.made_at for forecast in days[day]))
            body = {"forecasts": [asdict(forecast) for forecast in days[day]]}
            self._context.write_document(KIND, day, body, at_ms=newest)
        if changed or days.keys() != self._waits.log.days().keys():
            self._waits.log.replace(days)


def _train_models(jobs: JobTable, now: UnixMs) -> TrainedModels:
    history = RunHistory(jobs)
    runs = train_elapsed(jobs, history, now / 1000)
    try:
        report = compare_predictors(jobs)
    except QueryError:
        # There are enough jobs to train on all of them, but not to train on the first part and test on the rest.
        report = None
    return TrainedModels(jobs, history, runs, split_arrivals(jobs), report, now)


def _day_of(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")
