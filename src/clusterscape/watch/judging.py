"""One judgement of all lives by all rules: gathers facts, evaluates rules, and turns verdicts into violations with a start and an
end; the same for GPUs, nodes and sources. No thread, no loop.

A violation starts when its rule is first judged broken. It ends when the rule has not been broken for SETTLE_MS, when the life
ends, or when the rule is removed. While a rule cannot be judged (a metric is missing), an open violation stays open.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.rules.evaluation import Verdicts, evaluate
from clusterscape.analyze.rules.facts import TRUE, UNKNOWN, LifeFacts, Truths
from clusterscape.analyze.stats.contract import LifeColumns
from clusterscape.model import Unit, UnitId, UnixMs, Workload, WorkloadId
from clusterscape.model.rules import (
    Quantifier,
    Rule,
    Subject,
    Turn,
    Violation,
    ViolationTurn,
    find_owner,
    is_no_workload,
)
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore
from clusterscape.watch.period_statistics import JobSums, PeriodColumns, find_largest
from clusterscape.watch.rulebook import RuleBook

SETTLE_MS = 300_000
"""A statistic near its threshold crosses it often: a violation ends only after the rule was kept this long, at its first time."""

Key = tuple[str, WorkloadId, UnitId | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedLives:
    """The lives of one judgement, one row each. Lives that are not open ended at ``until_at``; ``gpus``: None means one each."""

    workloads: Sequence[WorkloadId]
    units: Sequence[UnitId]
    from_at: NDArray[np.int64]
    until_at: NDArray[np.int64]
    is_open: NDArray[np.bool_]
    gpus: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdicts of all rules on all lives. ``verdicts``: rules × lives, as in ``Verdicts.states``."""

    at: UnixMs
    rules: Sequence[Rule]
    lives: JudgedLives
    verdicts: Truths


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationChanges:
    """The violations that a judgement started and stopped; ``stopped`` have their end."""

    started: list[Violation] = field(default_factory=list)
    stopped: list[Violation] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.started or self.stopped)


class ViolationKeeper:
    """Keeps the open violations."""

    def __init__(self, open_violations: Iterable[Violation] = ()) -> None:
        self._open: dict[Key, Violation] = {_key_of(violation): violation for violation in open_violations}
        self._kept_since: dict[Key, UnixMs] = {}

    @property
    def open(self) -> Mapping[Key, Violation]:
        """Open violations by rule, workload and unit, including those that have not settled yet."""
        return self._open

    def judge(self, judgement: Judgement) -> ViolationChanges:
        """Apply one judgement; the caller writes the changes and adds the values."""
        changes = ViolationChanges()
        broken = _find_broken(judgement)
        unbroken = [violation for key, violation in self._open.items() if key not in broken]
        for violation, end, is_final in _find_ends(unbroken, judgement):
            key = _key_of(violation)
            kept_since = self._kept_since.setdefault(key, end)
            if is_final:
                self._stop(key, end, changes)
            elif end - kept_since >= SETTLE_MS:
                self._stop(key, kept_since, changes)
        for key, (gpus, from_at) in broken.items():
            self._kept_since.pop(key, None)
            open_violation = self._open.get(key)
            if open_violation is not None and open_violation.since < from_at:
                # The same workload returned to the same unit: a new life, a new violation.
                self._stop(key, UnixMs(from_at), changes)
                open_violation = None
            if open_violation is None:
                self._start(key, gpus, judgement.at, changes)
        return changes

    def replace(self, open_violations: Iterable[Violation]) -> None:
        """Replace the open violations with those of the store, because another process has kept them."""
        self._open = {_key_of(violation): violation for violation in open_violations}
        self._kept_since = {key: at for key, at in self._kept_since.items() if key in self._open}

    def amend(self, violations: Iterable[Violation]) -> None:
        """Update open violations, such as with their values."""
        self._open.update((_key_of(violation), violation) for violation in violations)

    def drop_rule(self, rule: str, at: UnixMs) -> ViolationChanges:
        """End all violations of a rule that was removed or disabled."""
        changes = ViolationChanges()
        for key in [key for key in self._open if key[0] == rule]:
            self._stop(key, at, changes)
        return changes

    def _start(self, key: Key, gpus: int, at: UnixMs, changes: ViolationChanges) -> None:
        rule, workload, unit = key
        violation = Violation(rule=rule, workload=workload, unit=unit, since=at, gpus=gpus)
        self._open[key] = violation
        changes.started.append(violation)

    def _stop(self, key: Key, at: UnixMs, changes: ViolationChanges) -> None:
        violation = self._open.pop(key)
        self._kept_since.pop(key, None)
        changes.stopped.append(replace(violation, until=max(at, violation.since)))


