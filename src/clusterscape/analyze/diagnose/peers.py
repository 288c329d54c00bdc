"""The peers of each GPU: those it is compared with. They follow from the cut that the data support, not from a requested one.

A cut splits GPUs by the same samples that they would then be judged by: cut often enough, and any GPU differs from what is left
of its cluster. The automatic cut is chosen against a null that is cut by the same rules (``clustering``), so that GPUs are judged
within its clusters whatever is displayed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.diagnose.clustering import Clustering
from clusterscape.analyze.diagnose.explain import Explanation, Value, explain_clusters
from clusterscape.analyze.diagnose.features import find_quantum
from clusterscape.analyze.diagnose.outliers import MIN_GPUS, OddGpu, OddGpus, find_odd_gpus
from clusterscape.model.arrays import Bools, Float64s, Int64s

Attributes = Mapping[str, Sequence[Value | None]]


@dataclass(frozen=True, slots=True)
class Peers:
    """``clustering``: the clusters that the data support, with their ``explanations``; ``groups``: columns of peers.

    The first group has the GPUs of the main cluster, those that cannot be compared, and those of small clusters (fewer than
    MIN_GPUS) without anything in common. A small cluster whose GPUs share what the others do not, such as the first GPU of each
    node, is a group of its own: its GPUs do something else, and are not odd for that.
    """

    clustering: Clustering
    explanations: tuple[Explanation | None, ...]
    groups: tuple[Int64s, ...]


def find_peers(clustering: Clustering, attributes: Attributes) -> Peers:
    """The peers of all GPUs of ``clustering``. ``attributes``: values by column."""
    supported = clustering.supported
    of_compared = {name: [values[column] for column in supported.compared] for name, values in attributes.items()}
    explanations = explain_clusters(supported.labels, of_compared)
    groups = [supported.members(label) for label in range(supported.count)]
    first = [supported.left_out]
    others: list[Int64s] = []
    for label, columns in enumerate(groups):
        is_own = columns.size >= MIN_GPUS or (
            columns.size > 1
            and (explanations[label] is not None or _is_one_role(supported.labels == label, of_compared))
        )
        if label == 0 or not is_own:
            first.append(columns)
        else:
            others.append(columns)
    return Peers(supported, explanations, (np.sort(np.concatenate(first)), *others))


def _is_one_role(is_member: Bools, attributes: Attributes) -> bool:
    """Whether the members are exactly the GPUs with one value of an attribute. Two or three are too few to be significant."""
    for values in attributes.values():
        inside = {value for value, member in zip(values, is_member, strict=True) if member}
        if len(inside) == 1 and None not in inside and sum(value in inside for value in values) == is_member.sum():
            return True
    return False


def find_odd_among_peers(
    values: Float64s, peers: Peers, significance: float, *, quantum: float | None = None
) -> OddGpus:
    """Odd GPUs of each group that is large enough. p-values are corrected for the number of groups, too."""
    quantum = find_quantum(values) if quantum is None else quantum
    judged = [columns for at, columns in enumerate(peers.groups) if at == 0 or columns.size >= MIN_GPUS]
    parts = [
        find_odd_gpus(values, columns=columns, significance=significance / len(judged), quantum=quantum)
        for columns in judged
    ]
    odd: list[OddGpu] = sorted(
        (
            OddGpu(gpu.column, gpu.distance, min(1.0, gpu.p_value * len(judged)), gpu.features)
            for part in parts
            for gpu in part.odd
        ),
        key=lambda gpu: (gpu.p_value, -gpu.distance),
    )
    named = np.array([gpu.column for gpu in odd], np.int64)
    rest = np.concatenate([part.ranked for part in parts])
    ranked = np.concatenate([named, rest[~np.isin(rest, named)]])
    note = next((part.note for part in parts if part.note is not None), None)
    return OddGpus(ranked, tuple(odd), significance, note)
