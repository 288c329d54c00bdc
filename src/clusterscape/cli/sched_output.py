"""Output of ``clusterscape sched``: measures with intervals, the relaxed-backfilling table of Zhang & Dai, SWF files, progress,
and sweeps: one line per simulation, by wait; a dot marks the Pareto frontier of wait and violation.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from clusterscape.cli.output import listing_table, print_json, stderr, stdout
from clusterscape.errors import QueryError
from clusterscape.model.arrays import Int64s
from clusterscape.model.jobs import CleaningNote, JobStatus, JobTrace
from clusterscape.simulate.batch import RELAXED, Measures, Scenario, Schedule, Spread, measure_spread, simulate
from clusterscape.simulate.batch.measures import SizeClass
from clusterscape.simulate.published import PUBLISHED, PublishedRows
from clusterscape.simulate.sweep import Point, PointResult, find_frontier

REFERENCE_DATA_VARIABLE = "CLUSTERSCAPE_REFERENCE_DATA"
"""Environment variable with the folder of third-party data, which is not part of ClusterScape."""


def find_trace(trace: str) -> Path:
    """The path of a trace by its name, or the path itself."""
    rows = PUBLISHED.get(trace)
    if rows is None:
        return Path(trace)
    folder = os.environ.get(REFERENCE_DATA_VARIABLE)
    path = Path(folder or ".") / rows.path
    if folder is None or not path.is_file():
        raise QueryError(
            f"the trace of {rows.name} is not part of ClusterScape",
            hint=f"{rows.source + ' ' if rows.source else ''}Give its path (--trace {path.name} --published {trace}), or set "
            f"{REFERENCE_DATA_VARIABLE} to the folder of {rows.path}.",
        )
    return path


Result = TypeVar("Result")

PROGRESS_AFTER_S = 1.0
"""Work that takes longer shows a progress bar."""

_LABELS = {
    "wait_s": ("wait", "s", 2),
    "bounded_slowdown": ("bounded slowdown", "", 2),
    "utilization": ("utilization", "", 4),
    "violation_s": ("violation", "s", 2),
}
_FAIRNESS = {"fairness": ("fairness over users (Jain)", "", 3)}
_SIDES = {"baseline": "relaxed", "adaptive": "adaptive", "frugal": "frugal"}
_CODES = {JobStatus.COMPLETED: 1, JobStatus.FAILED: 0, JobStatus.CANCELLED: 5, JobStatus.TIMEOUT: 0}


def run_with_progress(label: str, total: int, work: Callable[[Int64s], Result]) -> Result:
    """Run ``work``, which counts its progress in the array it gets; shows a bar after a second."""
    done = np.zeros(1, np.int64)
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(work, done)
        finished = threading.Event()
        pending.add_done_callback(lambda _: finished.set())
        if not finished.wait(PROGRESS_AFTER_S):
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
            with Progress(*columns, console=stderr, transient=True) as bars:
                task = bars.add_task(label, total=total)
                while not finished.wait(0.1):
                    bars.update(task, completed=int(done[0]))
        return pending.result()


def spread_with_progress(label: str, scenario: Scenario, runs: int) -> dict[str, Spread]:
    """Run a scenario several times with jittered run times."""

    def work(done: Int64s) -> dict[str, Spread]:
        def once(jittered: Scenario) -> Schedule:
            schedule = simulate(jittered)
            done[0] += 1
            return schedule

        return measure_spread(scenario, once, runs=runs)

    return run_with_progress(label, runs, work)


def print_simulation(
    trace: JobTrace,
    notes: Sequence[CleaningNote],
    schedule: Schedule,
    measures: Measures | None,
    spreads: Mapping[str, Spread],
    sizes: Sequence[SizeClass],
    output: Path | None,
    semantics: str,
    *,
    as_json: bool,
) -> None:
    """Print measures, dropped jobs, and the fingerprint of the result."""
    scenario = schedule.scenario
    if as_json:
        print_json(
            {
                "trace": trace.name,
                "format": trace.format,
                "jobs": len(scenario.jobs),
                "processors": scenario.total_processors,
                "unit": trace.size_unit,
                "policy": type(scenario.policy).__name__,
                "backfill": asdict(scenario.backfill),
                "estimates": scenario.estimates,
                "semantics": {"name": semantics} | asdict(scenario.semantics),
                "measures": None if measures is None else asdict(measures),
                "intervals": {name: asdict(spread) for name, spread in spreads.items()},
                "sizes": [asdict(size_class) | {"is_starved": size_class.is_starved} for size_class in sizes],
                "notes": [asdict(note) for note in (*trace.notes, *notes)],
                "fingerprint": scenario.fingerprint(),
                "output": None if output is None else str(output),
            }
        )
        return
    stdout.print(
        f"{trace.name} ({trace.format}): {len(scenario.jobs):,} jobs on {scenario.total_processors:,} {trace.size_unit}, "
        f"{scenario.backfill.kind} backfilling, semantics {semantics}, trim {scenario.semantics.trim}",
        highlight=False,
    )
    if measures is not None:
        _print_measures(measures, spreads)
    print_sizes(sizes, trace.size_unit)
    stdout.print(f"fingerprint {scenario.fingerprint()[:16]}", style="dim", highlight=False)
    print_notes((*trace.notes, *notes))
    if output is not None:
        stderr.print(f"Schedule written to {output}.", highlight=False)


def _print_measures(measures: Measures, spreads: Mapping[str, Spread]) -> None:
    table = listing_table()
    for heading in ("measure", "value", "with ±1 s run times"):
        table.add_column(heading, justify="left" if heading == "measure" else "right", no_wrap=True)
    for name, (label, unit, digits) in (_LABELS | _FAIRNESS).items():
        value = getattr(measures, name)
        text = "–" if value is None else f"{value:,.{digits}f} {unit}".rstrip()
        table.add_row(label, text, _interval(spreads.get(name), digits))
    stdout.print(table, highlight=False)


def _interval(spread: Spread | None, digits: int) -> str:
    return "" if spread is None else f"{spread.mean:,.{digits}f} ± {spread.sd:,.{digits}f}"


def print_sizes(sizes: Sequence[SizeClass], unit: str) -> None:
    """Print waits by job size, compared with first come, first served if known; marks starved sizes."""
    has_reference = any(size_class.reference_p99_s is not None for size_class in sizes)
    reference_headings = ("FCFS p99, s", "FCFS longest, s", "") if has_reference else ()
    table = listing_table()
    for heading in (unit, "jobs", "wait p99, s", "longest, s", *reference_headings):
        table.add_column(heading, justify="right", no_wrap=True)
    for size_class in sizes:
        span = f"{size_class.low:,}" if size_class.low == size_class.high else f"{size_class.low:,}–{size_class.high:,}"
        row = [span, f"{size_class.jobs:,}", f"{size_class.p99_wait_s:,.0f}", f"{size_class.max_wait_s:,.0f}"]
        if has_reference:
            reference = (size_class.reference_p99_s, size_class.reference_max_s)
            row += [
                *("" if value is None else f"{value:,.0f}" for value in reference),
                "starved" if size_class.is_starved else "",
            ]
        table.add_row(*row)
    stdout.print(table, highlight=False)


def print_notes(notes: Sequence[CleaningNote]) -> None:
    """Print dropped, changed and unusual rows to standard error."""
    for note in notes:
        stderr.print(str(note), style="yellow" if note.action != "kept" else "dim", highlight=False)


def print_table(
    trace: JobTrace,
    notes: Sequence[CleaningNote],
    spreads: Mapping[str, Mapping[str, Spread]],
    published: PublishedRows | None,
    semantics: str,
    runs: int,
    relaxing: tuple[float, float, float],
    *,
    as_json: bool,
) -> None:
    """Print baseline, adaptive and frugal backfilling with intervals, compared with the published rows."""
    rows = [_compare(name, spreads, published) for name in _LABELS]
    if as_json:
        summary = {
            "trace": trace.name,
            "semantics": semantics,
            "runs": runs,
            "omega": relaxing[0],
            "queue": relaxing[1],
        }
        summary |= {"frugal_omega": relaxing[2]}
        print_json(summary | {"rows": rows, "notes": [asdict(note) for note in (*trace.notes, *notes)]})
        return
    table = listing_table()
    headings = ("", "baseline", "published", "adaptive", "published", "frugal", "adaptive", "published", "frugal")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", no_wrap=True)
    for row in rows:
        label, _, digits = _LABELS[row["measure"]]
        table.add_row(
            label,
            *(cell for side in ("baseline", "adaptive") for cell in _cells(row[side], digits)),
            _cells(row["frugal"], digits)[0],
            _percent(row["improved"], row["is_beyond_jitter"]),
            _percent(row["improved_published"], True),
            _percent(row["frugal_improved"], row["is_frugal_beyond_jitter"]),
        )
    stdout.print(
        f"{trace.name}: ω = {relaxing[0]:g}, adaptive ω·q/{relaxing[1]:g}, frugal ω = {relaxing[2]:g}; "
        f"mean ± sd of {runs} runs with ±1 s run times; the last three columns: better than the baseline by",
        highlight=False,
    )
    stdout.print(table, highlight=False)
    for row in rows:
        for sentence in row["words"]:
            stdout.print(sentence, highlight=False)
    print_notes((*trace.notes, *notes))


def _cells(side: dict[str, Any], digits: int) -> tuple[str, str]:
    spread, published = side["spread"], side["published"]
    ours = "–" if spread is None else f"{spread['mean']:,.{digits}f} ± {spread['sd']:,.{digits}f}"
    return ours, "" if published is None else f"{published:,.{digits}f}"


def _percent(ratio: float | None, is_significant: bool) -> str:
    return "" if ratio is None else f"{'' if is_significant else '~'}{ratio:+.1%}"


def _gain(name: str, before: Spread | None, after: Spread | None) -> tuple[float | None, bool]:
    """Relative improvement of a measure, and whether it exceeds two standard deviations of the difference."""
    if before is None or after is None or not before.mean:
        return None, False
    sign = -1 if name == "utilization" else 1
    is_significant = abs(before.mean - after.mean) > 2 * float(np.hypot(before.sd, after.sd))
    return sign * (before.mean - after.mean) / before.mean, is_significant


def _compare(name: str, spreads: Mapping[str, Mapping[str, Spread]], published: PublishedRows | None) -> dict[str, Any]:
    """Compare one measure with the published values; sentences name differences of more than 2 sd."""
    ours = {side: spreads[kind].get(name) for side, kind in _SIDES.items()}
    published_values = {
        "baseline": published.baseline.get(name) if published else None,
        "adaptive": published.adaptive.get(name) if published else None,
        "frugal": None,
    }
    label, unit, digits = _LABELS[name]
    sentences = [
        f"{label}, {side}: {spread.mean - value:+,.{digits}f} {unit}".rstrip()
        + f" from the published {value:,.{digits}f}, beyond two standard deviations ({2 * spread.sd:,.{digits}f})"
        for side in ours
        if (spread := ours[side]) is not None
        and (value := published_values[side]) is not None
        and spread.differs_from(value)
    ]
    improved, is_significant = _gain(name, ours["baseline"], ours["adaptive"])
    frugal_improved, is_frugal_significant = _gain(name, ours["baseline"], ours["frugal"])
    for side, gain, is_gain_significant in (
        ("adaptive", improved, is_significant),
        ("frugal", frugal_improved, is_frugal_significant),
    ):
        if gain is not None and not is_gain_significant:
            sentences.append(f"{label}: baseline and {side} differ by less than the jitter of run times")
    published_baseline, published_adaptive = published_values["baseline"], published_values["adaptive"]
    return {
        "measure": name,
        **{
            side: {"spread": None if spread is None else asdict(spread), "published": published_values[side]}
            for side, spread in ours.items()
        },
        "improved": improved,
        "is_beyond_jitter": is_significant,
        "frugal_improved": frugal_improved,
        "is_frugal_beyond_jitter": is_frugal_significant,
        "improved_published": (-1 if name == "utilization" else 1)
        * (published_baseline - published_adaptive)
        / published_baseline
        if published_baseline and published_adaptive
        else None,
        "words": sentences,
    }


@dataclass(frozen=True, slots=True)
class SwfJobs:
    """Columns of a schedule, one row per job in submit order."""

    row: Int64s
    submit_s: Int64s
    wait_s: Int64s
    run_s: Int64s
    size: Int64s
    request_s: Int64s
    user: Int64s


def write_swf(path: Path, trace: JobTrace, schedule: Schedule) -> None:
    """Write every simulated job with its simulated wait, in submit order."""
    jobs, scenario = schedule.scenario.jobs, schedule.scenario
    table = SwfJobs(jobs.row, jobs.submit_s, schedule.wait_s, jobs.run_s, jobs.processors, jobs.request_s, jobs.user)
    write_swf_jobs(path, trace, table, scenario.total_processors, scenario.fingerprint())


def write_swf_jobs(path: Path, trace: JobTrace, jobs: SwfJobs, total: int, fingerprint: str) -> None:
    """Write a schedule as SWF; ids that are not numbers become line numbers."""
    rows = trace.frame[jobs.row.tolist()]
    numbers = rows["job_id"].cast(int, strict=False).fill_null(rows["line"]).to_list()
    codes = [_CODES.get(JobStatus(status), -1) for status in rows["status"].to_list()]
    head = (
        "; Version: 2.2",
        f"; Computer: ClusterScape simulation of {trace.name}",
        f"; MaxJobs: {len(jobs.row)}",
        f"; MaxProcs: {total}",
        f"; Note: wait is simulated; fingerprint {fingerprint}",
        f"; Note: written {time.strftime('%Y-%m-%d', time.gmtime())}; users are numbered in the order of their names",
    )
    columns = (numbers, jobs.submit_s, jobs.wait_s, jobs.run_s, jobs.size, jobs.request_s, codes, jobs.user)
    lines = (
        f"{number} {submit} {wait} {run} {size} -1 -1 {size} {request} -1 {code} {user + 1} -1 -1 -1 -1 -1 -1"
        for number, submit, wait, run, size, request, code, user in zip(*columns, strict=True)
    )
    path.write_text("\n".join((*head, *lines)) + "\n", encoding="utf-8")


_COLUMNS = (("wait_s", "wait, s", 0), ("bounded_slowdown", "slowdown", 2), ("utilization", "utilization", 4))


def print_points(
    trace: JobTrace,
    notes: Sequence[CleaningNote],
    semantics: str,
    runs: int,
    points: Sequence[Point],
    results: Sequence[PointResult],
    *,
    as_json: bool,
) -> None:
    """Print all points, shortest wait first."""
    rows = _rows(points, results)
    if as_json:
        print_json(
            {
                "trace": trace.name,
                "semantics": semantics,
                "runs": runs,
                "points": rows,
                "notes": [asdict(note) for note in notes],
            }
        )
        return
    method = f"mean ± sd of {runs} runs with ±1 s run times" if runs else "one run each; --jitter gives intervals"
    stdout.print(f"{trace.name}, semantics {semantics}: {method}", highlight=False)
    table = listing_table()
    headings = ("", "order", "backfilling", "ω", "q0", *(label for _, label, _ in _COLUMNS), "violation, s")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index < 3 else "right", no_wrap=True)
    for row in rows:
        table.add_row(
            "•" if row["is_on_frontier"] else "",
            row["policy"],
            row["backfill"],
            *("" if row[name] is None else f"{row[name]:g}" for name in ("omega", "queue")),
            *(_cell(row, name, digits) for name, _, digits in _COLUMNS),
            _cell(row, "violation_s", 1),
        )
    stdout.print(table, highlight=False)
    stdout.print("• on the Pareto frontier: no other has less wait and less violation", style="dim", highlight=False)
    print_notes(notes)


def _rows(points: Sequence[Point], results: Sequence[PointResult]) -> list[dict[str, Any]]:
    coordinates = [(result.best("wait_s"), result.best("violation_s")) for result in results]
    comparable = [(wait, violation) for wait, violation in coordinates if wait is not None and violation is not None]
    best = {pair for pair, is_best in zip(comparable, find_frontier(comparable), strict=True) if is_best}
    rows = [
        {
            "policy": point.policy,
            "backfill": point.backfill.kind,
            "omega": point.backfill.share if point.backfill.kind in RELAXED else None,
            "queue": point.backfill.whole_at if point.backfill.kind == "adaptive" else None,
            "is_on_frontier": coordinate in best,
            "measures": None if result.measures is None else asdict(result.measures),
            "intervals": {name: asdict(spread) for name, spread in result.spreads.items()},
            "fingerprint": result.fingerprint,
        }
        for point, result, coordinate in zip(points, results, coordinates, strict=True)
    ]
    order = sorted(range(len(rows)), key=lambda index: (coordinates[index][0] is None, coordinates[index][0] or 0.0))
    return [rows[index] for index in order]


def _cell(row: dict[str, Any], name: str, digits: int) -> str:
    spread = row["intervals"].get(name)
    if spread is not None:
        return f"{spread['mean']:,.{digits}f} ± {spread['sd']:,.{digits}f}"
    value = None if row["measures"] is None else row["measures"][name]
    return "–" if value is None else f"{value:,.{digits}f}"
