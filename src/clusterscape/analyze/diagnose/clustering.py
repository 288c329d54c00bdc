"""Hierarchical clusters of GPUs from their distances: the tree, where to cut it, and stable colors of labels."""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.cluster import hierarchy
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist, squareform

from clusterscape.model.arrays import Bools, Float64s, Int64s

Linkage = Literal["average", "single", "complete", "weighted", "ward", "centroid", "median"]

MAX_AUTOMATIC_CLUSTERS = 12


class CutKind(StrEnum):
    """How the cut was chosen."""

    AUTOMATIC = "automatic"
    HEIGHT = "height"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class CutRule:
    """When the automatic cut accepts clusters (docs/design/diagnostics.md)."""

    min_silhouette: float = 0.25  # mean of all GPUs; below it there is no structure
    min_edge_silhouette: float = 0.1  # of the worst tenth of each cluster; near 0 in a continuum
    min_gap_ratio: float = (
        1.25  # gap to other clusters / largest distance of a member to its nearest; tails have gaps, too
    )
    min_alone_ratio: float = 3.0  # single GPU: its distance / mean distance of the main cluster's most distant member
    null_draws: int = 39  # random data sets without clusters that must all look less clustered: significance 1 in 40
    null_gpus: int = 96  # maximum size of these data sets
    seed: int = 20230701


@dataclass(frozen=True, slots=True)
class Clustering:
    """Clusters of the ``compared`` GPUs, largest first.

    ``labels`` (aligned with ``compared``) start at 0, the main cluster; ``tree``: SciPy's linkage matrix over ``compared``;
    ``left_out``: GPUs with too few samples to compare; ``silhouette``: the mean, None for a single cluster.
    ``supported_labels``: of the automatic cut, where another one was asked for; else None.
    """

    labels: Int64s
    compared: Int64s
    left_out: Int64s
    tree: Float64s
    height: float
    cut: CutKind
    silhouette: float | None
    notes: tuple[str, ...]
    supported_labels: Int64s | None = None

    @property
    def supported(self) -> "Clustering":
        """The clusters that the data support: the automatic cut of the same tree. Statistics of clusters rest on it."""
        if self.supported_labels is None:
            return self
        labels = self.supported_labels
        height = _compute_height(self.tree, int(labels.max(initial=0)) + 1)
        return replace(
            self, labels=labels, height=height, cut=CutKind.AUTOMATIC, silhouette=None, supported_labels=None
        )

    @property
    def count(self) -> int:
        """Number of clusters."""
        return int(self.labels.max(initial=-1)) + 1

    def members(self, label: int) -> Int64s:
        """The GPUs (columns) of a cluster."""
        columns: Int64s = self.compared[self.labels == label]
        return columns


def cluster(
    condensed: Float64s,
    *,
    linkage: Linkage = "average",
    count: int | None = None,
    height: float | None = None,
    noise: float = 0.0,
    rule: CutRule | None = None,
) -> Clustering:
    """Agglomerative clusters from condensed distances (NaN: missing pair). Deterministic.

    ``count`` or ``height`` set the cut. Otherwise the number of clusters (2 … 12) with the best mean silhouette is chosen, if it
    and the silhouettes at the edges of clusters pass ``rule`` and clusters are further apart than ``noise``, the distance between
    equal GPUs due to chance or rounding; else all GPUs are one cluster. "ward", "centroid" and "median" are only meaningful for
    Euclidean distances (as SciPy warns).
    """
    if count is not None and height is not None:
        raise ValueError("set a number of clusters or a height, not both")
    if count is not None and count < 1:
        raise ValueError("the number of clusters must be at least 1")
    compared, left_out, complete, notes = _complete_distances(condensed)
    if compared.size < 2:
        labels = np.zeros(compared.size, np.int64)
        return Clustering(labels, compared, left_out, np.empty((0, 4)), 0.0, CutKind.AUTOMATIC, None, notes)
    tree: Float64s = hierarchy.linkage(complete, method=linkage)
    supported = _choose_cut(tree, complete, noise, rule or CutRule())
    if count is not None:
        kind, labels, cut_height = CutKind.COUNT, _cut(tree, count), _compute_height(tree, count)
    elif height is not None:
        kind, labels, cut_height = CutKind.HEIGHT, _cut_at(tree, height), float(height)
    else:
        kind, labels, cut_height = CutKind.AUTOMATIC, supported, _compute_height(tree, int(supported.max()) + 1)
    silhouette = float(compute_silhouettes(complete, labels).mean()) if labels.max() > 0 else None
    kept = None if kind is CutKind.AUTOMATIC else supported
    return Clustering(labels, compared, left_out, tree, cut_height, kind, silhouette, notes, kept)


