"""The implicit choices of public simulators, one named option each, and presets that reproduce some simulators."""

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Semantics:
    """Details of a simulation that the name of a policy leaves open. All options are part of a result's fingerprint."""

    events: Literal["batch", "one_by_one"] = "batch"
    """Whether all events of one second come before one scheduling pass, or each event is followed by a pass."""

    same_time: Literal["end_first", "submit_first"] = "end_first"
    """Whether an end or a submission of the same second comes first, if events are processed one by one."""

    freed: Literal["at_end", "at_estimated_end"] = "at_end"
    """When processors become free: when the end is processed, or already at the estimated end."""

    extra_nodes: bool = True
    """Whether a candidate may run past the promise on processors that the head does not need."""

    bound: Literal["inclusive", "strict"] = "inclusive"
    """Whether a candidate may end at the second of the promise, or only before it."""

    promise: Literal["recomputed", "fixed"] = "recomputed"
    """Whether the reservation is recomputed after each early end, or fixed when the head first blocks."""

    head: Literal["reordered", "kept"] = "reordered"
    """Whether a job of better rank becomes the head, or a head stays head until it starts."""

    candidate_order: Literal["queue", "submit"] = "queue"
    """Whether candidates are tried in the order of the policy, or by submission.

    EASY-SJBF always tries them by estimate, frugal backfilling by ``frugal_by``.
    """

    candidate_time: Literal["estimate", "actual"] = "estimate"
    """The run time that backfilling assumes for a candidate."""

    over_limit: Literal["raise_estimate", "kill", "exchange"] = "raise_estimate"
    """A job that ran longer than its request: set estimate = run, or run = request, or both."""

    relaxation_base: Literal["expected_wait", "remaining_wait", "request"] = "expected_wait"
    """What the relaxation factor multiplies: promise − submission, promise − now, or the head's estimate."""

    adaptive_queue: Literal["each_pass", "when_blocked"] = "each_pass"
    """When adaptive relaxation measures the queue length: at each pass, or once when the head blocks."""

    adaptive_cap: Literal["none", "at_full_share"] = "none"
    """Whether a queue longer than q0 relaxes promises beyond ω."""

    frugal_by: Literal["area", "processors", "estimate"] = "area"
    """The size by which frugal backfilling tries the smallest candidates first. Area: processors × estimate."""

    ties: Literal["file_order", "job_id"] = "file_order"
    """The order of jobs with equal scores and equal submission times."""

    rounding: Literal["nearest", "up"] = "nearest"
    """How fractions of a second in a trace become whole seconds. A run lasts at least one."""

    trim: Literal["none", "pyss"] = "none"
    """Which jobs count in measures. pyss excludes the first 1 % to end, those that end after the last submission, and 1 s × 1."""

    utilization_share: float = 1.0
    """Utilization is measured over this first share of the time from the first submission to the last end."""


CLUSTERSCAPE = Semantics()

PYSS = Semantics(
    events="one_by_one",
    same_time="submit_first",
    freed="at_estimated_end",
    over_limit="exchange",
    ties="file_order",
)
"""pyss (as in predictsim, 2015). Measures cover the whole file, as the published averages do."""

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
"""CQSim: backfilling uses actual run times. From its description; not compared with its schedules."""

POSTER = replace(
    DIRLAB,
    events="batch",
    adaptive_queue="when_blocked",
    adaptive_cap="at_full_share",
    utilization_share=0.95,
)
"""Best match of the relaxed-backfilling table of Zhang & Dai: DIR-LAB's rules with all events of a second at once."""

PRESETS = {"clusterscape": CLUSTERSCAPE, "pyss": PYSS, "dirlab": DIRLAB, "cqsim": CQSIM, "poster": POSTER}
