"""The factors of priorities, as the scheduler last reported them: reads, compares and formats them."""

from collections.abc import Mapping

from clusterscape.model.observations import PRIORITY_PARTS
from clusterscape.query.scheduling.queue_answers import PriorityPart
from clusterscape.store.records.contract import RecordReader

TITLES: Mapping[str, str] = {
    "age": "age",
    "fair_share": "fair share",
    "size": "size",
    "partition": "partition",
    "qos": "QOS",
    "association": "association",
    "site": "site",
    "tres": "requested resources",
    "nice": "nice",
}
MAX_NAMED = 3

Parts = Mapping[str, int]


def read_parts(records: RecordReader) -> dict[str, Parts]:
    """Points by factor, by workload without its array task: ``slurm:4711``."""
    parts_by_workload: dict[str, Parts] = {}
    for document in records.documents(PRIORITY_PARTS):
        parts = document.body.get("parts")
        if isinstance(parts, dict):
            parts_by_workload.update((f"{document.key}:{job}", points) for job, points in parts.items())
    return parts_by_workload


def find_parts(parts_by_workload: Mapping[str, Parts], workload: str) -> Parts:
    """The factors of one workload; array tasks share those of the array. Empty if they are not reported."""
    return parts_by_workload.get(workload) or parts_by_workload.get(workload.partition("_")[0]) or {}


def list_parts(parts: Parts) -> list[PriorityPart]:
    """Factors with the most points first."""
    ordered = sorted(parts.items(), key=lambda part: (-abs(part[1]), part[0]))
    return [PriorityPart(name=name, title=TITLES.get(name, name), points=points) for name, points in ordered]


def compare_parts(other: Parts, job: Parts) -> str:
    """The differences of two priorities, largest first: ``+1,500 fair share, −100 age``; empty if one is unknown."""
    if not other or not job:
        return ""
    differences = {name: other.get(name, 0) - job.get(name, 0) for name in {*other, *job}}
    ordered = sorted(((-abs(points), name) for name, points in differences.items() if points))
    texts = [f"{differences[name]:+,} {TITLES.get(name, name)}".replace("-", "−", 1) for _, name in ordered[:MAX_NAMED]]
    return ", ".join(texts)
