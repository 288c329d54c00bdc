"""``clusterscape sched sweep`` and ``frontier``: many simulations, on this machine or a Dask cluster, cached by fingerprint.

An interrupted sweep resumes: every result is written to the cache at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from clusterscape.cli.options import FormatOption, JsonOption, SchedulerOption, TimezoneOption
from clusterscape.errors import QueryError
from clusterscape.runtime.dask_cluster import dask_client

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from clusterscape.model.arrays import Int64s
    from clusterscape.model.jobs import CleaningNote, JobTrace
    from clusterscape.simulate.batch import BackfillKind, BatchJobs, Estimates
    from clusterscape.simulate.sweep import Base, Point, PointResult

GRID = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2)
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Worker processes on this machine.", show_default="one per core")
]
CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Folder of cached results.", show_default="~/.cache/clusterscape/sweeps")
]


def sweep(
    trace: Annotated[str, typer.Argument(help="Path of a job trace, or mira (reference data).")],
    processors: Annotated[
        int | None,
        typer.Option(min=1, help="Size of the machine, in the unit of the trace.", show_default="from the trace"),
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(help="Order of the queue; repeatable.", show_default="fcfs")
    ] = None,
    backfill: Annotated[list[str] | None, typer.Option(help="Backfilling; repeatable.", show_default="easy")] = None,
    omega: Annotated[
        list[float] | None, typer.Option(min=0.0, help="ω of relaxed backfilling; repeatable.", show_default="0.1")
    ] = None,
    queue: Annotated[
        list[float] | None, typer.Option(min=1.0, help="q0 of adaptive backfilling; repeatable.", show_default="150")
    ] = None,
    estimates: Annotated[
        str,
        typer.Option(
            help="Run times that the scheduler assumes: request, actual, predicted, boosted or elapsed-aware."
        ),
    ] = "request",
    semantics: Annotated[
        str, typer.Option(help="Simulator to reproduce: clusterscape, pyss, dirlab, cqsim or poster.")
    ] = "clusterscape",
    jitter: Annotated[
        int, typer.Option(min=0, help="Repetitions of each simulation with run times jittered by ±1 s.")
    ] = 0,
    scheduler: SchedulerOption = None,
    workers: WorkersOption = None,
    cache: CacheOption = None,
    format: FormatOption = None,
    timezone: TimezoneOption = "UTC",
    as_json: JsonOption = False,
) -> None:
    """Simulate all combinations of order, backfilling and ω; prints them by wait, with the Pareto frontier."""
    from clusterscape.cli.sched_output import print_points
    from clusterscape.simulate.sweep import plan_points

    recorded, notes, base = make_base(trace, processors, estimates, semantics, jitter, format, timezone)
    kinds = cast("list[BackfillKind]", backfill or ["easy"])
    points = plan_points(policy or ["fcfs"], kinds, omega or [0.1], queue or [150.0])
    results = run_points(base, points, scheduler=scheduler, workers=workers, cache=cache)
    print_points(recorded, notes, semantics, base.jitter_runs, points, results, as_json=as_json)


def frontier(
    trace: Annotated[str, typer.Option(help="Path of a job trace, or mira (reference data).")] = "mira",
    processors: Annotated[
        int | None,
        typer.Option(min=1, help="Size of the machine, in the unit of the trace.", show_default="from the trace"),
    ] = None,
    semantics: Annotated[
        str, typer.Option(help="Simulator to reproduce: clusterscape, pyss, dirlab, cqsim or poster.")
    ] = "poster",
    jitter: Annotated[
        int, typer.Option(min=2, help="Repetitions of each simulation with run times jittered by ±1 s.")
    ] = 10,
    scheduler: SchedulerOption = None,
    workers: WorkersOption = None,
    cache: CacheOption = None,
    format: FormatOption = None,
    timezone: TimezoneOption = "UTC",
    as_json: JsonOption = False,
) -> None:
    """Print the Pareto frontier of wait and violation for relaxed, adaptive and frugal backfilling over a grid of ω."""
    from clusterscape.cli.sched_output import print_points
    from clusterscape.simulate.batch import RELAXED
    from clusterscape.simulate.sweep import plan_points

    recorded, notes, base = make_base(trace, processors, "request", semantics, jitter, format, timezone)
    points = plan_points(["fcfs"], RELAXED, GRID, [150.0])
    results = run_points(base, points, scheduler=scheduler, workers=workers, cache=cache)
    print_points(recorded, notes, semantics, base.jitter_runs, points, results, as_json=as_json)


def make_base(
    trace: str,
    processors: int | None,
    estimates: str,
    semantics: str,
    jitter: int,
    format: str | None,
    timezone: str,
) -> tuple[JobTrace, tuple[CleaningNote, ...], Base]:
    """Read the trace; returns it, its cleaning notes, and the parameters that all points share."""
    from clusterscape.cli.sched_output import find_trace
    from clusterscape.cli.unused_input import read_job_trace
    from clusterscape.simulate.batch import ESTIMATES, PRESETS, prepare_jobs
    from clusterscape.simulate.published import find_published
    from clusterscape.simulate.sweep import Base

    recorded = read_job_trace(find_trace(trace), format, timezone)
    published = find_published(trace)
    total = processors or (published.total if published else None) or recorded.total
    if total is None:
        raise QueryError(
            f"{recorded.name} has no machine size",
            hint=f"Set it with --processors, in {recorded.size_unit}.",
        )
    if semantics not in PRESETS:
        raise QueryError(f"unknown semantics {semantics!r}", hint=f"Choose one of: {', '.join(PRESETS)}.")
    kind = next((name for name in ESTIMATES if name == estimates), None)
    if kind is None:
        raise QueryError(f"unknown estimates {estimates!r}", hint=f"Choose one of: {', '.join(ESTIMATES)}.")
    jobs, notes = prepare_jobs(recorded, total, estimates=kind, semantics=PRESETS[semantics])
    jobs = learn_estimates(recorded, jobs, kind)
    return recorded, (*recorded.notes, *notes), Base(jobs, total, kind, PRESETS[semantics], jitter)


def learn_estimates(trace: JobTrace, jobs: BatchJobs, estimates: Estimates) -> BatchJobs:
    """The same jobs with the predictions of a model, if ``estimates`` are learned."""
    if estimates not in ("boosted", "elapsed-aware"):
        return jobs
    from clusterscape.analyze.jobs.runtime_estimates import predict_run_times
    from clusterscape.cli.sched_output import run_with_progress

    def learn(done: Int64s) -> Int64s:
        def count(share: float) -> None:
            done[0] = int(100 * share)

        return predict_run_times(trace, estimates, on_progress=count)

    predictions = run_with_progress(f"learning from {len(jobs):,} jobs", 100, learn)
    return replace(jobs, predictions_s=predictions[jobs.row])


def run_points(
    base: Base, points: Sequence[Point], *, scheduler: str | None, workers: int | None, cache: Path | None
) -> list[PointResult]:
    """The result of each point: from the cache, else from a local process or a Dask worker."""
    from concurrent.futures import as_completed

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from clusterscape.cli.output import stderr
    from clusterscape.simulate.sweep import run_point

    folder = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clusterscape" / "sweeps"
    names = [base.fingerprint(point) for point in points]
    results = {name: cached for name in names if (cached := read_cached(folder, name)) is not None}
    missing = [(name, point) for name, point in zip(names, points, strict=True) if name not in results]
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=stderr, transient=True, disable=not missing) as bars:
        task = bars.add_task("simulations", total=len(points), completed=len(points) - len(missing))
        with executor_for(scheduler, workers, base, len(missing)) as (pool, shared):
            pending: dict[Future[Any], str] = {pool.submit(run_point, shared, point): name for name, point in missing}
            for done in as_completed(pending):
                result: PointResult = done.result()
                results[result.fingerprint] = result
                write_cached(folder, result)
                bars.advance(task)
    return [results[name] for name in names]


@contextmanager
def executor_for(scheduler: str | None, workers: int | None, base: Base, tasks: int) -> Iterator[tuple[Executor, Any]]:
    """An executor (local processes, or the Dask client), and the base in the form that its tasks take."""
    if scheduler is None or tasks == 0:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        count = max(1, min(workers or os.cpu_count() or 1, tasks))
        # Spawn: a fork after importing Polars may hang.
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            yield pool, base
        return
    with dask_client(scheduler) as client:
        # Once to each worker, not with every task.
        yield client.get_executor(pure=False), client.scatter(base, broadcast=True)


def read_cached(folder: Path, name: str) -> PointResult | None:
    """A cached result; None if there is none, or if it cannot be read (it is then computed again)."""
    from clusterscape.simulate.sweep import PointResult

    try:
        document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        result = PointResult.from_json(document)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return result if result.fingerprint == name else None


def write_cached(folder: Path, result: PointResult) -> None:
    """Write a result atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{result.fingerprint}.json"
    temporary = target.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(result.to_json()), encoding="utf-8")
    temporary.replace(target)
