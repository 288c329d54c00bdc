"""The Marey graph while it is brushed: CPU time of an answer at several zooms, spans of 64 rows, as the server computes it.

Budget: 30 ms of CPU for the spans, rows and bands of a window (a brush is to be drawn within 100 ms).
"""

import argparse
import os
import time

import numpy as np
import polars as pl

from benchmarks.report import Report
from clusterscape.analyze.trace.aggregate import Window
from clusterscape.analyze.trace.drawn import DrawnTrace
from clusterscape.analyze.trace.marey import draw_marey
from clusterscape.model.spans import make_spans

ROWS = 64
PIXELS = 1400
BUDGET_MS = 30.0
SHARES = (1.0, 0.3, 0.05, 0.005)
TIMES = 15


def make_drawn(per_row: int, seed: int) -> DrawnTrace:
    """Kernels one after another, an all-reduce every 50, 1 in 200 an outlier; passes of 250 spans; one step of 5,000."""
    generator = np.random.default_rng(seed)
    count = ROWS * per_row
    place = np.tile(np.arange(per_row), ROWS)
    length = generator.integers(2_000, 20_000, count)
    whole = length + generator.exponential(2_000, count).astype(np.int64)
    start = np.cumsum(whole.reshape(ROWS, per_row), axis=1).reshape(-1)
    talk = place % 50 == 49
    names = pl.Series([f"kernel {number}" for number in range(200)]).gather(place % 200)
    spans = make_spans(
        {
            "rank": pl.Series(np.repeat(np.arange(ROWS), per_row)),
            "lane": "stream 7",
            "is_device": True,
            "span_class": pl.Series(["compute", "communication"]).gather(talk.astype(np.int64)),
            "name": names,
            "namespace": pl.Series([f"model/layer {number}" for number in range(50)]).gather(place // 20 % 50),
            "start_ns": pl.Series(start),
            "end_ns": pl.Series(start + length),
            "step": pl.Series(place // 5_000),
            "micro_batch": pl.Series(place // 500 % 10),
            "phase": pl.Series(["forward", "backward"]).gather(place // 250 % 2),
            "collective": pl.Series([None, "all_reduce"]).gather(talk.astype(np.int64)),
        },
        count,
    )
    matched = pl.when(pl.Series(talk)).then(pl.Series(place)).cast(pl.UInt32)
    related = spans.with_columns(
        pl.col("start_ns").alias("drawn_ns"),
        pl.when(pl.Series(talk)).then(100).cast(pl.Int64).alias("wait_ns"),
        pl.lit(0, pl.Int64).alias("critical_ns"),
        pl.lit(0, pl.Int64).alias("slack_ns"),
        pl.Series("instance", place.astype(np.int64)),
        matched.alias("matched"),
        pl.lit(None, pl.UInt32).alias("partner"),
        pl.Series("is_outlier", generator.random(count) < 0.005),
        pl.lit(True).alias("is_outer"),
    )
    return DrawnTrace(related, dict.fromkeys(range(ROWS)))


def main() -> None:
    """Open, draw at each zoom, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-row", type=int, nargs="*", default=[1_600, 10_000])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    report = Report(f"The Marey graph while it is brushed, CPU time (load average {os.getloadavg()[0]:.1f})")
    for per_row in options.per_row:
        drawn = make_drawn(per_row, options.seed)
        for share in SHARES:
            begin = 0.3 * drawn.extent_ns if share < 1 else 0.0
            window = Window(begin, begin + share * drawn.extent_ns, PIXELS)
            draw_marey(drawn, window)
            spent = []
            for _ in range(TIMES):
                before = time.process_time()
                graph = draw_marey(drawn, window)
                spent.append((time.process_time() - before) * 1e3)
            size = f"{graph.spans.height:,} drawn, {graph.bands.height:,} bands"
            label = f"{ROWS} rows × {per_row:,} spans, {share:.1%} of the time: {size}"
            report.add(label, float(np.median(spent)), "ms", budget=BUDGET_MS)
    report.publish()


if __name__ == "__main__":
    main()
