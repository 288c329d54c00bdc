"""The card of a job as text: first the lines, their order and rounding as users of jobstats know them, then what only this
card has. Names come from strangers, so every line is escaped.
"""

import textwrap
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from clusterscape.analyze.jobcard.rounding import (
    format_bytes,
    format_clock,
    format_percent,
    format_requested_memory,
)
from clusterscape.model.quantities import format_hours
from clusterscape.model.safe_text import one_line

WIDTH = 80
METER = 50
MAX_NAME = 64
MAX_NODES = 64
"""Of a larger job, the nodes in between are left out; ``--json`` has them all."""

Card = Mapping[str, Any]

_PROBLEMS = {
    "missing": "(unknown: samples are missing)",
    "above_all": "(unknown: more than 100% was measured)",
    "nothing": "(unknown: nothing was allocated)",
    "mig": "(unknown: MIG instances do not report it)",
}
_STATES = {"node_failed": "NODE_FAIL"}
_BLOCKS = "▁▂▃▄▅▆▇█"
_RED, _BOLD, _DIM, _NORMAL = "\x1b[31m", "\x1b[1m", "\x1b[2m", "\x1b[0m"


def card_text(card: Card, *, url: str | None = None, has_color: bool = False) -> str:
    """The whole card."""
    return "\n".join(_Lines(card, has_color).all(url)) + "\n"


