"""The summary of an ended job: what it asked for, what it used, and how it ended, in at most 2 kB.

Kept for years, independent of samples and of the job's record. Sums and means of nodes and GPUs are fields of their own, so
that millions of summaries can be read as columns; the values of each node and GPU are packed.
"""

import base64
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import orjson

from clusterscape.model.identity_fields import FreeText, OwnerText, ProjectName, PublicText, UserName
from clusterscape.model.ids import UnixMs, WorkloadId
from clusterscape.model.job_usage import GpuUsage, JobUsage, NodeUsage
from clusterscape.model.workloads import Workload, WorkloadKind, WorkloadState

MAX_DETAIL_CHARS = 1_400
"""The rest of the 2 kB is for the other fields."""
MAX_NAME_CHARS = 120
IDLE_BELOW = 0.05
"""A GPU with a lower mean utilization was idle."""
_VARYING = re.compile(r"[0-9a-f]{8,}|\d+", re.IGNORECASE)


class SummarySource(StrEnum):
    """Where the numbers of a summary come from."""

    SAMPLES = "samples"
    JOBSTATS = "jobstats"  # the summary that jobstats wrote
    ACCOUNTING = "accounting"  # no samples: only what the scheduler knows


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """The latest execution of an ended job. None: unknown.

    ``family``: the name without numbers, by which similar jobs are found. ``cpu_s``, ``memory_used_bytes`` (the nodes' peaks) and
    ``memory_limit_bytes`` are sums over all nodes; ``peak_cores``: most cores that were busy at a time, in steps of the card's
    curves; ``memory_peak_bytes``: of the node that used most. ``gpus_idle``: below 5 % on average, ``gpus_unused``: never used.
    ``gpu_memory_peak_bytes``: of the GPU that used most. ``detail``: see ``pack_usage``.
    """

    workload: WorkloadId
    state: WorkloadState
    kind: WorkloadKind
    name: OwnerText | None
    family: OwnerText
    user: UserName | None
    project: ProjectName | None
    partition: PublicText | None
    qos: FreeText | None
    resource_type: PublicText | None
    submitted_at: UnixMs | None
    started_at: UnixMs
    ended_at: UnixMs
    run_s: float
    time_limit_s: int | None
    nodes: int
    gpus: int
    cpus: int | None
    memory_requested_bytes: int | None
    source: SummarySource
    cpu_s: float | None = None
    peak_cores: float | None = None
    memory_used_bytes: float | None = None
    memory_limit_bytes: float | None = None
    memory_peak_bytes: float | None = None
    nodes_unused: int | None = None
    gpu_util_ratio: float | None = None
    gpus_idle: int | None = None
    gpus_unused: int | None = None
    gpu_memory_peak_bytes: float | None = None
    gpu_memory_total_bytes: float | None = None
    detail: PublicText = ""

    @property
    def usage(self) -> JobUsage:
        """The values of nodes and GPUs; of very large jobs without some nodes."""
        return JobUsage(run_s=self.run_s, gpu_count=self.gpus, nodes=unpack_usage(self.detail))

    @property
    def is_whole(self) -> bool:
        """Whether the detail has all nodes."""
        return self.source is not SummarySource.ACCOUNTING and len(self.usage.nodes) >= self.nodes

    @property
    def workload_record(self) -> Workload:
        """The job as a record, where its own has been removed."""
        return Workload(
            id=self.workload,
            state=self.state,
            kind=self.kind,
            name=self.name,
            user=self.user,
            project=self.project,
            partition=self.partition,
            resource_type=self.resource_type,
            qos=self.qos,
            gpus_requested=self.gpus,
            gpus_allocated=self.gpus,
            nodes_requested=self.nodes,
            nodes=tuple(self.usage.nodes),
            time_limit_s=self.time_limit_s,
            submitted_at=self.submitted_at,
            started_at=self.started_at,
            ended_at=self.ended_at,
            suspended_s=max(0, round((self.ended_at - self.started_at) / 1000 - self.run_s)),
            cpus=self.cpus,
            memory_requested_bytes=self.memory_requested_bytes,
        )


def name_family(name: str | None) -> str:
    """The name without its numbers and hashes: ``train-lr0.01-17`` and ``train-lr0.1-3`` are of one family."""
    return _VARYING.sub("#", (name or "").casefold())[:MAX_NAME_CHARS]


