"""The report of job traces as one HTML file: verdicts first, then the traces side by side, each chart with axes and units."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from clusterscape.cli import sched_describe_charts as charts
from clusterscape.cli.report_page import color_class, draw_svg, write_html
from clusterscape.cli.report_plots import Scale, Unit, format_tick
from clusterscape.cli.sched_describe_text import FACTS, VERDICTS, find, format_effect, unit_word

STYLE = """
.lead { max-width: 44rem; } .legend { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 12px 0; }
.claim { margin: 10px 0; padding: 12px 16px; border: 1px solid var(--line); border-radius: 8px; background: var(--panel); }
.claim h3 { margin: 0 0 6px; font-size: 14px; font-weight: 600; } .claim p { margin: 0; font-size: 13px; }
.row { display: grid; grid-template-columns: 136px 1fr 280px; gap: 4px 16px; align-items: start; padding: 6px 0;
  border-top: 1px solid var(--line); } .row svg { margin: 0; }
.verdict { font-size: 11px; font-weight: 600; letter-spacing: .05em; text-transform: uppercase; }
.verdict.supported { color: var(--c2); } .verdict.not_supported { color: var(--c1); }
.verdict.cannot_tell { color: var(--muted); }
.verdict::before { display: inline-block; width: 1.2em; } .verdict.supported::before { content: "●"; }
.verdict.not_supported::before { content: "✕"; } .verdict.cannot_tell::before { content: "?"; }
details { margin-top: 4px; font-size: 12px; color: var(--muted); } summary { cursor: pointer; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 20px 3px 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } td:first-child, th:first-child { text-align: left; } td:first-child { color: var(--muted); }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(380px, 1fr)); gap: 8px 32px; }
figure { margin: 0; min-width: 0; } figcaption { font-size: 13px; font-weight: 600; }
figcaption span { font-weight: 400; color: var(--muted); }
svg .on { fill: var(--bg); font-weight: 600; } svg .zero { stroke: var(--muted); stroke-dasharray: 2 2; }
@media (max-width: 760px) { .row { grid-template-columns: 1fr; } .row svg { max-width: 320px; } }
@media (max-width: 480px) { .two { grid-template-columns: 1fr; } body { padding: 20px 14px 40px; } }
"""
INTERVAL_WIDTH = 270.0
_LEAD = (
    "What these jobs look like, and what the claims of Zhang & Dai about such traces come to on them. Every effect has two 95 % "
    "intervals: for the jobs at hand, and with whole users drawn anew, because the jobs of one user are alike."
)


def write_report(path: Path, document: dict[str, Any]) -> None:
    """``document``: a description as the API has it."""
    traces = document["traces"]
    names = ", ".join(trace["name"] for trace in traces)
    sections = [
        f"<h1>{escape(names)}</h1><p class='muted lead'>{escape(_LEAD)}</p>{_legend(traces)}",
        f"<h2>Claims</h2>{_claims(document['claims'])}",
        f"<h2>{'Side by side' if len(traces) > 1 else 'In numbers'}</h2>{_facts(traces)}",
        _geometries(traces, document["timezone"]),
        _occupancies(traces),
        _waits(traces),
        _failures(traces),
        _users(traces),
        _notes(traces),
    ]
    write_html(path, f"Job traces: {names}", "".join(sections), style=STYLE)


def _legend(traces: Sequence[dict[str, Any]]) -> str:
    items = "".join(
        f'<span><span class="key {color_class(place)}"></span>{escape(trace["name"])} '
        f'<span class="muted">{trace["jobs"]:,} jobs, in {unit_word(trace)}</span></span>'
        for place, trace in enumerate(traces)
    )
    return f'<div class="legend">{items}</div>'


def _claims(claims: Sequence[dict[str, Any]]) -> str:
    """One card for each statement: what it comes to over all traces where that is told, then row by row."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for claim in claims:
        groups.setdefault(claim["key"].removesuffix("_everywhere"), []).append(claim)
    return "".join(_claim(group) for group in groups.values())


def _claim(group: Sequence[dict[str, Any]]) -> str:
    rows = "".join(
        f'<div class="row">{_verdict(claim)}<p>{escape(claim["sentence"])}</p><div>{_effect(claim)}</div></div>'
        for claim in group
    )
    first = group[0]
    number = f' <span class="muted">takeaway {first["takeaway"]}</span>' if first["takeaway"] else ""
    caveats = dict.fromkeys(words for claim in group for words in claim["caveats"])
    rests = "".join(f"<p>{escape(words)}</p>" for words in (group[-1]["rests_on"], *caveats))
    return (
        f'<div class="claim"><h3>{escape(group[-1]["statement"])}{number}</h3>{rows}'
        f"<details><summary>What it rests on</summary>{rests}</details></div>"
    )


