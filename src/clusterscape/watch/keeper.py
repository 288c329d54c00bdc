"""Turns verdicts into violations with a beginning and an end. Pure: told what is judged when, returns what to write.

A violation begins when its rule is first judged broken and ends when it is judged kept and stays so for SETTLE_MS, when the life
it hangs on ends, or when the rule goes. While a rule cannot be judged (a metric is missing), what was broken stays broken.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.rules.truths import TRUE, UNKNOWN, Truths
from clusterscape.model import UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import Quantifier, Rule, Subject, Violation

SETTLE_MS = 300_000
"""A statistic that hovers at its threshold crosses it many times: only what is kept this long has ended, at the first of it."""

Key = tuple[str, WorkloadId, UnitId | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedLives:
    """The lives of one judgement, one row each. One that is not open ended at ``until_at``; ``gpus``: None is one each."""

    workloads: Sequence[WorkloadId]
    units: Sequence[UnitId]
    from_at: NDArray[np.int64]
    until_at: NDArray[np.int64]
    is_open: NDArray[np.bool_]
    gpus: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """``verdicts``: rules × lives, as ``Verdicts.states`` has them."""

    at: UnixMs
    rules: Sequence[Rule]
    lives: JudgedLives
    verdicts: Truths


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """What a judgement changed; ``stopped`` have their end."""

    started: list[Violation] = field(default_factory=list)
    stopped: list[Violation] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.started or self.stopped)


class ViolationKeeper:
    """The violations that are open."""

    def __init__(self, open_violations: Iterable[Violation] = ()) -> None:
        self._open: dict[Key, Violation] = {_key_of(violation): violation for violation in open_violations}
        self._kept_since: dict[Key, UnixMs] = {}

    @property
    def open(self) -> Mapping[Key, Violation]:
        """What breaks a rule, or did until a moment ago, by rule, workload and unit."""
        return self._open

    def judge(self, judgement: Judgement) -> Turned:
        """Take in one judgement; the caller writes what turned and adds the values."""
        turned = Turned()
        broken = _find_broken(judgement)
        unbroken = [violation for key, violation in self._open.items() if key not in broken]
        for violation, end, is_final in _find_ends(unbroken, judgement):
            key = _key_of(violation)
            kept_since = self._kept_since.setdefault(key, end)
            if is_final:
                self._stop(key, end, turned)
            elif end - kept_since >= SETTLE_MS:
                self._stop(key, kept_since, turned)
        for key, (gpus, from_at) in broken.items():
            self._kept_since.pop(key, None)
            found = self._open.get(key)
            if found is not None and found.since < from_at:
                # The same workload came back to the same unit: another life, another violation.
                self._stop(key, UnixMs(from_at), turned)
                found = None
            if found is None:
                self._start(key, gpus, judgement.at, turned)
        return turned

    def replace(self, open_violations: Iterable[Violation]) -> None:
        """Believe the store, because another process has kept them."""
        self._open = {_key_of(violation): violation for violation in open_violations}
        self._kept_since = {key: at for key, at in self._kept_since.items() if key in self._open}

    def amend(self, violations: Iterable[Violation]) -> None:
        """Put open violations in place of themselves, with their values."""
        self._open.update((_key_of(violation), violation) for violation in violations)

    def drop_rule(self, rule: str, at: UnixMs) -> Turned:
        """End all that hangs on a rule that is gone or switched off."""
        turned = Turned()
        for key in [key for key in self._open if key[0] == rule]:
            self._stop(key, at, turned)
        return turned

    def _start(self, key: Key, gpus: int, at: UnixMs, turned: Turned) -> None:
        rule, workload, unit = key
        violation = Violation(rule=rule, workload=workload, unit=unit, since=at, gpus=gpus)
        self._open[key] = violation
        turned.started.append(violation)

    def _stop(self, key: Key, at: UnixMs, turned: Turned) -> None:
        violation = self._open.pop(key)
        self._kept_since.pop(key, None)
        turned.stopped.append(replace(violation, until=max(at, violation.since)))


def _key_of(violation: Violation) -> Key:
    return (violation.rule, violation.workload, violation.unit)


def _find_broken(judgement: Judgement) -> dict[Key, tuple[int, int]]:
    """Broken rules by key, with how many GPUs and since when their life goes."""
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
    """Those of ``violations``, none of which is broken any more, that ended, when, and whether that is final.

    The others cannot be told and go on.
    """
    if not violations:
        return
    places = {rule.key: place for place, rule in enumerate(judgement.rules)}
    lives = judgement.lives
    rows_of: dict[WorkloadId, list[int]] = {}
    for row, workload in enumerate(lives.workloads):
        rows_of.setdefault(workload, []).append(row)
    for violation in violations:
        held = rows_of.get(violation.workload, [])
        rows = [row for row in held if violation.unit is None or lives.units[row] == violation.unit]
        place = places.get(violation.rule)
        if place is None or not rows:
            yield violation, judgement.at, True
            continue
        # What began later than the violation is another life of the same workload.
        own = [row for row in rows if lives.from_at[row] <= violation.since]
        alive = [row for row in own if lives.is_open[row]]
        if not own:
            yield violation, UnixMs(int(lives.from_at[rows].min())), True
        elif not alive:
            yield violation, UnixMs(int(lives.until_at[own].max())), True
        elif not np.any(judgement.verdicts[place, alive] == UNKNOWN):
            yield violation, judgement.at, False
