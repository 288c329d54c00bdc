"""Writes the Marey graph that the client's tests read, in the server's format, from the recorded pipeline.

    python tools/trace_fixture.py

Two files: the body (three Arrow streams one after another) and its ``X-Tables`` header, the length of each.
"""

from pathlib import Path

import numpy as np

from clusterscape.analyze.trace.aggregate import Window
from clusterscape.analyze.trace.drawn import DrawnTrace
from clusterscape.analyze.trace.marey import draw_marey
from clusterscape.analyze.trace.relations import relate_spans
from clusterscape.analyze.trace.report import analyze_trace
from clusterscape.collect.traces import read_traces
from clusterscape.serve.wire import join_tables

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "web/src/api/fixtures"
PIXELS = 1400


def main() -> None:
    """Write both files."""
    paths = sorted((ROOT / "tests/data/h200/traces").glob("pipe_*"))
    report = analyze_trace(read_traces(paths, workers=1), np.random.default_rng(0))
    drawn = DrawnTrace(relate_spans(report), {facts.rank: facts.stage for facts in report.trace.ranks})
    graph = draw_marey(drawn, Window(0.0, drawn.extent_ns, PIXELS), level="rank", opened={"r2"})
    body, lengths = join_tables([graph.spans, graph.rows, graph.bands])
    (FIXTURES / "marey.arrow").write_bytes(body)
    (FIXTURES / "marey.json").write_text(f'{{ "X-Tables": "{lengths}" }}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