def _verdict(claim: dict[str, Any]) -> str:
    return f'<span class="verdict {claim["verdict"]}">{VERDICTS[claim["verdict"]]}</span>'


def _effect(claim: dict[str, Any]) -> str:
    """The effect with both intervals against the line of no effect."""
    effect = claim["effect"]
    if effect is None:
        return ""
    is_ratio = claim["effect_unit"] == "ratio"
    rows = [("these jobs", effect), *([("users", claim["effect_by_user"])] if claim["effect_by_user"] else [])]
    ends = [value for _, each in rows for value in each.values() if value is not None] + [1.0 if is_ratio else 0.0]
    low, high = min(ends), max(ends)
    if is_ratio:
        low, high = max(low, 1e-6) / 1.2, high * 1.2
    else:
        low, high = low - 0.08 * (high - low or 1), high + 0.08 * (high - low or 1)
    unit: Unit = "ratio" if is_ratio else "share"
    scale = Scale(low, high, 70, INTERVAL_WIDTH - 12, unit, is_log=is_ratio)
    height = 14.0 * len(rows) + 20
    nothing = scale.place(1.0 if is_ratio else 0.0)
    parts = [f'<path class="axis zero" d="M{nothing:.1f} 2V{height - 18:.1f}"/>']
    for row, (label, each) in enumerate(rows):
        y = 10 + 14 * row
        parts.append(f'<text x="0" y="{y + 3.5}">{label}</text>')
        if each["low"] is not None:
            parts.append(
                f'<path class="line plain" d="M{scale.place(each["low"]):.1f} {y}H{scale.place(each["high"]):.1f}"/>'
            )
        parts.append(f'<circle class="fill plain" cx="{scale.place(each["value"]):.1f}" cy="{y}" r="3"/>')
    parts += [
        f'<text text-anchor="middle" x="{scale.place(tick):.1f}" y="{height - 4:.1f}">{format_tick(tick, unit)}</text>'
        for tick in scale.ticks(4)
    ]
    return draw_svg(INTERVAL_WIDTH, height, "".join(parts), format_effect(claim))


def _facts(traces: Sequence[dict[str, Any]]) -> str:
    head = "".join(f"<th>{escape(trace['name'])}</th>" for trace in traces)
    rows = "".join(
        f"<tr><td>{escape(label)}</td>{''.join(f'<td>{escape(cell(trace))}</td>' for trace in traces)}</tr>"
        for label, cell in FACTS
    )
    return f'<div class="scroll"><table><tr><th></th>{head}</tr>{rows}</table></div>'


def _figure(caption: str, note: str, svg: str) -> str:
    if not svg:
        return ""
    return f"<figure><figcaption>{escape(caption)} <span>{escape(note)}</span></figcaption>{svg}</figure>"


def _pair(heading: str, *figures: str) -> str:
    shown = "".join(figures)
    return f'<h2>{escape(heading)}</h2><div class="two">{shown}</div>' if shown else ""


def _geometries(traces: Sequence[dict[str, Any]], timezone: str) -> str:
    hours = [str(hour) for hour in range(24)]
    zone = f"{timezone}; faint: 95 %"
    weeks = [
        _figure(trace["name"], "submissions by hour of the week", charts.draw_week(trace, color_class(place)))
        for place, trace in enumerate(traces)
    ]
    return _pair(
        "Run time and size",
        _figure("Run time", "", charts.draw_distribution(traces, lambda trace: trace["run_s"], "run time", "s")),
        _figure(
            "Size",
            f"in {unit_word(traces[0])}"
            if len({trace["size_unit"] for trace in traces}) == 1
            else "in each trace's own unit",
            charts.draw_distribution(traces, lambda trace: trace["size_units"], "size", "count"),
        ),
    ) + _pair(
        "Arrivals",
        _figure("By hour", zone, charts.draw_hours(traces, "jobs_per_hour_by_hour", hours)),
        _figure("By weekday", zone, charts.draw_hours(traces, "jobs_per_hour_by_weekday", charts.DAYS)),
        *weeks,
    )


