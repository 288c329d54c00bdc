"""Jobs and faults that every demo shows, whatever the seed (a long 64-GPU run and a job of each bad behavior), and random
outages of nodes, with the operator's reason.

Planted jobs have separate users and the highest priority, so that the random job stream cannot delay them.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from random import Random

from clusterscape.demo.hardware import LARGE, MACHINE_OF_PARTITION, SMALL, V100, DemoNode, Hardware
from clusterscape.demo.jobs import Behavior, DemoJob
from clusterscape.demo.scheduler import SubmittedJob
from clusterscape.demo.stream import user_limits
from clusterscape.model import WorkloadState
from clusterscape.model.durations import DAY_S, HOUR_S, MINUTE_S
from clusterscape.simulate.faults import FaultKind, NodeFault

FAULTS_PER_NODE_DAY = 0.06
MIN_NODES = 4  # of a partition: an outage would leave too little of a smaller one
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
    """An outage, the operator's reason, and the XID error of GPU ``gpu`` shortly before it, if any."""

    fault: NodeFault
    reason: str
    xid: int | None = None
    gpu: int = 0


class Faults:
    """Draws random outages of nodes that are in service and not ``protected``."""

    def __init__(self, hardware: Hardware, protected: Iterable[str]) -> None:
        kept = frozenset(protected)
        roomy = {name for name in MACHINE_OF_PARTITION if len(hardware.partition(name)) >= MIN_NODES}
        self._nodes = [node for node in hardware.nodes if node.partition in roomy and node.name not in kept]
        self._busy_until_s: dict[str, int] = {}

    def draw(self, rng: Random, start_s: int, end_s: int, spared: Collection[str]) -> list[DemoFault]:
        """Outages that begin in [start, end), except on nodes in ``spared``."""
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


WARM_UP_S = 44 * HOUR_S  # from the first simulated event to the anchor
TOP_PRIORITY = 9000
RESERVE_NODES = 3  # the last of a partition, one of which is out of service at the anchor

PRETRAIN_NAME = "llm-13b-pretrain"
PRETRAIN_NODES = 8
PRETRAIN_STARTED_S = 28 * HOUR_S  # before the anchor
PRETRAIN_WAIT_S = 2 * HOUR_S + 11 * MINUTE_S
PRETRAIN_RUN_S = 70 * HOUR_S
PRETRAIN_LIMIT_S = 72 * HOUR_S
_MIDDLE = (0.5,) * 8  # planted jobs are not random


@dataclass(frozen=True, slots=True)
class _Plant:
    """A job that shows one behavior at the anchor, if its partition has at least ``min_nodes``."""

    behavior: Behavior
    partition: str
    hours_ago: int
    user: str
    project: str
    experiment: str
    min_nodes: int = 1
    outcome: WorkloadState = WorkloadState.COMPLETED


_PLANTS = (
    _Plant(Behavior.STALLED, LARGE, 22, "mholm", "rec-sys", "ranker-dlrm"),
    _Plant(Behavior.IDLE_TAIL, SMALL, 16, "tadeyemi", "vision", "seg-mask2former"),
    _Plant(Behavior.MEMORY_LEAK, V100, 14, "jcosta", "students", "thesis-gnn", outcome=WorkloadState.OUT_OF_MEMORY),
    _Plant(Behavior.INPUT_BOUND, SMALL, 13, "skovacs", "search", "dense-retrieval", min_nodes=4),
    _Plant(Behavior.VALIDATION, V100, 18, "elindqvist", "speech", "asr-conformer", min_nodes=4),
)


@dataclass(frozen=True, slots=True)
class _PlantedOutage:
    partition: str
    kind: FaultKind
    minutes_ago: int
    hours_more: int
    reason: str
    xid: int


_OUTAGES = (
    _PlantedOutage(V100, FaultKind.FAIL, 190, 8, "Not responding: Xid 79, GPU has fallen off the bus", 79),
    _PlantedOutage(SMALL, FaultKind.DRAIN, 1210, 16, "GPU 5 uncorrectable ECC, RMA opened", 94),
    _PlantedOutage(LARGE, FaultKind.DRAIN, 40, 10, "NVLink CRC errors on link 3, drain after job", 74),
)


