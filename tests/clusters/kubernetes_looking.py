"""Polls of the Kubernetes collector, sorted, and waiting for what one expects."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from clusterscape.collect.kubernetes import KubernetesCollector
from clusterscape.model import InventoryObserved, NodeState, QueueObserved, SourceStatus, UnixMs, Workload
from clusterscape.settings import KubernetesSettings

LIMIT_S = 60.0
"""Generous: what is waited for comes within milliseconds on an idle machine."""


def clock() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


@dataclass
class Seen:
    """One poll's observations, sorted."""

    inventory: InventoryObserved | None = None
    queue: QueueObserved | None = None
    statuses: dict[str, SourceStatus] = field(default_factory=dict)

    @property
    def workloads(self) -> dict[str, Workload]:
        return {each.name or "": each for each in (self.queue.workloads if self.queue else ())}

    @property
    def node_states(self) -> dict[str, NodeState]:
        return {each.id: each.state for each in (self.inventory.nodes if self.inventory else ())}

    def failing(self) -> dict[str, str]:
        return {name: each.message or "" for name, each in self.statuses.items() if not each.is_ok}


async def look(collector: KubernetesCollector) -> Seen:
    seen = Seen()
    async for observation in collector.poll(clock()):
        if isinstance(observation, InventoryObserved):
            seen.inventory = observation
        elif isinstance(observation, QueueObserved):
            seen.queue = observation
        elif isinstance(observation, SourceStatus):
            seen.statuses[observation.source] = observation
    return seen


async def look_until(collector: KubernetesCollector, is_there: Callable[[Seen], object]) -> Seen:
    deadline = time.monotonic() + LIMIT_S
    while True:
        seen = await look(collector)
        if is_there(seen):
            return seen
        assert time.monotonic() < deadline, (seen.failing(), seen.workloads, seen.node_states)
        await asyncio.sleep(0.05)


def make_settings(url: str, **more: Any) -> KubernetesSettings:
    return KubernetesSettings(mode="url", url=url, **({"token": "secret", "timeout_s": 10.0} | more))
