"""The lives to evaluate: the properties that scopes filter by, one row per life, in the order of the statistics; and vectorized
three-valued logic.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.stats.contract import EQUAL_WITHIN
from clusterscape.model.arrays import Bools, Float64s, Int64s, Uint8s
from clusterscape.model.ids import UnitId, WorkloadId
from clusterscape.model.rules import Operator, RuleScope, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeFacts:
    """One row per life (a workload on a unit); ``workload`` is an index into ``workloads`` and the other
    per-workload columns.

    ``gpus``: number of GPUs that the workload holds, which may exceed its rows. An unknown name is None and matches no filter;
    the partitions of a node in several partitions are separated by newlines.
    """

    units: Sequence[UnitId]
    workload: NDArray[np.integer]
    age_ms: Int64s
    workloads: Sequence[WorkloadId]
    users: Sequence[str | None]
    projects: Sequence[str | None]
    partitions: Sequence[str | None]
    machine_types: Sequence[str | None]
    names: Sequence[str | None]
    gpus: NDArray[np.integer]
    subject: Subject = Subject.WORKLOADS

    @property
    def row_count(self) -> int:
        """Number of lives."""
        return len(self.age_ms)


class ScopeFilter:
    """Finds the workloads of a scope. Each filter is tested once per distinct name, since names repeat."""

    def __init__(self, facts: LifeFacts) -> None:
        self._facts = facts
        self._codes: dict[str, tuple[list[str | None], NDArray[np.intp]]] = {}
        self._passed: dict[tuple[str, tuple[str, ...]], Bools] = {}

    def rows(self, scope: RuleScope) -> Bools | None:
        """Whether each row is in scope, regardless of its age; None if all are."""
        passed: Bools | None = None
        if scope.min_gpus > 1:
            passed = np.asarray(self._facts.gpus) >= scope.min_gpus
        for field in ("users", "projects", "partitions", "machine_types", "names"):
            patterns: tuple[str, ...] = getattr(scope, field)
            if patterns:
                named = self._match(field, patterns)
                passed = named if passed is None else passed & named
        return None if passed is None else passed[self._facts.workload]

    def _match(self, field: str, patterns: tuple[str, ...]) -> Bools:
        key = (field, patterns)
        if key not in self._passed:
            distinct, codes = self._encode(field)
            fitting = re.compile("|".join(map(translate, patterns)))
            fits = [name is not None and any(map(fitting.match, name.split("\n"))) for name in distinct]
            self._passed[key] = np.array(fits, dtype=np.bool_)[codes]
        return self._passed[key]

    def _encode(self, field: str) -> tuple[list[str | None], NDArray[np.intp]]:
        if field not in self._codes:
            names: Sequence[str | None] = getattr(self._facts, field)
            distinct = list(dict.fromkeys(names))
            places = {name: place for place, name in enumerate(distinct)}
            codes = np.fromiter((places[name] for name in names), dtype=np.intp, count=len(names))
            self._codes[field] = distinct, codes
        return self._codes[field]


Truths = Uint8s
# In this order the minimum of two is their `and`, the maximum their `or`.
FALSE = np.uint8(0)
UNKNOWN = np.uint8(1)
TRUE = np.uint8(2)
OUT_OF_SCOPE = np.uint8(3)


def compare(values: Float64s, operator: Operator, bound: Float64s) -> Bools:
    """Compare values with a bound; NaN is false. Values within a rounding error of the bound are equal to it."""
    slack = np.abs(bound) * EQUAL_WITHIN
    match operator:
        case Operator.LESS:
            return np.asarray(values < bound - slack)
        case Operator.AT_MOST:
            return np.asarray(values <= bound + slack)
        case Operator.MORE:
            return np.asarray(values > bound + slack)
        case Operator.AT_LEAST:
            return np.asarray(values >= bound - slack)
        case Operator.EQUAL:
            return np.asarray(np.abs(values - bound) <= slack)
        case Operator.UNEQUAL:
            return np.asarray(np.abs(values - bound) > slack)
