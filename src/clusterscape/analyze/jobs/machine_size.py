"""Guesses the size of a machine from its jobs, where a trace does not state it, and says why.

The largest number of units that were busy at once is not a safe guess: recorded times overlap in many logs (Mira's add up to
three times its nodes). But if the largest jobs had the machine nearly to themselves, and it could have done all the work, it is
as large as they are.
"""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.levels import Level
from clusterscape.model.arrays import Float64s
from clusterscape.model.identity_fields import PublicText

LARGEST_SHARE = 0.95  # of the largest size: the largest jobs
LEAST_JOBS = 3  # jobs of this size at least: fewer may be a coincidence
ALONE_RATIO = 0.5  # others while the largest jobs ran (median), relative to the mean of the trace


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSize:
    """``units``: of the machine; ``reason``: a sentence that says what the guess rests on."""

    units: int
    reason: PublicText


def guess_machine_size(
    start_s: Float64s, end_s: Float64s, size: Float64s, busy: Level, unit: str
) -> MachineSize | None:
    """The size of the machine that ran these jobs; None without a job that ran. ``busy``: units in use over time. O(n log n)."""
    has_run = end_s > start_s
    if not has_run.any():
        return None
    start_s, end_s, size = start_s[has_run], end_s[has_run], size[has_run]
    largest, peak = float(size.max()), float(busy.after.max())
    span_s = float(end_s.max() - start_s.min())
    mean_busy = float(busy.area[-1]) / max(span_s, 1.0)
    if peak <= largest:
        return MachineSize(
            units=round(largest), reason=f"the largest job used {largest:,.0f} {unit}, and never more were busy"
        )
    is_largest = size >= LARGEST_SHARE * largest
    run_s = end_s[is_largest] - start_s[is_largest]
    others = (busy.integral(end_s[is_largest]) - busy.integral(start_s[is_largest])) / run_s - size[is_largest]
    others_busy = float(np.median(others))
    if is_largest.sum() >= LEAST_JOBS and mean_busy <= largest and others_busy < ALONE_RATIO * mean_busy:
        return MachineSize(
            units=round(largest),
            reason=f"its {is_largest.sum()} largest jobs ({largest:,.0f} {unit}) ran with few others: "
            f"{max(others_busy, 0.0):,.0f} {unit} (median), {mean_busy:,.0f} on average. "
            f"Recorded times overlap to {peak:,.0f} at most",
        )
    return MachineSize(units=round(peak), reason=f"at most {peak:,.0f} {unit} were busy at once; it may be larger")
