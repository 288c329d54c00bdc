"""The charts of a trace report: each takes the described traces (as plain JSON), in the order of their colors, and gives SVG.

An empty text means that no trace has what the chart shows.
"""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from clusterscape.cli.report_page import color_class, draw_svg
from clusterscape.cli.report_plots import (
    Unit,
    area,
    band,
    box,
    column,
    format_tick,
    frame,
    interval,
    line,
)
from clusterscape.cli.sched_describe_text import find

Trace = dict[str, Any]
Pick = Callable[[Trace], Any]

WIDE = 960.0
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
STATUS_COLORS = {"completed": "c2", "failed": "c1", "cancelled": "c4", "timeout": "c6"}


def _having(traces: Sequence[Trace], pick: Pick) -> list[tuple[int, Trace, Any]]:
    return [(place, trace, found) for place, trace in enumerate(traces) if (found := pick(trace)) is not None]


def draw_distribution(traces: Sequence[Trace], pick: Pick, what: str, unit: Unit) -> str:
    """Shares of jobs at or below each value, on a logarithmic axis; below one second (or one unit) counts as one."""
    series = _having(traces, lambda trace: find(pick(trace), "distribution"))
    if not series:
        return ""
    floor = 1.0 if unit == "s" else min(min(value for value in each["values"] if value > 0) for _, _, each in series)
    top = max(max(each["values"]) for _, _, each in series)
    plot = frame((floor, max(top, floor * 2), unit, True), (0, 1, "share", False), labels=(what, "share of jobs"))
    marks = []
    for place, trace, each in series:
        values = [max(value, floor) for value in each["values"]]
        median = find(pick(trace), "quantiles", "p50")
        title = f"{trace['name']}: median {format_tick(median, unit)}"
        marks.append(line(plot, values, each["shares"], color_class(place), title, steps=True))
    return plot.draw(marks, f"Distribution of {what}")


def draw_hours(traces: Sequence[Trace], key: str, names: Sequence[str]) -> str:
    """Submissions by hour or weekday, relative to the trace's own mean, with intervals."""
    series = _having(traces, lambda trace: trace["arrivals"][key])
    if not series:
        return ""
    scaled = [(place, trace, _relative(rates)) for place, trace, rates in series]
    top = max(max(high for _, _, high in rates) for _, _, rates in scaled)
    label = "hour of the day" if len(names) == 24 else "weekday"
    plot = frame((0, len(names), "count", False), (0, max(top, 1.2), "ratio", False), labels=(label, "× mean rate"))
    step = (plot.x.end - plot.x.begin) / len(names)
    marks = []
    for place, trace, rates in scaled:
        xs = [place_x + 0.5 for place_x in range(len(names))]
        marks.append(band(plot, xs, [low for _, low, _ in rates], [high for _, _, high in rates], color_class(place)))
        marks.append(line(plot, xs, [value for value, _, _ in rates], color_class(place), trace["name"]))
    shown = names if step > 26 else [name if at % 3 == 0 else "" for at, name in enumerate(names)]
    return plot.draw(marks, f"Submissions by {label}", names=shown)


def _relative(rates: Sequence[Any]) -> list[tuple[float, float, float]]:
    known = [0.0 if rate is None else rate["value"] for rate in rates]
    mean = sum(known) / len(known) or 1.0
    return [
        (0.0, 0.0, 0.0)
        if rate is None
        else (
            rate["value"] / mean,
            (rate["value"] if rate["low"] is None else rate["low"]) / mean,
            (rate["value"] if rate["high"] is None else rate["high"]) / mean,
        )
        for rate in rates
    ]


def draw_week(trace: Trace, color: str) -> str:
    """Submissions of one trace in each hour of the week; the darker, the more."""
    matrix = trace["arrivals"]["jobs_by_weekday_hour"]
    if matrix is None:
        return ""
    top = max(max(row) for row in matrix) or 1
    left, width, height = 30.0, 464.0, 15.0
    step = (width - left) / 24
    cells = "".join(
        f'<rect x="{left + hour * step:.1f}" y="{day * height:.1f}" width="{step - 1:.1f}" height="{height - 1:.1f}" '
        f'opacity="{0.06 + 0.94 * count / top:.2f}"><title>{DAYS[day]} {hour}:00: {count:,} jobs</title></rect>'
        for day, row in enumerate(matrix)
        for hour, count in enumerate(row)
    )
    days = "".join(f'<text x="0" y="{day * height + 11:.1f}">{name}</text>' for day, name in enumerate(DAYS))
    hours = "".join(
        f'<text text-anchor="middle" x="{left + (hour + 0.5) * step:.1f}" y="{7 * height + 11:.1f}">{hour}</text>'
        for hour in range(0, 24, 3)
    )
    body = f'{days}<g class="fill {color}">{cells}</g>{hours}'
    return draw_svg(width, 7 * height + 16, body, f"Submissions of {trace['name']} by hour of the week")


