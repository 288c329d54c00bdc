"""Polls the Kubernetes collector, sorts its observations, and waits for a condition."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from clusterscape.collect.kubernetes import KubernetesCollector
from clusterscape.model import InventoryObserved, NodeState, QueueObserved, SourceStatus, UnixMs, Workload
from clusterscape.settings import KubernetesSettings

LIMIT_S = 60.0
"""Generous: on an idle machine conditions hold within milliseconds."""


def clock() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


@dataclass
class Observations:
    """One poll's observations, sorted."""

    inventory: InventoryObserved | None = None
    queue: QueueObserved | None = None
    statuses: dict[str, SourceStatus] = field(default_factory=dict)

    @property
    def workloads(self) -> dict[str, Workload]:
        return {workload.name or "": workload for workload in (self.queue.workloads if self.queue else ())}

    @property
    def node_states(self) -> dict[str, NodeState]:
        return {node.id: node.state for node in (self.inventory.nodes if self.inventory else ())}

    def failing(self) -> dict[str, str]:
        return {name: status.message or "" for name, status in self.statuses.items() if not status.is_ok}


async def look(collector: KubernetesCollector) -> Observations:
    observations = Observations()
    async for observation in collector.poll(clock()):
        if isinstance(observation, InventoryObserved):
            observations.inventory = observation
        elif isinstance(observation, QueueObserved):
            observations.queue = observation
        elif isinstance(observation, SourceStatus):
            observations.statuses[observation.source] = observation
    return observations


async def look_until(collector: KubernetesCollector, is_there: Callable[[Observations], object]) -> Observations:
    deadline = time.monotonic() + LIMIT_S
    while True:
        observations = await look(collector)
        if is_there(observations):
            return observations
        assert time.monotonic() < deadline, (observations.failing(), observations.workloads, observations.node_states)
        await asyncio.sleep(0.05)


def make_settings(url: str, **more: Any) -> KubernetesSettings:
    return KubernetesSettings(mode="url", url=url, **({"token": "secret", "timeout_s": 10.0} | more))
