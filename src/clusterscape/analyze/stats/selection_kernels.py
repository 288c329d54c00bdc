"""Compiled selection: the sample that sorting would put at a place, without sorting. What exact percentiles are found by."""

from numba import njit

from clusterscape.model.samples import Float64s


@njit(cache=True, nogil=True)
def _select(values: Float64s, low: int, high: int, place: int) -> None:
    """Reorder ``values[low:high]`` so that what stands at ``place`` is what sorting would put there, with no greater before it.

    Quickselect that moves elements without branches, as their order is anyone's guess, and sets equal ones aside, as idle and
    busy GPUs show the same number all the time.
    """
    while high - low > 1:
        pivot = values[(low + high) // 2]
        less = low
        for k in range(low, high):
            value = values[k]
            values[k] = values[less]
            values[less] = value
            less += value < pivot
        if place < less:
            high = less
            continue
        equal = less
        for k in range(less, high):
            value = values[k]
            values[k] = values[equal]
            values[equal] = value
            equal += value == pivot
        if place < equal:
            return
        low = equal


@njit(cache=True, nogil=True)
def select_linear(values: Float64s, low: int, count: int, below: int, weight: float) -> float:
    """What lies ``weight`` of the way from the sample that sorting would put at ``below`` to the next; reorders ``values``.

    What stands before ``low`` is in its place already, from an earlier call.
    """
    _select(values, low, count, below)
    if weight == 0.0:
        return float(values[below])
    above = values[below + 1]
    for k in range(below + 2, count):
        above = min(above, values[k])
    return float(values[below] + (above - values[below]) * weight)


@njit(cache=True, nogil=True)
def sort_few(values: Float64s, count: int) -> None:
    """Sort ``values[:count]`` by insertion: the fastest for a dozen or so."""
    for i in range(1, count):
        value, place = values[i], i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value
