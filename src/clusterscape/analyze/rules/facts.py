"""Whose lives are judged: what scopes ask about a workload, one row per life, in the order of the statistics."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate

import numpy as np
from numpy.typing import NDArray

from clusterscape.model.ids import UnitId, WorkloadId
from clusterscape.model.rules import Scope, Subject
from clusterscape.model.samples import Int64s

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeFacts:
    """One row per life (a workload on a unit); ``workload`` counts through ``workloads`` and all that stands beside them.

    ``gpus`` is how many GPUs the workload holds, maybe more than it has rows. A name not known is None and passes no filter;
    a node in several partitions has them in lines.
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
        """How many lives."""
        return len(self.age_ms)


class ScopeFilter:
    """Finds the workloads of a scope. Names repeat, so each filter is tried once for each distinct name."""

    def __init__(self, facts: LifeFacts) -> None:
        self._facts = facts
        self._codes: dict[str, tuple[list[str | None], NDArray[np.intp]]] = {}
        self._passed: dict[tuple[str, tuple[str, ...]], Bools] = {}

    def rows(self, scope: Scope) -> Bools | None:
        """Whether each row is in scope, whatever its age; None where all are."""
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
