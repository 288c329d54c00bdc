"""GPUs that behave alike, from their distances: the tree, where to cut it, and labels that keep their color."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.cluster import hierarchy
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist, squareform

from clusterscape.analyze.diagnose.samples import Flags, Floats, Ints

Linkage = Literal["average", "single", "complete", "weighted", "ward", "centroid", "median"]

MAX_AUTOMATIC_CLUSTERS = 12


class CutKind(StrEnum):
    """Who chose the cut."""

    AUTOMATIC = "automatic"
    HEIGHT = "height"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class CutRule:
    """When the automatic cut believes in clusters (docs/design/diagnostics.md)."""

    min_silhouette: float = 0.25  # mean of all GPUs: below it there is no structure worth a color
    min_edge_silhouette: float = 0.1  # of the worst tenth of each cluster: in a continuum it is near 0
    min_gap_ratio: float = (
        1.25  # between clusters, in the largest distance of a member to its nearest: a tail has gaps, too
    )
    min_alone_ratio: float = 3.0  # a GPU alone: its distance, in mean distances of the cluster's most distant member
    null_draws: int = 39  # clouds without clusters that must all look less clustered: significance 1 in 40
    null_gpus: int = 96  # of at most so many points
    seed: int = 20230701


@dataclass(frozen=True, slots=True)
class Clustering:
    """Clusters of the ``compared`` GPUs, largest first.

    ``labels`` (aligned with ``compared``) count from 0, the main cluster; ``tree`` is SciPy's linkage matrix over
    ``compared``; ``left_out`` are GPUs without enough samples to compare. ``silhouette`` is the mean, None for one cluster.
    """

    labels: Ints
    compared: Ints
    left_out: Ints
    tree: Floats
    height: float
    cut: CutKind
    silhouette: float | None
    notes: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many clusters there are."""
        return int(self.labels.max(initial=-1)) + 1

    def members(self, label: int) -> Ints:
        """The GPUs (columns) of a cluster."""
        columns: Ints = self.compared[self.labels == label]
        return columns


def cluster(
    condensed: Floats,
    *,
    linkage: Linkage = "average",
    count: int | None = None,
    height: float | None = None,
    noise: float = 0.0,
    rule: CutRule | None = None,
) -> Clustering:
    """Agglomerative clusters from condensed distances (NaN: missing pair). Deterministic.

    ``count`` or ``height`` set the cut; otherwise it is chosen: of 2 … 12 clusters the number with the best mean
    silhouette, if that and the silhouettes at the clusters' edges pass ``rule`` and clusters are further apart than
    ``noise``, the distance that GPUs of the same kind have by chance or rounding; else all GPUs are one cluster.
    "ward", "centroid" and "median" mean something for Euclidean distances only (SciPy's warning, ours too).
    """
    if count is not None and height is not None:
        raise ValueError("give a number of clusters or a height, not both")
    if count is not None and count < 1:
        raise ValueError("at least one cluster")
    compared, left_out, complete, notes = _complete(condensed)
    if compared.size < 2:
        labels = np.zeros(compared.size, np.int64)
        return Clustering(labels, compared, left_out, np.empty((0, 4)), 0.0, CutKind.AUTOMATIC, None, notes)
    tree: Floats = hierarchy.linkage(complete, method=linkage)
    kind = CutKind.AUTOMATIC
    if count is not None:
        kind, labels, cut_height = CutKind.COUNT, _cut(tree, count), _height_of(tree, count)
    elif height is not None:
        kind, labels, cut_height = CutKind.HEIGHT, _cut_at(tree, height), float(height)
    else:
        labels = _choose_cut(tree, complete, noise, rule or CutRule())
        cut_height = _height_of(tree, int(labels.max()) + 1)
    silhouette = float(compute_silhouettes(complete, labels).mean()) if labels.max() > 0 else None
    return Clustering(labels, compared, left_out, tree, cut_height, kind, silhouette, notes)


