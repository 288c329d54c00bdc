"""The report of a diagnosis: one HTML file that needs nothing else, in light and dark."""

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from clusterscape.cli.diagnose import head_lines
from clusterscape.cli.diagnosis_charts import (
    MOST_CELLS,
    Floats,
    color_class,
    draw_cells,
    draw_lines,
    draw_strips,
    format_value,
)
from clusterscape.errors import ClusterScapeError

NAMED = 24

# The categorical colors are Okabe and Ito's, which people with any color vision tell apart; dark ones are lighter.
STYLE = """
:root { color-scheme: light dark; --bg: #fff; --text: #1b1f24; --muted: #59636e; --line: #d9dee3; --panel: #f6f8fa;
  --none: #8b949e; --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #b58900; --c5: #56b4e9;
  --c6: #7a5195; --c7: #6b6b6b; --warning: #b35900; --critical: #c4281c; --info: #0b6bcb; }
@media (prefers-color-scheme: dark) { :root { --bg: #14171b; --text: #e6e9ec; --muted: #9aa4ae; --line: #2e343b;
  --panel: #1c2026; --none: #6e7781; --c0: #4aa3df; --c1: #ff8c42; --c2: #3ecf9e; --c3: #e8a0c8; --c4: #e3c14a;
  --c5: #8fd0f5; --c6: #b493d6; --c7: #a8a8a8; --warning: #f0a355; --critical: #ff7b6e; --info: #6cb6ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 32px 24px 64px; max-width: 1008px; background: var(--bg); color: var(--text);
  font: 14px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 22px; } h2 { margin: 36px 0 10px; font-size: 15px; }
p { margin: 4px 0; } .muted { color: var(--muted); } .numbers { font-variant-numeric: tabular-nums; }
.finding { margin: 8px 0; padding: 10px 14px; border-left: 3px solid var(--info); border-radius: 4px; background: var(--panel); }
.finding.warning { border-color: var(--warning); } .finding.critical { border-color: var(--critical); }
.finding b { font-weight: 600; } ul { margin: 4px 0; padding-left: 20px; }
.key { display: inline-block; width: 10px; height: 10px; margin-right: 6px; border-radius: 2px; background: currentColor; }
svg { display: block; width: 100%; height: auto; margin: 8px 0; }
svg text { fill: var(--muted); font: 10px system-ui, sans-serif; }
svg .end { text-anchor: end; } svg .axis { stroke: var(--line); fill: none; } svg .line { fill: none; stroke: currentColor;
  stroke-width: 1.5; } svg .fill { fill: currentColor; }
.none { color: var(--none); } .c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); }
.c3 { color: var(--c3); } .c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.plain { color: var(--text); }
@media print { body { padding: 0; } .finding { break-inside: avoid; } }
"""


def write_report(path: Path, found: dict[str, Any], histograms: bytes | None, means: bytes | None) -> None:
    """Write the file; ``histograms`` and ``means`` are Arrow streams of the diagnosed metric, None where it has no samples."""
    body = [_head(found), _findings(found["findings"]), _clusters(found)]
    if histograms is not None and means is not None:
        body.append(_pictures(found, _read(histograms), _read(means)))
    body += [_odd(found["odd"]), _notes(found["notes"])]
    title = escape(f"{found['workload']} {found['name'] or ''}".strip())
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Diagnosis of {title}</title><style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ClusterScapeError(f"cannot write {path}: {error.strerror}", hint="Name another file.") from None


def _read(stream: bytes) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(stream))


def _head(found: dict[str, Any]) -> str:
    first, *rest = head_lines(found)
    lines = "".join(f'<p class="muted numbers">{escape(line)}</p>' for line in rest)
    return f"<h1>{escape(found['name'] or found['workload'])}</h1><p>{escape(first)}</p>{lines}"