def compute_silhouettes(condensed: Float64s, labels: Int64s) -> Float64s:
    """Rousseeuw's silhouette of each GPU: (b − a) / max(a, b), 0 for a GPU alone in its cluster.

    a is the mean distance to its own cluster, b to the nearest other one. Needs two clusters or more.
    """
    return _Comparison.compute(condensed, labels).silhouettes


@dataclass(frozen=True, slots=True)
class _Comparison:
    """For each GPU: mean distance to its own and to the nearest other cluster, nearest GPU of each, silhouette."""

    own: Float64s
    other: Float64s
    nearest_own: Float64s
    nearest_other: Float64s
    silhouettes: Float64s

    @classmethod
    def compute(cls, condensed: Float64s, labels: Int64s) -> "_Comparison":
        from clusterscape.analyze.diagnose import kernels

        clusters = int(labels.max()) + 1
        sizes = np.bincount(labels, minlength=clusters)
        sums, nearest_own, nearest_other = kernels.compare_clusters(condensed, labels, clusters)
        rows = np.arange(labels.size)
        own_size = sizes[labels]
        own = sums[rows, labels] / np.maximum(own_size - 1, 1)
        means = sums / sizes
        means[rows, labels] = np.inf
        other = means.min(axis=1)
        larger = np.maximum(own, other)
        silhouettes = np.divide(other - own, larger, out=np.zeros(labels.size), where=larger > 0)
        silhouettes[own_size == 1] = 0.0
        return cls(own, other, nearest_own, nearest_other, silhouettes)


def match_colors(previous: Int64s, current: Int64s) -> Int64s:
    """A color number for each current label, chosen so that most GPUs keep their color.

    Parameters
    ----------
    previous : (GPU,) previous color numbers; current : (GPU,) current labels; both of the same GPUs in the same order.

    The total overlap is maximized (Hungarian algorithm); clusters without a match get the lowest unused numbers.
    """
    clusters = int(current.max(initial=-1)) + 1
    colors = int(previous.max(initial=-1)) + 1
    overlap = np.zeros((clusters, colors))
    np.add.at(overlap, (current, previous), 1.0)
    rows, columns = linear_sum_assignment(-overlap)
    out = np.full(clusters, -1, np.int64)
    is_kept = overlap[rows, columns] > 0
    out[rows[is_kept]] = columns[is_kept]
    unused = iter(np.setdiff1d(np.arange(clusters + colors), out))
    for label in np.flatnonzero(out < 0):
        out[label] = next(unused)
    return out


def _complete_distances(condensed: Float64s) -> tuple[Int64s, Int64s, Float64s, tuple[str, ...]]:
    """Comparable GPUs, the other GPUs, complete distances of the former, and notes about missing pairs."""
    size = round((1.0 + (1.0 + 8.0 * condensed.size) ** 0.5) / 2.0) if condensed.size else 1
    everyone = np.arange(size)
    if not np.isnan(condensed).any():
        return everyone, everyone[:0], condensed, ()
    square: Float64s = squareform(np.where(np.isnan(condensed), 0.0, condensed))
    is_missing: Bools = squareform(np.isnan(condensed).astype(np.int8)).astype(np.bool_)
    kept = everyone
    # Drop GPUs that cannot be compared with half of the others; worst first, since the rest may then be complete.
    while kept.size > 1:
        missing = is_missing[np.ix_(kept, kept)].sum(axis=1)
        if 2 * missing.max() < kept.size:
            break
        kept = np.delete(kept, int(missing.argmax()))
    left_out = np.setdiff1d(everyone, kept)
    square, is_missing = square[np.ix_(kept, kept)], is_missing[np.ix_(kept, kept)]
    notes = []
    if left_out.size:
        notes.append(f"{left_out.size} of {size} GPUs have too few samples to be compared; they are in no cluster.")
    pairs = np.argwhere(np.triu(is_missing, 1))
    if pairs.size:
        notes.append(
            f"{len(pairs)} pairs of GPUs were never measured at the same time; their distance is estimated from the others."
        )
    for i, j in pairs:
        # The height at which the tree would join them through a third GPU: exact in an ultrametric space.
        is_common = ~(is_missing[i] | is_missing[j])
        is_common[[i, j]] = False
        square[i, j] = square[j, i] = (
            np.median(np.maximum(square[i], square[j])[is_common]) if is_common.any() else square.max()
        )
    return kept, left_out, squareform(square, checks=False), tuple(notes)