def _key_of(violation: Violation) -> Key:
    return (violation.rule, violation.workload, violation.unit)


def _find_broken(judgement: Judgement) -> dict[Key, tuple[int, int]]:
    """Broken rules by key, with the number of GPUs and the start of the life."""
    lives = judgement.lives
    broken: dict[Key, tuple[int, int]] = {}
    for rule, verdicts in zip(judgement.rules, judgement.verdicts, strict=True):
        rows = np.flatnonzero((verdicts == TRUE) & lives.is_open).tolist()
        if rule.scope.quantifier is Quantifier.EACH and rule.scope.subject in (Subject.WORKLOADS, Subject.GPUS):
            for row in rows:
                broken[rule.key, lives.workloads[row], lives.units[row]] = (1, int(lives.from_at[row]))
            continue
        for row in rows:
            key = (rule.key, lives.workloads[row], None)
            gpus, from_at = broken.get(key, (0, int(lives.from_at[row])))
            more = 1 if lives.gpus is None else int(lives.gpus[row])
            broken[key] = (gpus + more, min(from_at, int(lives.from_at[row])))
    return broken


def _find_ends(violations: Sequence[Violation], judgement: Judgement) -> Iterator[tuple[Violation, UnixMs, bool]]:
    """The ``violations`` that ended, with the time, and whether the end is final. None of ``violations`` is broken any more.

    Violations that cannot be judged stay open.
    """
    if not violations:
        return
    places = {rule.key: place for place, rule in enumerate(judgement.rules)}
    lives = judgement.lives
    rows_of: dict[WorkloadId, list[int]] = {}
    for row, workload in enumerate(lives.workloads):
        rows_of.setdefault(workload, []).append(row)
    for violation in violations:
        workload_rows = rows_of.get(violation.workload, [])
        rows = [row for row in workload_rows if violation.unit is None or lives.units[row] == violation.unit]
        place = places.get(violation.rule)
        if place is None or not rows:
            yield violation, judgement.at, True
            continue
        # A life that started after the violation is another life of the same workload.
        violating = [row for row in rows if lives.from_at[row] <= violation.since]
        alive = [row for row in violating if lives.is_open[row]]
        if not violating:
            yield violation, UnixMs(int(lives.from_at[rows].min())), True
        elif not alive:
            yield violation, UnixMs(int(lives.until_at[violating].max())), True
        elif not np.any(judgement.verdicts[place, alive] == UNKNOWN):
            yield violation, judgement.at, False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdicts of every rule on every life at one time; rows are those of ``columns``."""

    at: UnixMs
    book_version: int
    columns: LifeColumns
    verdicts: Verdicts
    workloads: Sequence[WorkloadId]  # per row
    units: Sequence[UnitId]  # per row
    gpus: NDArray[np.int64] | None = None  # per row; None: one each

    @property
    def judgement(self) -> Judgement:
        """The judgement for ``ViolationKeeper``."""
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
    """The properties of each life's workload that scopes filter by; None: unknown."""
    records = [workloads.get(name) for name in columns.workloads]
    machine_types = {unit.id: unit.machine_type for unit in units}
    names, codes = columns.units, columns.workload
    types: list[str | None] = [None] * len(records)
    for code, unit in zip(codes.tolist(), columns.unit.tolist(), strict=True):
        types[code] = types[code] or machine_types.get(names[unit])
    held = np.bincount(codes[columns.is_open], minlength=len(records))
    requested = np.array([0 if record is None else record.gpus_requested for record in records], np.int64)
    return LifeFacts(
        units=[names[unit] for unit in columns.unit.tolist()],
        workload=codes,
        age_ms=columns.until_at - columns.from_at,
        workloads=columns.workloads,
        users=[record.user if record else None for record in records],
        projects=[record.project if record else None for record in records],
        partitions=[record.partition if record else None for record in records],
        machine_types=types,
        names=[record.name if record else None for record in records],
        gpus=np.maximum(held, requested),
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
    """Judge every life by every rule. A life whose past is still being read is not judged yet."""
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


def add_values(changes: ViolationChanges, judged: Judged) -> ViolationChanges:
    """Add to started violations the statistics that broke their rules."""
    places = {rule.key: place for place, rule in enumerate(judged.verdicts.rules)}
    rows: dict[tuple[int, WorkloadId, UnitId | None], int] = {}
    for place in {places[violation.rule] for violation in changes.started}:
        for row in np.flatnonzero(judged.verdicts.is_broken[place] & judged.columns.is_open).tolist():
            rows[place, judged.workloads[row], judged.units[row]] = row
            rows.setdefault((place, judged.workloads[row], None), row)
    started = []
    for violation in changes.started:
        place = places[violation.rule]
        row = rows[place, violation.workload, violation.unit]
        started.append(replace(violation, values=judged.verdicts.values(place, row)))
    return ViolationChanges(started=started, stopped=changes.stopped)


def group_turns(
    violations: Iterable[Violation], rules: Mapping[str, Rule], workloads: Mapping[WorkloadId, Workload], turn: Turn
) -> list[ViolationTurn]:
    """Group violations of one rule by one workload that started or stopped at the same time."""
    groups: dict[tuple[str, WorkloadId, UnixMs, UnixMs], list[Violation]] = {}
    for violation in violations:
        at = violation.since if turn is Turn.STARTED else violation.until
        if violation.rule in rules and at is not None:
            groups.setdefault((violation.rule, violation.workload, violation.since, at), []).append(violation)
    return [
        ViolationTurn(
            turn=turn,
            at=at,
            rule=rules[rule],
            workload=workload,
            user=record.user if (record := workloads.get(workload)) else find_owner(workload)[0],
            project=record.project if record else find_owner(workload)[1],
            partition=record.partition if record else None,
            units=sorted(violation.unit for violation in group if violation.unit is not None),
            since=since,
            values=group[0].values,
            name=record.name if record else None,
            array=record.tags.get("array_job") if record else None,
        )
        for (rule, workload, since, at), group in groups.items()
    ]


LIFELESS = tuple(subject for subject in Subject if subject.is_lifeless)


class HardwareJudge:
    """Judges GPUs, nodes, sources, users and projects, each subject separately."""

    def __init__(self, records: RecordStore, metrics: MetricStore, book: RuleBook) -> None:
        self.judged: Mapping[Subject, Judged] = {}
        self._records = records
        self._metrics = metrics
        self._book = book
        self._sums = JobSums(records)
        self._keepers = {subject: ViolationKeeper() for subject in LIFELESS}

    @property
    def open(self) -> list[Violation]:
        """Open violations of all hardware, including those that have not settled yet."""
        return [violation for keeper in self._keepers.values() for violation in keeper.open.values()]

    def keeper(self, subject: Subject) -> ViolationKeeper:
        """The keeper of one subject's violations."""
        return self._keepers[subject]

    def replace(self, open_violations: Iterable[Violation]) -> None:
        """Load the open violations of the store. Violations of removed rules end with the next judgement of any keeper."""
        subjects = {rule.key: rule.scope.subject for rule in self._book.rules()}
        hardware = [violation for violation in open_violations if is_no_workload(violation.workload)]
        for subject, keeper in self._keepers.items():
            keeper.replace(violation for violation in hardware if subjects.get(violation.rule, LIFELESS[0]) is subject)

    def judge(self, at: UnixMs) -> None:
        """Judge all hardware; call ``apply`` afterwards."""
        self.judged = {subject: self._judge(subject, at) for subject in LIFELESS}

    def apply(self) -> ViolationChanges:
        """Apply the last judgement to the open violations; returns the changes."""
        changes = ViolationChanges()
        for subject, judged in self.judged.items():
            subject_changes = add_values(self._keepers[subject].judge(judged.judgement), judged)
            self._keepers[subject].amend(subject_changes.started)
            changes.started.extend(subject_changes.started)
            changes.stopped.extend(subject_changes.stopped)
        return changes

    def drop_rule(self, rule: str, at: UnixMs) -> ViolationChanges:
        """End all violations of a removed rule."""
        changes = ViolationChanges()
        for keeper in self._keepers.values():
            changes.stopped.extend(keeper.drop_rule(rule, at).stopped)
        return changes

    def _judge(self, subject: Subject, at: UnixMs) -> Judged:
        rules = self._book.enabled(subject)
        if subject in (Subject.USERS, Subject.PROJECTS):
            size = find_largest(self._records.nodes())
            period_columns = PeriodColumns(subject, self._sums, rules, at, size)
            version = self._book.version
            return judge(
                rules, period_columns, period_columns.facts(), at=at, book_version=version, gpus=period_columns.gpus
            )
        return judge_hardware(rules, subject, self._records, self._metrics, at, book_version=self._book.version)


def judge_hardware(
    rules: Sequence[Rule],
    subject: Subject,
    records: RecordStore,
    metrics: MetricStore,
    at: UnixMs,
    *,
    book_version: int = 0,
) -> Judged:
    """Judge every GPU, node or source that exists now by every rule."""
    from clusterscape.watch.hardware_statistics import list_rows, read_now  # imports numba

    rows = list_rows(subject, records) if rules else []
    columns = read_now(metrics, rules, rows, records.units() if subject is Subject.GPUS else (), at)
    return judge(rules, columns, columns.facts(subject), at=at, book_version=book_version, gpus=columns.gpus)
