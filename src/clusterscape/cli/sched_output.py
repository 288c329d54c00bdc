"""How ``clusterscape sched`` answers: measures with their intervals, the paper's table, schedules as SWF, progress."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from clusterscape.cli.output import answers, errors, listing_table, print_json
from clusterscape.cli.sched_published import PublishedRows
from clusterscape.model.jobs import CleaningNote, JobStatus, JobTrace
from clusterscape.model.samples import Int64s
from clusterscape.simulate.batch import Measures, Scenario, Schedule, Spread, measure_spread, simulate
from clusterscape.simulate.fairness import SizeClass

Result = TypeVar("Result")

QUIET_S = 1.0
"""Work that takes longer shows how far it is."""

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
    """Do ``work``, which counts in the array it is given; a bar appears after a second."""
    done = np.zeros(1, np.int64)
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(work, done)
        finished = threading.Event()
        pending.add_done_callback(lambda _: finished.set())
        if not finished.wait(QUIET_S):
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
            with Progress(*columns, console=errors, transient=True) as bars:
                task = bars.add_task(label, total=total)
                while not finished.wait(0.1):
                    bars.update(task, completed=int(done[0]))
        return pending.result()


def spread_with_progress(label: str, scenario: Scenario, runs: int) -> dict[str, Spread]:
    """The jittered runs of a scenario."""

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
    """Measures, what was left out, and the fingerprint that names this result."""
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
                "sizes": [asdict(one) | {"is_starved": one.is_starved} for one in sizes],
                "notes": [asdict(note) for note in (*trace.notes, *notes)],
                "fingerprint": scenario.fingerprint(),
                "output": None if output is None else str(output),
            }
        )
        return
    answers.print(
        f"{trace.name} ({trace.format}): {len(scenario.jobs):,} jobs on {scenario.total_processors:,} {trace.size_unit}, "
        f"{scenario.backfill.kind} backfilling, semantics {semantics}, trim {scenario.semantics.trim}",
        highlight=False,
    )
    if measures is not None:
        _print_measures(measures, spreads)
    print_sizes(sizes, trace.size_unit)
    answers.print(f"fingerprint {scenario.fingerprint()[:16]}", style="dim", highlight=False)
    print_notes((*trace.notes, *notes))
    if output is not None:
        errors.print(f"Every job's start is in {output}.", highlight=False)


def _print_measures(measures: Measures, spreads: Mapping[str, Spread]) -> None:
    table = listing_table()
    for heading in ("measure", "value", "with ±1 s run times"):
        table.add_column(heading, justify="left" if heading == "measure" else "right", no_wrap=True)
    for name, (label, unit, digits) in (_LABELS | _FAIRNESS).items():
        value = getattr(measures, name)
        shown = "–" if value is None else f"{value:,.{digits}f} {unit}".rstrip()
        table.add_row(label, shown, _interval(spreads.get(name), digits))
    answers.print(table, highlight=False)


def _interval(spread: Spread | None, digits: int) -> str:
    return "" if spread is None else f"{spread.mean:,.{digits}f} ± {spread.sd:,.{digits}f}"


def print_sizes(sizes: Sequence[SizeClass], unit: str) -> None:
    """Waits by size, beside those under first come, first served where these are known; who starves is said."""
    has_reference = any(one.reference_p99_s is not None for one in sizes)
    beside = ("FCFS p99, s", "FCFS longest, s", "") if has_reference else ()
    table = listing_table()
    for heading in (unit, "jobs", "wait p99, s", "longest, s", *beside):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in sizes:
        span = f"{one.low:,}" if one.low == one.high else f"{one.low:,}–{one.high:,}"
        row = [span, f"{one.jobs:,}", f"{one.p99_wait_s:,.0f}", f"{one.max_wait_s:,.0f}"]
        if has_reference:
            theirs = (one.reference_p99_s, one.reference_max_s)
            row += [
                *("" if value is None else f"{value:,.0f}" for value in theirs),
                "starved" if one.is_starved else "",
            ]
        table.add_row(*row)
    answers.print(table, highlight=False)


def print_notes(notes: Sequence[CleaningNote]) -> None:
    """What was dropped, changed or odd, on standard error."""
    for note in notes:
        errors.print(str(note), style="yellow" if note.action != "kept" else "dim", highlight=False)


def print_table(
    trace: JobTrace,
    notes: Sequence[CleaningNote],
    found: Mapping[str, Mapping[str, Spread]],
    published: PublishedRows | None,
    semantics: str,
    runs: int,
    relaxing: tuple[float, float, float],
    *,
    as_json: bool,
) -> None:
    """Baseline and adaptive beside the published rows, ours beside both, with intervals, and where they differ."""
    rows = [_compare(name, found, published) for name in _LABELS]
    if as_json:
        about = {"trace": trace.name, "semantics": semantics, "runs": runs, "omega": relaxing[0], "queue": relaxing[1]}
        about |= {"frugal_omega": relaxing[2]}
        print_json(about | {"rows": rows, "notes": [asdict(note) for note in (*trace.notes, *notes)]})
        return
    table = listing_table()
    headings = ("", "baseline", "published", "adaptive", "published", "frugal", "adaptive", "published", "frugal")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
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
    answers.print(
        f"{trace.name}: ω = {relaxing[0]:g}, adaptive ω·q/{relaxing[1]:g}, frugal ω = {relaxing[2]:g}; "
        f"mean ± sd of {runs} runs with ±1 s run times; the last three columns: better than the baseline by",
        highlight=False,
    )
    answers.print(table, highlight=False)
    for row in rows:
        for words in row["words"]:
            answers.print(words, highlight=False)
    print_notes((*trace.notes, *notes))


def _cells(side: dict[str, Any], digits: int) -> tuple[str, str]:
    spread, given = side["spread"], side["published"]
    ours = "–" if spread is None else f"{spread['mean']:,.{digits}f} ± {spread['sd']:,.{digits}f}"
    return ours, "" if given is None else f"{given:,.{digits}f}"


def _percent(ratio: float | None, is_sure: bool) -> str:
    return "" if ratio is None else f"{'' if is_sure else '~'}{ratio:+.1%}"


def _gain(name: str, before: Spread | None, after: Spread | None) -> tuple[float | None, bool]:
    """By which share a measure is better, and whether that is beyond two standard deviations of the difference."""
    if before is None or after is None or not before.mean:
        return None, False
    sign = -1 if name == "utilization" else 1
    is_sure = abs(before.mean - after.mean) > 2 * float(np.hypot(before.sd, after.sd))
    return sign * (before.mean - after.mean) / before.mean, is_sure


def _compare(name: str, found: Mapping[str, Mapping[str, Spread]], published: PublishedRows | None) -> dict[str, Any]:
    """One measure: both sides with what was published, the gain, and in words where they are more than 2 sd apart."""
    ours = {side: found[kind].get(name) for side, kind in _SIDES.items()}
    given = {
        "baseline": published.baseline.get(name) if published else None,
        "adaptive": published.adaptive.get(name) if published else None,
        "frugal": None,
    }
    label, unit, digits = _LABELS[name]
    words = [
        f"{label}, {side}: {spread.mean - value:+,.{digits}f} {unit}".rstrip()
        + f" from the published {value:,.{digits}f}, beyond two standard deviations ({2 * spread.sd:,.{digits}f})"
        for side in ours
        if (spread := ours[side]) is not None and (value := given[side]) is not None and spread.tells_apart(value)
    ]
    improved, is_sure = _gain(name, ours["baseline"], ours["adaptive"])
    frugal_improved, is_frugal_sure = _gain(name, ours["baseline"], ours["frugal"])
    for side, gain, is_known in (("adaptive", improved, is_sure), ("frugal", frugal_improved, is_frugal_sure)):
        if gain is not None and not is_known:
            words.append(f"{label}: baseline and {side} differ by less than the jitter of run times")
    then, now = given["baseline"], given["adaptive"]
    return {
        "measure": name,
        **{
            side: {"spread": None if spread is None else asdict(spread), "published": given[side]}
            for side, spread in ours.items()
        },
        "improved": improved,
        "is_beyond_jitter": is_sure,
        "frugal_improved": frugal_improved,
        "is_frugal_beyond_jitter": is_frugal_sure,
        "improved_published": (-1 if name == "utilization" else 1) * (then - now) / then if then and now else None,
        "words": words,
    }


@dataclass(frozen=True, slots=True)
class SwfJobs:
    """The columns of a schedule, one row per job in submit order."""

    row: Int64s
    submit_s: Int64s
    wait_s: Int64s
    run_s: Int64s
    size: Int64s
    request_s: Int64s
    user: Int64s


def write_swf(path: Path, trace: JobTrace, schedule: Schedule) -> None:
    """Every simulated job with its simulated wait, in submit order."""
    jobs, scenario = schedule.scenario.jobs, schedule.scenario
    table = SwfJobs(jobs.row, jobs.submit_s, schedule.wait_s, jobs.run_s, jobs.processors, jobs.request_s, jobs.user)
    write_swf_jobs(path, trace, table, scenario.total_processors, scenario.fingerprint())


def write_swf_jobs(path: Path, trace: JobTrace, jobs: SwfJobs, total: int, fingerprint: str) -> None:
    """A schedule as SWF; ids that are no numbers become line numbers."""
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
