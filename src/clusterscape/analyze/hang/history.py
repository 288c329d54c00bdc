"""Which call a rank's own past predicts: training repeats its calls, so the call that breaks the pattern is the wrong one."""

from collections.abc import Hashable, Sequence

MOST_CONTEXT = 24
"""The most calls that a prediction looks back."""
LEAST_CONTEXT = 2
"""Fewer equal calls do not count as a pattern."""


def predict_next(past: Sequence[Hashable]) -> Hashable | None:
    """What followed the longest earlier occurrence of the end of ``past``; None if it is shorter than ``LEAST_CONTEXT``.

    Quadratic in the number of calls that are kept of a rank.
    """
    best: Hashable | None = None
    longest = LEAST_CONTEXT - 1
    for end in range(len(past) - 1, 0, -1):
        length = 0
        while length < min(end, MOST_CONTEXT) and past[end - 1 - length] == past[len(past) - 1 - length]:
            length += 1
        if length > longest:
            longest, best = length, past[end]
    return best