def _occupancies(traces: Sequence[dict[str, Any]]) -> str:
    figures = []
    for place, trace in enumerate(traces):
        occupancy = trace["occupancy"]
        if occupancy is None:
            continue
        stated = "" if occupancy["is_capacity_stated"] else ", the most that was ever busy"
        note = f"of {occupancy['capacity_units']:,.0f} {unit_word(trace)}{stated}; utilization {occupancy['utilization']:.1%}"
        if occupancy["over_capacity_share"] > 0.001:
            note += f"; more than there is during {occupancy['over_capacity_share']:.0%} of the time: recorded starts are wrong"
        figures.append(_figure(trace["name"], note, charts.draw_occupancy(trace, color_class(place))))
    return f"<h2>Occupation over time</h2>{''.join(figures)}" if figures else ""


def _waits(traces: Sequence[dict[str, Any]]) -> str:
    def waits(trace: dict[str, Any]) -> Any:
        return find(trace, "waiting", "wait_s")

    return _pair(
        "Waiting",
        _figure("Wait", "", charts.draw_distribution(traces, waits, "wait", "s")),
        _figure("Wait by size", "middle half and median", charts.draw_waits(traces, "by_size", "size, units")),
        _figure(
            "Wait by queue",
            "middle half and median",
            charts.draw_waits(traces, "by_waiting_jobs", "jobs waiting at submission"),
        ),
    )


def _failures(traces: Sequence[dict[str, Any]]) -> str:
    bars = charts.draw_statuses(traces)
    if not bars:
        return ""
    keys = "".join(
        f'<span><span class="key {color}"></span>{status}</span>' for status, color in charts.STATUS_COLORS.items()
    )
    thirds = _pair(
        "Failures by size and run time",
        _figure("By size", "dots: share; whiskers: 95 %", charts.draw_ends(traces, "by_size", "size")),
        _figure("By run time", "dots: share; whiskers: 95 %", charts.draw_ends(traces, "by_run_time", "run time")),
    )
    tables = "".join(_lost_by_user(trace) for trace in traces if find(trace, "failures", "users"))
    lost = f'<h2>Who lost most unit-hours</h2><div class="two">{tables}</div>' if tables else ""
    return f'<h2>How jobs ended</h2><div class="legend">{keys}</div>{bars}{thirds}{lost}'


def _lost_by_user(trace: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{escape(each['user'])}</td><td>{each['jobs']:,}</td><td>{each['unsuccessful']['value']:.0%}</td>"
        f"<td>{each['lost_unit_hours']:,.0f}</td></tr>"
        for each in trace["failures"]["users"][:5]
    )
    head = "<tr><th>user</th><th>jobs</th><th>unsuccessful</th><th>unit-hours lost</th></tr>"
    table = f'<div class="scroll"><table>{head}{rows}</table></div>'
    return _figure(trace["name"], "", table)


def _users(traces: Sequence[dict[str, Any]]) -> str:
    return _pair(
        "Users",
        _figure("Repeated jobs", "same size, run time ±10 %", charts.draw_cover(traces)),
        _figure("Run time by queue", "median", charts.draw_thirds(traces, "median_run_s", "run time", "s")),
        _figure("Size by queue", "mean", charts.draw_thirds(traces, "mean_size_units", "size, units", "count")),
        _status_runs(traces),
    )


def _status_runs(traces: Sequence[dict[str, Any]]) -> str:
    rows = []
    for trace in traces:
        for each in trace["users"]["run_time_by_status"]:
            ratio = each["ratio_to_completed"]
            shown = "" if ratio is None else f"{ratio['value']:.2f}"
            if ratio is not None and ratio["low"] is not None:
                shown += f" ({ratio['low']:.2f}–{ratio['high']:.2f})"
            rows.append(
                f"<tr><td>{escape(trace['name'])}</td><td>{each['status']}</td>"
                f"<td>{format_tick(each['median_run_s'], 's')}</td><td>{shown}</td></tr>"
            )
    if not rows:
        return ""
    head = "<tr><th></th><th>status</th><th>median run</th><th>÷ completed</th></tr>"
    table = f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>'
    return _figure("Run time by status", "÷ completed: within users, median, 95 %", table)


def _notes(traces: Sequence[dict[str, Any]]) -> str:
    items = [
        f"<li>{escape(trace['name'])}: {note['count']:,} {note['action']}: {escape(note['reason'])}"
        + (f" (line {', '.join(str(number) for number in note['lines'])}, …)" if note["lines"] else "")
        + "</li>"
        for trace in traces
        for note in trace["notes"]
    ]
    return f'<h2>What was done to rows</h2><ul class="muted">{"".join(items)}</ul>' if items else ""