def summarize(
    workload: Workload, usage: JobUsage | None, *, source: SummarySource, peak_cores: float | None = None
) -> JobSummary | None:
    """The summary of an ended job; None if it never ran."""
    run_s = workload.run_s(workload.ended_at or UnixMs(0))
    if workload.state.is_active or workload.started_at is None or workload.ended_at is None or run_s is None:
        return None
    nodes = [] if usage is None else list(usage.nodes.values())
    gpus = [gpu for node in nodes for gpu in node.gpus.values()]
    ratios = [gpu.util_ratio for gpu in gpus if gpu.util_ratio is not None]
    has_all_gpus = bool(ratios) and len(ratios) >= workload.gpus_held
    fullest = max((gpu for gpu in gpus if gpu.memory_used_bytes is not None), key=_memory_used, default=None)
    is_empty = not ratios and all(node.cpu_s is None and node.memory_used_bytes is None for node in nodes)
    return JobSummary(
        workload=workload.id,
        state=workload.state,
        kind=workload.kind,
        name=None if workload.name is None else workload.name[:MAX_NAME_CHARS],
        family=name_family(workload.name),
        user=workload.user,
        project=workload.project,
        partition=workload.partition,
        qos=workload.qos,
        resource_type=workload.resource_type,
        submitted_at=workload.submitted_at,
        started_at=workload.started_at,
        ended_at=UnixMs(max(workload.started_at, workload.ended_at)),
        run_s=run_s,
        time_limit_s=workload.time_limit_s,
        nodes=len(workload.nodes) or workload.nodes_requested or len(nodes),
        gpus=workload.gpus_held,
        cpus=workload.cpus if workload.cpus is not None else sum(node.cores or 0 for node in nodes) or None,
        memory_requested_bytes=workload.memory_requested_bytes,
        source=SummarySource.ACCOUNTING if is_empty else source,
        cpu_s=_sum(node.cpu_s for node in nodes),
        peak_cores=peak_cores,
        memory_used_bytes=_sum(node.memory_used_bytes for node in nodes),
        memory_limit_bytes=_sum(node.memory_limit_bytes for node in nodes),
        memory_peak_bytes=_largest(node.memory_used_bytes for node in nodes),
        nodes_unused=None if _sum(node.cpu_s for node in nodes) is None else sum(node.cpu_s == 0 for node in nodes),
        gpu_util_ratio=sum(ratios) / len(ratios) if has_all_gpus else None,
        gpus_idle=sum(ratio < IDLE_BELOW for ratio in ratios) if has_all_gpus else None,
        gpus_unused=sum(ratio == 0 for ratio in ratios) if has_all_gpus else None,
        gpu_memory_peak_bytes=None if fullest is None else fullest.memory_used_bytes,
        gpu_memory_total_bytes=None if fullest is None else fullest.memory_total_bytes,
        detail="" if usage is None or is_empty else pack_usage(usage.nodes),
    )


def _memory_used(gpu: GpuUsage) -> float:
    return gpu.memory_used_bytes or 0.0


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum; None if there are no values or one is unknown."""
    all_values = list(values)
    numbers = [value for value in all_values if value is not None]
    return sum(numbers) if numbers and len(numbers) == len(all_values) else None


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def pack_usage(nodes: Mapping[str, NodeUsage], max_chars: int = MAX_DETAIL_CHARS) -> str:
    """The nodes as compressed text. If that is too long, nodes in the middle of the order by CPU and GPU use are left out."""
    rows = [_pack_node(name, node) for name, node in nodes.items()]
    packed = _compress(rows)
    if len(packed) <= max_chars:
        return packed
    by_use = sorted(nodes, key=lambda name: _use(nodes[name]))
    low, high = 0, len(by_use) - 1
    while low < high:
        count = (low + high + 1) // 2
        low, high = (count, high) if len(_compress(_extremes(rows, by_use, count))) <= max_chars else (low, count - 1)
    return _compress(_extremes(rows, by_use, low))


def _use(node: NodeUsage) -> tuple[float, float]:
    ratios = [gpu.util_ratio or 0.0 for gpu in node.gpus.values()]
    return (sum(ratios), node.cpu_s or 0.0)


def _extremes(rows: list[list[object]], by_use: list[str], count: int) -> list[list[object]]:
    """The rows of the nodes with the least and the most use, in their order."""
    names = {*by_use[: (count + 1) // 2], *by_use[len(by_use) - count // 2 :]}
    return [row for row in rows if row[0] in names]


def _compress(rows: list[list[object]]) -> str:
    return base64.b85encode(zlib.compress(orjson.dumps(rows), 9)).decode()


def _pack_node(name: str, node: NodeUsage) -> list[object]:
    return [
        name,
        node.cores,
        None if node.cpu_s is None else round(node.cpu_s, 1),
        _kib(node.memory_used_bytes),
        _kib(node.memory_limit_bytes),
        [
            [
                index,
                None if gpu.util_ratio is None else round(gpu.util_ratio, 5),
                _kib(gpu.memory_used_bytes),
                _kib(gpu.memory_total_bytes),
            ]
            for index, gpu in node.gpus.items()
        ],
    ]


def unpack_usage(text: str) -> dict[str, NodeUsage]:
    """The nodes of ``pack_usage``."""
    if not text:
        return {}
    return {
        name: NodeUsage(
            cores=cores,
            cpu_s=cpu_s,
            memory_used_bytes=_bytes(used),
            memory_limit_bytes=_bytes(limit),
            gpus={
                index: GpuUsage(
                    util_ratio=ratio, memory_used_bytes=_bytes(gpu_used), memory_total_bytes=_bytes(gpu_total)
                )
                for index, ratio, gpu_used, gpu_total in gpus
            },
        )
        for name, cores, cpu_s, used, limit, gpus in orjson.loads(zlib.decompress(base64.b85decode(text)))
    }


def _kib(size: float | None) -> int | None:
    return None if size is None else round(size / 1024)


def _bytes(kib: int | None) -> float | None:
    return None if kib is None else kib * 1024.0
