"""From the documents that ingest keeps of runs to rows and facts."""

from collections.abc import Mapping
from typing import Any

from clusterscape.analyze.runs.workloads import RunFacts, Slowdown, WorkloadFacts
from clusterscape.model.run_units import place_in_run
from clusterscape.model.stored_runs import owner_of
from clusterscape.query.runs.answers import (
    RunEnergy,
    RunMetric,
    RunRow,
    RunSlowdown,
    RunTimes,
    RunWork,
    RunWorkload,
)

Body = Mapping[str, Any]


def facts_of(run: str, body: Body) -> RunFacts:
    """What comparing needs."""
    about, moments, figures = body["about"], body["moments"], body.get("figures") or {}
    energy, work = figures.get("energy") or {}, figures.get("work") or {}
    return RunFacts(
        run=run,
        experiment=about.get("experiment"),
        group=about.get("workload"),
        user=owner_of(body),
        host=about.get("host"),
        state=state_of(body),
        # Another interpreter is still the same script.
        command=tuple((about.get("command") or [])[1:]) or tuple(about.get("command") or []),
        params=tuple(sorted(body["params"].items())),
        devices=tuple(about.get("devices") or []),
        device_type=body.get("device_type"),
        collocation=about.get("collocation"),
        queued_at=about.get("queued_at"),
        started_at=moments.get("running"),
        ended_at=moments.get("ended"),
        joules=energy.get("joules"),
        joules_method=energy.get("method"),
        joules_scope=energy.get("scope"),
        per_second=work.get("per_second"),
        work_unit=work.get("unit"),
        work_amount=work.get("amount"),
    )


def row_of(run: str, body: Body, workload: WorkloadFacts) -> RunRow:
    """A run in a list."""
    about, moments, figures = body["about"], body["moments"], body.get("figures") or {}
    energy, work = figures.get("energy"), figures.get("work")
    return RunRow(
        run=run,
        workload=f"run:{run}",
        executed_with=workload.id,
        name=body["tags"].get("name") or about.get("name"),
        experiment=about.get("experiment"),
        group=about.get("workload"),
        letter=about.get("letter"),
        user=owner_of(body),
        host=about.get("host"),
        state=state_of(body),
        cause=body["end"].get("cause"),
        devices=about.get("devices") or [],
        device_type=body.get("device_type"),
        collocation=about.get("collocation"),
        params=body["params"],
        tags=body["tags"],
        queued_at=about.get("queued_at"),
        started_at=moments.get("running"),
        ended_at=moments.get("ended"),
        times=_times(about.get("queued_at"), moments),
        samples=body["samples"],
        energy=RunEnergy(**energy) if energy else None,
        cpu_joules=figures.get("cpu_joules"),
        work=RunWork(**work) if work else None,
        joules_per_work=_ratio(energy["joules"] if energy else None, work["amount"] if work else None),
        slowdown=_slowdown(workload.slowdowns.get(run)),
        gpu_util_ratio=figures.get("gpu_util_ratio"),
        power_watts=figures.get("power_watts"),
        memory_peak_bytes=figures.get("memory_peak_bytes"),
        cpu_cores=figures.get("cpu_cores"),
        process_memory_peak_bytes=figures.get("process_memory_peak_bytes"),
        results=figures.get("results") or {},
    )


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


def metric_of(run: str, key: str, told: list[Any]) -> RunMetric:
    """One series, from what ingest keeps of it (``ingest.run_figures.SeriesFigures``)."""
    unit, _, metric = key.partition(" ")  # names of metrics may have spaces, units have none
    scope, method, count, total, low, high, first, last = told[:8]
    return RunMetric(
        metric=metric,
        unit=unit,
        place=place_in_run(run, unit),
        scope=scope,
        method=method,
        count=count,
        mean=total / count if count else None,
        low=low if count else None,
        high=high if count else None,
        first=first if count else None,
        last=last if count else None,
    )


def state_of(body: Body) -> str:
    """As the page colors it."""
    return body["end"].get("state") or ("running" if "running" in body["moments"] else "waiting")


def _times(queued: int | None, moments: Mapping[str, int]) -> RunTimes:
    return RunTimes(
        queued_s=_between(queued, moments.get("barrier")),
        barrier_s=_between(moments.get("barrier"), moments.get("running")),
        running_s=_between(moments.get("running"), moments.get("ended")),
        flush_s=_between(moments.get("ended"), moments.get("flushed")),
    )


def _slowdown(found: Slowdown | None) -> RunSlowdown | None:
    if found is None:
        return None
    return RunSlowdown(
        ratio=found.ratio, energy_ratio=found.energy_ratio, basis=found.basis, baseline=list(found.baseline)
    )


def _between(begin: int | None, end: int | None) -> float | None:
    return None if begin is None or end is None else (end - begin) / 1000


def _ratio(joules: float | None, amount: float | None) -> float | None:
    return joules / amount if joules is not None and amount else None
