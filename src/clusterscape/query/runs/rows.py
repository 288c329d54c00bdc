"""Converts stored runs to rows and facts, and computes derived metrics: throughput and energy per unit of work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterscape.analyze.runs.lines import Total, add_up, compute_efficiency, total_of_rate
from clusterscape.analyze.runs.workloads import RunFacts, Slowdown, WorkloadFacts
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.runs import RunEnergy, RunFigures, RunMoments, RunRecord, SeriesFigures, StoredRun, place_in_run
from clusterscape.query.runs.answers import RunMetric, RunRow, RunSlowdown, RunTimes, RunWorkload


def facts_of(record: RunRecord) -> RunFacts:
    """The facts by which runs are compared."""
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
        command=tuple(command[1:] or command),  # without the interpreter, which may differ for the same script
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
    """The list row of a run."""
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
    """The list row of a run workload."""
    first = workload.runs[0]
    starts = [run.started_at for run in workload.runs if run.started_at is not None]
    ends = [run.ended_at for run in workload.runs if run.ended_at is not None]
    amounts = [run.work_amount for run in workload.runs if run.work_amount is not None]
    has_all_amounts = len(amounts) == len(workload.runs) and workload.work_unit is not None
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
        joules_per_work=_ratio(workload.joules, sum(amounts) if has_all_amounts else None),
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


ENERGY = "energy_joules"
STEP = "step"
SAMPLES = "samples"
JOULES_PER_WORK = "joules_per_work"
WORK_PER_SECOND = "work_per_second"
WORK_PER_SECOND_PER_WATT = "work_per_second_per_watt"
DERIVED = (JOULES_PER_WORK, WORK_PER_SECOND, WORK_PER_SECOND_PER_WATT)
_LABELS = {
    JOULES_PER_WORK: "Joules per {singular}",
    WORK_PER_SECOND: "{plural} per second",
    WORK_PER_SECOND_PER_WATT: "{plural}/s per watt",
}
Pieces = Mapping[tuple[str, str], tuple[Int64s, Float64s]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSources:
    """The series from which a run's work and energy are computed."""

    unit_of_work: str
    energy_units: Sequence[str]  # the run's share of its GPUs if measured, else whole GPUs
    metric: str
    unit: str
    is_rate: bool
    factor: float  # samples in a step

    @property
    def metrics(self) -> tuple[str, str]:
        """The metrics to read."""
        return (ENERGY, self.metric)

    @property
    def units(self) -> list[str]:
        """The units to read."""
        return [*self.energy_units, self.unit]


def find_sources(run: StoredRun) -> WorkSources | None:
    """None if the run does not report its work, or has no energy samples."""
    figures = run.summary.figures
    work = None if figures is None else figures.work
    energy = [
        (unit, series.scope)
        for (unit, _, metric), series in ((key.partition(" "), series) for key, series in run.detail.series.items())
        if metric == ENERGY and series.count > 1
    ]
    if work is None or not energy:
        return None
    run_unit = f"run:{run.run}"
    is_steps = work.basis != SAMPLES and f"{run_unit} {work.basis}" not in run.detail.series
    steps = run.detail.steps
    factor = 1.0
    if is_steps and steps is not None and work.amount:
        factor = work.amount / (steps.last - steps.first + 1)
    processes = [unit for unit, scope in energy if scope == "process"]
    return WorkSources(
        unit_of_work=work.unit,
        energy_units=processes or [unit for unit, scope in energy if scope == "device"],
        metric=STEP if is_steps else work.basis,
        unit=run_unit,
        is_rate=not is_steps and work.basis != SAMPLES,
        factor=factor,
    )


def derive(names: Sequence[str], sources: WorkSources, pieces: Pieces) -> dict[str, tuple[Int64s, Float64s]]:
    """Times and values of the derived metrics ``names``, from the stored series of ``sources``."""
    work_series = pieces.get((sources.metric, sources.unit))
    energy = add_up([Total(*pieces[ENERGY, unit]) for unit in sources.energy_units if (ENERGY, unit) in pieces])
    if work_series is None:
        return {}
    work = total_of_rate(*work_series) if sources.is_rate else Total(work_series[0], work_series[1] * sources.factor)
    efficiency = compute_efficiency(energy, work)
    columns = {
        JOULES_PER_WORK: efficiency.joules_per_work,
        WORK_PER_SECOND: efficiency.per_second,
        WORK_PER_SECOND_PER_WATT: efficiency.per_second_per_watt,
    }
    return {
        name: (efficiency.times_ms, columns[name]) for name in names if name in columns and len(efficiency.times_ms)
    }


def label_of(name: str, units_of_work: set[str]) -> str:
    """The label of a derived metric, such as ``Joules per sample`` if all runs count samples."""
    plural = units_of_work.pop() if len(units_of_work) == 1 else "work"
    singular = plural.removesuffix("s") if len(plural) > 2 else plural
    text = _LABELS[name].format(singular=singular, plural=plural)
    return text[0].upper() + text[1:]
