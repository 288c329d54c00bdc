"""``clusterscape sched``: what a scheduling policy does to a recorded job trace. ``sched_output.py`` prints and writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from clusterscape.cli import sched_describe, sched_predict, sched_queue, sched_results, sched_sweep, sched_wait
from clusterscape.cli.options import JsonOption
from clusterscape.errors import QueryError

if TYPE_CHECKING:
    from clusterscape.model.jobs import CleaningNote, JobTrace
    from clusterscape.simulate.batch import BackfillKind, Scenario

app = typer.Typer(help="Job traces: what scheduling policies do to them.", no_args_is_help=True)
app.command("describe")(sched_describe.describe)
app.command("predict")(sched_predict.predict)
app.command("queue")(sched_queue.queue)
app.command("why")(sched_queue.why)
app.command("what-if")(sched_queue.what_if)
app.command("results")(sched_results.results)
app.command("sweep")(sched_sweep.sweep)
app.command("wait")(sched_wait.wait)
app.command("frontier")(sched_sweep.frontier)

EstimatesChoice = Literal["request", "actual", "predicted"]
ProcessorsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Size of the machine, in the trace's unit (processors, nodes or GPUs).",
        show_default="as the trace says",
    ),
]
FormatOption = Annotated[
    str | None, typer.Option(help="Format of the trace, where it is not to be found out.", show_default=False)
]
ZoneOption = Annotated[str, typer.Option(help="The zone of times that carry no offset, such as Europe/Berlin.")]
JitterOption = Annotated[
    int, typer.Option(min=0, help="Runs with ±1 s run times that give the intervals; 0 gives none.")
]
OmegaOption = Annotated[
    float, typer.Option(min=0.0, help="ω: the share by which relaxed backfilling may delay a promise.")
]
QueueOption = Annotated[float, typer.Option(min=1.0, help="q0: the queue length at which adaptive ω is whole.")]


@app.command("simulate")
def simulate_trace(
    trace: Annotated[
        Path, typer.Argument(help="A job trace: SWF, sacct, Lumos, Philly, Helios, Acme, openb; gz, bz2, xz, zst.")
    ],
    processors: ProcessorsOption = None,
    policy: Annotated[
        str,
        typer.Option(help="Order of the queue: fcfs, sjf, ljf, f1, wfp3, unicep, size-priority, ageing, fair-share."),
    ] = "fcfs",
    backfill: Annotated[
        str,
        typer.Option(
            help="none, first-fit, easy, easy-sjbf, easy++, conservative, relaxed, adaptive or frugal; "
            "on a cluster of nodes all but conservative."
        ),
    ] = "easy",
    estimates: Annotated[
        EstimatesChoice,
        typer.Option(help="What the scheduler takes run times for; predicted: from the user's last two."),
    ] = "request",
    semantics: Annotated[
        str, typer.Option(help="Whose rules: clusterscape, pyss, dirlab, cqsim or poster.")
    ] = "clusterscape",
    omega: OmegaOption = 0.1,
    queue: QueueOption = 150.0,
    jitter: JitterOption = 0,
    output: Annotated[Path | None, typer.Option(help="Write every job's start as SWF.", show_default=False)] = None,
    cluster: Annotated[
        Path | None,
        typer.Option(help="GPU nodes and partitions (TOML), or openb's list of nodes (CSV).", show_default=False),
    ] = None,
    nodes: Annotated[
        str | None, typer.Option(help="GPU nodes that are all alike: 100x8 for 100 of 8 GPUs.", show_default=False)
    ] = None,
    placement: Annotated[
        str,
        typer.Option(
            help="Which nodes a job gets: most-allocated, least-allocated, best-fit, fgd, gpu-packing, gpu-clustering, "
            "dot-product or random."
        ),
    ] = "most-allocated",
    preempt: Annotated[bool, typer.Option("--preempt", help="Higher priorities put out lower ones.")] = False,
    checkpoint: Annotated[
        float | None, typer.Option(min=0.0, help="Minutes between jobs' checkpoints.", show_default="none are made")
    ] = None,
    seed: Annotated[int, typer.Option(help="For placements by chance.")] = 0,
    format: FormatOption = None,
    timezone: ZoneOption = "UTC",
    as_json: JsonOption = False,
) -> None:
    """Simulate a job trace under a policy, job by job; print the measures, write the schedule."""
    if cluster is not None or nodes is not None:
        from clusterscape.cli.sched_cluster import ClusterChoices, read_cluster
        from clusterscape.cli.sched_cluster_output import answer_cluster

        if processors is not None or semantics != "clusterscape":
            raise QueryError(
                "a cluster of nodes has its own size and rules", hint="Leave out --processors and --semantics."
            )
        choices = ClusterChoices(policy, backfill, placement, estimates, omega, queue, preempt, checkpoint, seed)
        described = read_cluster(cluster, nodes)
        answer_cluster(_read(trace, format, timezone), described, choices, jitter, output, as_json=as_json)
        return
    from clusterscape.cli.sched_output import print_simulation, run_with_progress, spread_with_progress, write_swf
    from clusterscape.simulate.batch import compare_with_fcfs, compute_measures, simulate

    recorded = _read(trace, format, timezone)
    scenario, notes = _scenario(recorded, processors, policy, backfill, estimates, semantics, omega, queue)
    schedule = run_with_progress(
        f"simulating {len(scenario.jobs):,} jobs", 2 * len(scenario.jobs), lambda events: simulate(scenario, events)
    )
    measures = compute_measures(schedule)
    spreads = spread_with_progress("jittered runs", scenario, jitter) if jitter else {}
    if output is not None:
        write_swf(output, recorded, schedule)
    sizes = compare_with_fcfs(schedule, simulate)
    print_simulation(recorded, notes, schedule, measures, spreads, sizes, output, semantics, as_json=as_json)


@app.command("table")
def print_paper_table(
    trace: Annotated[str, typer.Option(help="mira (reference data), or the path of any job trace.")] = "mira",
    processors: ProcessorsOption = None,
    omega: OmegaOption = 0.1,
    queue: QueueOption = 150.0,
    frugal_omega: Annotated[float, typer.Option(min=0.0, help="ω of frugal backfilling, ours.")] = 0.03,
    semantics: Annotated[str, typer.Option(help="Whose rules: poster fits the published rows best.")] = "poster",
    jitter: JitterOption = 20,
    format: FormatOption = None,
    timezone: ZoneOption = "UTC",
    as_json: JsonOption = False,
) -> None:
    """Relaxed, adaptive and frugal backfilling beside what Zhang & Dai published, where there is any."""
    from clusterscape.cli.sched_output import print_table, spread_with_progress
    from clusterscape.cli.sched_published import find_published, find_trace

    path, published = find_trace(trace), find_published(trace)
    recorded = _read(path, format, timezone)
    total = processors or (published.total if published else None)
    found = {}
    for kind in ("relaxed", "adaptive", "frugal"):
        share = frugal_omega if kind == "frugal" else omega
        scenario, notes = _scenario(recorded, total, "fcfs", kind, "request", semantics, share, queue)
        found[kind] = spread_with_progress(kind, scenario, max(jitter, 2))
    factors = (omega, queue, frugal_omega)
    print_table(recorded, notes, found, published, semantics, max(jitter, 2), factors, as_json=as_json)


def _read(path: Path, format: str | None, timezone: str) -> JobTrace:
    from clusterscape.collect.job_traces import read_trace

    return read_trace(path, format, timezone=timezone)


def _scenario(
    trace: JobTrace,
    processors: int | None,
    policy: str,
    backfill: str,
    estimates: EstimatesChoice,
    semantics: str,
    omega: float,
    queue: float,
) -> tuple[Scenario, tuple[CleaningNote, ...]]:
    from clusterscape.simulate.batch import PRESETS, Backfill, Scenario, find_policy, prepare_jobs

    total = processors or trace.total
    if total is None:
        raise QueryError(
            f"{trace.name} does not say how large the machine is", hint=f"Give --processors, in {trace.size_unit}."
        )
    if semantics not in PRESETS:
        raise QueryError(f"there are no semantics {semantics!r}", hint=f"There are {', '.join(PRESETS)}.")
    how = PRESETS[semantics]
    chosen = Backfill(cast("BackfillKind", backfill), share=omega, whole_at=queue)
    jobs, notes = prepare_jobs(trace, total, estimates=estimates, semantics=how)
    return Scenario(jobs, total, find_policy(policy), chosen, estimates, how), notes
