"""What a job used of its nodes: all that the numbers of its card need, from samples or from a summary of jobstats.

Holds no formulas; ``analyze/jobcard`` computes the card.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUsage:
    """One GPU or MIG instance of a job, by its index on the node. None: no sample says."""

    util_ratio: float | None = None  # mean while the job held it
    memory_used_bytes: float | None = None  # most
    memory_total_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """One node of a job. None: no sample says."""

    cores: int | None = None
    cpu_s: float | None = None
    memory_used_bytes: float | None = None  # most of processes and shared memory together
    memory_limit_bytes: float | None = None
    gpus: Mapping[str, GpuUsage] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUsage:
    """A job's nodes by name. ``run_s``: the time over which means and shares are meant."""

    run_s: float
    gpu_count: int
    nodes: Mapping[str, NodeUsage] = field(default_factory=dict)
