"""What a placement is: it says which of the nodes that could host a job are best. Both engines ask through `choose_nodes`.

Owns the words of that question. Does not know queues, times or who holds what.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from clusterscape.model.samples import Float64s, Int64s

if TYPE_CHECKING:
    from clusterscape.simulate.cluster.kernels import Books

UNITS_PER_GPU = 7_000
"""A GPU in parts that thousandths and sevenths (MIG) both are whole numbers of."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a job wants on each of its nodes: ``gpus`` GPUs, ``units`` of each (UNITS_PER_GPU: the whole GPU), and the rest.

    ``shape`` numbers equal wishes, for placements that remember.
    """

    gpus: int
    units: int = UNITS_PER_GPU
    cpu_milli: int = 0
    memory_mib: int = 0
    shape: int = 0

    @property
    def is_share(self) -> bool:
        """Whether part of one GPU is enough."""
        return self.gpus == 1 and self.units < UNITS_PER_GPU

    @property
    def total_units(self) -> int:
        """Over the GPUs of one node."""
        return self.gpus * self.units


@dataclass(frozen=True, slots=True)
class NodeState:
    """All nodes as they are now. ``free_units``: by node; the other columns are None where the asking engine does not keep them.

    ``gpu_units``: free by node and GPU, 0 where there is no such GPU. ``held_by_gpus[n, g]``: jobs that hold g whole GPUs of
    node n; [n, 0]: that share one.
    """

    free_units: Int64s
    gpu_counts: Int64s
    gpu_units: Int64s | None = None
    cpu_milli: Int64s | None = None
    memory_mib: Int64s | None = None
    held_by_gpus: Int64s | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """What a placement may learn first: nodes and wishes (by ``Ask.shape``) as the kernels have them, and chance."""

    books: "Books"
    random: np.random.Generator


class Placement(Protocol):
    """Which nodes a job's GPUs come from. The same questions in the same order give the same answers."""

    def begin(self, setting: Setting) -> "Placement":
        """The placement for one simulation; one that remembers nothing is that itself."""
        return self

    def score(self, state: NodeState, candidates: Int64s, ask: Ask) -> Float64s:
        """One number for each candidate node; the smallest is taken, the first of equals. Every candidate can host the job."""
        ...

    def pick_gpu(self, state: NodeState, node: int, ask: Ask) -> int | None:
        """The GPU of the chosen node that a job shares; None: the one with the least left that suffices."""
        return None


def choose_nodes(placement: Placement, state: NodeState, candidates: Int64s, count: int, ask: Ask) -> Int64s | None:
    """The best ``count`` different nodes; None where there are fewer candidates."""
    if len(candidates) < count:
        return None
    if len(candidates) == count:
        return candidates
    scores = placement.score(state, candidates, ask)
    if count == 1:
        return candidates[[int(np.argmin(scores))]]
    return candidates[np.argsort(scores, kind="stable")[:count]]
