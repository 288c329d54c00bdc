"""Computes the shares of a job's card from what it used of its nodes. Writes no text.

The definitions are those of jobstats (docs/design/jobs.md), so that users can compare; a total of which a part is unratios is
unratios.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from clusterscape.analyze.jobcard.rounding import round_sample
from clusterscape.model.job_usage import GpuUsage, JobUsage, NodeUsage


class ShareProblem(StrEnum):
    """Why a share is not ratios."""

    MISSING = "missing"  # a node or GPU has no samples
    ABOVE_ALL = "above_all"  # more than 100 % was used
    NOTHING = "nothing"  # nothing was allocated
    MIG = "mig"  # MIG instances report no utilization


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedShare:
    """What was used of what was allocated; ``ratio`` is None if there is a ``problem``."""

    used: float | None
    total: float | None
    ratio: float | None
    problem: ShareProblem | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShares:
    """The shares of a job. ``gpu`` and ``gpu_memory`` are None for a job without GPUs."""

    cpu: ComputedShare
    cpu_memory: ComputedShare
    gpu: ComputedShare | None
    gpu_memory: ComputedShare | None


def compute_shares(usage: JobUsage) -> JobShares:
    """All shares of a job."""
    nodes = list(usage.nodes.values())
    gpus = [gpu for node in nodes for gpu in node.gpus.values()]
    return JobShares(
        cpu=cpu_share(nodes, usage.run_s),
        cpu_memory=memory_share(nodes),
        gpu=gpu_share(usage, gpus) if usage.gpu_count else None,
        gpu_memory=_divide(usage, gpus, _gpu_memory) if usage.gpu_count else None,
    )


def cpu_share(nodes: Iterable[NodeUsage], run_s: float) -> ComputedShare:
    """CPU time used of the cores' time."""
    return _share(
        (node.cpu_s, None if node.cpu_s is None or node.cores is None else run_s * node.cores) for node in nodes
    )


def memory_share(nodes: Iterable[NodeUsage]) -> ComputedShare:
    """The peaks of the nodes' memory, of their limits."""
    return _share((node.memory_used_bytes, node.memory_limit_bytes) for node in nodes)


def gpu_share(usage: JobUsage, gpus: list[GpuUsage]) -> ComputedShare:
    """The mean of the GPUs' means."""
    ratios = [gpu.util_ratio for gpu in gpus if gpu.util_ratio is not None]
    if len(gpus) < usage.gpu_count or len(ratios) < len(gpus) or not ratios:
        has_mig = any(is_mig_index(index) for node in usage.nodes.values() for index in node.gpus)
        problem = ShareProblem.MIG if has_mig else ShareProblem.MISSING
        return ComputedShare(used=None, total=None, ratio=None, problem=problem)
    mean = sum(round_sample(100 * ratio) for ratio in ratios) / len(ratios) / 100
    return ComputedShare(used=sum(ratios), total=float(len(ratios)), ratio=mean, problem=None)


def is_mig_index(index: str) -> bool:
    """Whether the index is that of a MIG instance: ``3/7``."""
    return "/" in index


def _gpu_memory(gpu: GpuUsage) -> tuple[float | None, float | None]:
    return gpu.memory_used_bytes, gpu.memory_total_bytes


def _divide(
    usage: JobUsage, gpus: list[GpuUsage], parts: Callable[[GpuUsage], tuple[float | None, float | None]]
) -> ComputedShare:
    if len(gpus) < usage.gpu_count:
        return ComputedShare(used=None, total=None, ratio=None, problem=ShareProblem.MISSING)
    return _share(map(parts, gpus))


def _share(parts: Iterable[tuple[float | None, float | None]]) -> ComputedShare:
    """Used of total, of all parts together."""
    used = total = 0.0
    count = 0
    for part_used, part_total in parts:
        if part_used is None or part_total is None:
            return ComputedShare(used=None, total=None, ratio=None, problem=ShareProblem.MISSING)
        used, total, count = used + part_used, total + part_total, count + 1
    if not count:
        return ComputedShare(used=None, total=None, ratio=None, problem=ShareProblem.MISSING)
    if total == 0:
        return ComputedShare(used=used, total=total, ratio=None, problem=ShareProblem.NOTHING)
    if used > total:
        return ComputedShare(used=used, total=total, ratio=None, problem=ShareProblem.ABOVE_ALL)
    return ComputedShare(used=used, total=total, ratio=used / total, problem=None)
