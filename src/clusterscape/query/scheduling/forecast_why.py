"""Why a forecast is what it is: the estimate that was chosen, the start without later jobs, and what makes it uncertain."""

from dataclasses import dataclass
from enum import StrEnum

from clusterscape.analyze.jobs.wait_choice import name_candidate, says_little
from clusterscape.analyze.jobs.wait_intervals import INTERVALS, MIDDLE
from clusterscape.model.arrays import Float64s
from clusterscape.model.identity_fields import PublicText
from clusterscape.model.quantities import format_duration

LOW, HIGH = INTERVALS[0.9]
CERTAIN_S = 60.0
"""A 90 % interval up to this width is certain."""


class WaitUncertainty(StrEnum):
    """What makes a forecast uncertain: run times, or what changes later (new jobs, priorities, cancellations)."""

    NOTHING = "nothing"
    RUN_TIMES = "run_times"
    LATER_JOBS = "later_jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastWhy:
    """``predicted_by``: the chosen estimate. ``alone_at``: likely start if no other job came; with run times as requested, too,
    it is ``plan_at`` of the forecast.

    ``run_times_ratio``: width of the 90 % interval from run times alone ÷ that of the forecast, at most 1; null if it is certain.
    ``says_little``: the interval is too wide to be of use: more than a day, and more than twice the likely wait.
    """

    predicted_by: PublicText
    alone_at: int
    uncertain: WaitUncertainty
    run_times_ratio: float | None
    says_little: bool
    text: PublicText


_UNCERTAIN = {
    WaitUncertainty.NOTHING: "",
    WaitUncertainty.RUN_TIMES: " Mostly run times make it uncertain.",
    WaitUncertainty.LATER_JOBS: " Mostly later jobs and changes of priorities make it uncertain.",
}


def explain_forecast(chosen: int, quantiles_s: Float64s, sampled_s: Float64s, plan_s: float, now: int) -> ForecastWhy:
    """Explains one forecast from its quantiles at the levels of waits: as reported, and as simulated without later jobs.

    ``chosen``: see ``ReportedWaits``; ``plan_s``: the wait by time limits; ``now``: Unix ms.
    """
    alone_s = float(sampled_s[MIDDLE])
    width = float(quantiles_s[HIGH] - quantiles_s[LOW])
    from_runs = float(sampled_s[HIGH] - sampled_s[LOW])
    uncertain, ratio = WaitUncertainty.NOTHING, None
    if width > CERTAIN_S:
        ratio = min(from_runs / width, 1.0)
        uncertain = WaitUncertainty.RUN_TIMES if ratio >= 0.5 else WaitUncertainty.LATER_JOBS
    little = bool(says_little(quantiles_s[None, :])[0])
    name = "plan by limits: it starts at once" if plan_s == 0 else name_candidate(chosen)
    return ForecastWhy(
        predicted_by=name,
        alone_at=int(now + alone_s * 1000),
        uncertain=uncertain,
        run_times_ratio=ratio,
        says_little=little,
        text=(
            f"Predicted by: {name}. If nobody else came, it would start in {format_duration(alone_s)}; if all ran as long as "
            f"requested, too, in {format_duration(plan_s)}.{_UNCERTAIN[uncertain]}"
            f"{' The interval is too wide to be of use.' if little else ''}"
        ),
    )
