"""From the leaves of a forest to quantiles of run times, compiled. Importing this imports numba. Callers own all arrays."""

import numpy as np
from numba import njit

from clusterscape.model.samples import Float64s, Int64s

FEWEST_LEFT = 1e-3
"""A job that has outlived all but this share of its like is beyond them: its distribution is that of the last bin."""


@njit(cache=True, nogil=True)
def condition(
    leaves: Float64s,
    found: Int64s,
    edges: Float64s,
    request: Float64s,
    elapsed: Float64s,
    levels: Float64s,
    out: Float64s,
) -> None:
    """Quantiles of the run at ``levels`` given that it is longer than ``elapsed``, a row per job, seconds.

    ``leaves``: shares by tree, leaf and bin; ``found``: each job's leaves; ``edges``: of the bins of log(run ÷ request).
    """
    bins, trees = edges.size - 1, found.shape[1]
    shares = np.empty(bins)
    for row in range(found.shape[0]):
        shares[:] = 0.0
        for tree in range(trees):
            leaf = found[row, tree]
            for at in range(bins):
                shares[at] += leaves[tree, leaf, at]
        floor = np.log(elapsed[row] / request[row]) if elapsed[row] > 0.0 else edges[0]
        total = 0.0
        for at in range(bins):
            if edges[at + 1] <= floor:
                shares[at] = 0.0
            elif edges[at] < floor:
                shares[at] *= (edges[at + 1] - floor) / (edges[at + 1] - edges[at])
            total += shares[at]
        if total < FEWEST_LEFT * trees:
            for place in range(levels.size):
                out[row, place] = elapsed[row] * (1.0 + 0.2 * levels[place]) + 1.0
            continue
        at, below = 0, 0.0
        for place in range(levels.size):
            wanted = levels[place] * total
            while at < bins - 1 and below + shares[at] < wanted:
                below += shares[at]
                at += 1
            low = max(edges[at], floor)
            part = (wanted - below) / shares[at] if shares[at] > 0.0 else 1.0
            out[row, place] = np.exp(low + min(max(part, 0.0), 1.0) * (edges[at + 1] - low)) * request[row]
            if elapsed[row] > 0.0:
                out[row, place] = max(out[row, place], elapsed[row] + 1.0)
