"""Nodes that break or are taken out of service by chance, with what an operator would write beside it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from random import Random

from clusterscape.demo.hardware import MACHINE_OF_PARTITION, Hardware
from clusterscape.simulate.faults import FaultKind, NodeFault

DAY_S = 86_400
HOUR_S = 3600
FAULTS_PER_NODE_DAY = 0.06
MIN_NODES = 4  # of a partition: in a smaller one an outage would leave too little to look at
MAX_OUTAGE_S = 30 * HOUR_S

_CAUSES: tuple[tuple[FaultKind, str, int | None], ...] = (
    (FaultKind.FAIL, "Not responding", None),
    (FaultKind.FAIL, "Xid 79: GPU has fallen off the bus", 79),
    (FaultKind.FAIL, "node unexpectedly rebooted", None),
    (FaultKind.FAIL, "power supply 2 failed", None),
    (FaultKind.DRAIN, "NHC: uncorrectable ECC errors", 48),
    (FaultKind.DRAIN, "firmware update", None),
    (FaultKind.DRAIN, "InfiniBand link flapping on mlx5_2", None),
    (FaultKind.DRAIN, "Kill task failed", None),
    (FaultKind.DRAIN, "NVLink errors, RMA opened", 74),
)


@dataclass(frozen=True, slots=True)
class DemoFault:
    """An outage, the operator's words, and the XID error of one GPU that came just before it, if there was one."""

    fault: NodeFault
    reason: str
    xid: int | None = None
    gpu: int = 0


class Faults:
    """Draws outages; a node is never drawn again while it is out of service, and ``protected`` nodes never are."""

    def __init__(self, hardware: Hardware, protected: Iterable[str]) -> None:
        kept = frozenset(protected)
        roomy = {name for name in MACHINE_OF_PARTITION if len(hardware.partition(name)) >= MIN_NODES}
        self._nodes = [node for node in hardware.nodes if node.partition in roomy and node.name not in kept]
        self._busy_until_s: dict[str, int] = {}

    def draw(self, rng: Random, start_s: int, end_s: int, spared: Collection[str]) -> list[DemoFault]:
        """Outages that begin in [start, end), on other nodes than ``spared``."""
        drawn: list[DemoFault] = []
        if not self._nodes:
            return drawn
        per_s = FAULTS_PER_NODE_DAY * len(self._nodes) / DAY_S
        time_s = start_s + rng.expovariate(per_s)
        while time_s < end_s:
            node = rng.choice(self._nodes)
            kind, reason, xid = rng.choice(_CAUSES)
            from_s = int(time_s)
            to_s = from_s + 60 + int(min(rng.lognormvariate(1.5, 0.9) * HOUR_S, MAX_OUTAGE_S))
            if node.name not in spared and self._busy_until_s.get(node.name, 0) < from_s:
                self._busy_until_s[node.name] = to_s
                fault = NodeFault(node=node.name, kind=kind, from_s=from_s, to_s=to_s)
                drawn.append(DemoFault(fault, reason, xid, rng.randrange(node.gpu_count)))
            time_s += rng.expovariate(per_s)
        return drawn