def _choose_cut(tree: Float64s, condensed: Float64s, noise: float, rule: CutRule) -> Int64s:
    """Labels of the best number of clusters; all 0 if none passes the rule, or random data without clusters does as well."""
    if tree[-1, 2] <= noise:
        return np.zeros(len(tree) + 1, np.int64)
    silhouette, labels = _best_cut(tree, condensed, rule, rule.min_silhouette, noise)
    if silhouette is None:
        return labels
    one_cluster = np.zeros(labels.size, np.int64)
    if not _is_beyond_tail(condensed, labels, rule):
        return one_cluster
    spreads = _principal_spreads(tree, condensed, rule.null_gpus)
    rng = np.random.default_rng(rule.seed)
    for _ in range(rule.null_draws):
        points = rng.normal(size=(min(rule.null_gpus, labels.size), spreads.size)) * spreads
        if _best_silhouette(points, rule, silhouette) is not None:
            return one_cluster
    return labels


def _best_silhouette(points: Float64s, rule: CutRule, above: float) -> float | None:
    condensed = pdist(points)
    return _best_cut(hierarchy.linkage(condensed, method="average"), condensed, rule, above)[0]


def _is_beyond_tail(condensed: Float64s, labels: Int64s, rule: CutRule) -> bool:
    """Whether each cluster is further from the main one than the tail of a single skewed distribution.

    Judged along the line between the two: the difference of a GPU's mean squared distances to both is its position on it.
    """
    from clusterscape.analyze.diagnose import kernels

    sizes = np.bincount(labels)
    sums, _, _ = kernels.compare_clusters(condensed**2, labels, sizes.size)
    means = sums / sizes
    for label in range(1, sizes.size):
        both = np.flatnonzero((labels == 0) | (labels == label))
        is_main = labels[both] == 0
        place = means[both, 0] - means[both, label]
        kept = _sample_evenly(place, is_main, rule.null_gpus)
        apart = compute_silhouettes(pdist(place[kept, None]), (~is_main[kept]).astype(np.int64)).mean()
        if apart <= _find_tail_silhouette(kept.size, rule):
            return False
    return True


def _sample_evenly(place: Float64s, is_main: Bools, most: int) -> Int64s:
    """About ``most`` members of two groups, evenly spaced along their order; at least two of each, if it has them."""
    kept = []
    for group in (np.flatnonzero(is_main), np.flatnonzero(~is_main)):
        size = min(group.size, max(2, round(group.size * min(1.0, most / place.size))))
        ordered = group[np.argsort(place[group], kind="stable")]
        kept.append(ordered[np.linspace(0, ordered.size - 1, size).round().astype(np.int64)])
    return np.concatenate(kept)


@lru_cache(maxsize=512)
def _find_tail_silhouette(gpus: int, rule: CutRule) -> float:
    """The best silhouette, over ``null_draws`` draws, from cutting off the tail of an exponential distribution of this size."""
    rng = np.random.default_rng(rule.seed)
    best = (_best_silhouette(rng.exponential(size=(gpus, 1)), rule, 0.0) for _ in range(rule.null_draws))
    return max((silhouette for silhouette in best if silhouette is not None), default=0.0)


