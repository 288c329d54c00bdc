"""Turns verdicts into violations with a beginning and an end. Pure: told what is judged when, returns what to write.

A violation begins when its rule is first judged broken and ends when it is judged kept, when the life it hangs on ends, or when
the rule goes. While a rule cannot be judged (a metric is missing), what was broken stays broken.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from clusterscape.model import UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import Quantifier, Rule, Violation

REOPEN_MS = 600_000
"""A rule broken again this soon after it was kept was never really kept: the violation goes on as one."""

Key = tuple[str, WorkloadId, UnitId | None]


class Verdict(IntEnum):
    """What a rule says of a life."""

    KEPT = 0
    BROKEN = 1
    UNKNOWN = 2  # too young, too few samples, a metric is missing, or not the rule's business


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedLives:
    """The lives of one judgement, one row each. One that is not open ended at ``until_at``."""

    workloads: Sequence[WorkloadId]
    units: Sequence[UnitId]
    from_at: NDArray[np.int64]
    until_at: NDArray[np.int64]
    is_open: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """``verdicts``: rules × lives, of Verdict."""

    at: UnixMs
    rules: Sequence[Rule]
    lives: JudgedLives
    verdicts: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """What a judgement changed; ``stopped`` have their end."""

    started: list[Violation] = field(default_factory=list)
    stopped: list[Violation] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.started or self.stopped)


class ViolationKeeper:
    """The violations that are open, and those that ended lately."""

    def __init__(self, open_violations: Iterable[Violation] = ()) -> None:
        self._open: dict[Key, Violation] = {_key_of(violation): violation for violation in open_violations}
        self._ended: dict[Key, Violation] = {}

    @property
    def open(self) -> Mapping[Key, Violation]:
        """What breaks a rule now, by rule, workload and unit."""
        return self._open

    def judge(self, judgement: Judgement) -> Turned:
        """Take in one judgement; the caller writes what turned and adds the values."""
        turned = Turned()
        broken = _find_broken(judgement)
        self._forget_ended(judgement.at)
        unbroken = [violation for key, violation in self._open.items() if key not in broken]
        for violation, end in _find_ends(unbroken, judgement):
            self._stop(_key_of(violation), end, turned)
        for key, (gpus, from_at) in broken.items():
            found = self._open.get(key)
            if found is not None and found.since < from_at:
                # The same workload came back to the same unit: another life, another violation.
                self._stop(key, UnixMs(from_at), turned)
                found = None
            if found is None:
                self._start(key, gpus, from_at, judgement.at, turned)
        return turned

    def drop_rule(self, rule: str, at: UnixMs) -> Turned:
        """End all that hangs on a rule that is gone or switched off."""
        turned = Turned()
        for key in [key for key in self._open if key[0] == rule]:
            self._stop(key, at, turned)
        self._ended = {key: ended for key, ended in self._ended.items() if key[0] != rule}
        return turned

    def _start(self, key: Key, gpus: int, from_at: int, at: UnixMs, turned: Turned) -> None:
        ended = self._ended.pop(key, None)
        if ended is not None and ended.since >= from_at:
            violation = replace(ended, until=None, gpus=gpus)
        else:
            rule, workload, unit = key
            violation = Violation(rule=rule, workload=workload, unit=unit, since=at, gpus=gpus)
        self._open[key] = violation
        turned.started.append(violation)

    def _stop(self, key: Key, at: UnixMs, turned: Turned) -> None:
        violation = self._open.pop(key)
        ended = replace(violation, until=max(at, violation.since))
        self._ended[key] = ended
        turned.stopped.append(ended)

    def _forget_ended(self, at: UnixMs) -> None:
        self._ended = {key: end for key, end in self._ended.items() if end.until and at - end.until <= REOPEN_MS}


def _key_of(violation: Violation) -> Key:
    return (violation.rule, violation.workload, violation.unit)


def _find_broken(judgement: Judgement) -> dict[Key, tuple[int, int]]:
    """Broken rules by key, with how many GPUs and since when their life goes."""
    lives = judgement.lives
    broken: dict[Key, tuple[int, int]] = {}
    for rule, verdicts in zip(judgement.rules, judgement.verdicts, strict=True):
        rows = np.flatnonzero((verdicts == Verdict.BROKEN) & lives.is_open).tolist()
        if rule.scope.quantifier is Quantifier.EACH:
            for row in rows:
                broken[rule.key, lives.workloads[row], lives.units[row]] = (1, int(lives.from_at[row]))
            continue
        for row in rows:
            key = (rule.key, lives.workloads[row], None)
            gpus, from_at = broken.get(key, (0, int(lives.from_at[row])))
            broken[key] = (gpus + 1, min(from_at, int(lives.from_at[row])))
    return broken


def _find_ends(violations: Sequence[Violation], judgement: Judgement) -> Iterator[tuple[Violation, UnixMs]]:
    """Those of ``violations``, none of which is broken any more, that ended, and when; the others cannot be told and go on."""
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
            yield violation, judgement.at
            continue
        # What began later than the violation is another life of the same workload.
        own = [row for row in rows if lives.from_at[row] <= violation.since]
        alive = [row for row in own if lives.is_open[row]]
        if not own:
            yield violation, UnixMs(int(lives.from_at[rows].min()))
        elif not alive:
            yield violation, UnixMs(int(lives.until_at[own].max()))
        elif not np.any(judgement.verdicts[place, alive] == Verdict.UNKNOWN):
            yield violation, judgement.at
