"""The interface of a placement, which chooses the best of the nodes that can host a job. Both engines use `choose_nodes`.

Independent of queues, times and allocations.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from clusterscape.model.arrays import Float64s, Int64s

if TYPE_CHECKING:
    from clusterscape.simulate.cluster.kernels import ClusterBooks

UNITS_PER_GPU = 7_000
"""Units of one GPU: divisible by 1,000 (fractions) and by 7 (MIG slices)."""


@dataclass(frozen=True, slots=True)
class PodRequest:
    """The request of a job on each of its nodes: ``gpus`` GPUs, ``units`` of each (UNITS_PER_GPU: the whole GPU), CPUs, memory.

    ``shape``: index of the distinct request, for placements that cache.
    """

    gpus: int
    units: int = UNITS_PER_GPU
    cpu_milli: int = 0
    memory_mib: int = 0
    shape: int = 0

    @property
    def is_share(self) -> bool:
        """Whether it requests a part of one GPU."""
        return self.gpus == 1 and self.units < UNITS_PER_GPU

    @property
    def total_units(self) -> int:
        """Units over the GPUs of one node."""
        return self.gpus * self.units


@dataclass(frozen=True, slots=True)
class NodeLoads:
    """The current load of all nodes. ``free_units``: by node; other columns are None if the engine does not track them.

    ``gpu_units``: free units by node and GPU, 0 if there is no such GPU. ``held_by_gpus[n, g]``: number of jobs that hold g whole
    GPUs of node n; [n, 0]: that share one.
    """

    free_units: Int64s
    gpu_counts: Int64s
    gpu_units: Int64s | None = None
    cpu_milli: Int64s | None = None
    memory_mib: Int64s | None = None
    held_by_gpus: Int64s | None = None


@dataclass(frozen=True, slots=True)
class PlacementContext:
    """Context of a simulation for placements: nodes and demands (by ``PodRequest.shape``), and a random generator."""

    books: "ClusterBooks"
    random: np.random.Generator


class Placement(Protocol):
    """Chooses the nodes of a job. Deterministic: the same calls in the same order give the same results."""

    def begin(self, context: PlacementContext) -> "Placement":
        """The placement for one simulation; a placement without state returns itself."""
        return self

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        """One number per candidate node; the smallest wins, the first of equals. Every candidate can host the job."""
        ...

    def pick_gpu(self, state: NodeLoads, node: int, request: PodRequest) -> int | None:
        """The GPU of the chosen node that a job shares; None: the tightest fit."""
        return None


def choose_nodes(
    placement: Placement, state: NodeLoads, candidates: Int64s, count: int, request: PodRequest
) -> Int64s | None:
    """The best ``count`` different nodes; None if there are fewer candidates."""
    if len(candidates) < count:
        return None
    if len(candidates) == count:
        return candidates
    scores = placement.score(state, candidates, request)
    if count == 1:
        return candidates[[int(np.argmin(scores))]]
    return candidates[np.argsort(scores, kind="stable")[:count]]