def compute_silhouettes(condensed: Floats, labels: Ints) -> Floats:
    """Rousseeuw's silhouette of each GPU: (b − a) / max(a, b), 0 for a GPU alone in its cluster.

    a is the mean distance to its own cluster, b to the nearest other one. Needs two clusters or more.
    """
    return _Comparison.compute(condensed, labels).silhouettes


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Of each GPU: mean distance to its own and to the nearest other cluster, nearest GPU of each, silhouette."""

    own: Floats
    other: Floats
    nearest_own: Floats
    nearest_other: Floats
    silhouettes: Floats

    @classmethod
    def compute(cls, condensed: Floats, labels: Ints) -> "_Comparison":
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


def match_colors(previous: Ints, current: Ints) -> Ints:
    """A color number for each current label so that most GPUs keep the one they had.

    Parameters
    ----------
    previous : (GPU,) color numbers of the last time; current : (GPU,) labels now; both of the same GPUs in the same order.

    Overlaps are matched as a whole (Hungarian algorithm); clusters that match none get the lowest unused numbers.
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


def _complete(condensed: Floats) -> tuple[Ints, Ints, Floats, tuple[str, ...]]:
    """GPUs that can be compared, the others, complete distances of the former, and what was done about missing pairs."""
    size = round((1.0 + (1.0 + 8.0 * condensed.size) ** 0.5) / 2.0) if condensed.size else 1
    everyone = np.arange(size)
    if not np.isnan(condensed).any():
        return everyone, everyone[:0], condensed, ()
    square: Floats = squareform(np.where(np.isnan(condensed), 0.0, condensed))
    is_missing: Flags = squareform(np.isnan(condensed).astype(np.int8)).astype(np.bool_)
    kept = everyone
    # A GPU that cannot be compared with half of the others goes; worst first, since the rest may then be complete.
    while kept.size > 1:
        missing = is_missing[np.ix_(kept, kept)].sum(axis=1)
        if 2 * missing.max() < kept.size:
            break
        kept = np.delete(kept, int(missing.argmax()))
    left_out = np.setdiff1d(everyone, kept)
    square, is_missing = square[np.ix_(kept, kept)], is_missing[np.ix_(kept, kept)]
    notes = []
    if left_out.size:
        notes.append(f"{left_out.size} of {size} GPUs have too few samples to be compared and are in no cluster.")
    pairs = np.argwhere(np.triu(is_missing, 1))
    if pairs.size:
        notes.append(
            f"{len(pairs)} pairs of GPUs were never measured at the same time; their distance is estimated from the others."
        )
    for i, j in pairs:
        # As far as the tree would join them through a third: exact in an ultrametric space.
        is_common = ~(is_missing[i] | is_missing[j])
        is_common[[i, j]] = False
        square[i, j] = square[j, i] = (
            np.median(np.maximum(square[i], square[j])[is_common]) if is_common.any() else square.max()
        )
    return kept, left_out, squareform(square, checks=False), tuple(notes)


def _choose_cut(tree: Floats, condensed: Floats, noise: float, rule: CutRule) -> Ints:
    """Labels of the best number of clusters; all 0 where none passes the rule, or clouds without clusters do as well."""
    if tree[-1, 2] <= noise:
        return np.zeros(len(tree) + 1, np.int64)
    silhouette, labels = _best_cut(tree, condensed, rule, rule.min_silhouette, noise)
    if silhouette is None:
        return labels
    nothing = np.zeros(labels.size, np.int64)
    if not _is_beyond_a_tail(condensed, labels, rule):
        return nothing
    spreads = _principal_spreads(tree, condensed, rule.null_gpus)
    rng = np.random.default_rng(rule.seed)
    for _ in range(rule.null_draws):
        cloud = rng.normal(size=(min(rule.null_gpus, labels.size), spreads.size)) * spreads
        if _best_silhouette(cloud, rule, silhouette) is not None:
            return nothing
    return labels


def _best_silhouette(cloud: Floats, rule: CutRule, above: float) -> float | None:
    condensed = pdist(cloud)
    return _best_cut(hierarchy.linkage(condensed, method="average"), condensed, rule, above)[0]


def _is_beyond_a_tail(condensed: Floats, labels: Ints, rule: CutRule) -> bool:
    """Whether each cluster is further from the main one than the long tail of one skewed spread would look.

    Along the line from one to the other: the difference of a GPU's mean squared distances to both is its place on it.
    """
    from clusterscape.analyze.diagnose import kernels

    sizes = np.bincount(labels)
    sums, _, _ = kernels.compare_clusters(condensed**2, labels, sizes.size)
    means = sums / sizes
    for label in range(1, sizes.size):
        both = np.flatnonzero((labels == 0) | (labels == label))
        is_main = labels[both] == 0
        place = means[both, 0] - means[both, label]
        kept = _thin(place, is_main, rule.null_gpus)
        apart = compute_silhouettes(pdist(place[kept, None]), (~is_main[kept]).astype(np.int64)).mean()
        if apart <= _find_tail_silhouette(kept.size, rule):
            return False
    return True


