"""The embedded metric store compared with VictoriaMetrics on the same data. Budget: no read of ours is slower than its.

Both are queried through the same contract, in the state right after live operation. 10,000 GPUs × 10 metrics × 480
scrapes are 48 M samples: about two minutes and 3 GB of memory.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from polars.testing import assert_frame_equal
from servers.victoria import run_victoria

from benchmarks.report import Report
from clusterscape.model import Names, SampleBatch, UnitId, UnixMs
from clusterscape.settings import RetentionSettings
from clusterscape.store.metrics import EmbeddedMetricStore, MetricStore, SeriesStatistic, VictoriaMetricStore

SCRAPE_MS = 15_000
START_MS = 20_000 * 86_400_000 + 9 * 3_600_000
METRICS = (
    "gpu_util_ratio",
    "power_watts",
    "memory_used_bytes",
    "temperature_celsius",
    "energy_joules",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "sm_clock_hertz",
    "memory_temperature_celsius",
)
READS = 5


@dataclass
class Cluster:
    """Scrapes of GPUs, four of five busy, as dcgm-exporter rounds them; the same seed gives the same scrapes."""

    gpus: int
    units: Names = field(init=False)
    metrics: Names = field(init=False)

    def __post_init__(self) -> None:
        self.units = Names(f"gpu-{gpu // 8:04d}:{gpu % 8}" for gpu in range(self.gpus))
        self.metrics = Names(METRICS)

    def scrapes(self, count: int) -> Iterator[SampleBatch]:
        """One batch every 15 s; nodes are scraped within a second, each at an offset of its own."""
        rng = np.random.default_rng(7)
        gpus = self.gpus
        is_busy = np.repeat(rng.random(-(-gpus // 8)) < 0.8, 8)[:gpus]
        offset_ms = np.repeat(rng.integers(0, 1000, -(-gpus // 8)), 8)[:gpus]
        memory_mib = np.where(is_busy, rng.integers(1_000, 80_000, gpus), 4)
        temperature = np.where(is_busy, 62, 31).astype(np.int64)
        energy_mj = rng.integers(10**9, 10**12, gpus)
        unit = np.tile(np.arange(gpus, dtype=np.int32), len(METRICS))
        metric = np.repeat(np.arange(len(METRICS), dtype=np.int32), gpus)
        for scrape in range(count):
            latency_ms = np.repeat(rng.integers(0, 5, -(-gpus // 8)), 8)[:gpus]
            time_ms = START_MS + scrape * SCRAPE_MS + offset_ms + latency_ms
            power = np.where(is_busy, rng.normal(420, 25, gpus), rng.normal(62, 0.4, gpus)).round(3)
            temperature = np.clip(temperature + rng.integers(-1, 2, gpus), 28, 80)
            energy_mj = energy_mj + np.rint(power * SCRAPE_MS).astype(np.int64)
            activity = [np.where(is_busy, rng.normal(mean, 0.05, gpus), 0.0).round(6) for mean in (0.6, 0.4, 0.3)]
            columns = [
                np.where(is_busy, np.clip(rng.normal(97, 3, gpus).round(), 0, 100), 0.0) / 100,
                power,
                (memory_mib + np.where(rng.random(gpus) < 0.01, 128, 0)) * 2.0**20,
                temperature,
                energy_mj / 1000,
                *activity,
                np.where(is_busy, rng.choice([1_965, 1_980], gpus, p=[0.1, 0.9]), 345) * 1e6,
                temperature + 6,
            ]
            value = np.concatenate(columns).astype(np.float64)
            yield SampleBatch(self.units, self.metrics, unit, metric, np.tile(time_ms, len(METRICS)), value)


def ingest(store: MetricStore, cluster: Cluster, scrapes: int) -> list[float]:
    """Append every scrape and maintain once a minute, as the service does; seconds of each append with its maintenance."""
    times = []
    for number, batch in enumerate(cluster.scrapes(scrapes)):
        begin = time.perf_counter()
        store.append(batch)
        if number % 4 == 3:
            store.maintain(now_ms=UnixMs(int(batch.time_ms.max())))
        times.append(time.perf_counter() - begin)
    return times


def questions(cluster: Cluster, scrapes: int) -> dict[str, Callable[[MetricStore], pl.DataFrame]]:
    """The queries that both answer."""
    end_ms = START_MS + scrapes * SCRAPE_MS
    middle_ms = UnixMs(START_MS + scrapes // 2 * SCRAPE_MS)
    names = cluster.units.values
    job = [UnitId(name) for name in names[len(names) // 2 :][:64]]
    nodes = np.linspace(0, len(names) // 8 - 1, 8).astype(int).tolist()
    scattered = [UnitId(names[node * 8 + gpu]) for node in nodes for gpu in range(8)]
    six = [
        SeriesStatistic.MIN,
        SeriesStatistic.MAX,
        SeriesStatistic.MEAN,
        SeriesStatistic.STD,
        SeriesStatistic.P50,
        SeriesStatistic.P95,
    ]

    def latest(at_ms: int) -> Callable[[MetricStore], pl.DataFrame]:
        return lambda store: store.latest(METRICS, at_ms=UnixMs(at_ms), lookback_ms=60_000).sort("unit")

    def over_all(metrics: Sequence[str], wanted: Sequence[SeriesStatistic]) -> Callable[[MetricStore], pl.DataFrame]:
        def ask(store: MetricStore) -> pl.DataFrame:
            frames = [
                store.statistics(metric, wanted, start_ms=UnixMs(START_MS), end_ms=UnixMs(end_ms)).sort("unit")
                for metric in metrics
            ]
            return pl.concat(frames)

        return ask

    def series(units: Sequence[UnitId], step_ms: int | None = None) -> Callable[[MetricStore], pl.DataFrame]:
        return lambda store: store.series(
            METRICS[:6], units, start_ms=UnixMs(START_MS), end_ms=UnixMs(end_ms), step_ms=step_ms
        )

    return {
        f"latest of all GPUs × {len(METRICS)} metrics": latest(end_ms),
        "the same an hour ago": latest(middle_ms),
        "p50 of power over all GPUs": over_all(["power_watts"], [SeriesStatistic.P50]),
        "p95 of power over all GPUs": over_all(["power_watts"], [SeriesStatistic.P95]),
        "6 statistics × 4 metrics over all GPUs": over_all(METRICS[:4], six),
        "64 neighboring GPUs × 6 metrics": series(job),
        "64 GPUs of 8 distant nodes × 6 metrics": series(scattered),
        "the same in steps of 60 s": series(scattered, 60_000),
    }


def measure(ask: Callable[[MetricStore], pl.DataFrame], store: MetricStore) -> tuple[float, pl.DataFrame]:
    """Median milliseconds of a warm query, and its answer."""
    answer = ask(store)
    times = []
    for _ in range(READS):
        begin = time.perf_counter()
        answer = ask(store)
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times), answer


def bytes_below(folder: Path) -> int:
    """Total size of the files in bytes."""
    return sum(path.stat().st_size for path in folder.glob("**/*") if path.is_file())


def compare(cluster: Cluster, scrapes: int, folder: Path) -> Report:
    """Fill both, ask both, check that they agree."""
    samples = cluster.gpus * len(METRICS) * scrapes
    title = f"Embedded store and VictoriaMetrics: {cluster.gpus:,} GPUs × {len(METRICS)} metrics × {scrapes} scrapes"
    report = Report(f"{title} = {samples / 1e6:.1f} M samples")
    peer = "VictoriaMetrics"
    with ExitStack() as stack:
        server = stack.enter_context(run_victoria(folder / "victoria"))
        ours = EmbeddedMetricStore(folder / "embedded", RetentionSettings())
        stack.callback(ours.close)
        theirs = VictoriaMetricStore(server.url, timeout_s=120)
        stack.callback(theirs.close)
        our_times = ingest(ours, cluster, scrapes)
        their_times = ingest(theirs, cluster, scrapes)
        server.flush()
        rates = [samples / sum(times) / 1e6 for times in (our_times, their_times)]
        report.add("ingest through the contract", rates[0], "M samples/s", rates[1], peer, higher_is_better=True)
        medians = [statistics.median(times) * 1000 for times in (our_times, their_times)]
        report.add("  one scrape, median", medians[0], "ms", medians[1], peer)
        worst = [max(times) * 1000 for times in (our_times, their_times)]
        report.add("  one scrape with maintenance, worst", worst[0], "ms", worst[1], peer)
        sizes = [bytes_below(folder / name) / samples for name in ("embedded", "victoria")]
        report.add("on the disk", sizes[0], "bytes/sample", sizes[1], peer)
        for label, ask in questions(cluster, scrapes).items():
            our_ms, our_answer = measure(ask, ours)
            their_ms, their_answer = measure(ask, theirs)
            # VictoriaMetrics keeps decimal digits, not bits.
            assert_frame_equal(our_answer, their_answer, rel_tol=1e-6, abs_tol=1e-6)
            report.add(label, our_ms, "ms", their_ms, peer, budget=their_ms)
    return report


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--scrapes", type=int, default=480)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = compare(Cluster(options.gpus), options.scrapes, Path(folder))
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