def draw_occupancy(trace: Trace, color: str) -> str:
    """Busy share of the machine, and the jobs that wait, over the time of one trace."""
    occupancy = trace["occupancy"]
    if occupancy is None:
        return ""
    course, capacity = occupancy["course"], occupancy["capacity_units"] or 1.0
    count = len(course["busy_units"])
    begin = course["start_s"] + (occupancy["epoch_s"] or 0.0)
    xs = [begin + place * course["step_s"] for place in range(count + 1)]
    unit: Unit = "date" if occupancy["epoch_s"] is not None else "day"
    if unit == "day":
        xs = [x - begin for x in xs]
    busy = [value / capacity for value in course["busy_units"]]
    parts = []
    for values, top, y_unit, label in (
        (busy, max(1.0, max(busy)), "share", "busy"),
        (course["waiting_jobs"], max(1.0, max(course["waiting_jobs"])), "count", "jobs waiting"),
    ):
        chosen: Unit = "share" if y_unit == "share" else "count"
        plot = frame((xs[0], xs[-1], unit, False), (0, top, chosen, False), labels=("", label), width=WIDE, height=112)
        title = f"{trace['name']}: {label}, mean of {format_tick(course['step_s'], 's')}"
        parts.append(plot.draw([area(plot, xs, values, color, title)], title, has_ticks=chosen == "count"))
    return "".join(parts)


def draw_waits(traces: Sequence[Trace], key: str, what: str) -> str:
    """Middle half and median of the wait by class, on a logarithmic axis."""
    series = _having(traces, lambda trace: find(trace, "waiting", key) or None)
    if not series:
        return ""
    top = max(each["p75_s"] for _, _, classes in series for each in classes)
    ends = [each for _, _, classes in series for each in classes]
    low, high = max(0.5, min(each["low"] for each in ends)), max(each["high"] for each in ends)
    across = (low / 1.7, max(high, low * 2) * 1.4)
    plot = frame((*across, "count", True), (1, max(top, 60), "s", True), labels=(what, "wait"))
    marks = []
    for place, trace, classes in series:
        for each in classes:
            middle = (max(each["low"], low) * max(each["high"], low)) ** 0.5
            at = plot.x.place(middle) + (place - (len(traces) - 1) / 2) * 8
            quartiles = tuple(max(each[name], 1.0) for name in ("p25_s", "p50_s", "p75_s"))
            title = (
                f"{trace['name']}, {each['low']:g}–{each['high']:g}: median {format_tick(each['p50_s'], 's')}, "
                f"{each['jobs']:,} jobs"
            )
            marks.append(box(plot, at, (quartiles[0], quartiles[1], quartiles[2]), color_class(place), title))
    return plot.draw(marks, f"Wait by {what}")


def draw_statuses(traces: Sequence[Trace]) -> str:
    """How jobs ended: one bar by jobs and one by unit-hours for each trace."""
    series = _having(traces, lambda trace: find(trace, "failures", "statuses"))
    if not series:
        return ""
    height, left, width = 18.0, 190.0, WIDE
    parts, row = [], 0
    for _, trace, statuses in series:
        for key, label in (("share", "jobs"), ("unit_hours_share", "unit-hours")):
            parts.append(f'<text class="end" x="{left - 8}" y="{row * height + 12:.1f}">')
            parts.append(f"{escape(trace['name'][:24])}, {label}</text>")
            x = left
            for each in statuses:
                share = each["share"]["value"] if key == "share" else each[key] or 0.0
                wide = share * (width - left)
                parts.append(
                    f'<rect class="fill {STATUS_COLORS[each["status"]]}" x="{x:.1f}" y="{row * height + 2:.1f}" '
                    f'width="{max(wide - 1, 0):.1f}" height="{height - 4}"><title>{each["status"]}: {share:.1%} of the '
                    f"{label}</title></rect>"
                )
                if wide > 40:
                    parts.append(f'<text class="on" x="{x + 5:.1f}" y="{row * height + 12.5:.1f}">{share:.0%}</text>')
                x += wide
            row += 1
    return draw_svg(width, row * height + 4, "".join(parts), "How jobs ended")