class Planted:
    """Planted jobs and faults of one cluster, around its anchor."""

    def __init__(self, hardware: Hardware, anchor_s: int) -> None:
        self._hardware = hardware
        self._anchor_s = anchor_s
        large = hardware.partition(LARGE)
        allowed = user_limits(hardware)[LARGE] // hardware.gpus_per_node
        self._pretrain_nodes = large[: min(PRETRAIN_NODES, allowed, max(1, len(large) // 2))]

    def jobs(self, start_s: int, end_s: int) -> list[DemoJob]:
        """Planted jobs submitted in [start, end); the caller assigns their ids."""
        return [
            job for job in (*self._iter_pretrain(end_s), *self._misbehaving()) if start_s <= job.job.submit_s < end_s
        ]

    def _iter_pretrain(self, end_s: int) -> Iterator[DemoJob]:
        """The long run and its continuations: when one ends, the next starts on the same nodes."""
        eligible_s = self._anchor_s - PRETRAIN_STARTED_S
        while eligible_s - PRETRAIN_WAIT_S < end_s:
            job = SubmittedJob(
                id=0,
                partition=LARGE,
                submit_s=eligible_s - PRETRAIN_WAIT_S,
                eligible_s=eligible_s,
                run_s=PRETRAIN_RUN_S,
                limit_s=PRETRAIN_LIMIT_S,
                gpus_per_node=self._hardware.gpus_per_node,
                nodes=len(self._pretrain_nodes),
                user="npetrov",
                priority=TOP_PRIORITY,
            )
            yield DemoJob(
                job=job,
                name=PRETRAIN_NAME,
                project="nlp-core",
                experiment="llm-13b",
                behavior=Behavior.NODE_MASTER,
                draws=_MIDDLE,
                stream=LARGE,
                qos="high",
                hold_reason="Dependency",
            )
            eligible_s += PRETRAIN_RUN_S

    def _misbehaving(self) -> Iterator[DemoJob]:
        half = max(1, self._hardware.gpus_per_node // 2)
        # In a small cluster a planted job could wait for long, so it is submitted earlier.
        early_s = 0 if len(self._hardware.nodes) >= 16 else WARM_UP_S - 24 * HOUR_S
        for plant in _PLANTS:
            node_count = len(self._hardware.partition(plant.partition))
            if node_count < plant.min_nodes:
                continue
            is_wide = plant.partition == LARGE and node_count >= 16
            submitted_ago_s = plant.hours_ago * HOUR_S + early_s
            run_s = submitted_ago_s + 20 * HOUR_S
            job = SubmittedJob(
                id=0,
                partition=plant.partition,
                submit_s=self._anchor_s - submitted_ago_s,
                run_s=run_s,
                limit_s=run_s + 4 * HOUR_S,
                gpus_per_node=2 * half if is_wide else half,
                nodes=2 if is_wide else 1,
                user=plant.user,
                priority=TOP_PRIORITY - 1,
                is_requeued=True,
            )
            yield DemoJob(
                job=job,
                name=plant.experiment,
                project=plant.project,
                experiment=plant.experiment,
                behavior=plant.behavior,
                draws=_MIDDLE,
                stream=plant.partition,
                qos="high",
                outcome=plant.outcome,
            )

    def shutdown(self, origin_s: int) -> list[DemoFault]:
        """Outages that keep the long run's nodes free until it starts."""
        to_s = self._anchor_s - PRETRAIN_STARTED_S
        return [
            DemoFault(NodeFault(node=node.name, kind=FaultKind.FAIL, from_s=origin_s, to_s=to_s), "acceptance test")
            for node in self._pretrain_nodes
        ]

    def faults(self, start_s: int, end_s: int, spared: Collection[str]) -> list[DemoFault]:
        """Outages that include the anchor and begin in [start, end), on reserve nodes that are not in ``spared``."""
        faults = []
        for outage in _OUTAGES:
            from_s = self._anchor_s - outage.minutes_ago * MINUTE_S
            nodes = [node.name for node in self._reserve(outage.partition) if node.name not in spared]
            if start_s <= from_s < end_s and nodes:
                to_s = self._anchor_s + outage.hours_more * HOUR_S
                fault = NodeFault(node=nodes[-1], kind=outage.kind, from_s=from_s, to_s=to_s)
                faults.append(DemoFault(fault, outage.reason, outage.xid, gpu=5))
        return faults

    @property
    def protected_nodes(self) -> frozenset[str]:
        """Nodes without random outages: those of the long run and those reserved for planted outages."""
        reserve = [node for outage in _OUTAGES for node in self._reserve(outage.partition)]
        return frozenset(node.name for node in (*self._pretrain_nodes, *reserve))

    def _reserve(self, partition: str) -> list[DemoNode]:
        nodes = self._hardware.partition(partition)
        return nodes[-RESERVE_NODES:] if len(nodes) > RESERVE_NODES else []