def _thin(place: Floats, is_main: Flags, most: int) -> Ints:
    """At most about ``most`` of two groups, evenly along their order; of each at least two, where it has them."""
    kept = []
    for group in (np.flatnonzero(is_main), np.flatnonzero(~is_main)):
        wanted = min(group.size, max(2, round(group.size * min(1.0, most / place.size))))
        ordered = group[np.argsort(place[group], kind="stable")]
        kept.append(ordered[np.linspace(0, ordered.size - 1, wanted).round().astype(np.int64)])
    return np.concatenate(kept)


@lru_cache(maxsize=512)
def _find_tail_silhouette(gpus: int, rule: CutRule) -> float:
    """The best silhouette that cutting off the tail of an exponential spread of so many GPUs gives, of ``null_draws``."""
    rng = np.random.default_rng(rule.seed)
    best = (_best_silhouette(rng.exponential(size=(gpus, 1)), rule, 0.0) for _ in range(rule.null_draws))
    return max((each for each in best if each is not None), default=0.0)


def _best_cut(
    tree: Floats, condensed: Floats, rule: CutRule, above: float, noise: float = 0.0
) -> tuple[float | None, Ints]:
    """The best mean silhouette over ``above`` of the cuts that pass the rule, and its labels; else None and zeros."""
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


def _has_clear_edges(comparison: _Comparison, labels: Ints, rule: CutRule) -> bool:
    """Whether clusters are apart where they are nearest, and nearly all members clearly nearer to their own."""
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
    # A cluster reaches as far as its most distant member; a GPU alone must be well beyond the main one's reach.
    reach = comparison.own[labels == 0].max()
    return bool((comparison.other[sizes[labels] == 1] >= rule.min_alone_ratio * reach).all())


def _gaps(comparison: _Comparison, members: Flags) -> tuple[float, float]:
    """How far nine tenths of the members are at most from their nearest, and at least from the nearest of another cluster."""
    size = int(np.count_nonzero(members))
    worst_tenth = size // 10
    inner = np.partition(comparison.nearest_own[members], size - 1 - worst_tenth)[size - 1 - worst_tenth]
    gap = np.partition(comparison.nearest_other[members], worst_tenth)[worst_tenth]
    return float(inner), float(gap)


def _principal_spreads(tree: Floats, condensed: Floats, most: int) -> Floats:
    """Standard deviations along the principal axes of the GPUs' cloud: what a cloud without clusters must share with it.

    Classical scaling (Torgerson) of at most ``most`` GPUs, taken evenly along the leaves of the tree.
    """
    leaves = hierarchy.leaves_list(tree)
    chosen = np.sort(leaves[np.linspace(0, leaves.size - 1, min(most, leaves.size)).astype(np.int64)])
    first, second = np.triu_indices(chosen.size, 1)
    i, j, size = chosen[first], chosen[second], leaves.size
    squared = squareform(condensed[i * size - i * (i + 1) // 2 + j - i - 1] ** 2)
    centered = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    variances = np.linalg.eigvalsh(-0.5 * centered) / max(chosen.size - 1, 1)
    spreads: Floats = np.sqrt(variances[variances > 1e-9 * variances.max(initial=0.0)])[::-1]
    return spreads


def _cut(tree: Floats, count: int) -> Ints:
    from clusterscape.analyze.diagnose import kernels

    labels: Ints = kernels.label_by_size(kernels.cut(tree, min(count, len(tree) + 1)))
    return labels


def _cut_at(tree: Floats, height: float) -> Ints:
    from clusterscape.analyze.diagnose import kernels

    labels: Ints = kernels.label_by_size(hierarchy.fcluster(tree, height, criterion="distance").astype(np.int64))
    return labels


def _height_of(tree: Floats, count: int) -> float:
    """Half-way between the merge that would make it fewer than ``count`` clusters and the one before."""
    merges = np.concatenate([[0.0], tree[:, 2]])
    count = min(count, merges.size)
    above = merges[-count + 1] if count > 1 else merges[-1] * 1.05
    return float((merges[-count] + above) / 2.0)
