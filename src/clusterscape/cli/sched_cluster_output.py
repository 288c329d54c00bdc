"""How simulations of GPU clusters are told: measures, waits by size beside first come first served, schedules as SWF."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from clusterscape.cli.output import answers, errors, listing_table, print_json
from clusterscape.cli.sched_cluster import ClusterChoices, Described, make_cluster_scenario, to_answer
from clusterscape.cli.sched_output import SwfJobs, print_notes, print_sizes, run_with_progress, write_swf_jobs
from clusterscape.model.jobs import JobTrace
from clusterscape.simulate.batch import Spread, find_policy
from clusterscape.simulate.cluster import (
    ClusterMeasures,
    ClusterScenario,
    ClusterSchedule,
    compute_cluster_measures,
    measure_cluster_spread,
    simulate_cluster,
)
from clusterscape.simulate.fairness import SizeClass, compare_sizes
from clusterscape.simulate.placing import UNITS_PER_GPU

_LABELS = {
    "wait_s": ("wait", "s", 1),
    "bounded_slowdown": ("bounded slowdown", "", 2),
    "utilization": ("utilization", "", 4),
    "violation_s": ("violation", "s", 1),
    "fragmentation": ("fragmentation (FGD), of all GPUs", "", 4),
    "blocked_gpu_hours": ("idle but not where the first in line could run", "GPU h", 1),
    "lost_gpu_hours": ("work lost", "GPU h", 1),
    "interrupted_jobs": ("jobs interrupted", "", 0),
    "fairness": ("fairness over users (Jain)", "", 3),
    "unfinished_jobs": ("jobs that never end", "", 0),
}


def answer_cluster(
    trace: JobTrace, described: Described, choices: ClusterChoices, jitter: int, output: Path | None, *, as_json: bool
) -> None:
    """Simulate, measure, print; write the schedule where that is asked for."""
    scenario, notes = make_cluster_scenario(trace, described, choices)
    label = f"simulating {len(scenario.jobs):,} jobs on {scenario.cluster.total_gpus:,} GPUs"
    schedule = run_with_progress(label, len(scenario.jobs), lambda done: simulate_cluster(scenario, done))
    measures = compute_cluster_measures(schedule)
    spreads = measure_cluster_spread(scenario, simulate_cluster, runs=jitter) if jitter else {}
    sizes = compare_with_fcfs(scenario, schedule)
    if output is not None:
        write_cluster_swf(output, trace, schedule)
    if as_json:
        print_json(to_answer(trace, notes, schedule, measures, spreads, sizes, choices, output))
        return
    answers.print(
        f"{trace.name} ({trace.format}): {len(scenario.jobs):,} jobs on {len(scenario.cluster):,} nodes with "
        f"{scenario.cluster.total_gpus:,} GPUs, {choices.policy}, {choices.backfill}, placement {choices.placement}",
        highlight=False,
    )
    if measures is not None:
        _print_measures(measures, spreads)
    print_sizes(sizes, "GPUs")
    answers.print(f"fingerprint {scenario.fingerprint()[:16]}", style="dim", highlight=False)
    print_notes((*trace.notes, *notes))
    if output is not None:
        errors.print(f"Every job's start is in {output}.", highlight=False)


def compare_with_fcfs(scenario: ClusterScenario, schedule: ClusterSchedule) -> tuple[SizeClass, ...]:
    """Waits by size beside the same cluster's under first come, first served; alone where that is the policy."""
    gpus = -(-scenario.jobs.total_units // UNITS_PER_GPU)
    started = schedule.has_started
    fcfs = find_policy("fcfs")
    if repr(scenario.policy) == repr(fcfs):
        return compare_sizes(schedule.wait_s[started], gpus[started])
    reference = simulate_cluster(replace(scenario, policy=fcfs))
    both = started & reference.has_started
    return compare_sizes(schedule.wait_s[both], gpus[both], reference.wait_s[both])


def _print_measures(measures: ClusterMeasures, spreads: Mapping[str, Spread]) -> None:
    table = listing_table()
    for heading in ("measure", "value", "with ±1 s run times"):
        table.add_column(heading, justify="left" if heading == "measure" else "right", no_wrap=True)
    for name, (label, unit, digits) in _LABELS.items():
        value, spread = getattr(measures, name), spreads.get(name)
        shown = "–" if value is None else f"{value:,.{digits}f} {unit}".rstrip()
        interval = "" if spread is None else f"{spread.mean:,.{digits}f} ± {spread.sd:,.{digits}f}"
        table.add_row(label, shown, interval)
    answers.print(table, highlight=False)


def write_cluster_swf(path: Path, trace: JobTrace, schedule: ClusterSchedule) -> None:
    """Every job that ended, with its simulated wait; sizes are whole GPUs, run times include what was done in vain."""
    scenario, ended = schedule.scenario, schedule.has_ended
    jobs = scenario.jobs
    table = SwfJobs(
        row=jobs.row[ended],
        submit_s=jobs.submit_s[ended],
        wait_s=schedule.wait_s[ended],
        run_s=(schedule.end_s - schedule.start_s)[ended],
        size=np.maximum(1, -(-jobs.total_units // UNITS_PER_GPU))[ended],
        request_s=jobs.estimate_s[ended],
        user=jobs.user[ended],
    )
    write_swf_jobs(path, trace, table, scenario.cluster.total_gpus, scenario.fingerprint())
