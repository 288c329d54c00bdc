"""Lists of runs, the tree of experiments, workloads and runs, and everything of one run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterscape.analyze.runs.workloads import RunFacts, WorkloadFacts, find_repeats, find_workloads
from clusterscape.errors import NotFoundError
from clusterscape.model import METRICS, MetricUnit
from clusterscape.model.stored_runs import DETAIL_KIND, RUN_KIND, readable
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
from clusterscape.query.runs.derived import DERIVED, JOULES_PER_WORK, find_sources, label_of
from clusterscape.query.runs.rows import facts_of, metric_of, row_of, workload_row

REREAD_MS = 60_000
"""Another process may write runs, too, and only the store tells of them."""


@dataclass(frozen=True, slots=True)
class _Everything:
    """All runs at one moment, newest first, with the workload of each."""

    bodies: Mapping[str, Mapping[str, Any]]
    workloads: Sequence[WorkloadFacts]  # oldest first
    workload_of: Mapping[str, WorkloadFacts]

    def row(self, run: str) -> RunRow:
        return row_of(run, self.bodies[run], self.workload_of[run])


class RunQuery:
    """Answers about runs."""

    def __init__(self, context: QueryContext) -> None:
        self._records = context.records
        self._changes = context.changes
        self._clock = context.clock
        self._cache = context.cache

    def all(self, *, experiment: str | None = None, limit: int = 1000) -> list[RunRow]:
        """Newest first."""
        known = self._read()
        wanted = [run for run, body in known.bodies.items() if experiment in (None, body["about"].get("experiment"))]
        return [known.row(run) for run in wanted[:limit]]

    def tree(self, *, limit: int = 5000) -> RunTree:
        """Experiment → workload → run, newest first, with the newest ``limit`` runs."""
        known = self._read()
        kept: list[WorkloadFacts] = []
        count = 0
        for workload in reversed(known.workloads):  # whole workloads: half of one would be told wrongly
            if count + len(workload.runs) > limit and kept:
                break
            count += len(workload.runs)
            kept.append(workload)
        experiments: dict[str | None, list[WorkloadFacts]] = {}
        for workload in kept:
            experiments.setdefault(workload.runs[0].experiment, []).append(workload)
        return RunTree(
            experiments=[_experiment(name, workloads) for name, workloads in experiments.items()],
            rows=[known.row(run.run) for workload in kept for run in workload.runs],
            left_out=len(known.bodies) - count,
        )

    def workload(self, identity: str) -> tuple[RunWorkload, list[RunRow]]:
        """One run workload by its id or that of any of its runs, with its runs. Raises NotFoundError."""
        known = self._read()
        found = known.workload_of.get(identity)
        if found is None:
            raise NotFoundError(f"no run workload `{identity}`", hint="GET /api/v1/runs/tree lists them.")
        return workload_row(found), [known.row(run.run) for run in found.runs]

    def has(self, run: str) -> bool:
        """Whether there is such a run."""
        return self._records.document(RUN_KIND, run) is not None

    def existing(self, runs: Sequence[str]) -> list[str]:
        """Those of ``runs`` that there are: others may have been deleted since. Raises NotFoundError where none is left."""
        bodies = self._read().bodies
        found = [run for run in dict.fromkeys(runs) if run in bodies]
        if runs and not found:
            raise NotFoundError(f"no run `{runs[0]}`", hint="GET /api/v1/runs lists them.")
        return found

    def one(self, run: str) -> RunAnswer:
        """Raises NotFoundError."""
        known = self._read()
        if run not in known.bodies:
            raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")
        body, detail = known.bodies[run], self.detail(run)
        return RunAnswer(
            row=known.row(run),
            command=list(body["about"].get("command") or []),
            cwd=body["about"].get("cwd"),
            listens_to=[str(word) for word in body["about"].get("listeners") or []],
            marks=detail.get("marks", []),
            listeners=detail.get("listeners", {}),
            environment=detail.get("environment", {}),
            exceptions=[str(text) for text in detail.get("exceptions", [])],
            series=[metric_of(run, key, told) for key, told in detail.get("series", {}).items()],
            not_finite=body["not_finite"],
            dropped=body["dropped"],
            leftovers=detail.get("leftovers", 0),
            left_out=detail.get("left_out", {}),
        )

    def metrics(self, runs: Sequence[str]) -> RunMetrics:
        """What the named runs have to show."""
        scopes: dict[str, set[str]] = {}
        having: Counter[str] = Counter()
        phases: dict[str, None] = {}
        has_steps = has_epochs = False
        work: list[str] = []  # what each run that tells it counts its work in
        for run in self.existing(runs):
            detail = self.detail(run)
            sources = find_sources(run, self.listed(run), detail)
            work += [sources.unit_of_work] if sources is not None else []
            series = [metric_of(run, key, told) for key, told in detail.get("series", {}).items()]
            for one in series:
                scopes.setdefault(one.metric, set()).add(one.scope or "run")
            having.update({one.metric for one in series if one.count})
            has_steps = has_steps or detail.get("steps") is not None
            for mark in detail.get("marks", []):
                has_epochs = has_epochs or mark.get("kind") == "epoch"
                if mark.get("kind") == "phase":
                    phases[str(mark.get("name"))] = None
        return RunMetrics(
            metrics=[_metric_name(name, scopes[name], having[name]) for name in sorted(scopes) if having[name]]
            + [_derived_name(name, work) for name in DERIVED if work],
            phases=list(phases),
            has_steps=has_steps,
            has_epochs=has_epochs,
        )

    def detail(self, run: str) -> Mapping[str, Any]:
        """The large document of a run. Raises NotFoundError."""
        document = self._records.document(DETAIL_KIND, run)
        if document is None:
            raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")
        return readable(DETAIL_KIND, document.body)

    def listed(self, run: str) -> Mapping[str, Any]:
        """The small document of a run; empty where there is none."""
        return self._read().bodies.get(run, {})

    def _read(self) -> _Everything:
        """Read once for each version of the runs' documents."""
        # Known before reading: what is written meanwhile belongs to a later version, and is read again then.
        versions = self._changes.versions
        return self._cache.get("runs", (versions.runs, versions.inventory, self._clock() // REREAD_MS), self._read_all)

    def _read_all(self) -> _Everything:
        bodies: dict[str, Mapping[str, Any]] = {
            document.key: readable(RUN_KIND, document.body) for document in self._records.documents(RUN_KIND)
        }
        facts = {run: facts_of(run, body) for run, body in bodies.items()}
        newest_first = sorted(facts.values(), key=lambda one: (one.queued_at or 0, one.run), reverse=True)
        workloads = find_workloads(facts.values())
        of_run = {run.run: workload for workload in workloads for run in workload.runs}
        return _Everything({one.run: bodies[one.run] for one in newest_first}, workloads, of_run)


def _experiment(name: str | None, workloads: Sequence[WorkloadFacts]) -> RunExperiment:
    runs = [run for workload in workloads for run in workload.runs]
    by_id = {workload.id: workload for workload in workloads}
    repeats = [
        RunRepeats(
            workloads=list(found.workloads),
            label=_label(by_id[found.workloads[0]].runs),
            makespan_s=found.makespan_s,
            joules=found.joules,
            per_second=found.per_second,
            slowdown=found.slowdown,
            fairness=found.fairness,
        )
        for found in find_repeats(reversed(workloads))
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
    """What was repeated, in a few words: ``2 × train.py lr=0.1, mps, H200``."""
    parts = Counter(
        " ".join(
            [next(iter(run.command), run.run).rpartition("/")[2], *(f"{key}={value}" for key, value in run.params)]
        )
        for run in runs
    )
    told = " + ".join(f"{count} × {what}" if count > 1 else what for what, count in parts.items())
    more = [word for word in (runs[0].collocation, runs[0].device_type) if word not in (None, "", "-")]
    return ", ".join([told, *map(str, more)])


def _metric_name(name: str, scopes: set[str], runs: int) -> RunMetricName:
    known = METRICS.get(name)
    return RunMetricName(
        metric=name,
        scopes=sorted(scopes),
        runs=runs,
        unit=known.unit.value if known else None,
        label=known.label if known else None,
    )


def _derived_name(name: str, work: Sequence[str]) -> RunMetricName:
    unit = MetricUnit.JOULES.value if name == JOULES_PER_WORK else None
    return RunMetricName(metric=name, scopes=["run"], runs=len(work), unit=unit, label=label_of(name, set(work)))
