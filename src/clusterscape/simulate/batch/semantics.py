"""Every choice that public simulators make silently, as one named option each, and the presets that reproduce some of them."""

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Semantics:
    """How a simulation decides where the name of a policy leaves it open. All of it goes into a result's fingerprint."""

    events: Literal["batch", "one_by_one"] = "batch"
    """Things of the same second are all taken in before the queue is looked at, or the queue is looked at after each."""

    same_time: Literal["end_first", "submit_first"] = "end_first"
    """Which of an end and a submission at the same second comes first, one by one."""

    freed: Literal["at_end", "at_estimated_end"] = "at_end"
    """When processors count as free: when the end is told, or from the second of the estimated end on even before that."""

    extra_nodes: bool = True
    """A candidate may run past the promise on processors that will be left over then."""

    bound: Literal["inclusive", "strict"] = "inclusive"
    """A candidate may end at the second of the promise, or only before it."""

    promise: Literal["recomputed", "fixed"] = "recomputed"
    """The reservation that candidates respect follows each early end, or stays as it was when the head first blocked."""

    head: Literal["reordered", "kept"] = "reordered"
    """A job of better rank takes over as head, or a head stays head until it starts."""

    candidate_order: Literal["queue", "submit"] = "queue"
    """Candidates are tried in the order of the policy, or by submission whatever the policy.

    EASY-SJBF tries them by estimate always, frugal backfilling as ``frugal_by`` says.
    """

    candidate_time: Literal["estimate", "actual"] = "estimate"
    """What a candidate is tested with."""

    over_limit: Literal["raise_estimate", "kill", "exchange"] = "raise_estimate"
    """A job that ran longer than it asked for: estimate = run; or run = request; or both at once."""

    relaxation_base: Literal["expected_wait", "remaining_wait", "request"] = "expected_wait"
    """What the relaxation factor multiplies: promise − submission, promise − now, or the head's estimate."""

    adaptive_queue: Literal["each_pass", "when_blocked"] = "each_pass"
    """When adaptive relaxation measures the queue: at each look at it, or once when the head blocks."""

    adaptive_cap: Literal["none", "at_full_share"] = "none"
    """Whether a queue longer than q0 relaxes promises further than ω."""

    frugal_by: Literal["area", "processors", "estimate"] = "area"
    """What is small to frugal backfilling, which tries the smallest candidates first. Area: processors × estimate."""

    ties: Literal["file_order", "job_id"] = "file_order"
    """Who goes first at equal scores (after the earlier submission)."""

    rounding: Literal["nearest", "up"] = "nearest"
    """How fractions of a second in a trace become whole seconds. A run lasts at least one."""

    trim: Literal["none", "pyss"] = "none"
    """Which jobs count in measures. pyss: not the first 1 % to end, none that ends after the last submission, no 1 s × 1 jobs."""

    utilization_share: float = 1.0
    """Utilization is taken over this first share of the time from the first submission to the last end."""


CLUSTERSCAPE = Semantics()

PYSS = Semantics(
    events="one_by_one",
    same_time="submit_first",
    freed="at_estimated_end",
    over_limit="exchange",
    ties="file_order",
)
"""pyss (as in predictsim, 2015). Measures are taken over the whole file: the published averages are, too."""

DIRLAB = Semantics(
    events="one_by_one",
    same_time="submit_first",
    extra_nodes=False,
    bound="strict",
    promise="fixed",
    head="kept",
    candidate_order="submit",
)
"""deep-batch-scheduler and RLBackfilling of DIR-LAB."""

CQSIM = Semantics(events="one_by_one", candidate_time="actual")
"""CQSim: candidates are tested with their actual run time. From its description; no schedule of it is at hand to compare."""

POSTER = replace(
    DIRLAB,
    events="batch",
    adaptive_queue="when_blocked",
    adaptive_cap="at_full_share",
    utilization_share=0.95,
)
"""What fits the relaxed-backfilling table of Zhang & Dai best: DIR-LAB's rules, all events of a second at once."""

PRESETS = {"clusterscape": CLUSTERSCAPE, "pyss": PYSS, "dirlab": DIRLAB, "cqsim": CQSIM, "poster": POSTER}
