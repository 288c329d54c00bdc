"""A trace's report as one HTML file that needs nothing else: no script, no network, light and dark."""

from collections.abc import Callable, Sequence
from html import escape

from clusterscape.cli.trace_text import GRAPH_ONLY, NOTHING, format_s, is_graph_only
from clusterscape.model.trace_report import TraceReportDocument

PARTS = (("compute", "#4477aa"), ("waiting", "#ddaa33"), ("transferring", "#bb5566"), ("idle", "#bbbbbb"))
_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.45 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1rem; margin: 1.8rem 0 .4rem; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top; }
th { font-weight: 400; opacity: .65; } td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.bar { display: flex; width: 28rem; max-width: 60vw; height: 14px; } .bar span { display: block; }
.key span { display: inline-block; width: 10px; height: 10px; margin: 0 .3rem 0 1rem; } .note { opacity: .75; }
"""


def write_page(report: TraceReportDocument) -> str:
    """The page of a report's report."""
    if is_graph_only(report.spans):
        sections: Sequence[Callable[[TraceReportDocument], str]] = (_graph_only,)
    else:
        sections = (_verdicts, _breakdown, _collectives, _bubble, _path, _what_if)
    title = f"{report.format} trace, {len(report.ranks)} ranks, {len(report.steps)} steps"
    error = format_s(report.alignment.error_s)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in report.notes)
    body = "".join(section(report) for section in sections)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f"<h1>{escape(title)}</h1><p>Alignment error {escape(error)}.</p>{notes}{body}</html>\n"
    )


def _rows(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]], texts: tuple[int, ...] = ()) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td>{escape(cell)}</td>" if place in texts else f'<td class="number">{escape(cell)}</td>'
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _graph_only(_: TraceReportDocument) -> str:
    return f"<p>{escape(GRAPH_ONLY)}</p>"


def _verdicts(report: TraceReportDocument) -> str:
    if not report.verdicts:
        return f"<h2>Why</h2><p>{escape(NOTHING)}</p>"
    rows = [(format_s(one.seconds_per_step), one.sentence) for one in report.verdicts]
    return f"<h2>Why</h2>{_rows(('saves', 'verdict'), rows, (1,))}"


def _breakdown(report: TraceReportDocument) -> str:
    key = "".join(f'<span style="background:{color}"></span>{name}' for name, color in PARTS)
    rows = []
    for row in report.breakdown:
        bars = "".join(
            f'<span title="{name} {format_s(getattr(row, f"{name}_s"))}" style="background:{color};'
            f'width:{100 * getattr(row, f"{name}_s") / row.step_s if row.step_s else 0:.2f}%"></span>'
            for name, color in PARTS
        )
        rows.append(
            f'<tr><td class="number">{row.rank}</td><td class="number">{format_s(row.step_s)}</td>'
            f'<td><div class="bar">{bars}</div></td></tr>'
        )
    head = "<tr><th>rank</th><th>step</th><th></th></tr>"
    return f'<h2>Where the step goes</h2><p class="key">{key}</p><table>{head}{"".join(rows)}</table>'


def _collectives(report: TraceReportDocument) -> str:
    found = report.collectives
    if not found.matched:
        return ""
    times = {each.rank: each for each in report.slack}
    rows = [(str(each.rank), f"{each.times}×", format_s(times[each.rank].slack_s)) for each in found.last_arrivers]
    table = _rows(("rank", "last", "others waited, per step"), rows)
    return f"<h2>Collectives</h2><p>{found.matched:,} matched across ranks.</p>{table}"


def _bubble(report: TraceReportDocument) -> str:
    bubble = report.bubble
    if bubble is None:
        return ""
    pairs = zip(bubble.stage_compute_s, bubble.stage_bubble_ratio, strict=True)
    rows = [(str(stage), format_s(length), f"{share:.0%}") for stage, (length, share) in enumerate(pairs)]
    words = (
        f"Bubble {bubble.measured_ratio:.1%} = ideal {bubble.ideal_ratio:.1%} + imbalance "
        f"{bubble.imbalance_ratio:.1%} + jitter {bubble.jitter_ratio:.1%}."
    )
    return f"<h2>Pipeline</h2><p>{words}</p>{_rows(('stage', 'compute', 'bubble'), rows)}"


def _path(report: TraceReportDocument) -> str:
    path = report.critical_path
    if path is None:
        return ""
    rows = [(str(part.rank), part.kind, format_s(part.length_s)) for part in path.parts[:16]]
    return f"<h2>Critical path of step {path.step}</h2>{_rows(('rank', 'what', 'length'), rows, (1,))}"


def _what_if(report: TraceReportDocument) -> str:
    rows = [
        (each.question, format_s(each.now_s), format_s(each.then_s), f"{each.speed_up or 0:.3f}×")
        for each in report.what_if
    ]
    return f"<h2>What if</h2>{_rows(('what', 'step now', 'step then', 'speed-up'), rows, (0,))}" if rows else ""
