"""One judgement of all lives by all rules: facts gathered, rules evaluated, violations turned. No thread, no loop."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.rules.evaluation import evaluate
from clusterscape.analyze.rules.facts import LifeFacts
from clusterscape.analyze.rules.truths import UNKNOWN
from clusterscape.analyze.rules.verdicts import Verdicts
from clusterscape.analyze.stats.contract import LifeColumns
from clusterscape.model import Unit, UnitId, UnixMs, Workload, WorkloadId
from clusterscape.model.rules import Rule, Turn, Violation, ViolationTurn
from clusterscape.watch.keeper import JudgedLives, Judgement, Turned


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What every rule says of every life at one moment; rows are those of ``columns``."""

    at: UnixMs
    book_version: int
    columns: LifeColumns
    verdicts: Verdicts
    workloads: Sequence[WorkloadId]  # per row
    units: Sequence[UnitId]  # per row
    gpus: NDArray[np.int64] | None = None  # per row; None: one each

    @property
    def judgement(self) -> Judgement:
        """For the keeper of violations."""
        columns = self.columns
        return Judgement(
            at=self.at,
            rules=self.verdicts.rules,
            lives=JudgedLives(
                workloads=self.workloads,
                units=self.units,
                from_at=columns.from_at,
                until_at=columns.until_at,
                is_open=columns.is_open,
                gpus=self.gpus,
            ),
            verdicts=self.verdicts.states,
        )


def gather_facts(columns: LifeColumns, workloads: Mapping[WorkloadId, Workload], units: Iterable[Unit]) -> LifeFacts:
    """What scopes ask of each life's workload; what is not known of one is None."""
    found = [workloads.get(name) for name in columns.workloads]
    machine_types = {unit.id: unit.machine_type for unit in units}
    names, codes = columns.units, columns.workload
    types: list[str | None] = [None] * len(found)
    for code, unit in zip(codes.tolist(), columns.unit.tolist(), strict=True):
        types[code] = types[code] or machine_types.get(names[unit])
    held = np.bincount(codes[columns.is_open], minlength=len(found))
    asked = np.array([0 if each is None else each.gpus_requested for each in found], np.int64)
    return LifeFacts(
        units=[names[unit] for unit in columns.unit.tolist()],
        workload=codes,
        age_ms=columns.until_at - columns.from_at,
        workloads=columns.workloads,
        users=[each.user if each else None for each in found],
        projects=[each.project if each else None for each in found],
        partitions=[each.partition if each else None for each in found],
        machine_types=types,
        names=[each.name if each else None for each in found],
        gpus=np.maximum(held, asked),
    )


def judge(
    rules: Sequence[Rule],
    columns: LifeColumns,
    facts: LifeFacts,
    *,
    at: UnixMs,
    book_version: int = 0,
    gpus: NDArray[np.int64] | None = None,
) -> Judged:
    """Every rule on every life. A life whose past is still being read is not judged yet."""
    verdicts = evaluate(rules, columns, facts)
    verdicts.states[:, ~columns.is_complete] = UNKNOWN
    workloads = columns.workloads
    return Judged(
        at=at,
        book_version=book_version,
        columns=columns,
        verdicts=verdicts,
        workloads=[workloads[code] for code in columns.workload.tolist()],
        units=facts.units,
        gpus=gpus,
    )


def add_values(turned: Turned, judged: Judged) -> Turned:
    """The started violations with the statistics that broke their rules."""
    places = {rule.key: place for place, rule in enumerate(judged.verdicts.rules)}
    rows: dict[tuple[int, WorkloadId, UnitId | None], int] = {}
    for place in {places[each.rule] for each in turned.started}:
        for row in np.flatnonzero(judged.verdicts.is_broken[place] & judged.columns.is_open).tolist():
            rows[place, judged.workloads[row], judged.units[row]] = row
            rows.setdefault((place, judged.workloads[row], None), row)
    started = []
    for each in turned.started:
        place = places[each.rule]
        started.append(replace(each, values=judged.verdicts.values(place, rows[place, each.workload, each.unit])))
    return Turned(started=started, stopped=turned.stopped)


def tell_turns(
    violations: Iterable[Violation], rules: Mapping[str, Rule], workloads: Mapping[WorkloadId, Workload], turn: Turn
) -> list[ViolationTurn]:
    """Violations of one rule by one workload that turned at the same time, as one."""
    groups: dict[tuple[str, WorkloadId, UnixMs, UnixMs], list[Violation]] = {}
    for each in violations:
        at = each.since if turn is Turn.STARTED else each.until
        if each.rule in rules and at is not None:
            groups.setdefault((each.rule, each.workload, each.since, at), []).append(each)
    return [
        ViolationTurn(
            turn=turn,
            at=at,
            rule=rules[rule],
            workload=workload,
            user=known.user if (known := workloads.get(workload)) else None,
            project=known.project if known else None,
            partition=known.partition if known else None,
            units=sorted(each.unit for each in group if each.unit is not None),
            since=since,
            values=group[0].values,
            name=known.name if known else None,
            array=known.tags.get("array_job") if known else None,
        )
        for (rule, workload, since, at), group in groups.items()
    ]
