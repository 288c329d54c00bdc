"""The compiled loop that groups a user's repeated jobs. Imported only where it is needed: compiling takes seconds once."""

import numpy as np
from numba import njit

from clusterscape.model.samples import Float64s, Int64s


@njit(cache=True, nogil=True)
def group_repeats(kind: Int64s, run_s: Float64s, tolerance: float) -> Int64s:
    """The group of each job. Jobs are sorted by ``kind`` (user and size) and by submission within it.

    A job joins the first group of its kind whose mean run time so far is within ``tolerance`` of its own, else founds one.
    """
    group = np.empty(len(kind), np.int64)
    means = np.empty(len(kind), np.float64)
    sizes = np.zeros(len(kind), np.int64)
    first = 0
    count = 0
    for job in range(len(kind)):
        if job > 0 and kind[job] != kind[job - 1]:
            first = count
        place = count
        for other in range(first, count):
            if abs(run_s[job] - means[other]) <= tolerance * means[other]:
                place = other
                break
        if place == count:
            means[place] = run_s[job]
            count += 1
        sizes[place] += 1
        means[place] += (run_s[job] - means[place]) / sizes[place]
        group[job] = place
    return group