def draw_ends(traces: Sequence[Trace], key: str, what: str) -> str:
    """Unsuccessful jobs by third of size or run time, with Wilson's intervals."""
    series = _having(traces, lambda trace: find(trace, "failures", key, "classes") or None)
    if not series:
        return ""
    most = max(len(classes) for _, _, classes in series)
    top = max(each["unsuccessful"]["high"] for _, _, classes in series for each in classes)
    labels = (f"third by {what}", "unsuccessful")
    plot = frame((0, most, "count", False), (0, min(1.0, top * 1.1), "share", False), labels=labels)
    unit: Unit = "s" if key == "by_run_time" else "count"
    marks = []
    for place, trace, classes in series:
        points = []
        for group, each in enumerate(classes):
            share = each["unsuccessful"]
            at = column(plot, _spread(group, len(classes), most), most, place, len(traces))
            span = f"{format_tick(each['low'], unit)}–{format_tick(each['high'], unit)}"
            title = f"{trace['name']}, {span}: {share['value']:.1%} of {each['jobs']:,} jobs"
            points.append(f"{at:.1f} {plot.y.place(share['value']):.1f}")
            marks.append(interval(plot, at, share["value"], share["low"], share["high"], color_class(place), title))
        marks.append(f'<path class="line {color_class(place)}" opacity=".45" d="M{"L".join(points)}"/>')
    names = ["lowest", "middle", "highest"] if most == 3 else [f"{place + 1}" for place in range(most)]
    return plot.draw(marks, f"Unsuccessful jobs by {what}", names=names)


def _spread(group: int, groups: int, most: int) -> int:
    """Where ties left fewer classes, the last one is still the highest."""
    return most - 1 if group == groups - 1 and groups > 1 else group


def draw_cover(traces: Sequence[Trace]) -> str:
    """The share of jobs in the largest groups of alike jobs of their users."""
    series = _having(traces, lambda trace: find(trace, "users", "repetition"))
    if not series:
        return ""
    plot = frame(
        (0, 10, "count", False), (0, 1, "share", False), labels=("largest groups of each user", "share of jobs")
    )
    marks = []
    for place, trace, each in series:
        cover = [0.0, *each["cover"]]
        last = each["top_10_cover"]
        title = f"{trace['name']}: {last['value']:.1%} in the ten largest"
        marks.append(line(plot, list(range(len(cover))), cover, color_class(place), title))
        at = plot.x.place(10) - 2 - place * 5
        marks.append(interval(plot, at, last["value"], last["low"], last["high"], color_class(place), title))
    return plot.draw(marks, "Repeated jobs")


def draw_thirds(traces: Sequence[Trace], key: str, what: str, unit: Unit) -> str:
    """What is submitted when the queue is short, middling and long."""
    series = _having(traces, lambda trace: find(trace, "users", "submission", "thirds") or None)
    series = [(place, trace, thirds) for place, trace, thirds in series if all(third[key] for third in thirds)]
    if not series:
        return ""
    most = max(len(thirds) for _, _, thirds in series)
    values = [third[key] for _, _, thirds in series for third in thirds]
    bounds = (min(values) / 1.5, max(values) * 1.5, unit, True)
    plot = frame((0, most, "count", False), bounds, labels=("queue at submission", what))
    marks = []
    for place, trace, thirds in series:
        points = []
        for group, third in enumerate(thirds):
            at = column(plot, _spread(group, len(thirds), most), most, place, len(traces))
            points.append(f"{at:.1f} {plot.y.place(third[key]):.1f}")
            title = f"{trace['name']}, {third['low']:g}–{third['high']:g} waiting: {format_tick(third[key], unit)}"
            marks.append(interval(plot, at, third[key], None, None, color_class(place), title))
        marks.append(f'<path class="line {color_class(place)}" opacity=".45" d="M{"L".join(points)}"/>')
    names = ["shortest third", "middle", "longest third"] if most == 3 else ["shortest", "longest"]
    return plot.draw(marks, f"{what} by queue", names=names[:most])
