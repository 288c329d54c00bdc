"""Side effects of a change that a mean does not show: starved small workloads, fragmentation, jobs that never start. Pure."""

from clusterscape.model.quantities import format_duration
from clusterscape.query.scheduling.live_queue import LiveQueue
from clusterscape.query.scheduling.whatif_answers import MeasureChange, QueueWhatIf, StartChange, WhatIfWarning

STARVED_S = 1800
"""A small workload starves if its median start is this much later, and it starts later in at least 90 % of the futures."""

FRAGMENT_GPUS = 1.0
MAX_NAMED = 8


def find_small(queue: LiveQueue) -> frozenset[str]:
    """Waiting workloads that request at most half as many GPUs as the largest one of their partition."""
    largest: dict[str, int] = {}
    for job in queue.planned():
        largest[job.partition] = max(largest.get(job.partition, 0), job.total_gpus)
    return frozenset(job.workload for job in queue.planned() if 2 * job.total_gpus <= largest[job.partition])


def find_warnings(
    measures: list[MeasureChange],
    starts: list[StartChange],
    small: frozenset[str],
    refused: tuple[str, ...],
    change: QueueWhatIf,
) -> list[WhatIfWarning]:
    """Side effects to consider before the change is made, worst first."""
    by_name = {measure.name: measure for measure in measures}
    warnings = []
    if warning := _find_starvation(by_name, starts, small):
        warnings.append(warning)
    fragments = by_name["fragmented_gpus"]
    if fragments.verdict == "worse" and fragments.difference >= FRAGMENT_GPUS:
        warnings.append(
            WhatIfWarning(
                kind="fragmentation",
                title="More fragmentation",
                text=f"On average, {fragments.difference:.1f} more GPUs are idle on nodes where no waiting workload fits.",
                workloads=[],
            )
        )
    never = [row.workload for row in starts if row.changed_at is None and row.workload not in refused]
    if never:
        text = f"{_count(len(never))} would never start on the remaining nodes."
        warnings.append(
            WhatIfWarning(kind="never", title="Some workloads never start", text=text, workloads=never[:MAX_NAMED])
        )
    if refused:
        limits = ", ".join(f"{gpus} GPUs in {name}" for name, gpus in change.limits.items())
        text = f"{_count(len(refused))} would exceed the limit of {limits} and were not simulated."
        names = list(refused)[:MAX_NAMED]
        warnings.append(
            WhatIfWarning(kind="refused", title="Some workloads would be rejected", text=text, workloads=names)
        )
    return warnings


def _find_starvation(
    measures: dict[str, MeasureChange], starts: list[StartChange], small: frozenset[str]
) -> WhatIfWarning | None:
    """A warning if small workloads wait significantly longer, and more so than others."""
    starved = [
        row
        for row in starts
        if row.workload in small
        and row.change_s is not None
        and row.low_s is not None
        and row.change_s >= STARVED_S
        and row.low_s > 0
    ]
    overall = measures["small_wait_s"]
    others = measures["large_wait_s"]
    is_delayed = overall.verdict == "worse" and overall.difference > max(others.difference, 0)
    if not starved and not is_delayed:
        return None
    worst = max((row.change_s or 0 for row in starved), default=overall.difference)
    count = f"{len(starved)} of {len(small)} small workloads" if starved else "Small workloads"
    gain = f", while larger ones start {format_duration(-others.difference)} sooner" if others.difference < -60 else ""
    return WhatIfWarning(
        kind="starvation",
        title="Small workloads are pushed back",
        text=f"{count} would start later, by up to {format_duration(worst)} (median over the futures){gain}.",
        workloads=[row.workload for row in sorted(starved, key=lambda row: -(row.change_s or 0))][:MAX_NAMED],
    )


def _count(workloads: int) -> str:
    return "1 waiting workload" if workloads == 1 else f"{workloads} waiting workloads"
