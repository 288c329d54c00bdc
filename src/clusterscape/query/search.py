"""Finds workloads by id (ours, or the scheduler's own without our prefix), and workloads, users, projects and nodes by a
substring.

Slurm writes ``3``, ``3_7`` (array task), ``3+1`` (component of a heterogeneous job), ``3.0`` or ``3.batch`` (a step of a
job), ``3;cluster`` (``sbatch --parsable``), and the raw number of an array task or component.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable

import polars as pl

from clusterscape.errors import NotFoundError
from clusterscape.model import Workload, WorkloadId
from clusterscape.query.answers import HitKind, NodeAnswer, SearchHit, SearchHits
from clusterscape.query.context import QueryContext
from clusterscape.store.records.contract import RecordReader, WorkloadFilter

MAX_MEMBERS = 1000
NAMED_MEMBERS = 5
# A "+" in the query string of a URL arrives as a space.
_SLURM = re.compile(
    r"(?:slurm:)?(?P<job>\d{1,12})(?:(?P<mark>[_+ ])(?P<part>\d{1,9}))?(?:_\[.*\])?(?:\.[a-z0-9+]{1,20})?(?:;\S{1,64})?",
    re.IGNORECASE,
)


def resolve_workload(records: RecordReader, text: str) -> Workload:
    """The workload that ``text`` identifies; raises NotFoundError if none or several match."""
    workload = records.workload(WorkloadId(text)) or find_workload(records, text.strip())
    if workload is not None:
        return workload
    slurm = _SLURM.fullmatch(text.strip())
    members = [] if slurm is None else _members(records, slurm["job"])
    if members:
        raise NotFoundError(f"{slurm_name(text)} matches {len(members)} workloads", hint=_name_some(members))
    raise NotFoundError(
        f"no workload {text[:80]!r}",
        hint="Use the scheduler's id (4711, 4711_3, 4711+1) or that of `clusterscape list` (slurm:4711).",
    )


def find_workload(records: RecordReader, text: str) -> Workload | None:
    """The only workload that ``text`` identifies by its scheduler's id, or None."""
    slurm = _SLURM.fullmatch(text)
    if slurm is None:
        return _only(workload for workload in _search(records, text) if workload.id.partition(":")[2] == text)
    job, mark, part = slurm["job"], slurm["mark"], slurm["part"]
    if part is not None:
        return records.workload(WorkloadId(f"slurm:{job}{'_' if mark == '_' else '+'}{part}"))
    exact = records.workload(WorkloadId(f"slurm:{job}"))
    if exact is not None:
        return exact
    members = _members(records, job)
    return _only(members) if members else _find_by_number(records, job)


def find_id(records: RecordReader, text: str) -> str:
    """The id of the workload that ``text`` identifies; ``text`` itself if none does."""
    workload = None if records.workload(WorkloadId(text)) else find_workload(records, text.strip())
    return text if workload is None else workload.id


def qualify(text: str) -> str:
    """Our id for a Slurm id, without looking it up: ``slurm:3_7`` for ``3_7.0``."""
    slurm = _SLURM.fullmatch(text.strip())
    if slurm is None:
        return text
    part = "" if slurm["part"] is None else f"{'_' if slurm['mark'] == '_' else '+'}{slurm['part']}"
    return f"slurm:{slurm['job']}{part}"


def slurm_name(text: str) -> str:
    """The id as Slurm writes it, without our prefix."""
    return text.strip().removeprefix("slurm:")


def _members(records: RecordReader, job: str) -> list[Workload]:
    """Tasks of an array, or components of a heterogeneous job, by their numbers."""
    members = [
        member
        for mark in "_+"
        for member in _search(records, f"slurm:{job}{mark}")
        if member.id.startswith(f"slurm:{job}{mark}")
    ]
    return sorted(members, key=lambda member: (len(member.id), member.id))


def _find_by_number(records: RecordReader, job: str) -> Workload | None:
    """The array task or component that has this number as a job."""
    return _only(workload for workload in _search(records, f"job_id={job};") if workload.tags.get("job_id") == job)


def _search(records: RecordReader, text: str) -> Iterable[Workload]:
    return records.workloads(WorkloadFilter(text=text), limit=MAX_MEMBERS).workloads if text else ()


def _only(workloads: Iterable[Workload]) -> Workload | None:
    candidates = list(workloads)
    return candidates[0] if len(candidates) == 1 else None


def _name_some(members: list[Workload]) -> str:
    names = [slurm_name(member.id) for member in members]
    more = f" … {names[-1]}" if len(names) > NAMED_MEMBERS else ""
    return f"Choose one of them: {', '.join(names[:NAMED_MEMBERS])}{more}."


class SearchQuery:
    """The search box."""

    def __init__(
        self,
        context: QueryContext,
        picture: Callable[[], tuple[int, pl.DataFrame]],
        nodes: Callable[[], list[NodeAnswer]],
    ) -> None:
        """``picture``: the picture with names redacted for the viewer, and its version."""
        self._context = context
        self._picture = picture
        self._all_nodes = nodes

    def search(self, text: str, *, limit: int = 20) -> SearchHits:
        """Exact matches first, then prefixes, then substrings; users, projects and nodes before workloads."""
        needle = text.strip().lower()
        if not needle:
            return SearchHits(query=text, hits=[])
        hits = self._people(needle) + self._nodes(needle) + self._workloads(text.strip(), limit)
        hits.sort(key=lambda hit: _rank(needle, hit))
        workload = find_workload(self._context.records, text.strip())
        if workload is not None:  # a scheduler's id, such as that of a step
            hits = [_describe(workload), *(hit for hit in hits if hit.key != workload.id)]
        return SearchHits(query=text, hits=hits[:limit])

    def _people(self, needle: str) -> list[SearchHit]:
        _, picture = self._picture()
        hits = []
        for column, kind in (("user", HitKind.USER), ("project", HitKind.PROJECT)):
            held = Counter(picture.filter(picture["unit_state"] == "allocated")[column].drop_nulls())
            requested = Counter(picture.filter(picture["unit_state"] == "requested")[column].drop_nulls())
            for name in sorted(held.keys() | requested.keys()):
                if needle in name.lower():
                    waiting = f" · {requested[name]} requested" if requested[name] else ""
                    detail = f"{_gpus(held[name])} allocated{waiting}"
                    hits.append(SearchHit(kind=kind, key=name, label=name, detail=detail))
        return hits

    def _nodes(self, needle: str) -> list[SearchHit]:
        return [
            SearchHit(
                kind=HitKind.NODE,
                key=node.node,
                label=node.node,
                detail=f"{node.gpus_allocated} of {_gpus(node.gpu_count)} allocated · {node.state.value}",
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
