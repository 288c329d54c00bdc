"""Find a workload, a user, a project or a node by a few letters."""

from collections import Counter
from collections.abc import Callable

import polars as pl

from clusterscape.model import Workload
from clusterscape.query.answers import HitKind, NodeAnswer, SearchHit, SearchHits
from clusterscape.query.context import QueryContext
from clusterscape.query.workload_ids import find_workload
from clusterscape.store.records.contract import WorkloadFilter


class SearchQuery:
    """What the search box asks."""

    def __init__(
        self,
        context: QueryContext,
        picture: Callable[[], tuple[int, pl.DataFrame]],
        nodes: Callable[[], list[NodeAnswer]],
    ) -> None:
        """``picture``: all units with the names that the viewer reads, and its version."""
        self._context = context
        self._picture = picture
        self._all_nodes = nodes

    def search(self, text: str, *, limit: int = 20) -> SearchHits:
        """Exact matches first, then those that begin with the text, then those that hold it; nodes and people first."""
        needle = text.strip().lower()
        if not needle:
            return SearchHits(query=text, hits=[])
        hits = self._people(needle) + self._nodes(needle) + self._workloads(text.strip(), limit)
        hits.sort(key=lambda hit: _rank(needle, hit))
        named = find_workload(self._context.records, text.strip())
        if named is not None:  # an id as the scheduler writes it, such as that of a step
            hits = [_describe(named), *(hit for hit in hits if hit.key != named.id)]
        return SearchHits(query=text, hits=hits[:limit])

    def _people(self, needle: str) -> list[SearchHit]:
        _, picture = self._picture()
        hits = []
        for column, kind in (("user", HitKind.USER), ("project", HitKind.PROJECT)):
            held = Counter(picture.filter(picture["unit_state"] == "allocated")[column].drop_nulls())
            asked = Counter(picture.filter(picture["unit_state"] == "requested")[column].drop_nulls())
            for name in sorted(held.keys() | asked.keys()):
                if needle in name.lower():
                    detail = f"{_gpus(held[name])} held" + (f" · {asked[name]} asked for" if asked[name] else "")
                    hits.append(SearchHit(kind=kind, key=name, label=name, detail=detail))
        return hits

    def _nodes(self, needle: str) -> list[SearchHit]:
        return [
            SearchHit(
                kind=HitKind.NODE,
                key=node.node,
                label=node.node,
                detail=f"{node.gpus_allocated} of {_gpus(node.gpu_count)} held · {node.state.value}",
            )
            for node in self._all_nodes()
            if needle in node.node.lower()
        ]

    def _workloads(self, text: str, limit: int) -> list[SearchHit]:
        page = self._context.records.workloads(WorkloadFilter(text=text), limit=limit)
        return [_describe(workload) for workload in page.workloads]


def _describe(workload: Workload) -> SearchHit:
    facts = (workload.id, workload.state.value, workload.user, _gpus(workload.gpus_requested))
    return SearchHit(
        kind=HitKind.WORKLOAD,
        key=workload.id,
        label=workload.name or workload.id,
        detail=" · ".join(filter(None, facts)),
    )


def _gpus(number: int) -> str:
    return "1 GPU" if number == 1 else f"{number} GPUs"


def _rank(needle: str, hit: SearchHit) -> tuple[int, int]:
    names = (hit.key.lower(), hit.key.lower().partition(":")[2], hit.label.lower())
    if needle in names:
        return (0, 0)
    starts = any(name.startswith(needle) for name in names)
    return (1 if starts else 2, {HitKind.USER: 0, HitKind.PROJECT: 1, HitKind.NODE: 2}.get(hit.kind, 3))
