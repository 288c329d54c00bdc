"""Lists of runs, the tree of experiments, workloads and runs, and details of one run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterscape.analyze.runs.workloads import RunFacts, WorkloadFacts, find_repeats, find_workloads
from clusterscape.errors import NotFoundError
from clusterscape.model import METRICS, MetricUnit
from clusterscape.model.runs import RunRecord, StoredRun
from clusterscape.query.context import QueryContext
from clusterscape.query.runs.answers import (
    RunAnswer,
    RunExperiment,
    RunMetricName,
    RunMetrics,
    RunRepeats,
    RunRow,
    RunTree,
    RunWorkload,
)
from clusterscape.query.runs.rows import (
    DERIVED,
    JOULES_PER_WORK,
    facts_of,
    find_sources,
    label_of,
    metrics_of,
    row_of,
    workload_row,
)


@dataclass(frozen=True, slots=True)
class _AllRuns:
    """All runs at one moment, newest first, with the workload of each."""

    records: Mapping[str, RunRecord]
    workloads: Sequence[WorkloadFacts]  # oldest first
    workload_of: Mapping[str, WorkloadFacts]

    def row(self, run: str) -> RunRow:
        return row_of(self.records[run], self.workload_of[run])


class RunQuery:
    """Queries on runs."""

    def __init__(self, context: QueryContext) -> None:
        self._records = context.records
        self._changes = context.changes
        self._cache = context.cache
        self._facts: Mapping[str, tuple[RunRecord, RunFacts]] = {}

    def all(self, *, experiment: str | None = None, limit: int = 1000) -> list[RunRow]:
        """All runs, newest first."""
        runs = self._read()
        names = [run for run, record in runs.records.items() if experiment in (None, record.summary.about.experiment)]
        return [runs.row(run) for run in names[:limit]]

    def tree(self, *, limit: int = 5000) -> RunTree:
        """Experiment → workload → run, newest first, with the newest ``limit`` runs."""
        runs = self._read()
        shown: list[WorkloadFacts] = []
        count = 0
        for workload in reversed(runs.workloads):  # only whole workloads: a part of one would have wrong sums
            if count + len(workload.runs) > limit and shown:
                break
            count += len(workload.runs)
            shown.append(workload)
        experiments: dict[str | None, list[WorkloadFacts]] = {}
        for workload in shown:
            experiments.setdefault(workload.runs[0].experiment, []).append(workload)
        return RunTree(
            experiments=[_experiment(name, workloads) for name, workloads in experiments.items()],
            rows=[runs.row(run.run) for workload in shown for run in workload.runs],
            left_out=len(runs.records) - count,
        )

    def workload(self, identity: str) -> tuple[RunWorkload, list[RunRow]]:
        """One run workload by its id or that of any of its runs, with its runs. Raises NotFoundError."""
        runs = self._read()
        workload = runs.workload_of.get(identity)
        if workload is None:
            raise NotFoundError(f"no run workload `{identity}`", hint="GET /api/v1/runs/tree lists them.")
        return workload_row(workload), [runs.row(run.run) for run in workload.runs]

    def has(self, run: str) -> bool:
        """Whether the run exists."""
        return self._records.run_record(run) is not None

    def existing(self, runs: Sequence[str]) -> list[str]:
        """Those of ``runs`` that exist; others may have been deleted. Raises NotFoundError if none exists."""
        records = self._read().records
        existing = [run for run in dict.fromkeys(runs) if run in records]
        if runs and not existing:
            raise NotFoundError(f"no run `{runs[0]}`", hint="GET /api/v1/runs lists them.")
        return existing

    def one(self, run: str) -> RunAnswer:
        """One run with its details. Raises NotFoundError."""
        runs, stored = self._read(), self.stored(run)
        if run not in runs.records:
            raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")
        summary, detail = stored.summary, stored.detail
        return RunAnswer(
            row=runs.row(run),
            command=summary.about.command or [],
            cwd=summary.about.cwd,
            listens_to=summary.about.listeners or [],
            marks=detail.marks,
            listeners=detail.listeners,
            environment=detail.environment,
            exceptions=[str(text) for text in detail.exceptions],
            hangs=detail.hangs,
            series=metrics_of(stored),
            not_finite=summary.not_finite,
            dropped=summary.dropped,
            leftovers=detail.leftovers,
            left_out=detail.left_out,
        )

    def metrics(self, runs: Sequence[str]) -> RunMetrics:
        """The metrics and phases of the named runs."""
        scopes: dict[str, set[str]] = {}
        run_counts: Counter[str] = Counter()
        phases: dict[str, None] = {}
        has_steps = has_epochs = False
        work: list[str] = []  # the unit of work of each run that reports it
        for stored in map(self.stored, self.existing(runs)):
            sources = find_sources(stored)
            work += [sources.unit_of_work] if sources is not None else []
            series = metrics_of(stored)
            for metric in series:
                scopes.setdefault(metric.metric, set()).add(metric.scope or "run")
            run_counts.update({metric.metric for metric in series if metric.count})
            has_steps = has_steps or stored.detail.steps is not None
            for mark in stored.detail.marks:
                has_epochs = has_epochs or mark.kind == "epoch"
                if mark.kind == "phase":
                    phases[str(mark.name)] = None
        return RunMetrics(
            metrics=[_metric_name(name, scopes[name], run_counts[name]) for name in sorted(scopes) if run_counts[name]]
            + [_derived_name(name, work) for name in DERIVED if work],
            phases=list(phases),
            has_steps=has_steps,
            has_epochs=has_epochs,
        )

    def stored(self, run: str) -> StoredRun:
        """A run with its detail. Raises NotFoundError."""
        stored = self._records.run(run)
        if stored is None:
            raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")
        return stored

    def _read(self) -> _AllRuns:
        """All runs, cached by version."""
        # The version is taken before reading: concurrent writes belong to a later version, and are read again then.
        versions = self._changes.versions
        return self._cache.get("runs", (versions.runs, versions.inventory), self._read_all)

    def _read_all(self) -> _AllRuns:
        records = {record.run: record for record in self._records.runs().records}
        cached = self._facts
        # The store returns the same object for an unchanged run, so its facts are reused.
        self._facts = facts = {
            run: entry if (entry := cached.get(run)) is not None and entry[0] is record else (record, facts_of(record))
            for run, record in records.items()
        }
        runs = [run for _, run in facts.values()]
        workloads = find_workloads(runs)
        newest_first = sorted(runs, key=lambda run: (run.queued_at or 0, run.run), reverse=True)
        workload_of = {run.run: workload for workload in workloads for run in workload.runs}
        return _AllRuns({run.run: records[run.run] for run in newest_first}, workloads, workload_of)


def _experiment(name: str | None, workloads: Sequence[WorkloadFacts]) -> RunExperiment:
    runs = [run for workload in workloads for run in workload.runs]
    by_id = {workload.id: workload for workload in workloads}
    repeats = [
        RunRepeats(
            workloads=list(group.workloads),
            label=_label(by_id[group.workloads[0]].runs),
            makespan_s=group.makespan_s,
            joules=group.joules,
            per_second=group.per_second,
            slowdown=group.slowdown,
            fairness=group.fairness,
        )
        for group in find_repeats(reversed(workloads))
    ]
    return RunExperiment(
        name=name,
        runs=len(runs),
        last_at=max((at for run in runs if (at := run.ended_at or run.started_at or run.queued_at)), default=None),
        states=dict(Counter(run.state for run in runs)),
        workloads=[workload_row(workload) for workload in workloads],
        repeats=repeats,
    )


def _label(runs: Sequence[RunFacts]) -> str:
    """A short label of repeated runs: ``2 × train.py lr=0.1, mps, H200``."""
    parts = Counter(
        " ".join(
            [next(iter(run.command), run.run).rpartition("/")[2], *(f"{key}={value}" for key, value in run.params)]
        )
        for run in runs
    )
    commands = " + ".join(f"{count} × {command}" if count > 1 else command for command, count in parts.items())
    details = [detail for detail in (runs[0].collocation, runs[0].device_type) if detail not in (None, "", "-")]
    return ", ".join([commands, *map(str, details)])


def _metric_name(name: str, scopes: set[str], runs: int) -> RunMetricName:
    metric = METRICS.get(name)
    return RunMetricName(
        metric=name,
        scopes=sorted(scopes),
        runs=runs,
        unit=metric.unit.value if metric else None,
        label=metric.label if metric else None,
    )


def _derived_name(name: str, work: Sequence[str]) -> RunMetricName:
    unit = MetricUnit.JOULES.value if name == JOULES_PER_WORK else None
    return RunMetricName(metric=name, scopes=["run"], runs=len(work), unit=unit, label=label_of(name, set(work)))
