"""Damaged responses: reading never raises, counts lost entries, and keeps intact ones unchanged."""

from collections.abc import Callable, Mapping, Sequence

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from unit.collect.slurm.documents import HISTORY, NEW_JOBS, NODES, OLD_JOBS, PARTITIONS, Document, copy_of

from clusterscape.collect.slurm.parse_history import parse_history
from clusterscape.collect.slurm.parse_jobs import parse_jobs
from clusterscape.collect.slurm.parse_nodes import parse_nodes, parse_partitions
from clusterscape.collect.slurm.values import as_list
from clusterscape.model import Allocation, UnixMs, Workload

NOW = UnixMs(1_700_000_120_000)
INVENTORY = parse_nodes(NODES)

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(
        ["gpu:a100:8(IDX:0-7)", "gpu[01-99999999]", "0-9999999", "0xff", "RUNNING", "gres/gpu=999999999999"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
MANY = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def damage(draw: st.DataObject, value: object, depth: int = 0) -> object:
    """A copy with a random key missing, a value replaced by junk, or a list entry added or removed."""
    if depth > 4 or not isinstance(value, dict | list) or not value or draw.draw(st.integers(0, 5)) == 0:
        return draw.draw(JUNK)
    if isinstance(value, list):
        spot = draw.draw(st.integers(0, len(value) - 1))
        inserted = draw.draw(st.sampled_from(["replace", "drop", "add"]))
        if inserted == "drop":
            return value[:spot] + value[spot + 1 :]
        middle = [damage(draw, value[spot], depth + 1)] + (value[spot : spot + 1] if inserted == "add" else [])
        return [*value[:spot], *middle, *value[spot + 1 :]]
    key = draw.draw(st.sampled_from(sorted(value)))
    if draw.draw(st.booleans()):
        return {name: inner for name, inner in value.items() if name != key}
    return {name: damage(draw, inner, depth + 1) if name == key else inner for name, inner in value.items()}


def damage_one(draw: st.DataObject, document: Document, key: str) -> tuple[Document, int]:
    """The document with one damaged list entry, and the index of that entry."""
    damaged = copy_of(document)
    entries = as_list(damaged[key])
    spot = draw.draw(st.integers(0, len(entries) - 1))
    entries[spot] = damage(draw, entries[spot])
    return damaged, spot


@given(data=st.data())
@MANY
def test_jobs_are_read_when_the_whole_response_is_damaged(data: st.DataObject) -> None:
    for document in (OLD_JOBS, NEW_JOBS):
        damaged = damage(data, copy_of(document))
        parse_jobs(damaged if isinstance(damaged, dict) else {"jobs": damaged}, INVENTORY, NOW)


@given(data=st.data())
@MANY
def test_other_nodes_and_partitions_survive_when_one_is_damaged(data: st.DataObject) -> None:
    damaged, spot = damage_one(data, NODES, "nodes")
    inventory = parse_nodes(damaged)
    kept = [node for index, node in enumerate(INVENTORY.nodes) if index != spot]
    touched = {node.id for node in inventory.nodes} - {node.id for node in kept}
    # Junk may have the name of another node; then it replaces that node.
    assert all(node in inventory.nodes or node.id in _renamed(damaged, spot) for node in kept)
    assert len(touched) <= 1
    broken, spot = damage_one(data, PARTITIONS, "partitions")
    partitions, _ = parse_partitions(broken, inventory)
    assert ("a100", "v100")[1 - spot] in {partition.name for partition in partitions}


def _renamed(document: Document, spot: int) -> set[object]:
    entry = as_list(document["nodes"])[spot]
    return {entry.get("name")} if isinstance(entry, dict) and isinstance(entry.get("name"), str) else set()


Parse = Callable[[Mapping[str, object]], tuple[Sequence[Workload], Sequence[Allocation], Mapping[str, int]]]


def _queue(document: Mapping[str, object]) -> tuple[Sequence[Workload], Sequence[Allocation], Mapping[str, int]]:
    parsed = parse_jobs(document, INVENTORY, NOW)
    assert parsed.is_complete or parsed.dropped
    return parsed.workloads, parsed.allocations, parsed.dropped


def _history(document: Mapping[str, object]) -> tuple[Sequence[Workload], Sequence[Allocation], Mapping[str, int]]:
    parsed = parse_history(document, INVENTORY, NOW)
    return parsed.workloads, parsed.allocations, parsed.dropped


def _assert_others_survive(parse: Parse, document: Document, data: st.DataObject) -> None:
    damaged, spot = damage_one(data, document, "jobs")
    others = copy_of(document)
    del as_list(others["jobs"])[spot]
    expected_workloads, expected_allocations, _ = parse(others)
    alone, _, _ = parse({"jobs": [as_list(damaged["jobs"])[spot]]})
    # Junk may have the id of another job; then either may be kept.
    assume({workload.id for workload in alone}.isdisjoint(workload.id for workload in expected_workloads))
    workloads, allocations, _ = parse(damaged)
    assert [workload for workload in workloads if workload not in alone] == list(expected_workloads)
    assert set(expected_allocations) <= set(allocations)


@given(data=st.data())
@MANY
def test_other_jobs_survive_when_one_is_damaged(data: st.DataObject) -> None:
    _assert_others_survive(_queue, OLD_JOBS, data)
    _assert_others_survive(_queue, NEW_JOBS, data)


@given(data=st.data())
@MANY
def test_other_history_survives_when_one_is_damaged(data: st.DataObject) -> None:
    _assert_others_survive(_history, HISTORY, data)