def _best_cut(
    tree: Float64s, condensed: Float64s, rule: CutRule, above: float, noise: float = 0.0
) -> tuple[float | None, Int64s]:
    """The best mean silhouette greater than ``above`` of the cuts that pass the rule, and its labels; else None and zeros."""
    size = len(tree) + 1
    best, best_labels = None, np.zeros(size, np.int64)
    for count in range(2, min(MAX_AUTOMATIC_CLUSTERS, size - 1) + 1):
        # Equal heights: no cut gives exactly this number.
        if tree[-count, 2] >= tree[1 - count, 2] or tree[1 - count, 2] <= noise:
            continue
        labels = _cut(tree, count)
        comparison = _Comparison.compute(condensed, labels)
        mean = float(comparison.silhouettes.mean())
        if mean <= max(above, best or 0.0):
            continue
        if _has_clear_edges(comparison, labels, rule):
            best, best_labels = mean, labels
    return best, best_labels


def _has_clear_edges(comparison: _Comparison, labels: Int64s, rule: CutRule) -> bool:
    """Whether clusters are separated even where they are nearest, and nearly all members are clearly nearer to their own."""
    sizes = np.bincount(labels)
    if sizes[0] == 1:
        return False
    for label, size in enumerate(sizes):
        members = labels == label
        if size == 1:
            continue
        worst_tenth = int(size) // 10
        edge = np.partition(comparison.silhouettes[members], worst_tenth)[worst_tenth]
        inner, gap = _gaps(comparison, members)
        if edge < rule.min_edge_silhouette or gap < rule.min_gap_ratio * inner:
            return False
    # A single GPU must be well beyond the most distant member of the main cluster.
    reach = comparison.own[labels == 0].max()
    return bool((comparison.other[sizes[labels] == 1] >= rule.min_alone_ratio * reach).all())


def _gaps(comparison: _Comparison, members: Bools) -> tuple[float, float]:
    """90th percentile of the members' distance to their nearest member, and 10th percentile to the nearest of another cluster."""
    size = int(np.count_nonzero(members))
    worst_tenth = size // 10
    inner = np.partition(comparison.nearest_own[members], size - 1 - worst_tenth)[size - 1 - worst_tenth]
    gap = np.partition(comparison.nearest_other[members], worst_tenth)[worst_tenth]
    return float(inner), float(gap)


def _principal_spreads(tree: Float64s, condensed: Float64s, most: int) -> Float64s:
    """Standard deviations along the principal axes of the GPUs, which random data without clusters must share.

    Classical scaling (Torgerson) of at most ``most`` GPUs, evenly spaced along the leaves of the tree.
    """
    leaves = hierarchy.leaves_list(tree)
    chosen = np.sort(leaves[np.linspace(0, leaves.size - 1, min(most, leaves.size)).astype(np.int64)])
    first, second = np.triu_indices(chosen.size, 1)
    i, j, size = chosen[first], chosen[second], leaves.size
    squared = squareform(condensed[i * size - i * (i + 1) // 2 + j - i - 1] ** 2)
    centered = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    variances = np.linalg.eigvalsh(-0.5 * centered) / max(chosen.size - 1, 1)
    spreads: Float64s = np.sqrt(variances[variances > 1e-9 * variances.max(initial=0.0)])[::-1]
    return spreads


def _cut(tree: Float64s, count: int) -> Int64s:
    from clusterscape.analyze.diagnose import kernels

    labels: Int64s = kernels.label_by_size(kernels.cut(tree, min(count, len(tree) + 1)))
    return labels


def _cut_at(tree: Float64s, height: float) -> Int64s:
    from clusterscape.analyze.diagnose import kernels

    labels: Int64s = kernels.label_by_size(hierarchy.fcluster(tree, height, criterion="distance").astype(np.int64))
    return labels


def _compute_height(tree: Float64s, count: int) -> float:
    """Halfway between the merge that leaves fewer than ``count`` clusters and the merge before."""
    merges = np.concatenate([[0.0], tree[:, 2]])
    count = min(count, merges.size)
    above = merges[-count + 1] if count > 1 else merges[-1] * 1.05
    return float((merges[-count] + above) / 2.0)
