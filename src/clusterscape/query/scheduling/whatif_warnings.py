"""Side effects of a change that its mean hides: small workloads that starve, GPUs in fragments, who never starts. Pure."""

from clusterscape.query.scheduling.explaining import describe_span
from clusterscape.query.scheduling.live_queue import LiveQueue
from clusterscape.query.scheduling.whatif_answers import MeasureChange, QueueWhatIf, StartChange, WhatIfWarning

STARVED_S = 1800
"""A small workload that starts so much later, in the middle of the futures and in nine of ten clearly later, starves."""

FRAGMENT_GPUS = 1.0
MOST_NAMED = 8


def find_small(queue: LiveQueue) -> frozenset[str]:
    """Those that ask for less than the largest of their partition do, and at most half of it."""
    most: dict[str, int] = {}
    for job in queue.planned():
        most[job.partition] = max(most.get(job.partition, 0), job.total_gpus)
    return frozenset(job.workload for job in queue.planned() if 2 * job.total_gpus <= most[job.partition])


def find_warnings(
    measures: list[MeasureChange],
    starts: list[StartChange],
    small: frozenset[str],
    refused: tuple[str, ...],
    what: QueueWhatIf,
) -> list[WhatIfWarning]:
    """Everything a reader should know before doing it, the worst first."""
    by_name = {measure.name: measure for measure in measures}
    found = []
    if warning := _find_starvation(by_name, starts, small):
        found.append(warning)
    fragments = by_name["fragmented_gpus"]
    if fragments.verdict == "worse" and fragments.difference >= FRAGMENT_GPUS:
        found.append(
            WhatIfWarning(
                kind="fragmentation",
                title="More GPUs idle in fragments",
                text=f"{fragments.difference:.1f} more GPUs stand idle on average where nobody who waits can use them.",
                workloads=[],
            )
        )
    never = [row.workload for row in starts if row.changed_at is None and row.workload not in refused]
    if never:
        text = f"{len(never)} that wait would not start any more with the nodes that are left."
        found.append(WhatIfWarning(kind="never", title="Some never start", text=text, workloads=never[:MOST_NAMED]))
    if refused:
        limits = ", ".join(f"{gpus} GPUs in {name}" for name, gpus in what.limits.items())
        text = f"{len(refused)} that wait ask for more than the limit of {limits}; they are left out."
        names = list(refused)[:MOST_NAMED]
        found.append(WhatIfWarning(kind="refused", title="Some would be refused", text=text, workloads=names))
    return found


def _find_starvation(
    measures: dict[str, MeasureChange], starts: list[StartChange], small: frozenset[str]
) -> WhatIfWarning | None:
    """Small ones wait longer, clearly, while it is not everybody's lot."""
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
    is_pushed = overall.verdict == "worse" and overall.difference > max(others.difference, 0)
    if not starved and not is_pushed:
        return None
    worst = max((row.change_s or 0 for row in starved), default=overall.difference)
    count = f"{len(starved)} of {len(small)} small workloads" if starved else "Small workloads"
    gain = f", while larger ones gain {describe_span(-others.difference)}" if others.difference < -60 else ""
    return WhatIfWarning(
        kind="starvation",
        title="Small workloads are pushed back",
        text=f"{count} would start later, up to {describe_span(worst)} in the middle of the futures{gain}.",
        workloads=[row.workload for row in sorted(starved, key=lambda row: -(row.change_s or 0))][:MOST_NAMED],
    )
