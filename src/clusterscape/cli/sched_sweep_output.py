"""How sweeps are answered: one line per simulation, by wait; a dot where no other beats both wait and violation."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from clusterscape.cli.output import answers, listing_table, print_json
from clusterscape.cli.sched_output import print_notes
from clusterscape.model.jobs import CleaningNote, JobTrace
from clusterscape.simulate.batch import RELAXED
from clusterscape.simulate.sweep import Point, PointResult, find_frontier

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
    """All points, best wait first."""
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
    how = f"mean ± sd of {runs} runs with ±1 s run times" if runs else "one run each; --jitter gives intervals"
    answers.print(f"{trace.name}, semantics {semantics}: {how}", highlight=False)
    table = listing_table()
    headings = ("", "order", "backfilling", "ω", "q0", *(label for _, label, _ in _COLUMNS), "violation, s")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < 3 else "right", no_wrap=True)
    for row in rows:
        table.add_row(
            "•" if row["is_on_frontier"] else "",
            row["policy"],
            row["backfill"],
            *("" if row[name] is None else f"{row[name]:g}" for name in ("omega", "queue")),
            *(_cell(row, name, digits) for name, _, digits in _COLUMNS),
            _cell(row, "violation_s", 1),
        )
    answers.print(table, highlight=False)
    answers.print("• no other has both less wait and less violation", style="dim", highlight=False)
    print_notes(notes)


def _rows(points: Sequence[Point], results: Sequence[PointResult]) -> list[dict[str, Any]]:
    places = [(result.best("wait_s"), result.best("violation_s")) for result in results]
    comparable = [(wait, violation) for wait, violation in places if wait is not None and violation is not None]
    best = {pair for pair, is_best in zip(comparable, find_frontier(comparable), strict=True) if is_best}
    rows = [
        {
            "policy": point.policy,
            "backfill": point.backfill.kind,
            "omega": point.backfill.share if point.backfill.kind in RELAXED else None,
            "queue": point.backfill.whole_at if point.backfill.kind == "adaptive" else None,
            "is_on_frontier": place in best,
            "measures": None if result.measures is None else asdict(result.measures),
            "intervals": {name: asdict(spread) for name, spread in result.spreads.items()},
            "fingerprint": result.fingerprint,
        }
        for point, result, place in zip(points, results, places, strict=True)
    ]
    order = sorted(range(len(rows)), key=lambda at: (places[at][0] is None, places[at][0] or 0.0))
    return [rows[at] for at in order]


def _cell(row: dict[str, Any], name: str, digits: int) -> str:
    spread = row["intervals"].get(name)
    if spread is not None:
        return f"{spread['mean']:,.{digits}f} ± {spread['sd']:,.{digits}f}"
    value = None if row["measures"] is None else row["measures"][name]
    return "–" if value is None else f"{value:,.{digits}f}"
