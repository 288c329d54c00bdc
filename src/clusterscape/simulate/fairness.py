"""Who pays for a schedule: fairness over users, and the waits of small and large jobs beside those of another schedule.

Pure columns in, numbers out; both engines' schedules are judged by it.
"""

from dataclasses import dataclass

import numpy as np

from clusterscape.model.samples import Float64s, Int64s

STARVED_RATIO = 2.0
"""A class of jobs is starved where its 99th percentile of waits is this many times the reference's …"""

STARVED_S = 3600.0
"""… and longer by more than this."""


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Jobs of ``low`` to ``high`` GPUs (processors, nodes): how many, and the 99th percentile and the longest of their waits."""

    low: int
    high: int
    jobs: int
    p99_wait_s: float
    max_wait_s: float
    reference_p99_s: float | None = None
    reference_max_s: float | None = None

    @property
    def is_starved(self) -> bool:
        """Whether these jobs wait far longer than in the reference."""
        if self.reference_p99_s is None:
            return False
        longer_s = self.p99_wait_s - self.reference_p99_s
        return longer_s > STARVED_S and self.p99_wait_s > STARVED_RATIO * self.reference_p99_s


def compute_jain(values: Float64s, users: Int64s) -> float | None:
    """Jain's index of the users' means: 1 where all fare alike, 1/users where one has it all; None without users."""
    if len(values) == 0:
        return None
    sums, counts = np.bincount(users, values), np.bincount(users)
    means = sums[counts > 0] / counts[counts > 0]
    squares = float((means**2).sum())
    return float(means.sum() ** 2 / (len(means) * squares)) if squares > 0 else 1.0


def compare_sizes(wait_s: Int64s, size: Int64s, reference_wait_s: Int64s | None = None) -> tuple[SizeClass, ...]:
    """Waits by size, in classes that double (1, 2, 3–4, 5–8, …), beside the same jobs' waits in a reference."""
    classes = np.ceil(np.log2(np.maximum(size, 1))).astype(np.int64)
    found = []
    for power in np.unique(classes).tolist():
        chosen = classes == power
        theirs = None if reference_wait_s is None else reference_wait_s[chosen]
        found.append(
            SizeClass(
                low=(1 << power - 1) + 1 if power > 0 else 1,
                high=1 << power,
                jobs=int(chosen.sum()),
                p99_wait_s=float(np.quantile(wait_s[chosen], 0.99)),
                max_wait_s=float(wait_s[chosen].max()),
                reference_p99_s=None if theirs is None else float(np.quantile(theirs, 0.99)),
                reference_max_s=None if theirs is None else float(theirs.max()),
            )
        )
    return tuple(found)
