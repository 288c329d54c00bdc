"""The parsed fields of each kind of object, from which workloads, nodes and queues are built. No logic."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterscape.collect.kubernetes.values import StatusCondition
from clusterscape.model import GpuUuid, NodeState, UnixMs, WorkloadState


@dataclass(frozen=True, slots=True)
class OwnerRef:
    """The owner of an object."""

    kind: str
    name: str
    uid: str


@dataclass(slots=True, kw_only=True)  # not frozen, which would double the cost of creating these many objects
class Meta:
    """What every object has. ``user``, ``project``, ``experiment`` and ``queue`` are from labels, as the settings name them."""

    kind: str
    name: str
    namespace: str
    uid: str
    created_at: UnixMs | None = None
    deleted_at: UnixMs | None = None
    owner: OwnerRef | None = None
    user: str | None = None
    project: str | None = None
    experiment: str | None = None
    queue: str | None = None
    group: str | None = None  # plain pods that belong together by a label
    is_session: bool = False


@dataclass(slots=True, kw_only=True)
class NodeFacts:
    """A node. ``gpus`` by extended resource; ``physical_gpus`` where its labels tell."""

    name: str
    state: NodeState
    reason: str | None
    is_cordoned: bool
    labels: Mapping[str, str]
    taints: tuple[str, ...]
    gpus: Mapping[str, int]
    physical_gpus: int | None
    product: str | None
    mig_profile: str | None  # strategy "single": every GPU of the node is cut into instances of this profile
    gpu_memory_bytes: int | None
    cpu_count: int | None
    memory_bytes: int | None
    addresses: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Ending:
    """How a pod or a whole workload ended; ``reason`` is the API's word."""

    state: WorkloadState
    at: UnixMs | None = None
    reason: str | None = None
    exit_code: int | None = None
    exit_signal: int | None = None


@dataclass(slots=True, kw_only=True)
class PodFacts:
    """A pod that asks for GPUs. ``node`` once it is bound: from then on it holds its devices."""

    meta: Meta
    node: str | None
    gpus: Mapping[str, int]  # by extended resource
    claims: tuple[str, ...]  # names of resource claims
    has_unmade_claims: bool  # some are still to be made from a template
    priority: int | None
    priority_class: str | None
    scheduler: str | None
    selector: Mapping[str, str]
    deadline_s: int | None
    bound_at: UnixMs | None
    ending: Ending | None
    restarts: int
    waiting: StatusCondition | None  # the scheduler's word while it is not bound
    disruption: str | None  # why it is being taken away: PreemptionByScheduler, …
    trouble: str | None  # why a bound pod's container does not run: ImagePullBackOff, …
    uuids: tuple[GpuUuid, ...]  # as the kubelet or an annotation names them
    are_uuids_kubelets: bool
    indices: tuple[int, ...]  # as an annotation names them

    @property
    def gpu_count(self) -> int:
        """Of all extended resources."""
        return sum(self.gpus.values())

    @property
    def is_bound(self) -> bool:
        """Whether it holds its devices now."""
        return self.node is not None and self.ending is None


@dataclass(slots=True, kw_only=True)
class OwnerFacts:
    """What made pods: a Job, a Deployment, a PyTorchJob, … ``templates``: pods it wants and GPUs of each."""

    meta: Meta
    is_suspended: bool = False
    ending: Ending | None = None
    templates: tuple[tuple[int, int], ...] = ()
    deadline_s: int | None = None
    priority_class: str | None = None
    selector: Mapping[str, str] = field(default_factory=dict)

    @property
    def pods(self) -> int:
        """That it wants and that have GPUs."""
        return sum(count for count, gpus in self.templates if gpus)

    @property
    def gpus(self) -> int:
        """That it wants in all."""
        return sum(count * gpus for count, gpus in self.templates)


@dataclass(slots=True, kw_only=True)
class KueueWorkload:
    """Kueue's Workload: what waits for quota, and for whom."""

    meta: Meta
    owners: tuple[str, ...]  # UIDs
    local_queue: str | None
    cluster_queue: str | None  # that admitted it
    flavors: tuple[str, ...]
    gpus: int
    pods: int
    priority: int | None
    priority_class: str | None
    is_active: bool
    conditions: Mapping[str, StatusCondition]


@dataclass(slots=True, kw_only=True)
class QueueFacts:
    """A ClusterQueue of Kueue or a Queue of Volcano. ``quotas`` and ``used``: GPUs by flavor."""

    name: str
    is_open: bool
    flavors: tuple[str, ...] = ()
    quotas: Mapping[str, int] = field(default_factory=dict)
    used: int = 0
    waiting: int | None = None


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """A queue of a namespace that belongs to a ClusterQueue."""

    namespace: str
    name: str
    cluster_queue: str | None


@dataclass(frozen=True, slots=True)
class Flavor:
    """A ResourceFlavor: which nodes it means."""

    name: str
    node_labels: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class PodGroup:
    """Volcano's: pods that start together or not at all."""

    meta: Meta
    queue: str | None
    phase: str | None
    min_pods: int | None
    waiting: StatusCondition | None


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU or MIG instance that a DRA driver offers."""

    driver: str
    pool: str
    name: str
    node: str
    index: int | None
    uuid: GpuUuid | None
    product: str | None
    mig_profile: str | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Slice:
    """A ResourceSlice: some devices of one node."""

    devices: tuple[Device, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """A ResourceClaim for GPUs. ``devices``: (driver, pool, device) that the scheduler gave it, for the pods ``holders``."""

    namespace: str
    name: str
    requested: int
    devices: tuple[tuple[str, str, str], ...]
    holders: tuple[str, ...]  # UIDs
