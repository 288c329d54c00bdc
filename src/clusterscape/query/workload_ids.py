"""Finds a workload by any of the ids that people write: ours, or the scheduler's own without our prefix.

Slurm writes ``3``, ``3_7`` (array task), ``3+1`` (component of a heterogeneous job), ``3.0`` or ``3.batch`` (a step of a
job), ``3;cluster`` (``sbatch --parsable``), and the raw number of an array task or component.
"""

import re
from collections.abc import Iterable

from clusterscape.errors import NotFoundError
from clusterscape.model import Workload, WorkloadId
from clusterscape.store.records.contract import RecordStore, WorkloadFilter

MOST_MEMBERS = 1000
NAMED_MEMBERS = 5
# A "+" in an address's query arrives as a space.
_SLURM = re.compile(
    r"(?:slurm:)?(?P<job>\d{1,12})(?:(?P<mark>[_+ ])(?P<part>\d{1,9}))?(?:_\[.*\])?(?:\.[a-z0-9+]{1,20})?(?:;\S{1,64})?",
    re.IGNORECASE,
)


def resolve_workload(records: RecordStore, text: str) -> Workload:
    """The workload that ``text`` names; raises NotFoundError where none or several do."""
    found = records.workload(WorkloadId(text)) or find_workload(records, text.strip())
    if found is not None:
        return found
    slurm = _SLURM.fullmatch(text.strip())
    members = [] if slurm is None else _members(records, slurm["job"])
    if members:
        raise NotFoundError(f"{slurm_name(text)} stands for {len(members)} workloads", hint=_name_some(members))
    raise NotFoundError(
        f"there is no workload {text[:80]!r}",
        hint="Name it as the scheduler does (4711, 4711_3, 4711+1) or as `clusterscape list` does (slurm:4711).",
    )


def find_workload(records: RecordStore, text: str) -> Workload | None:
    """The one workload that ``text`` names in the scheduler's own words, or None."""
    slurm = _SLURM.fullmatch(text)
    if slurm is None:
        return _only(each for each in _search(records, text) if each.id.partition(":")[2] == text)
    job, mark, part = slurm["job"], slurm["mark"], slurm["part"]
    if part is not None:
        return records.workload(WorkloadId(f"slurm:{job}{'_' if mark == '_' else '+'}{part}"))
    exact = records.workload(WorkloadId(f"slurm:{job}"))
    if exact is not None:
        return exact
    members = _members(records, job)
    return _only(members) if members else _find_by_number(records, job)


def find_id(records: RecordStore, text: str) -> str:
    """The id of the workload that ``text`` names; ``text`` itself where none is known."""
    found = None if records.workload(WorkloadId(text)) else find_workload(records, text.strip())
    return text if found is None else found.id


def qualify(text: str) -> str:
    """Our id for what Slurm writes, as far as that can be said without looking: ``slurm:3_7`` for ``3_7.0``."""
    slurm = _SLURM.fullmatch(text.strip())
    if slurm is None:
        return text
    part = "" if slurm["part"] is None else f"{'_' if slurm['mark'] == '_' else '+'}{slurm['part']}"
    return f"slurm:{slurm['job']}{part}"


def slurm_name(text: str) -> str:
    """What Slurm calls it, without our prefix."""
    return text.strip().removeprefix("slurm:")


def _members(records: RecordStore, job: str) -> list[Workload]:
    """Tasks of an array, or components of a heterogeneous job, by their numbers."""
    members = [
        each
        for mark in "_+"
        for each in _search(records, f"slurm:{job}{mark}")
        if each.id.startswith(f"slurm:{job}{mark}")
    ]
    return sorted(members, key=lambda each: (len(each.id), each.id))


def _find_by_number(records: RecordStore, job: str) -> Workload | None:
    """The array task or component that has this number as a job."""
    return _only(each for each in _search(records, f"job_id={job};") if each.tags.get("job_id") == job)


def _search(records: RecordStore, text: str) -> Iterable[Workload]:
    return records.workloads(WorkloadFilter(text=text), limit=MOST_MEMBERS).workloads if text else ()


def _only(workloads: Iterable[Workload]) -> Workload | None:
    found = list(workloads)
    return found[0] if len(found) == 1 else None


def _name_some(members: list[Workload]) -> str:
    names = [slurm_name(each.id) for each in members]
    more = f" … {names[-1]}" if len(names) > NAMED_MEMBERS else ""
    return f"Name one of them: {', '.join(names[:NAMED_MEMBERS])}{more}."
