"""How a metric is distributed on each GPU: histograms over shared bins, and how far two of them are apart."""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.diagnose.samples import Floats, Ints


@dataclass(frozen=True, slots=True)
class Histograms:
    """``edges`` (bins + 1) are shared; ``counts`` (GPU × bins); ``empty`` are the GPUs without any sample."""

    edges: Floats
    counts: Ints
    empty: Ints


def compute_histograms(values: Floats, *, bins: int = 100, domain: tuple[float, float] | None = None) -> Histograms:
    """Histograms of every GPU over the same equal bins.

    Parameters
    ----------
    values : (T × GPU), NaN where missing; missing samples are left out.
    domain : (low, high) of the bins; None for the least and largest value of all GPUs. What lies outside counts in the
        first or last bin, so that no sample disappears. A domain without width is widened by ½ to both sides (as numpy does).

    With ``domain=None`` equal to ``numpy.histogram(column, bins, range=(min, max))`` of each column.
    """
    from clusterscape.analyze.diagnose import kernels

    if bins < 1:
        raise ValueError("a histogram needs at least one bin")
    is_known = ~np.isnan(values)
    if domain is None:
        domain = (float(np.nanmin(values)), float(np.nanmax(values))) if is_known.any() else (0.0, 1.0)
    low, high = domain
    if not low < high:
        low, high = low - 0.5, low + 0.5
    edges = np.linspace(low, high, bins + 1)
    counts = kernels.histograms(np.ascontiguousarray(values.T), edges)
    return Histograms(edges, counts, np.flatnonzero(~is_known.any(axis=0)))


def compute_sampling_noise(counts: Ints) -> float:
    """How far two GPUs are apart that draw from the same distribution: the Jensen–Shannon distance to expect by chance.

    √((B − 1) / 4N) for N samples (the median of the GPUs) over B occupied bins: JS ≈ χ² / 8 with variance 2/N per bin.
    """
    totals = counts.sum(axis=1)
    occupied = int((counts.sum(axis=0) > 0).sum())
    usual = float(np.median(totals[totals > 0])) if (totals > 0).any() else 0.0
    return ((max(occupied, 1) - 1) / (4.0 * usual)) ** 0.5 if usual else 0.0


def compute_jensen_shannon(weights: Floats | Ints) -> Floats:
    """Jensen–Shannon distance (root of the divergence, natural logarithm) of all pairs of rows, condensed.

    Parameters
    ----------
    weights : (GPU × bins), ≥ 0; each row is normalized. A row without weight has no distribution: its distances are NaN.

    Equal to ``scipy.spatial.distance.pdist(weights, "jensenshannon")`` to 1e-9. Lin, Divergence measures based on the
    Shannon entropy (1991); Endres and Schindelin (2003) for the root being a metric.
    """
    from clusterscape.analyze.diagnose import kernels

    count, bins = weights.shape
    if count < 2:
        return np.empty(0)
    totals = weights.sum(axis=1, dtype=np.float64)
    # The order of bins does not matter; with seldom filled ones together, whole blocks of them can be skipped.
    order = np.argsort(-np.count_nonzero(weights, axis=0), kind="stable")
    padded = np.zeros((count, -(-bins // kernels.LANES) * kernels.LANES))
    np.divide(weights[:, order], totals[:, None], out=padded[:, :bins], where=totals[:, None] > 0)
    condensed: Floats = kernels.jensen_shannon(padded)
    is_empty = totals == 0
    if is_empty.any():
        first, second = np.triu_indices(count, 1)
        condensed[is_empty[first] | is_empty[second]] = np.nan
    return condensed
