"""Reading never raises and never gives impossible values, whatever objects an API server sends."""

import copy
from typing import Any

from clusters.kubernetes_objects import (
    RUNNING,
    allocated,
    cluster_queue,
    condition,
    ended,
    job,
    kueue_workload,
    local_queue,
    node,
    pod,
    pod_group,
    pytorch_job,
    resource_claim,
    resource_slice,
    volcano_queue,
)
from clusters.kubernetes_snapshots import NOW, SETTINGS, stored
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterscape.collect.kubernetes.reading import read_snapshot
from clusterscape.collect.kubernetes.resources import RESOURCES
from clusterscape.collect.kubernetes.snapshot import take_snapshot

Json = dict[str, Any]

OWNER = stored(job("train"))
HOLDER = stored(pod("p", nodeName="a", owner=OWNER) | {"status": RUNNING})
OBJECTS: list[Json] = [
    stored(node("a")),
    OWNER,
    HOLDER,
    stored(pod("q") | {"status": ended(137, "OOMKilled")}),
    stored(pytorch_job("llm")),
    stored(cluster_queue("c", 8, "h100")),
    stored(local_queue("l", "team-a", "c")),
    stored(kueue_workload(OWNER, queue="l", conditions=[condition("QuotaReserved", "False", "Pending", "x")])),
    stored(volcano_queue("v", 8)),
    stored(pod_group(OWNER, queue="v", members=2)),
    stored(resource_slice("a", 2)),
    stored(resource_claim("two") | {"status": allocated("a", ["gpu-0"], HOLDER)}),
]
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
ODD = PLAIN | st.lists(PLAIN, max_size=2) | st.dictionaries(st.text(max_size=4), PLAIN, max_size=2)


def iter_paths(document: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    paths = [path] if path else []
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        paths += iter_paths(value, (*path, key))
    return paths


@given(st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_reading_never_raises_when_any_part_of_an_object_is_replaced(data: st.DataObject) -> None:
    objects = copy.deepcopy(OBJECTS)
    for _ in range(data.draw(st.integers(1, 3))):
        entity = data.draw(st.sampled_from(objects))
        path = data.draw(st.sampled_from([path for path in iter_paths(entity) if path != ("metadata", "uid")]))
        level: Any = entity
        for key in path[:-1]:
            level = level[key]
        level[path[-1]] = data.draw(ODD)
    held: dict[str, dict[str, object]] = {}
    for resource in RESOURCES:
        for number, entity in enumerate(objects):
            fact = resource.parse(entity, SETTINGS)  # of any kind
            if fact is not None:
                held.setdefault(resource.key, {})[f"{number:08d}"] = fact
    inventory, queue = read_snapshot(take_snapshot(held.items(), now_ms=NOW), SETTINGS, NOW)
    unit_ids = {unit.id for unit in inventory.units}
    for allocation in queue.allocations:
        assert allocation.unit in unit_ids or ":" not in allocation.unit
    assert all(0 < workload.gpus_requested < 10**9 for workload in queue.workloads)
    assert len({workload.id for workload in queue.workloads}) == len(queue.workloads)
