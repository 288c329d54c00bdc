"""``clusterscape sched sweep`` and ``frontier``: many simulations, here or on a Dask cluster, kept by fingerprint.

A sweep that was broken off goes on where it stopped: every result is written as soon as it is there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from clusterscape.cli.options import JsonOption, SchedulerOption
from clusterscape.errors import QueryError
from clusterscape.runtime.dask_cluster import dask_client

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from clusterscape.model.jobs import CleaningNote, JobTrace
    from clusterscape.simulate.batch import BackfillKind
    from clusterscape.simulate.sweep import Base, Point, PointResult

GRID = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2)
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Processes here.", show_default="one per processor")]
CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Folder of kept results.", show_default="~/.cache/clusterscape/sweeps")
]


def sweep(
    trace: Annotated[str, typer.Argument(help="A job trace, or mira (reference data).")],
    processors: Annotated[int | None, typer.Option(min=1, help="Size of the machine.", show_default=False)] = None,
    policy: Annotated[list[str] | None, typer.Option(help="Order; may be given again.", show_default="fcfs")] = None,
    backfill: Annotated[
        list[str] | None, typer.Option(help="Backfilling; may be given again.", show_default="easy")
    ] = None,
    omega: Annotated[
        list[float] | None, typer.Option(min=0.0, help="ω of relaxed ways; may be given again.", show_default="0.1")
    ] = None,
    queue: Annotated[
        list[float] | None, typer.Option(min=1.0, help="q0 of adaptive; may be given again.", show_default="150")
    ] = None,
    estimates: Annotated[str, typer.Option(help="request, actual or predicted.")] = "request",
    semantics: Annotated[str, typer.Option(help="Whose rules.")] = "clusterscape",
    jitter: Annotated[int, typer.Option(min=0, help="Runs with ±1 s run times for each point.")] = 0,
    scheduler: SchedulerOption = None,
    workers: WorkersOption = None,
    cache: CacheOption = None,
    format: Annotated[str | None, typer.Option(help="Format of the trace.", show_default=False)] = None,
    timezone: Annotated[str, typer.Option(help="The zone of times without an offset.")] = "UTC",
    as_json: JsonOption = False,
) -> None:
    """Simulate every combination of order, backfilling and factor; print them by wait, with the (wait, violation) frontier."""
    from clusterscape.cli.sched_sweep_output import print_points
    from clusterscape.simulate.sweep import plan_points

    recorded, notes, base = make_base(trace, processors, estimates, semantics, jitter, format, timezone)
    kinds = cast("list[BackfillKind]", backfill or ["easy"])
    points = plan_points(policy or ["fcfs"], kinds, omega or [0.1], queue or [150.0])
    results = run_points(base, points, scheduler=scheduler, workers=workers, cache=cache)
    print_points(recorded, notes, semantics, base.jitter_runs, points, results, as_json=as_json)


def frontier(
    trace: Annotated[str, typer.Option(help="mira (reference data), or the path of any job trace.")] = "mira",
    processors: Annotated[int | None, typer.Option(min=1, help="Size of the machine.", show_default=False)] = None,
    semantics: Annotated[str, typer.Option(help="Whose rules.")] = "poster",
    jitter: Annotated[int, typer.Option(min=2, help="Runs with ±1 s run times for each point.")] = 10,
    scheduler: SchedulerOption = None,
    workers: WorkersOption = None,
    cache: CacheOption = None,
    format: Annotated[str | None, typer.Option(help="Format of the trace.", show_default=False)] = None,
    timezone: Annotated[str, typer.Option(help="The zone of times without an offset.")] = "UTC",
    as_json: JsonOption = False,
) -> None:
    """Wait against violation: relaxed, adaptive and frugal backfilling over a grid of ω, and which no other beats."""
    from clusterscape.cli.sched_sweep_output import print_points
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
    """Read the trace; what was done to its rows, and what all points have in common."""
    from clusterscape.cli.sched_published import find_published, find_trace
    from clusterscape.collect.job_traces import read_trace
    from clusterscape.simulate.batch import ESTIMATES, PRESETS, prepare_jobs
    from clusterscape.simulate.sweep import Base

    recorded = read_trace(find_trace(trace), format, timezone=timezone)
    published = find_published(trace)
    total = processors or (published.total if published else None) or recorded.total
    if total is None:
        raise QueryError(
            f"{recorded.name} does not say how large the machine is",
            hint=f"Give --processors, in {recorded.size_unit}.",
        )
    if semantics not in PRESETS:
        raise QueryError(f"there are no semantics {semantics!r}", hint=f"There are {', '.join(PRESETS)}.")
    known = next((each for each in ESTIMATES if each == estimates), None)
    if known is None:
        raise QueryError(f"there are no estimates {estimates!r}", hint=f"There are {', '.join(ESTIMATES)}.")
    jobs, notes = prepare_jobs(recorded, total, estimates=known, semantics=PRESETS[semantics])
    return recorded, (*recorded.notes, *notes), Base(jobs, total, known, PRESETS[semantics], jitter)


def run_points(
    base: Base, points: Sequence[Point], *, scheduler: str | None, workers: int | None, cache: Path | None
) -> list[PointResult]:
    """The result of each point, from the cache where it is kept, else from a process here or a worker of the Dask cluster."""
    from concurrent.futures import as_completed

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from clusterscape.cli.output import errors
    from clusterscape.simulate.sweep import run_point

    folder = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clusterscape" / "sweeps"
    names = [base.fingerprint(point) for point in points]
    found = {name: kept for name in names if (kept := read_kept(folder, name)) is not None}
    missing = [(name, point) for name, point in zip(names, points, strict=True) if name not in found]
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not missing) as bars:
        task = bars.add_task("simulations", total=len(points), completed=len(points) - len(missing))
        with executor_for(scheduler, workers, base, len(missing)) as (pool, shared):
            pending: dict[Future[Any], str] = {pool.submit(run_point, shared, point): name for name, point in missing}
            for done in as_completed(pending):
                result: PointResult = done.result()
                found[result.fingerprint] = result
                keep(folder, result)
                bars.advance(task)
    return [found[name] for name in names]


@contextmanager
def executor_for(scheduler: str | None, workers: int | None, base: Base, tasks: int) -> Iterator[tuple[Executor, Any]]:
    """Something to submit to, and the base as it is handed over there. Dask's client is an executor like any other."""
    if scheduler is None or tasks == 0:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        count = max(1, min(workers or os.cpu_count() or 1, tasks))
        # Started anew: a fork after Polars may hang.
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            yield pool, base
        return
    with dask_client(scheduler) as client:
        # Once to each worker, not with every task.
        yield client.get_executor(pure=False), client.scatter(base, broadcast=True)


def read_kept(folder: Path, name: str) -> PointResult | None:
    """A kept result; None where there is none, or one that cannot be read (it is then computed again)."""
    from clusterscape.simulate.sweep import PointResult

    try:
        kept = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        result = PointResult.from_json(kept)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return result if result.fingerprint == name else None


def keep(folder: Path, result: PointResult) -> None:
    """Write a result, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{result.fingerprint}.json"
    draft = target.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(result.to_json()), encoding="utf-8")
    draft.replace(target)