def _findings(findings: Sequence[dict[str, Any]]) -> str:
    if not findings:
        return "<h2>Findings</h2><p>Nothing stands out.</p>"
    items = "".join(
        f'<div class="finding {escape(each["severity"])}"><b>{escape(each["title"])}</b>'
        f'<p class="muted">{escape(each["reason"])}</p></div>'
        for each in findings
    )
    return f"<h2>Findings</h2>{items}"


def _clusters(found: dict[str, Any]) -> str:
    clusters = found["clusters"]
    if not clusters:
        return ""
    if len(clusters) == 1:
        return f"<h2>Clusters</h2><p>By {escape(_label(found))}, all GPUs are alike.</p>"
    items = []
    for each in clusters:
        names = ", ".join(each["units"][:NAMED]) + (" …" if each["size"] > NAMED else "")
        said = each["explanation"]["sentence"] if each["explanation"] else "Nothing that is known of them explains it."
        items.append(
            f'<p><span class="key {color_class(each["label"])}"></span><b>{each["size"]} GPUs.</b> {escape(said)}</p>'
            f'<p class="muted">{escape(names)}</p>'
        )
    return f"<h2>Clusters by {escape(_label(found))}</h2>{''.join(items)}"


def _pictures(found: dict[str, Any], histograms: pl.DataFrame, means: pl.DataFrame) -> str:
    labels = {each["unit"]: each["cluster"] for each in found["units"]}
    units = histograms["unit"].cast(pl.String).to_list()
    counts = histograms.drop("unit").to_numpy().astype(np.int64)
    draw = draw_cells if len(units) <= MOST_CELLS else draw_strips
    unit = next((each["unit"] for each in found["metrics"] if each["name"] == found["metric"]), "count")
    lines = draw_lines(*_medians(means, labels), unit)
    label = escape(_label(found))
    course = f"<h2>Median of each cluster</h2>{lines}" if lines else ""
    extent = _extent(means, unit)
    return f'{course}<h2>{label} on each GPU</h2><p class="muted">{extent}</p>{draw(units, counts, labels)}'


def _extent(means: pl.DataFrame, unit: str) -> str:
    low, high = means["min"].min(), means["max"].max()
    if unit == "ratio":
        return "Share of the samples, from 0% (left) to 100% (right)."
    if not isinstance(low, float) or not isinstance(high, float):
        return "Share of the samples."
    return escape(f"Share of the samples, from {format_value(low, unit)} (left) to {format_value(high, unit)} (right).")


def _medians(means: pl.DataFrame, labels: dict[str, int | None]) -> tuple[Floats, dict[int, Floats]]:
    """Times, and the median of each cluster's GPUs at each; GPUs in no cluster are left out."""
    known = pl.DataFrame(
        {"unit": list(labels), "cluster": list(labels.values())}, schema={"unit": pl.String, "cluster": pl.Int64}
    )
    table = (
        means.with_columns(pl.col("unit").cast(pl.String))
        .join(known, on="unit")
        .drop_nulls("cluster")
        .group_by("time_ms", "cluster")
        .agg(pl.col("value").median())
        .pivot("cluster", index="time_ms", values="value")
        .sort("time_ms")
    )
    times = table["time_ms"].to_numpy().astype(np.float64)
    columns = sorted((name for name in table.columns if name != "time_ms"), key=int)
    return times, {int(name): table[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in columns}


def _odd(odd: Sequence[dict[str, Any]]) -> str:
    if not odd:
        return ""
    items = "".join(f"<li>{escape(each['sentence'])}</li>" for each in odd[:NAMED])
    more = f"<p class='muted'>and {len(odd) - NAMED} more</p>" if len(odd) > NAMED else ""
    return f"<h2>Odd GPUs</h2><ul>{items}</ul>{more}"


def _notes(notes: Sequence[str]) -> str:
    return "".join(f'<p class="muted">{escape(note)}</p>' for note in notes)


def _label(found: dict[str, Any]) -> str:
    return next((each["label"] for each in found["metrics"] if each["name"] == found["metric"]), found["metric"] or "")