def meter(percent: int, width: int = METER) -> str:
    """``[|||||      12%]``: the bars and the number share the width."""
    text = f"{percent}%"
    bars = min(max(0, percent // 2), width - len(text))
    return f"[{'|' * bars}{' ' * (width - bars - len(text))}{text}]"


def sparkline(values: Sequence[float | None], most: float | None) -> str:
    """One block per value, a space where it is unknown; the highest block is ``most``, or the largest value."""
    top = most or max((value for value in values if value is not None), default=0.0)
    if top <= 0:
        return "".join(" " if value is None else _BLOCKS[0] for value in values)
    last = len(_BLOCKS) - 1
    return "".join(" " if value is None else _BLOCKS[min(last, max(0, round(value / top * last)))] for value in values)


class _Lines:
    def __init__(self, card: Card, has_color: bool) -> None:
        self._card = card
        self._has_color = has_color

    def all(self, url: str | None) -> list[str]:
        card = self._card
        title = "Slurm Job Statistics" if card["workload"].startswith("slurm:") else "Job Statistics"
        lines = ["", *self._title(title, is_first=True)]
        lines += [*self._facts(), "", *self._title("Overall Utilization"), *self._meters(), ""]
        lines += [*self._title("Detailed Utilization"), *self._nodes()]
        if card["curves"]:
            lines += ["", *self._title("Over Time"), *self._curves()]
        notes = self._notes()
        if notes:
            lines += ["", *self._title("Notes"), *notes]
        if card["advice"]:
            lines += ["", *self._title("Next Time"), *self._advice()]
        if card["similar"]:
            lines += ["", *self._title("Similar Jobs"), *self._similar()]
        if url is not None:
            lines += ["", f"  {page_address(url, card)}"]
        return lines

    def _title(self, text: str, *, is_first: bool = False) -> list[str]:
        rule = "=" * WIDTH
        title = self._style(text.center(WIDTH).rstrip(), _BOLD)
        return [rule, title, rule] if is_first else [title, rule]

    def _facts(self) -> list[str]:
        card = self._card
        state = _STATES.get(card["state"], card["state"].upper())
        memory = card["memory_requested_bytes"]
        facts = [
            ("Job ID", self._style(job_number(card), _BOLD)),
            ("User/Account", f"{_text(card['user'])}/{_text(card['project'])}"),
            ("Job Name", _shorten(_text(card["name"]))),
            ("State", self._style(state, _RED) if state in ("OUT_OF_MEMORY", "TIMEOUT") else state),
            ("Nodes", str(card["node_count"])),
            ("CPU Cores", "unknown" if card["cpus"] is None else str(card["cpus"])),
            ("CPU Memory", "unknown" if memory is None else format_requested_memory(memory, card["cpus"])),
            ("GPUs", str(card["gpus"]) if card["gpus"] else None),
            ("QOS/Partition", f"{_text(card['qos'])}/{_text(card['partition'])}"),
            ("Cluster", _text(card["cluster"])),
            ("Start Time", _moment(card["started_at"])),
            ("Run Time", format_clock(card["run_s"]) + (" (in progress)" if card["is_running"] else "")),
            ("Time Limit", self._limit()),
            ("Executions", str(card["executions"]) if card["executions"] > 1 else None),
        ]
        return [f"{label:>15}: {value}" for label, value in facts if value is not None]

    def _limit(self) -> str:
        limit, ratio = self._card["time_limit_s"], self._card["time_ratio"]
        if limit is None:
            return "UNLIMITED"
        is_red = ratio is not None and ratio < 0.10 and self._card["run_s"] > 900
        return self._style(format_clock(limit), _RED) if is_red else format_clock(limit)

    def _meters(self) -> list[str]:
        rows = [("CPU utilization  ", "cpu"), ("CPU memory usage ", "cpu_memory")]
        if self._card["gpus"]:
            rows += [("GPU utilization  ", "gpu"), ("GPU memory usage ", "gpu_memory")]
        return [f"  {label}{self._meter(key)}" for label, key in rows]

    def _meter(self, key: str) -> str:
        share = self._card[key]
        if share is None or share["percent"] is None:
            return _PROBLEMS["missing" if share is None else share["problem"]]
        drawn = meter(share["percent"])
        is_low = (key == "gpu" and share["percent"] < 15) or (
            key == "cpu" and share["percent"] < 65 and not self._card["gpus"]
        )
        return self._style(drawn, _RED) if is_low else drawn

    def _nodes(self) -> list[str]:
        nodes = self._card["nodes"]
        shown = nodes if len(nodes) <= MAX_NODES else nodes[:MAX_NODES]
        more = [] if shown is nodes else [f"      … and {len(nodes) - len(shown)} more nodes; --json has them all"]
        lines = ["  CPU utilization per node (CPU time used/run time)", *map(self._cpu, shown), *more]
        if len(nodes) > 1 and self._card["cpu"]["ratio"] is not None:
            lines.append("  " + _total_cpu(self._card["cpu"]))
        lines += ["", "  CPU memory usage per node - used/allocated", *map(self._memory, shown), *more]
        if len(nodes) > 1 and self._card["cpu_memory"]["total"]:
            lines.append("  " + _total_memory(self._card["cpu_memory"], sum(node["cores"] or 0 for node in nodes)))
        if not self._card["gpus"]:
            return lines
        gpus = [(node["node"], gpu) for node in shown for gpu in node["gpus"]]
        unknown = [] if gpus else ["      unknown"]
        lines += ["", "  GPU utilization per node", *unknown, *(self._gpu(node, gpu) for node, gpu in gpus), *more]
        lines += ["", "  GPU memory usage per node - maximum used/total", *unknown]
        return [*lines, *(_gpu_memory(node, gpu) for node, gpu in gpus), *more]

    def _cpu(self, node: Card) -> str:
        name = f"      {_text(node['node'])}: "
        if node["cpu_ratio"] is None:
            return f"{name}unknown"
        of = format_clock(self._card["run_s"] * node["cores"])
        mark = self._style(" <-- CPU node was not used", _RED) if node["cpu_s"] == 0 else ""
        return f"{name}{format_clock(node['cpu_s'])}/{of} (efficiency={100 * node['cpu_ratio']:.1f}%){mark}"

    def _memory(self, node: Card) -> str:
        used, limit, cores = node["memory_used_bytes"], node["memory_limit_bytes"], node["cores"]
        line = f"      {_text(node['node'])}: {_size(used)}/{_size(limit, is_limit=True)}"
        if None in (used, limit, cores) or self._card["cpus"] == 1:
            return line
        return f"{line} ({_size(used / cores)}/{_size(limit / cores, is_limit=True)} per core of {cores})"

    def _gpu(self, node: str, gpu: Card) -> str:
        ratio = gpu["util_ratio"]
        mark = self._style(" <-- GPU was not used", _RED) if ratio == 0 else ""
        return (
            f"      {_text(node)} (GPU {gpu['index']}): {'unknown' if ratio is None else format_percent(ratio)}{mark}"
        )

    def _curves(self) -> list[str]:
        return [
            f"  {curve['label']:<16}{sparkline(curve['values'], curve['most'])} {_peak(curve)}"
            f"{' (whole node)' if curve['subject'] == 'node' else ''}"
            for curve in self._card["curves"]
        ]

    def _notes(self) -> list[str]:
        card, lines = self._card, []
        for note in card["notes"]:
            text = textwrap.fill(one_line(note["text"]), 78, initial_indent="  * ", subsequent_indent="    ")
            lines.append(self._style(text, _BOLD + _RED) if note["level"] == "critical" else text)
        if card["gpus"]:
            wasted = card["wasted_gpu_hours"]
            idle = "unknown" if wasted is None else format_hours(wasted)
            lines.append(f"  * {format_hours(card['gpu_hours'])} GPU-hours, of which idle: {idle}.")
        if card["hint"]:
            lines.append(textwrap.fill(one_line(card["hint"]), 78, initial_indent="  * ", subsequent_indent="    "))
        return lines

    def _advice(self) -> list[str]:
        lines = []
        for piece in self._card["advice"]:
            facts = [fact for fact in (_saving(piece), _sooner(piece), _basis(piece)) if fact]
            text = f"{one_line(piece['text'])} {' '.join(facts)}"
            lines.append(self._style(f"  {one_line(piece['option'])}", _BOLD))
            lines.append(textwrap.fill(text, 78, initial_indent="      ", subsequent_indent="      "))
        return lines

    def _similar(self) -> list[str]:
        similar = self._card["similar"]
        lines = [
            f"  {similar['count']} past jobs of this name, {similar['completed']} completed; run time"
            f" {format_clock(similar['median_run_s'])} (median), {format_clock(similar['longest_run_s'])} (longest)"
        ]
        for job in similar["latest"]:
            util = "" if job["gpu_util_ratio"] is None else f"  GPU {job['gpu_util_ratio']:4.0%}"
            memory = "" if job["memory_peak_bytes"] is None else f"  memory {format_bytes(job['memory_peak_bytes'])}"
            state = _STATES.get(job["state"], job["state"].upper())
            number = one_line(job["workload"].removeprefix("slurm:"))
            lines.append(f"      {number:<14}{state:<14}{format_clock(job['run_s']):>11}{util}{memory}")
        return lines

    def _style(self, text: str, style: str) -> str:
        return f"{style}{text}{_NORMAL}" if self._has_color else text


def job_number(card: Card) -> str:
    """The id as the scheduler prints it."""
    return one_line(card["workload"].removeprefix("slurm:"))


def page_address(url: str, card: Card) -> str:
    """The page of the card."""
    return f"{url.rstrip('/')}/job/{quote(card['cluster'], safe='')}/{quote(job_number(card), safe='+')}"


def _saving(piece: Card) -> str | None:
    """What the advice would have saved, in words."""
    saved = piece["saved"]
    if saved is None:
        return None
    words = {"gpu_hours": "GPU-hours", "core_hours": "core-hours", "gib_hours": "GB-hours of memory"}.get(
        piece["saved_unit"]
    )
    return None if words is None else f"Saves {format_hours(saved)} {words}."


def _sooner(piece: Card) -> str | None:
    sooner = piece["sooner_s"]
    if sooner is None:
        return None
    return f"Would have started {format_clock(sooner)} sooner." if sooner else "Would not have started sooner."


def _basis(piece: Card) -> str | None:
    return f"From {piece['basis']} jobs." if piece["basis"] > 1 else None


def _text(text: str | None) -> str:
    return "–" if text is None else one_line(text)


def _shorten(name: str) -> str:
    return f"{name[:MAX_NAME]}..." if len(name) > MAX_NAME else name


def _moment(at_ms: int) -> str:
    moment = time.localtime(at_ms / 1000)
    hour = moment.tm_hour % 12 or 12
    return f"{time.strftime('%a %b', moment)} {moment.tm_mday}, {moment.tm_year} at {hour}{time.strftime(':%M %p', moment)}"


def _size(size: float | None, *, is_limit: bool = False) -> str:
    return "unknown" if size is None else format_bytes(size, is_limit=is_limit)


def _total_cpu(share: Card) -> str:
    used, total = share["used"], share["total"]
    return f"Total used/runtime: {format_clock(used)}/{format_clock(total)}, efficiency={100 * used / total:.1f}%"


def _total_memory(share: Card, cores: int) -> str:
    used, total = share["used"], share["total"]
    text = f"Total used/allocated: {_size(used)}/{_size(total)}"
    return (
        f"{text} ({_size(used / cores)}/{_size(total / cores, is_limit=True)} per core of {cores})" if cores else text
    )


def _gpu_memory(node: str, gpu: Card) -> str:
    used, total = gpu["memory_used_bytes"], gpu["memory_total_bytes"]
    share = "" if used is None or not total else f" ({100 * used / total:.1f}%)"
    return f"      {_text(node)} (GPU {gpu['index']}): {_size(used)}/{_size(total, is_limit=True)}{share}"


def _peak(curve: Card) -> str:
    values = [value for value in curve["values"] if value is not None]
    top = max(values)
    if curve["unit"] == "bytes":
        return f"≤ {format_bytes(top)}"
    if curve["unit"] == "bytes_per_second":
        return f"≤ {format_bytes(top)}/s"
    return f"≤ {top:.0%}" if curve["unit"] == "ratio" else f"≤ {top:.1f}"
