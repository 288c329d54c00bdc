"""What priorities are made of, as the scheduler last told: read from where ingest keeps it, compared and put in words."""

from collections.abc import Mapping

from clusterscape.model.observations import PRIORITY_PARTS
from clusterscape.query.scheduling.queue_answers import PriorityPart
from clusterscape.store.records.contract import RecordStore

TITLES: Mapping[str, str] = {
    "age": "age",
    "fair_share": "fair share",
    "size": "size",
    "partition": "partition",
    "qos": "quality of service",
    "association": "association",
    "site": "site",
    "tres": "resources asked for",
    "nice": "nice",
}
MOST_NAMED = 3

Parts = Mapping[str, int]


def read_parts(records: RecordStore) -> dict[str, Parts]:
    """Points by part, by workload without its array task: ``slurm:4711``."""
    found: dict[str, Parts] = {}
    for document in records.documents(PRIORITY_PARTS):
        parts = document.body.get("parts")
        if isinstance(parts, dict):
            found.update((f"{document.key}:{job}", points) for job, points in parts.items())
    return found


def find_parts(known: Mapping[str, Parts], workload: str) -> Parts:
    """Of one workload; tasks of an array share those of the array. Empty where nothing is told."""
    return known.get(workload) or known.get(workload.partition("_")[0]) or {}


def list_parts(parts: Parts) -> list[PriorityPart]:
    """The most points first."""
    ordered = sorted(parts.items(), key=lambda part: (-abs(part[1]), part[0]))
    return [PriorityPart(name=name, title=TITLES.get(name, name), points=points) for name, points in ordered]


def compare_parts(theirs: Parts, ours: Parts) -> str:
    """Where another priority is higher or lower, the largest difference first: ``+1,500 fair share, −100 age``; else empty."""
    if not theirs or not ours:
        return ""
    apart = {name: theirs.get(name, 0) - ours.get(name, 0) for name in {*theirs, *ours}}
    ordered = sorted(((-abs(points), name) for name, points in apart.items() if points))
    named = [f"{apart[name]:+,} {TITLES.get(name, name)}".replace("-", "−", 1) for _, name in ordered[:MOST_NAMED]]
    return ", ".join(named)
