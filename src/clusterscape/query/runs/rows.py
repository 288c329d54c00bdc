"""From what is stored of runs to rows and facts."""

from clusterscape.analyze.runs.workloads import RunFacts, Slowdown, WorkloadFacts
from clusterscape.model.run_units import place_in_run
from clusterscape.model.runs import RunEnergy, RunFigures, RunMoments, RunRecord, SeriesFigures, StoredRun
from clusterscape.query.runs.answers import RunMetric, RunRow, RunSlowdown, RunTimes, RunWorkload


def facts_of(record: RunRecord) -> RunFacts:
    """What comparing needs."""
    summary, about, moments = record.summary, record.summary.about, record.summary.moments
    energy, work = _figures(record).energy, _figures(record).work
    command = about.command or []
    return RunFacts(
        run=record.run,
        experiment=about.experiment,
        group=about.workload,
        user=record.owned_by,
        host=about.host,
        state=summary.state,
        command=tuple(command[1:] or command),  # another interpreter is still the same script
        params=tuple(sorted(summary.params.items())),
        devices=tuple(about.devices or ()),
        device_type=summary.device_type,
        collocation=about.collocation,
        queued_at=about.queued_at,
        started_at=moments.running,
        ended_at=moments.ended,
        joules=energy.joules if energy else None,
        joules_method=energy.method if energy else None,
        joules_scope=energy.scope if energy else None,
        per_second=work.per_second if work else None,
        work_unit=work.unit if work else None,
        work_amount=work.amount if work else None,
    )


def row_of(record: RunRecord, workload: WorkloadFacts) -> RunRow:
    """A run in a list."""
    summary, about, figures = record.summary, record.summary.about, _figures(record)
    energy, work = figures.energy, figures.work
    return RunRow(
        run=record.run,
        workload=record.workload,
        executed_with=workload.id,
        name=summary.tags.get("name") or about.name,
        experiment=about.experiment,
        group=about.workload,
        letter=about.letter,
        user=record.owned_by,
        host=about.host,
        state=summary.state,
        cause=summary.end.cause,
        devices=about.devices or [],
        device_type=summary.device_type,
        collocation=about.collocation,
        params=summary.params,
        tags=summary.tags,
        queued_at=about.queued_at,
        started_at=summary.moments.running,
        ended_at=summary.moments.ended,
        times=_times(about.queued_at, summary.moments),
        samples=summary.samples,
        energy=energy,
        cpu_joules=figures.cpu_joules,
        work=work,
        joules_per_work=_ratio(energy.joules if energy else None, work.amount if work else None),
        slowdown=_slowdown(workload.slowdowns.get(record.run)),
        gpu_util_ratio=figures.gpu_util_ratio,
        power_watts=figures.power_watts,
        memory_peak_bytes=figures.memory_peak_bytes,
        cpu_cores=figures.cpu_cores,
        process_memory_peak_bytes=figures.process_memory_peak_bytes,
        results=figures.results or {},
    )


_NO_FIGURES = RunFigures()


def _figures(record: RunRecord) -> RunFigures:
    return record.summary.figures or _NO_FIGURES


def workload_row(workload: WorkloadFacts) -> RunWorkload:
    """Runs that executed together, for a list."""
    first = workload.runs[0]
    starts = [run.started_at for run in workload.runs if run.started_at is not None]
    ends = [run.ended_at for run in workload.runs if run.ended_at is not None]
    amounts = [run.work_amount for run in workload.runs if run.work_amount is not None]
    is_told = len(amounts) == len(workload.runs) and workload.work_unit is not None
    energy = None
    if workload.joules is not None:
        scope = first.joules_scope or "process"
        energy = RunEnergy(joules=workload.joules, scope=scope, method=workload.joules_method or "measured")
    return RunWorkload(
        id=workload.id,
        experiment=first.experiment,
        group=first.group,
        host=first.host,
        user=first.user,
        state=next((run.state for run in workload.runs if run.state != "completed"), "completed"),
        collocation=first.collocation,
        device_type=first.device_type,
        runs=[run.run for run in workload.runs],
        started_at=min(starts, default=None),
        ended_at=max(ends) if len(ends) == len(workload.runs) else None,
        makespan_s=workload.makespan_s,
        energy=energy,
        per_second=workload.per_second,
        work_unit=workload.work_unit,
        joules_per_work=_ratio(workload.joules, sum(amounts) if is_told else None),
        slowdown=workload.slowdown,
        fairness=workload.fairness,
    )


def metrics_of(run: StoredRun) -> list[RunMetric]:
    """The series of a run."""
    return [_metric_of(run.run, key, figures) for key, figures in run.detail.series.items()]


def _metric_of(run: str, key: str, figures: SeriesFigures) -> RunMetric:
    unit, _, metric = key.partition(" ")  # names of metrics may have spaces, units have none
    has_samples = figures.count > 0
    return RunMetric(
        metric=metric,
        unit=unit,
        place=place_in_run(run, unit),
        scope=figures.scope,
        method=figures.method,
        count=figures.count,
        mean=figures.mean,
        low=figures.low if has_samples else None,
        high=figures.high if has_samples else None,
        first=figures.first if has_samples else None,
        last=figures.last if has_samples else None,
    )


def _times(queued: int | None, moments: RunMoments) -> RunTimes:
    return RunTimes(
        queued_s=_between(queued, moments.barrier),
        barrier_s=_between(moments.barrier, moments.running),
        running_s=_between(moments.running, moments.ended),
        flush_s=_between(moments.ended, moments.flushed),
    )


def _slowdown(slowdown: Slowdown | None) -> RunSlowdown | None:
    if slowdown is None:
        return None
    return RunSlowdown(
        ratio=slowdown.ratio,
        energy_ratio=slowdown.energy_ratio,
        basis=slowdown.basis,
        baseline=list(slowdown.baseline),
    )


def _between(begin: int | None, end: int | None) -> float | None:
    return None if begin is None or end is None else (end - begin) / 1000


def _ratio(joules: float | None, amount: float | None) -> float | None:
    return joules / amount if joules is not None and amount else None
