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
    draw_cells,
    draw_lines,
    draw_strips,
    format_value,
)
from clusterscape.cli.report_page import color_class, write_html

NAMED = 24


def write_report(path: Path, found: dict[str, Any], histograms: bytes | None, means: bytes | None) -> None:
    """Write the file; ``histograms`` and ``means`` are Arrow streams of the diagnosed metric, None where it has no samples."""
    body = [_head(found), _findings(found["findings"]), _clusters(found)]
    if histograms is not None and means is not None:
        body.append(_pictures(found, _read(histograms), _read(means)))
    body += [_odd(found["odd"]), _notes(found["notes"])]
    title = f"Diagnosis of {found['workload']} {found['name'] or ''}".strip()
    write_html(path, title, "".join(body))


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
