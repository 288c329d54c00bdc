"""``clusterscape sched``: the live queue, and simulations of scheduling policies. ``sched_output.py`` prints and writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from clusterscape.cli import sched_describe, sched_predict, sched_queue, sched_sweep
from clusterscape.cli.options import OUTPUT, FormatOption, JsonOption, TimezoneOption, example
from clusterscape.cli.unused_input import read_job_trace
from clusterscape.errors import QueryError

if TYPE_CHECKING:
    from clusterscape.model.jobs import CleaningNote, JobTrace
    from clusterscape.simulate.batch import BackfillKind, Scenario

app = typer.Typer(
    help="Explain and predict the queue; simulate scheduling policies on job traces.", no_args_is_help=True
)
QUEUE = "Live queue of a server"
TRACES = "Job traces"
SIMULATION = "Simulation of policies"

app.command("queue", rich_help_panel=QUEUE, epilog=example("clusterscape sched queue --partition gpu"))(
    sched_queue.queue
)
app.command("why", rich_help_panel=QUEUE, epilog=example("clusterscape sched why 4711"))(sched_queue.why)
app.command(
    "wait",
    rich_help_panel=QUEUE,
    epilog=example(
        "clusterscape sched wait --url http://127.0.0.1:8321 --gpus 8 --hours 4",
        "clusterscape sched wait trace.swf.gz --sample 500",
    ),
)(sched_predict.wait)
app.command(
    "what-if",
    rich_help_panel=QUEUE,
    epilog=example("clusterscape sched what-if --add gpu:4", "clusterscape sched what-if --drain node017 --policy sjf"),
)(sched_queue.what_if)
app.command(
    "describe",
    rich_help_panel=TRACES,
    epilog=example(
        "clusterscape sched describe trace.swf.gz", "clusterscape sched describe a.csv b.csv --html traces.html"
    ),
)(sched_describe.describe)
app.command("predict", rich_help_panel=TRACES, epilog=example("clusterscape sched predict trace.swf.gz --test 0.2"))(
    sched_predict.predict
)
app.command("results", rich_help_panel=SIMULATION, epilog=example("clusterscape sched results"))(sched_queue.results)
app.command(
    "sweep",
    rich_help_panel=SIMULATION,
    epilog=example(
        "clusterscape sched sweep trace.swf.gz --policy fcfs --policy sjf --backfill easy --backfill relaxed"
    ),
)(sched_sweep.sweep)
app.command(
    "frontier",
    rich_help_panel=SIMULATION,
    epilog=example("clusterscape sched frontier --trace trace.swf.gz --jitter 5"),
)(sched_sweep.frontier)

EstimatesChoice = Literal["request", "actual", "predicted", "boosted", "elapsed-aware"]
ProcessorsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Size of the machine, in the unit of the trace (processors, nodes or GPUs).",
        show_default="from the trace",
    ),
]
POLICY = "Policy"
CLUSTER = "Cluster of GPU nodes"
JitterOption = Annotated[
    int, typer.Option(min=0, help="Repetitions with run times jittered by ±1 s, for intervals; 0: no intervals.")
]
OmegaOption = Annotated[
    float,
    typer.Option(
        min=0.0, help="ω: fraction by which relaxed backfilling may delay a reservation.", rich_help_panel="Policy"
    ),
]
QueueOption = Annotated[
    float,
    typer.Option(min=1.0, help="q0: queue length at which adaptive ω reaches its maximum.", rich_help_panel="Policy"),
]


@app.command(
    "simulate",
    rich_help_panel=SIMULATION,
    epilog=example(
        "clusterscape sched simulate trace.swf.gz --policy sjf --backfill easy",
        "clusterscape sched simulate jobs.csv --nodes 100x8 --placement best-fit",
    ),
)
def simulate_trace(
    trace: Annotated[
        Path,
        typer.Argument(
            help="Job trace: SWF, sacct, Torque, Lumos, Philly, Helios, Acme or openb; may be compressed (gz, bz2, xz, zst)."
        ),
    ],
    processors: ProcessorsOption = None,
    policy: Annotated[
        str,
        typer.Option(
            help="Order of the queue: fcfs, sjf, ljf, f1, wfp3, unicep, size-priority, ageing or fair-share.",
            rich_help_panel=POLICY,
        ),
    ] = "fcfs",
    backfill: Annotated[
        str,
        typer.Option(
            help="Backfilling: none, first-fit, easy, easy-sjbf, easy++, conservative, relaxed, adaptive or frugal; "
            "conservative does not work with --cluster and --nodes.",
            rich_help_panel=POLICY,
        ),
    ] = "easy",
    estimates: Annotated[
        EstimatesChoice,
        typer.Option(
            help="Run times that the scheduler assumes. predicted: mean of the user's last two jobs (Last2); boosted and "
            "elapsed-aware: models, trained on the jobs that had ended by then.",
            rich_help_panel=POLICY,
        ),
    ] = "request",
    semantics: Annotated[
        str,
        typer.Option(
            help="Simulator to reproduce: clusterscape, pyss, dirlab, cqsim or poster.", rich_help_panel=POLICY
        ),
    ] = "clusterscape",
    omega: OmegaOption = 0.1,
    queue: QueueOption = 150.0,
    jitter: JitterOption = 0,
    output: Annotated[
        Path | None,
        typer.Option(help="Write the schedule as an SWF file.", show_default=False, rich_help_panel=OUTPUT),
    ] = None,
    cluster: Annotated[
        Path | None,
        typer.Option(
            help="Nodes and partitions (TOML), or a node list of openb (CSV).",
            show_default=False,
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            help="Identical nodes: 100x8 is 100 nodes with 8 GPUs.", show_default=False, rich_help_panel=CLUSTER
        ),
    ] = None,
    placement: Annotated[
        str,
        typer.Option(
            help="Placement of jobs on nodes: most-allocated, least-allocated, best-fit, fgd, gpu-packing, "
            "gpu-clustering, dot-product or random.",
            rich_help_panel=CLUSTER,
        ),
    ] = "most-allocated",
    preempt: Annotated[
        bool,
        typer.Option("--preempt", help="Jobs preempt jobs of lower priority.", rich_help_panel=CLUSTER),
    ] = False,
    checkpoint: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Minutes between checkpoints of jobs.",
            show_default="no checkpoints",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of random placement.", rich_help_panel=CLUSTER)] = 0,
    format: FormatOption = None,
    timezone: TimezoneOption = "UTC",
    as_json: JsonOption = False,
) -> None:
    """Simulate a job trace under a scheduling policy; prints waits, slowdown and utilization."""
    if cluster is not None or nodes is not None:
        from clusterscape.cli.sched_cluster import ClusterChoices, read_cluster, simulate_cluster_trace

        if processors is not None or semantics != "clusterscape":
            raise QueryError("--processors and --semantics do not work with --cluster and --nodes", hint="Remove them.")
        if estimates in ("boosted", "elapsed-aware"):
            raise QueryError(
                f"--estimates {estimates} does not work with --cluster and --nodes", hint="Use --estimates predicted."
            )
        choices = ClusterChoices(policy, backfill, placement, estimates, omega, queue, preempt, checkpoint, seed)
        cluster_file = read_cluster(cluster, nodes)
        simulate_cluster_trace(
            read_job_trace(trace, format, timezone), cluster_file, choices, jitter, output, as_json=as_json
        )
        return
    from clusterscape.cli.sched_output import print_simulation, run_with_progress, spread_with_progress, write_swf
    from clusterscape.simulate.batch import compare_with_fcfs, compute_measures, simulate

    recorded = read_job_trace(trace, format, timezone)
    scenario, notes = _scenario(recorded, processors, policy, backfill, estimates, semantics, omega, queue)
    schedule = run_with_progress(
        f"simulating {len(scenario.jobs):,} jobs", 2 * len(scenario.jobs), lambda events: simulate(scenario, events)
    )
    measures = compute_measures(schedule)
    spreads = spread_with_progress("jittered runs", scenario, jitter) if jitter else {}
    if output is not None:
        write_swf(output, recorded, schedule)
    size_classes = compare_with_fcfs(schedule, simulate)
    print_simulation(recorded, notes, schedule, measures, spreads, size_classes, output, semantics, as_json=as_json)


@app.command(
    "table",
    rich_help_panel=SIMULATION,
    epilog=example("clusterscape sched table --trace trace.swf.gz --processors 49152"),
)
def print_paper_table(
    trace: Annotated[str, typer.Option(help="Path of a job trace, or mira or blue-waters (reference data).")] = "mira",
    published: Annotated[
        str | None,
        typer.Option(
            help="Rows to compare with: mira or blue-waters.", show_default="by the name of the trace, if any"
        ),
    ] = None,
    processors: ProcessorsOption = None,
    omega: OmegaOption = 0.1,
    queue: QueueOption = 150.0,
    frugal_omega: Annotated[
        float, typer.Option(min=0.0, help="ω of frugal backfilling.", rich_help_panel=POLICY)
    ] = 0.03,
    semantics: Annotated[
        str, typer.Option(help="Simulator to reproduce; poster fits the published table best.", rich_help_panel=POLICY)
    ] = "poster",
    jitter: JitterOption = 20,
    format: FormatOption = None,
    timezone: TimezoneOption = "UTC",
    as_json: JsonOption = False,
) -> None:
    """Compare relaxed, adaptive and frugal backfilling with the table published by Zhang & Dai."""
    from clusterscape.cli.sched_output import find_trace, print_table, spread_with_progress
    from clusterscape.simulate.published import find_published

    path, rows = find_trace(trace), find_published(published or trace)
    if published is not None and rows is None:
        raise QueryError(f"nothing is published of {published!r}", hint="Use mira or blue-waters, or leave it out.")
    recorded = read_job_trace(path, format, timezone)
    total = processors or (rows.total if rows else None)
    spreads = {}
    for kind in ("relaxed", "adaptive", "frugal"):
        share = frugal_omega if kind == "frugal" else omega
        scenario, notes = _scenario(recorded, total, "fcfs", kind, "request", semantics, share, queue)
        spreads[kind] = spread_with_progress(kind, scenario, max(jitter, 2))
    factors = (omega, queue, frugal_omega)
    print_table(recorded, notes, spreads, rows, semantics, max(jitter, 2), factors, as_json=as_json)


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
    from clusterscape.cli.sched_sweep import learn_estimates
    from clusterscape.simulate.batch import PRESETS, Backfill, Scenario, find_policy, prepare_jobs

    total = processors or trace.total
    if total is None:
        raise QueryError(f"{trace.name} has no machine size", hint=f"Set it with --processors, in {trace.size_unit}.")
    if semantics not in PRESETS:
        raise QueryError(f"unknown semantics {semantics!r}", hint=f"Choose one of: {', '.join(PRESETS)}.")
    preset = PRESETS[semantics]
    chosen = Backfill(cast("BackfillKind", backfill), share=omega, whole_at=queue)
    jobs, notes = prepare_jobs(trace, total, estimates=estimates, semantics=preset)
    jobs = learn_estimates(trace, jobs, estimates)
    return Scenario(jobs, total, find_policy(policy), chosen, estimates, preset), notes
