"""Which workload violated which rule, when, and how many GPU-hours it held meanwhile.

GPU-hours are those held during a violation: from the evaluation that found the rule violated to the one that found it met
again, or to the end of the allocation. A rule that blames a whole workload counts all GPUs that it held meanwhile.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.evaluation import Reading
from clusterscape.analyze.rules.facts import compare
from clusterscape.analyze.rules.writing import format_condition, format_reading, format_values
from clusterscape.errors import QueryError
from clusterscape.model import NodeId, UnixMs, Workload, WorkloadId
from clusterscape.model.durations import HOUR_MS
from clusterscape.model.rules import (
    Basis,
    Quantifier,
    Rule,
    Severity,
    Subject,
    Violation,
    find_node,
    find_owner,
    is_no_workload,
    node_subject,
)
from clusterscape.query.answers import FaultAnswer
from clusterscape.query.context import QueryContext
from clusterscape.query.rule_answers import (
    MuteAnswer,
    ReadingAnswer,
    RuleTimeline,
    RuleUnits,
    Share,
    TrialAnswer,
    UnitVerdict,
    UnitViolations,
    ViolationAnswer,
    ViolationList,
    ViolationSpan,
    WorkloadVerdicts,
)
from clusterscape.query.rule_notes import RuleNotes, check_hours
from clusterscape.query.search import resolve_workload
from clusterscape.store.records.contract import WorkloadFilter
from clusterscape.watch.judging import Judged
from clusterscape.watch.watcher import Watch

FAULT_DAYS = 30
MAX_FAULTS = 100
MAX_LISTED = 1000
MAX_STEPS = 2000
MAX_EXPLAINED_UNITS = 64
FEW_WORKLOADS = 200
MAX_WORKLOADS = 200_000
"""Up to FEW_WORKLOADS are read one by one; more are cheaper as one page of all that were active then."""


class ViolationQuery:
    """Queries on violations, past and present."""

    def __init__(self, context: QueryContext, watch: Watch, notes: RuleNotes) -> None:
        self._context = context
        self._watch = watch
        self._notes = notes

    def all(
        self,
        *,
        hours: float = 24.0,
        start: int | None = None,
        end: int | None = None,
        rule: str | None = None,
        user: str | None = None,
        project: str | None = None,
        is_open: bool | None = None,
    ) -> ViolationList:
        """Violations in the last ``hours``, or in [start, end), most GPU-hours first; GPU-hours within that range."""
        begin, stop = self._range(hours, start, end)
        violations = self._context.records.violations(rule=rule, start_ms=begin, end_ms=UnixMs(stop + 1))
        workloads = self._workloads([violation.workload for violation in violations], begin, stop)
        matching = [
            violation
            for violation in violations
            if _fits(workloads.get(violation.workload), user, project)
            and (is_open is None or (violation.until is None) == is_open)
        ]
        return self._sum_up(matching, workloads, begin, stop)

    def units(self, at_ms: int | None = None) -> UnitViolations:
        """Which units violate which rules, now or at a past moment."""
        if at_ms is not None:
            return self._units_at(at_ms)
        judged = self._watch.judged
        if judged is None:
            return UnitViolations(at=self._context.clock(), rules=[])
        by_rule = {rule.rule: rule for rule in self._hardware_units()}
        broken_on: dict[str, set[str]] = {}
        open_rows = np.flatnonzero(judged.columns.is_open).tolist()
        lives = {(judged.workloads[row], judged.units[row]) for row in open_rows}
        for violation in self._past_of(lives, judged.at):
            broken_on.setdefault(violation.rule, set()).add(str(violation.unit))
        for rule, states in zip(judged.verdicts.rules, judged.verdicts.is_broken, strict=True):
            rows = np.flatnonzero(states & judged.columns.is_open).tolist()
            units = list(dict.fromkeys(judged.units[row] for row in rows))
            by_rule[rule.key] = RuleUnits(
                rule=rule.key, units=list(units), past=sorted(broken_on.get(rule.key, set()) - set(units))
            )
        rules = [by_rule[rule.key] for rule in self._watch.book.rules() if rule.key in by_rule]
        return UnitViolations(at=judged.at, rules=rules)

    def _hardware_units(self) -> Iterator[RuleUnits]:
        """GPUs that violate a rule, and all GPUs of nodes that do; sources have none."""
        units_by_node = self._units_of_nodes()
        for subject, judged in self._watch.hardware.judged.items():
            for rule, states in zip(judged.verdicts.rules, judged.verdicts.is_broken, strict=True):
                rows = np.flatnonzero(states).tolist()
                if subject is Subject.GPUS and rule.scope.quantifier is Quantifier.EACH:
                    units = [str(judged.units[row]) for row in rows]
                else:
                    nodes = dict.fromkeys(judged.workloads[row] for row in rows)
                    units = [unit for node in nodes for unit in units_by_node.get(node, ())]
                yield RuleUnits(rule=rule.key, units=units, past=[])

    def _units_of_nodes(self) -> dict[WorkloadId, list[str]]:
        """GPUs by the subject that violations of nodes name."""
        units: dict[WorkloadId, list[str]] = {}
        for unit in self._context.records.units():
            if unit.node is not None:
                units.setdefault(node_subject(unit.node), []).append(str(unit.id))
        return units

    def node(self, node: NodeId) -> list[FaultAnswer]:
        """Faults of a node and its GPUs in the last FAULT_DAYS: ongoing ones first, most severe first."""
        now = self._context.clock()
        start = UnixMs(now - FAULT_DAYS * 24 * HOUR_MS)
        rules = {rule.key: rule for rule in self._watch.book.rules()}
        violations = self._context.records.violations(workload=node_subject(node), start_ms=start)
        severities = list(Severity)[::-1]
        faults = [_describe_fault(violation, rules.get(violation.rule)) for violation in violations]
        # Ongoing ones by severity, then past ones, latest first.
        faults.sort(
            key=lambda fault: (
                fault.until is not None,
                severities.index(fault.severity) if fault.until is None else 0,
                -(fault.until or fault.since),
            )
        )
        return faults[:MAX_FAULTS]

    def timeline(self, *, hours: float = 24.0, steps: int = 96, end: int | None = None) -> RuleTimeline:
        """How many GPUs violated each rule over the last ``hours``, or the ``hours`` before ``end``."""
        if not 1 <= steps <= MAX_STEPS:
            raise QueryError(f"steps must be 1–{MAX_STEPS}, not {steps}")
        now = self._context.clock()
        end = now if end is None else min(end, now)
        step_ms = max(1, int(check_hours(hours) * HOUR_MS / steps))
        start = end - step_ms * steps
        spans = self._context.records.violation_spans(start_ms=UnixMs(start), end_ms=UnixMs(end))
        first = np.clip((spans["since"].to_numpy() - start) // step_ms, 0, steps)
        last = np.clip(-((start - spans["until"].fill_null(now).to_numpy()) // step_ms), 0, steps)
        gpus, rules = spans["gpus"].to_numpy(), spans["rule"].to_numpy()
        lines: dict[str, list[int]] = {}
        for rule in self._watch.book.rules():
            is_of_rule = rules == rule.key
            change = np.zeros(steps + 1, np.int64)
            np.add.at(change, first[is_of_rule], gpus[is_of_rule])
            np.add.at(change, last[is_of_rule], -gpus[is_of_rule])
            lines[rule.key] = np.cumsum(change[:-1]).tolist()
        return RuleTimeline(start=start, step_ms=step_ms, gpus=lines)

    def workload(self, workload: str) -> WorkloadVerdicts:
        """The result of every rule on every unit of a workload, with the values, and its violations."""
        record = resolve_workload(self._context.records, workload)
        workload_id = record.id
        violations = self._context.records.violations(workload=workload_id)
        end = self._context.clock()
        start = min((violation.since for violation in violations), default=end)
        judged = self._watch.judged
        rows = [] if judged is None else _rows_of(judged, workload_id)
        return WorkloadVerdicts(
            workload=workload_id,
            judged_at=judged.at if judged else None,
            units=len(rows),
            verdicts=[] if judged is None else _explain(judged, rows[:MAX_EXPLAINED_UNITS]),
            violations=self._sum_up(violations, {workload_id: record}, UnixMs(start), UnixMs(end)).violations,
            spans=[
                ViolationSpan(rule=violation.rule, unit=violation.unit, since=violation.since, until=violation.until)
                for violation in violations
            ],
        )

    def try_rule(self, rule: Rule, *, hours: float) -> TrialAnswer:
        """What ``rule`` would have matched in the last ``hours``."""
        *_, answer = self.follow_trial(rule, hours=hours)
        assert isinstance(answer, TrialAnswer)
        return answer

    def follow_trial(self, rule: Rule, *, hours: float) -> Iterator[float | TrialAnswer]:
        """Yields the progress, 0–1, repeatedly, and finally the answer. Closing the iterator cancels the trial."""
        from clusterscape.analyze.rules.writing import format_rule
        from clusterscape.watch.trial import follow_trial

        end = self._context.clock()
        start = UnixMs(end - int(check_hours(hours) * HOUR_MS))
        trial = yield from follow_trial(
            rule, records=self._context.records, metrics=self._context.metrics, start_ms=start, end_ms=UnixMs(end)
        )
        workloads = self._workloads([violation.workload for violation in trial.violations], start, UnixMs(end))
        summed = self._sum_up(trial.violations, workloads, start, UnixMs(end), rules={rule.key: rule})
        yield TrialAnswer(
            text=format_rule(rule),
            start=start,
            end=end,
            step_ms=trial.step_ms,
            lives=trial.lives,
            judged=trial.judged,
            times=len({(violation.workload, violation.since) for violation in trial.violations}),
            workloads=len(summed.violations),
            gpu_hours=summed.gpu_hours,
            violations=summed.violations[:MAX_LISTED],
        )

    def _past_of(self, lives: set[tuple[WorkloadId, Any]], now: int) -> Iterable[Violation]:
        """Violations of the last day that ended while their life goes on."""
        recent = self._context.records.violations(start_ms=UnixMs(now - 24 * HOUR_MS))
        return [
            violation
            for violation in recent
            if violation.until is not None and (violation.workload, violation.unit) in lives
        ]

    def _units_at(self, at_ms: int) -> UnitViolations:
        records = self._context.records
        at = UnixMs(at_ms)
        spans = records.violation_spans(start_ms=at, end_ms=UnixMs(at + 1))
        held = records.allocation_spans(start_ms=at, end_ms=UnixMs(at + 1)).select("workload", holds="unit")
        owned = [(node, unit) for node, units in self._units_of_nodes().items() for unit in units]
        nodes = pl.DataFrame(
            owned, schema={"workload": held.schema["workload"], "holds": held.schema["holds"]}, orient="row"
        )
        held = pl.concat([held, nodes])
        # If a whole workload is blamed, its units are those it held; those of a node are its GPUs.
        units = spans.join(held, on="workload", how="left").with_columns(unit=pl.coalesce("unit", "holds"))
        rules = []
        for rule in self._watch.book.rules():
            named = units.filter(pl.col("rule") == rule.key)["unit"].drop_nulls().unique().sort()
            rules.append(RuleUnits(rule=rule.key, units=named.to_list(), past=[]))
        return UnitViolations(at=at_ms, rules=rules)

    def _range(self, hours: float, start: int | None, end: int | None) -> tuple[UnixMs, UnixMs]:
        now = self._context.clock()
        stop = now if end is None else min(end, now)
        begin = stop - int(check_hours(hours) * HOUR_MS) if start is None else start
        if begin >= stop:
            raise QueryError(
                "the end must be after the start", hint="start and end are Unix milliseconds; end is optional."
            )
        check_hours((stop - begin) / HOUR_MS)
        return UnixMs(begin), UnixMs(stop)

    def _workloads(self, names: Iterable[WorkloadId], start: UnixMs, end: UnixMs) -> dict[WorkloadId, Workload]:
        records = self._context.records
        wanted = dict.fromkeys(names)
        by_id: dict[WorkloadId, Workload] = {}
        if len(wanted) > FEW_WORKLOADS:
            active = WorkloadFilter(active_between=(start, UnixMs(end + 1)))
            page = records.workloads(active, limit=MAX_WORKLOADS)
            by_id = {workload.id: workload for workload in page.workloads}
        for name in wanted:
            if name not in by_id and not is_no_workload(name) and (workload := records.workload(name)) is not None:
                by_id[name] = workload
        return by_id

    def _sum_up(
        self,
        violations: Sequence[Violation],
        workloads: Mapping[WorkloadId, Workload],
        start: UnixMs,
        end: UnixMs,
        *,
        rules: Mapping[str, Rule] | None = None,
    ) -> ViolationList:
        rules_by_key = rules or {rule.key: rule for rule in self._watch.book.rules()}
        by_workloads = [violation for violation in violations if not is_no_workload(violation.workload)]
        pieces = self._pieces(by_workloads, start, end)
        hours = {
            (rule, workload): float(total)
            for rule, workload, total in pieces.group_by("rule", "workload")
            .agg((pl.col("stop") - pl.col("begin")).sum() / HOUR_MS)
            .iter_rows()
        }
        mutes = self._notes.mutes()
        groups: dict[tuple[str, WorkloadId], list[Violation]] = {}
        for violation in violations:
            groups.setdefault((violation.rule, violation.workload), []).append(violation)
        listed = [
            _describe(group, rules_by_key.get(key[0]), workloads.get(key[1]), hours.get(key, 0.0), mutes)
            for key, group in groups.items()
        ]
        listed.sort(key=lambda answer: (-answer.gpu_hours, answer.workload, answer.rule))
        by_workload = _union_hours(pieces)
        return ViolationList(
            start=start,
            end=end,
            violations=listed,
            gpu_hours=sum(by_workload.values()),
            users=_share(by_workload, {name: workload.user for name, workload in workloads.items()}),
            projects=_share(by_workload, {name: workload.project for name, workload in workloads.items()}),
        )

    def _pieces(self, violations: Sequence[Violation], start: UnixMs, end: UnixMs) -> pl.DataFrame:
        """Violations as (rule, workload, unit, begin, stop) on single units, clipped to [start, end)."""
        table = pl.DataFrame(
            {
                "rule": [violation.rule for violation in violations],
                "workload": [violation.workload for violation in violations],
                "unit": [violation.unit for violation in violations],
                "begin": [max(violation.since, start) for violation in violations],
                "stop": [min(violation.until or end, end) for violation in violations],
            },
            schema={"rule": pl.String, "workload": pl.String, "unit": pl.String, "begin": pl.Int64, "stop": pl.Int64},
        )
        whole = table.filter(pl.col("unit").is_null()).drop("unit")
        if whole.is_empty():
            return table
        held = self._context.records.allocation_spans(start_ms=start, end_ms=UnixMs(end + 1))
        spread = (
            whole.join(held, on="workload", how="inner")
            .with_columns(
                begin=pl.max_horizontal("begin", "from_at"),
                stop=pl.min_horizontal("stop", pl.col("to_at").fill_null(end)),
            )
            .filter(pl.col("stop") > pl.col("begin"))
        )
        return pl.concat([table.drop_nulls("unit"), spread.select(table.columns)])


def _union_hours(pieces: pl.DataFrame) -> dict[str, float]:
    """GPU-hours by workload; time in which a unit violated several rules counts once."""
    ordered = pieces.sort("workload", "unit", "begin").with_columns(
        covered_until=pl.col("stop").cum_max().shift(1).over("workload", "unit")
    )
    uncovered = pl.col("stop") - pl.max_horizontal("begin", "covered_until")
    summed = ordered.group_by("workload").agg(uncovered.clip(lower_bound=0).sum() / HOUR_MS)
    return {workload: float(hours) for workload, hours in summed.iter_rows()}


def _share(hours: Mapping[str, float], names: Mapping[WorkloadId, str | None]) -> list[Share]:
    spent: dict[str | None, list[float]] = {}
    for workload, gpu_hours in hours.items():
        spent.setdefault(names.get(WorkloadId(workload)), []).append(gpu_hours)
    shares = [Share(name=name, workloads=len(values), gpu_hours=sum(values)) for name, values in spent.items()]
    return sorted(shares, key=lambda share: (-share.gpu_hours, share.name or ""))


def _describe(
    group: Sequence[Violation],
    rule: Rule | None,
    workload: Workload | None,
    gpu_hours: float,
    mutes: Sequence[MuteAnswer],
) -> ViolationAnswer:
    newest = max(group, key=lambda violation: violation.since)
    units = sorted({violation.unit for violation in group if violation.unit is not None})
    ends = [violation.until for violation in group]
    mute = next((m for m in mutes if m.rule == newest.rule and m.workload in (None, newest.workload)), None)
    return ViolationAnswer(
        rule=newest.rule,
        rule_name=rule.name if rule else newest.rule,
        severity=rule.severity if rule else Severity.INFO,
        workload=newest.workload,
        workload_name=workload.name if workload else None,
        node=find_node(newest.workload),
        user=workload.user if workload else find_owner(newest.workload)[0],
        project=workload.project if workload else find_owner(newest.workload)[1],
        partition=workload.partition if workload else None,
        units=[str(unit) for unit in units],
        gpus=len(units) or newest.gpus,
        since=min(violation.since for violation in group),
        until=None if None in ends else max(end for end in ends if end is not None),
        gpu_hours=gpu_hours,
        values=newest.values,
        readings=format_values(rule, newest.values) if rule else "",
        mute=mute,
    )


def _describe_fault(violation: Violation, rule: Rule | None) -> FaultAnswer:
    return FaultAnswer(
        rule=violation.rule,
        rule_name=rule.name if rule else violation.rule,
        severity=rule.severity if rule else Severity.INFO,
        unit=violation.unit,
        since=violation.since,
        until=violation.until,
        readings=format_values(rule, _find_met(rule, violation.values)) if rule else "",
    )


def _find_met(rule: Rule, values: Mapping[str, float]) -> dict[str, float]:
    """The values that violate the rule; values of conditions that are not met are left out."""
    met: dict[str, float] = {}
    for condition in iter_conditions(rule.expression):
        text, bound = format_condition(condition), np.array([condition.value.number])
        if text not in values:
            continue
        is_met = condition.value.basis is Basis.LIMIT or compare(np.array([values[text]]), condition.operator, bound)[0]
        if is_met:
            met[text] = values[text]
    return met


def _rows_of(judged: Judged, workload: WorkloadId) -> list[int]:
    """The ongoing lives of a workload, those that violate most rules first."""
    names = np.asarray(judged.workloads, object)
    rows = np.flatnonzero((names == workload) & judged.columns.is_open)
    broken = judged.verdicts.is_broken[:, rows].sum(axis=0)
    return [int(row) for row in rows[np.argsort(-broken, kind="stable")]]


def _explain(judged: Judged, rows: Sequence[int]) -> list[UnitVerdict]:
    verdicts = []
    for row in rows:
        for index, rule in enumerate(judged.verdicts.rules):
            verdict = judged.verdicts.explain(index, row)
            readings = [_describe_reading(reading) for reading in verdict.readings]
            unit = str(judged.units[row])
            verdicts.append(
                UnitVerdict(rule=rule.key, unit=unit, state=verdict.state, why=verdict.why, readings=readings)
            )
    return verdicts


def _describe_reading(reading: Reading) -> ReadingAnswer:
    words = [
        None if number is None else format_reading(number, reading.condition)
        for number in (reading.value, reading.bound)
    ]
    return ReadingAnswer(
        condition=reading.text,
        metric=reading.condition.metric,
        value=reading.value,
        bound=reading.bound,
        value_words=words[0],
        bound_words=words[1],
        samples=reading.samples,
        is_met=reading.is_met,
    )


def _fits(workload: Workload | None, user: str | None, project: str | None) -> bool:
    if user is None and project is None:
        return True
    return workload is not None and user in (None, workload.user) and project in (None, workload.project)
