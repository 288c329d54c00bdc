"""Who broke what, when, and what it cost.

GPU-hours are those held while a rule was broken: from the judgement that found it broken to the one that found it kept, or to the
end of the allocation. A rule that blames a whole workload counts all GPUs it held meanwhile.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.explaining import format_reading, format_values
from clusterscape.analyze.rules.truths import compare
from clusterscape.analyze.rules.verdicts import Reading
from clusterscape.analyze.rules.writing import format_condition
from clusterscape.errors import QueryError
from clusterscape.model import NodeId, UnixMs, Workload, WorkloadId
from clusterscape.model.hardware import find_node, is_hardware, node_subject
from clusterscape.model.rules import Basis, Quantifier, Rule, Severity, Subject, Violation
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
from clusterscape.query.rule_notes import HOUR_MS, RuleNotes, check_hours
from clusterscape.query.workload_ids import resolve_workload
from clusterscape.store.records.contract import WorkloadFilter
from clusterscape.watch.judging import Judged
from clusterscape.watch.watcher import Watch

FAULT_DAYS = 30
MOST_FAULTS = 100
MOST_LISTED = 1000
MOST_STEPS = 2000
MOST_EXPLAINED_UNITS = 64
FEW_WORKLOADS = 200
MOST_WORKLOADS = 200_000
"""Up to a few are looked up one by one; more are cheaper as one page of all that were active then."""


class ViolationQuery:
    """Questions about violations, past and present."""

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
        """Violations of the last ``hours``, or of [start, end), most GPU-hours first; GPU-hours are those of that time."""
        begin, stop = self._range(hours, start, end)
        found = self._context.records.violations(rule=rule, start_ms=begin, end_ms=UnixMs(stop + 1))
        workloads = self._workloads([each.workload for each in found], begin, stop)
        kept = [
            each
            for each in found
            if _fits(workloads.get(each.workload), user, project)
            and (is_open is None or (each.until is None) == is_open)
        ]
        return self._sum_up(kept, workloads, begin, stop)

    def units(self, at_ms: int | None = None) -> UnitViolations:
        """Which units break which rules, now or at a past moment."""
        if at_ms is not None:
            return self._units_at(at_ms)
        judged = self._watch.judged
        if judged is None:
            return UnitViolations(at=self._context.clock(), rules=[])
        found = {rule.rule: rule for rule in self._hardware_units()}
        broken_on: dict[str, set[str]] = {}
        alive = np.flatnonzero(judged.columns.is_open).tolist()
        lives = {(judged.workloads[row], judged.units[row]) for row in alive}
        for violation in self._past_of(lives, judged.at):
            broken_on.setdefault(violation.rule, set()).add(str(violation.unit))
        for rule, states in zip(judged.verdicts.rules, judged.verdicts.is_broken, strict=True):
            rows = np.flatnonzero(states & judged.columns.is_open).tolist()
            units = list(dict.fromkeys(judged.units[row] for row in rows))
            found[rule.key] = RuleUnits(
                rule=rule.key, units=list(units), past=sorted(broken_on.get(rule.key, set()) - set(units))
            )
        rules = [found[rule.key] for rule in self._watch.book.rules() if rule.key in found]
        return UnitViolations(at=judged.at, rules=rules)

    def _hardware_units(self) -> Iterator[RuleUnits]:
        """GPUs that break a rule, and all GPUs of nodes that do; sources have none."""
        of_node = self._units_of_nodes()
        for subject, judged in self._watch.hardware.judged.items():
            for rule, states in zip(judged.verdicts.rules, judged.verdicts.is_broken, strict=True):
                rows = np.flatnonzero(states).tolist()
                if subject is Subject.GPUS and rule.scope.quantifier is Quantifier.EACH:
                    units = [str(judged.units[row]) for row in rows]
                else:
                    nodes = dict.fromkeys(judged.workloads[row] for row in rows)
                    units = [unit for node in nodes for unit in of_node.get(node, ())]
                yield RuleUnits(rule=rule.key, units=units, past=[])

    def _units_of_nodes(self) -> dict[WorkloadId, list[str]]:
        """By whom violations by nodes name."""
        found: dict[WorkloadId, list[str]] = {}
        for unit in self._context.records.units():
            if unit.node is not None:
                found.setdefault(node_subject(unit.node), []).append(str(unit.id))
        return found

    def node(self, node: NodeId) -> list[FaultAnswer]:
        """What was wrong with a node and its GPUs in the last days: what goes on first, the worst before others."""
        now = self._context.clock()
        start = UnixMs(now - FAULT_DAYS * 24 * HOUR_MS)
        rules = {rule.key: rule for rule in self._watch.book.rules()}
        found = self._context.records.violations(workload=node_subject(node), start_ms=start)
        worst = list(Severity)[::-1]
        described = [_describe_fault(each, rules.get(each.rule)) for each in found]
        # What goes on by severity, then what is over, the latest first.
        described.sort(
            key=lambda each: (
                each.until is not None,
                worst.index(each.severity) if each.until is None else 0,
                -(each.until or each.since),
            )
        )
        return described[:MOST_FAULTS]

    def timeline(self, *, hours: float = 24.0, steps: int = 96, end: int | None = None) -> RuleTimeline:
        """How many GPUs broke each rule over the last ``hours``, or those before ``end``."""
        if not 1 <= steps <= MOST_STEPS:
            raise QueryError(f"steps must be 1–{MOST_STEPS}, not {steps}")
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
            mine = rules == rule.key
            change = np.zeros(steps + 1, np.int64)
            np.add.at(change, first[mine], gpus[mine])
            np.add.at(change, last[mine], -gpus[mine])
            lines[rule.key] = np.cumsum(change[:-1]).tolist()
        return RuleTimeline(start=start, step_ms=step_ms, gpus=lines)

    def workload(self, workload: str) -> WorkloadVerdicts:
        """Every rule on every unit of a workload, with the numbers behind it, and its violations."""
        known = resolve_workload(self._context.records, workload)
        wanted = known.id
        found = self._context.records.violations(workload=wanted)
        end = self._context.clock()
        start = min((each.since for each in found), default=end)
        judged = self._watch.judged
        rows = [] if judged is None else _rows_of(judged, wanted)
        return WorkloadVerdicts(
            workload=wanted,
            judged_at=judged.at if judged else None,
            units=len(rows),
            verdicts=[] if judged is None else _explain(judged, rows[:MOST_EXPLAINED_UNITS]),
            violations=self._sum_up(found, {wanted: known}, UnixMs(start), UnixMs(end)).violations,
            spans=[ViolationSpan(rule=each.rule, unit=each.unit, since=each.since, until=each.until) for each in found],
        )

    def try_rule(self, rule: Rule, *, hours: float) -> TrialAnswer:
        """What ``rule`` would have done in the last ``hours``."""
        *_, answer = self.follow_trial(rule, hours=hours)
        assert isinstance(answer, TrialAnswer)
        return answer

    def follow_trial(self, rule: Rule, *, hours: float) -> Iterator[float | TrialAnswer]:
        """The share of the work that is done, 0–1, again and again, at last the answer. Who does not go on stops it."""
        from clusterscape.analyze.rules.writing import format_rule
        from clusterscape.watch.trial import follow_trial

        end = self._context.clock()
        start = UnixMs(end - int(check_hours(hours) * HOUR_MS))
        trial = yield from follow_trial(
            rule, records=self._context.records, metrics=self._context.metrics, start_ms=start, end_ms=UnixMs(end)
        )
        workloads = self._workloads([each.workload for each in trial.violations], start, UnixMs(end))
        summed = self._sum_up(trial.violations, workloads, start, UnixMs(end), rules={rule.key: rule})
        yield TrialAnswer(
            text=format_rule(rule),
            start=start,
            end=end,
            step_ms=trial.step_ms,
            lives=trial.lives,
            judged=trial.judged,
            times=len({(each.workload, each.since) for each in trial.violations}),
            workloads=len(summed.violations),
            gpu_hours=summed.gpu_hours,
            violations=summed.violations[:MOST_LISTED],
        )

    # parts

    def _past_of(self, lives: set[tuple[WorkloadId, Any]], now: int) -> Iterable[Violation]:
        """Violations that ended on lives that go on; those of the last day, which is what a page can show."""
        recent = self._context.records.violations(start_ms=UnixMs(now - 24 * HOUR_MS))
        return [each for each in recent if each.until is not None and (each.workload, each.unit) in lives]

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
        # A whole workload that is blamed stands for the units it held, a node for its GPUs.
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
                "the time ends before it begins", hint="start and end are Unix milliseconds; end may be left out."
            )
        check_hours((stop - begin) / HOUR_MS)
        return UnixMs(begin), UnixMs(stop)

    def _workloads(self, names: Iterable[WorkloadId], start: UnixMs, end: UnixMs) -> dict[WorkloadId, Workload]:
        records = self._context.records
        wanted = dict.fromkeys(names)
        found: dict[WorkloadId, Workload] = {}
        if len(wanted) > FEW_WORKLOADS:
            active = WorkloadFilter(active_between=(start, UnixMs(end + 1)))
            page = records.workloads(active, limit=MOST_WORKLOADS)
            found = {workload.id: workload for workload in page.workloads}
        for name in wanted:
            if name not in found and not is_hardware(name) and (workload := records.workload(name)) is not None:
                found[name] = workload
        return found

    def _sum_up(
        self,
        violations: Sequence[Violation],
        workloads: Mapping[WorkloadId, Workload],
        start: UnixMs,
        end: UnixMs,
        *,
        rules: Mapping[str, Rule] | None = None,
    ) -> ViolationList:
        known = rules or {rule.key: rule for rule in self._watch.book.rules()}
        pieces = self._pieces([each for each in violations if not is_hardware(each.workload)], start, end)
        hours = {
            (rule, workload): float(total)
            for rule, workload, total in pieces.group_by("rule", "workload")
            .agg((pl.col("stop") - pl.col("begin")).sum() / HOUR_MS)
            .iter_rows()
        }
        mutes = self._notes.mutes()
        groups: dict[tuple[str, WorkloadId], list[Violation]] = {}
        for each in violations:
            groups.setdefault((each.rule, each.workload), []).append(each)
        listed = [
            _describe(group, known.get(key[0]), workloads.get(key[1]), hours.get(key, 0.0), mutes)
            for key, group in groups.items()
        ]
        listed.sort(key=lambda each: (-each.gpu_hours, each.workload, each.rule))
        by_workload = _union_hours(pieces)
        return ViolationList(
            start=start,
            end=end,
            violations=listed,
            gpu_hours=sum(by_workload.values()),
            users=_share(by_workload, {name: each.user for name, each in workloads.items()}),
            projects=_share(by_workload, {name: each.project for name, each in workloads.items()}),
        )

    def _pieces(self, violations: Sequence[Violation], start: UnixMs, end: UnixMs) -> pl.DataFrame:
        """Violations as (rule, workload, unit, begin, stop) on single units, cut to [start, end)."""
        table = pl.DataFrame(
            {
                "rule": [each.rule for each in violations],
                "workload": [each.workload for each in violations],
                "unit": [each.unit for each in violations],
                "begin": [max(each.since, start) for each in violations],
                "stop": [min(each.until or end, end) for each in violations],
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
    """GPU-hours by workload; time in which a unit broke several rules counts once."""
    ordered = pieces.sort("workload", "unit", "begin").with_columns(
        reached=pl.col("stop").cum_max().shift(1).over("workload", "unit")
    )
    fresh = pl.col("stop") - pl.max_horizontal("begin", "reached")
    summed = ordered.group_by("workload").agg(fresh.clip(lower_bound=0).sum() / HOUR_MS)
    return {workload: float(hours) for workload, hours in summed.iter_rows()}


def _share(hours: Mapping[str, float], names: Mapping[WorkloadId, str | None]) -> list[Share]:
    spent: dict[str | None, list[float]] = {}
    for workload, each in hours.items():
        spent.setdefault(names.get(WorkloadId(workload)), []).append(each)
    shares = [Share(name=name, workloads=len(each), gpu_hours=sum(each)) for name, each in spent.items()]
    return sorted(shares, key=lambda share: (-share.gpu_hours, share.name or ""))


def _describe(
    group: Sequence[Violation],
    rule: Rule | None,
    workload: Workload | None,
    gpu_hours: float,
    mutes: Sequence[MuteAnswer],
) -> ViolationAnswer:
    newest = max(group, key=lambda each: each.since)
    units = sorted({each.unit for each in group if each.unit is not None})
    ends = [each.until for each in group]
    mute = next((m for m in mutes if m.rule == newest.rule and m.workload in (None, newest.workload)), None)
    return ViolationAnswer(
        rule=newest.rule,
        rule_name=rule.name if rule else newest.rule,
        severity=rule.severity if rule else Severity.INFO,
        workload=newest.workload,
        workload_name=workload.name if workload else None,
        node=find_node(newest.workload),
        user=workload.user if workload else None,
        project=workload.project if workload else None,
        partition=workload.partition if workload else None,
        units=[str(unit) for unit in units],
        gpus=len(units) or newest.gpus,
        since=min(each.since for each in group),
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
    """The values that broke the rule: one of many errors is enough, and the others are nothing to read."""
    met: dict[str, float] = {}
    for condition in iter_conditions(rule.expression):
        text, bound = format_condition(condition), np.array([condition.value.number])
        if text not in values:
            continue
        is_told = (
            condition.value.basis is Basis.LIMIT or compare(np.array([values[text]]), condition.operator, bound)[0]
        )
        if is_told:
            met[text] = values[text]
    return met


def _rows_of(judged: Judged, workload: WorkloadId) -> list[int]:
    """The lives of a workload that go on, those that break most rules first."""
    names = np.asarray(judged.workloads, object)
    rows = np.flatnonzero((names == workload) & judged.columns.is_open)
    broken = judged.verdicts.is_broken[:, rows].sum(axis=0)
    return [int(row) for row in rows[np.argsort(-broken, kind="stable")]]


def _explain(judged: Judged, rows: Sequence[int]) -> list[UnitVerdict]:
    verdicts = []
    for row in rows:
        for place, rule in enumerate(judged.verdicts.rules):
            told = judged.verdicts.explain(place, row)
            readings = [_describe_reading(each) for each in told.readings]
            unit = str(judged.units[row])
            verdicts.append(UnitVerdict(rule=rule.key, unit=unit, state=told.state, why=told.why, readings=readings))
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
