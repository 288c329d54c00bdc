"""Settles rows that claim the same unit, metric and time: one sample stays. Pure, over arrays."""

import numpy as np
from numpy.typing import NDArray

from clusterscape.ingest.drops import REASON_CODES, DropReason
from clusterscape.model.samples import Float64s, Int32s, Int64s

Reasons = NDArray[np.int8]


def settle_duplicates(
    *, cell: Int64s, time_ms: Int64s, part: Int32s, rank: Int32s, is_counter: NDArray[np.bool_], value: Float64s
) -> tuple[Reasons, Float64s]:
    """Reason codes (0: the row stays) and values, in the order of the rows given.

    Rows of one (cell, time, part) are the same number told several times: the name of the lowest rank is believed, then the
    first row. Different parts of one (cell, time) are one number split by a label: counts are added up, of states the
    greatest stays, which for health checks and links is the worst.
    """
    count = len(cell)
    order = np.lexsort((np.arange(count), rank, part, time_ms, cell))
    ranks, values = rank[order], value[order]
    new_cell = _starts(cell[order], time_ms[order])
    new_part = new_cell | _starts(part[order])
    first = np.maximum.accumulate(np.where(new_part, np.arange(count), 0))
    told_again = np.where(
        ranks != ranks[first],
        REASON_CODES[DropReason.OTHER_NAME],
        np.where(values == values[first], REASON_CODES[DropReason.DUPLICATE], REASON_CODES[DropReason.CONFLICT]),
    )
    reasons = np.where(new_part, 0, told_again)

    numbers = np.flatnonzero(new_part)
    wholes = np.flatnonzero(new_cell[numbers])
    keepers = numbers[wholes]
    sums = np.add.reduceat(values[numbers], wholes)
    greatest = np.maximum.reduceat(values[numbers], wholes)
    values[keepers] = np.where(is_counter[order][keepers], sums, greatest)
    reasons[numbers[~new_cell[numbers]]] = REASON_CODES[DropReason.MERGED]

    settled_reasons, settled_values = np.empty(count, np.int8), np.empty(count)
    settled_reasons[order], settled_values[order] = reasons, values
    return settled_reasons, settled_values


def _starts(*columns: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.bool_]:
    """Where a run of equal rows begins."""
    begins = np.zeros(len(columns[0]), np.bool_)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return begins
