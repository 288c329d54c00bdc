"""Workloads, rules and nodes as everybody may see them who is not their owner. One per site; all veiled stores share it."""

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from clusterscape.model import Node, Workload, WorkloadId
from clusterscape.model.rules import Rule, Scope
from clusterscape.query.diagnosis.holding import LAYOUT_TAGS
from clusterscape.query.visibility.pseudonyms import EXPERIMENT, PROJECT, USER, Pseudonyms
from clusterscape.query.visibility.sights import Sight

HIDDEN = "hidden"
"""In place of what has no pseudonym and cannot be left out."""

MOST_KEPT = 200_000


class Veil:
    """Replaces what tells who somebody is. What a workload asks for, holds and does stays: the picture is complete.

    An id such as ``slurm:4711`` is no identity: it is a number that the scheduler gave.
    """

    def __init__(self, names: Pseudonyms) -> None:
        self.names = names
        self._kept: dict[WorkloadId, tuple[Workload, Workload]] = {}
        self._nodes: tuple[list[Node], list[Node]] | None = None
        self._places: tuple[pl.DataFrame, pl.DataFrame] | None = None

    def workload(self, workload: Workload) -> Workload:
        """As those see it who do not know it. The same record is veiled once."""
        kept = self._kept.get(workload.id)
        if kept is not None and kept[0] is workload:
            return kept[1]
        veiled = self._veil(workload)
        if len(self._kept) >= MOST_KEPT:
            self._kept = {}
        self._kept[workload.id] = (workload, veiled)
        return veiled

    def _veil(self, workload: Workload) -> Workload:
        names = self.names
        tags = {tag: size for tag in LAYOUT_TAGS if (size := workload.tags.get(tag, "")).isdigit()}
        return replace(
            workload,
            name=None,
            user=names.of_missing(USER, workload.user),
            project=names.of_missing(PROJECT, workload.project),
            experiment=names.of_missing(EXPERIMENT, workload.experiment),
            qos=None if workload.qos is None else names.scrub(workload.qos),
            pending_reason=None if workload.pending_reason is None else names.scrub(workload.pending_reason),
            tags=tags,
        )

    def nodes(self, nodes: list[Node]) -> list[Node]:
        """Nodes whose reasons name nobody; the same list for the same list."""
        if self._nodes is None or self._nodes[0] is not nodes:
            self._nodes = (nodes, [replace(n, reason=self.names.scrub(n.reason)) if n.reason else n for n in nodes])
        return self._nodes[1]

    def places(self, places: pl.DataFrame) -> pl.DataFrame:
        """The table of ``query/picture.py: build_places`` with reasons that name nobody; the same for the same table."""
        kept = self._places
        if kept is None or kept[0] is not places:
            reasons = {str(text): self.names.scrub(str(text)) for text in places["node_reason"].drop_nulls().unique()}
            column = places["node_reason"].cast(pl.String).replace(reasons)
            known = pl.Enum(list(dict.fromkeys(reasons.values())))
            kept = self._places = (places, places.with_columns(node_reason=column.cast(known)))
        return kept[1]

    def rule(self, rule: Rule, sight: Sight) -> Rule:
        """A rule whose owner and scope name nobody else. Its name and reason are written for everybody."""
        scope = rule.scope
        return replace(
            rule,
            owner=rule.owner if rule.owner in (None, sight.user) else self.names.of(USER, rule.owner),
            scope=self._scope(scope, sight) if scope.users or scope.projects or scope.names else scope,
        )

    def _scope(self, scope: Scope, sight: Sight) -> Scope:
        def stand_in(kind: str, known: Callable[[str], bool]) -> Callable[[str], str]:
            return lambda name: name if name == "*" or known(name) else self.names.of(kind, name)

        return replace(
            scope,
            users=tuple(map(stand_in(USER, lambda name: name == sight.user), scope.users)),
            projects=tuple(map(stand_in(PROJECT, lambda name: name in sight.projects), scope.projects)),
            names=tuple(name if name == "*" else HIDDEN for name in scope.names),
        )
