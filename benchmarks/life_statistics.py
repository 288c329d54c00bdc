"""Statistics over the life of every workload on every GPU, compared with VictoriaMetrics queried per workload's start.

Budgets: a scrape of 10,000 GPUs × 10 metrics counts in 20 ms, all statistics take 300 MB, 100 rules over 10,000 GPUs are judged
again in 100 ms. The peer holds two of the ten metrics and knows which workload each GPU belongs to by a label; as every workload
started at another time, it is asked once per workload. Both must give the same percentiles within our bound.
"""

import argparse
import http.client
import itertools
import json
import statistics
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from servers.victoria import VictoriaServer, run_victoria

from benchmarks.embedded_vs_victoria import METRICS as EXPORTED
from benchmarks.embedded_vs_victoria import SCRAPE_MS, START_MS, Cluster
from benchmarks.report import Report
from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.evaluation import evaluate
from clusterscape.analyze.rules.facts import LifeFacts
from clusterscape.analyze.rules.reading import parse_rule
from clusterscape.analyze.rules.shipped import shipped_rules
from clusterscape.analyze.stats.bins import error_bound
from clusterscape.analyze.stats.contract import Needs, needs_of
from clusterscape.model import Allocation, Names, SampleBatch, Unit, UnitId, UnixMs, WorkloadId
from clusterscape.model.arrays import Float64s
from clusterscape.model.rules import Rule, Statistic, StatisticKind
from clusterscape.watch.life_columns import LifeView, LifeViews
from clusterscape.watch.life_statistics import write_checkpoint
from clusterscape.watch.lives import Lives

METRICS = tuple("gpu_temperature_celsius" if name == "temperature_celsius" else name for name in EXPORTED)
PEER_METRICS = ("gpu_util_ratio", "power_watts")
POWER_LIMIT_WATTS = 700.0
RULES = 100
PERCENTILES = (5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0)
RUNS = 7


class Site:
    """A cluster whose workloads of 4 to 64 GPUs started at different times."""

    def __init__(self, gpus: int, scrapes: int) -> None:
        self.cluster = Cluster(gpus)
        self.cluster.metrics = Names(METRICS)
        self.units = [
            Unit(id=UnitId(name), power_limit_watts=POWER_LIMIT_WATTS, memory_bytes=80 * 2**30)
            for name in self.cluster.units.values
        ]
        rng = np.random.default_rng(11)
        self.allocations: list[Allocation] = []
        self.workload_of: list[str] = []
        number = 0
        while len(self.workload_of) < gpus:
            size = min(int(rng.choice([4, 8, 16, 32, 64])), gpus - len(self.workload_of))
            # In the first three quarters, so that all have lived for a while.
            start = UnixMs(
                START_MS + int(rng.integers(0, scrapes * 3 // 4)) * SCRAPE_MS + int(rng.integers(1, SCRAPE_MS))
            )
            workload = WorkloadId(f"slurm:{number}")
            for unit in self.units[len(self.workload_of) :][:size]:
                self.allocations.append(Allocation(workload=workload, unit=unit.id, from_at=start))
            self.workload_of += [workload] * size
            number += 1

    def held_at(self, time_ms: int) -> list[Allocation]:
        """Who holds what."""
        return [allocation for allocation in self.allocations if allocation.from_at <= time_ms]


def make_rules() -> list[Rule]:
    """The shipped rules, and others up to a hundred: other percentiles and thresholds of the metrics there are."""
    rules = [shipped.rule for shipped in shipped_rules()]
    shapes = itertools.cycle(
        [
            "gpu_util p{a} < {b}% and power p50 < {c}%",
            "sm_active p{a} < {b}% and gpu_util mean > {c}%",
            "tensor_active p{a} < {b}% or dram_active p50 < {c}%",
            "memory_used p{a} > {b}% and power mean < {c}%",
            "gpu_util below {b}% > {c}% and power max > {a}%",
            "gpu_temperature p{a} > {c} and power std < {b}%",
        ]
    )
    rng = np.random.default_rng(3)
    while len(rules) < RULES:
        low, high = int(rng.choice(PERCENTILES)), rng.choice([20, 40, 60, 80], 2)
        text = next(shapes).format(a=low, b=high[0], c=high[1])
        rules.append(parse_rule(text, key=f"bench-{len(rules)}", name=f"Benchmark {len(rules)}"))
    return rules


def facts_of(columns: LifeView) -> LifeFacts:
    """What scopes may ask."""
    count = len(columns.workloads)
    none: list[str | None] = [None] * count
    return LifeFacts(
        units=[columns.units[code] for code in columns.unit.tolist()],
        workload=columns.workload,
        age_ms=columns.until_at - columns.from_at,
        workloads=columns.workloads,
        users=none,
        projects=none,
        partitions=none,
        machine_types=none,
        names=none,
        gpus=np.bincount(columns.workload, minlength=count),
    )  # fmt: skip


def follow(site: Site, lives: Lives, batches: Sequence[SampleBatch]) -> list[float]:
    """Count every scrape; milliseconds of each."""
    lives.follow_units(site.units)
    times, known_lives = [], 0
    for batch in batches:
        at_ms = int(batch.time_ms.min())
        held = site.held_at(at_ms)
        if len(held) != known_lives:
            lives.follow_allocations(held, UnixMs(at_ms))
            known_lives = len(held)
        begin = time.perf_counter()
        lives.add(batch)
        times.append((time.perf_counter() - begin) * 1000)
    return times


def refresh_ms(lives: Lives, views: LifeViews, rules: list[Rule], batches: Sequence[SampleBatch]) -> float:
    """Milliseconds to evaluate all rules after a scrape, median; the first round is cold and does not count."""
    facts, times = facts_of(views.columns()), []
    for batch in batches:
        lives.add(batch)
        begin = time.perf_counter()
        evaluate(rules, views.columns(), facts)
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times[1:])


def median_ms(work: Callable[[], object]) -> float:
    """Warm."""
    work()
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times)


class Peer:
    """VictoriaMetrics with two metrics, each series labelled with its workload."""

    def __init__(self, server: VictoriaServer, site: Site, batches: list[SampleBatch]) -> None:
        self._server = server
        self._connection = http.client.HTTPConnection(urllib.parse.urlsplit(server.url).netloc, timeout=300)
        self._end_ms = max(int(batch.time_ms.max()) for batch in batches)
        self.starts = {allocation.workload: allocation.from_at for allocation in site.allocations}
        for lines in self._lines(site, batches):
            self._connection.request("POST", "/api/v1/import", lines)
            self._connection.getresponse().read()
        server.flush()
        # A new series shows only after some seconds; asking also warms the caches.
        deadline = time.monotonic() + 60
        while any(len(self.percentile(metric, 0.5)) < site.cluster.gpus for metric in PEER_METRICS):
            if time.monotonic() > deadline:
                raise RuntimeError("VictoriaMetrics does not show all that was written")
            time.sleep(1)

    def _lines(self, site: Site, batches: list[SampleBatch]) -> Iterator[bytes]:
        gpus = site.cluster.gpus
        for metric in PEER_METRICS:
            first = METRICS.index(metric) * gpus
            times = np.stack([batch.time_ms[first : first + gpus] for batch in batches], axis=1)
            values = np.stack([batch.value[first : first + gpus] for batch in batches], axis=1)
            for low in range(0, gpus, 200):
                yield b"\n".join(
                    json.dumps(
                        {
                            "metric": {
                                "__name__": metric,
                                "unit": site.units[gpu].id,
                                "workload": site.workload_of[gpu],
                            },
                            "timestamps": times[gpu].tolist(),
                            "values": values[gpu].tolist(),
                        }
                    ).encode()
                    for gpu in range(low, min(low + 200, gpus))
                )

    def percentile(self, metric: str, rank: float) -> dict[str, float]:
        """Of every GPU since its workload's start, by unit: one question per workload, on one open connection."""
        values = {}
        for workload, start_ms in self.starts.items():
            window_ms = self._end_ms - start_ms + 1
            query = f'quantile_over_time({rank}, {metric}{{workload="{workload}"}}[{window_ms}ms])'
            arguments = urllib.parse.urlencode({"query": query, "time": self._end_ms / 1000, "nocache": 1})
            self._connection.request("GET", f"/api/v1/query?{arguments}")
            answer = json.loads(self._connection.getresponse().read())
            values.update({row["metric"]["unit"]: float(row["value"][1]) for row in answer["data"]["result"]})
        return values


def compare_with_peer(report: Report, site: Site, lives: Lives, batches: list[SampleBatch], folder: Path) -> None:
    """The same percentiles from both, within our bound: one, then all that a set of rules may ask of two metrics."""
    views = LifeViews(lives)
    with run_victoria(folder / "victoria") as server:
        peer = Peer(server, site, batches)
        since = f"since {len(peer.starts)} starts"

        def compare(label: str, percentiles: dict[str, Sequence[float]]) -> None:
            def ours() -> dict[tuple[str, float], Float64s]:
                columns = fresh_columns(lives, views)
                return {
                    (metric, number): columns.column(metric, Statistic(StatisticKind.PERCENTILE, number))
                    for metric, numbers in percentiles.items()
                    for number in numbers
                }

            our_ms, computed = median_ms(ours), ours()
            begin = time.perf_counter()
            theirs = {(metric, number): peer.percentile(metric, number / 100) for metric, number in computed}
            their_ms = (time.perf_counter() - begin) * 1000
            for (metric, number), column in computed.items():
                check_alike(views.columns(), metric, column, theirs[metric, number])
            report.add(f"{label} {since}", our_ms, "ms", their_ms, "VictoriaMetrics", budget=their_ms / 100)

        compare("p95 of utilization", {"gpu_util_ratio": [95.0]})
        compare("p50 of power", {"power_watts": [50.0]})
        compare(f"{len(PERCENTILES)} percentiles of both", dict.fromkeys(PEER_METRICS, PERCENTILES))


def check_alike(columns: LifeView, metric: str, column: Float64s, theirs: dict[str, float]) -> None:
    """Checks that both give the same values within our bound."""
    bound = error_bound(metric).of_full_scale * float(columns.limits(metric)[0])
    off = [abs(column[row] - theirs[columns.units[unit]]) for row, unit in enumerate(columns.unit.tolist())]
    assert len(theirs) == columns.row_count
    assert max(off) <= bound * 1.001, f"{metric} differs by {max(off)}"


def fresh_columns(lives: Lives, views: LifeViews) -> LifeView:
    """Columns as after a scrape: no cached result is used."""
    lives.version += 1
    return views.columns()


def measure(gpus: int, scrapes: int, folder: Path) -> Report:
    """Follow a site, then measure queries."""
    site, rules = Site(gpus, scrapes), make_rules()
    workloads = len(set(site.workload_of))
    report = Report(
        f"Statistics of lives: {gpus:,} GPUs × {len(METRICS)} metrics × {scrapes} scrapes, {workloads} workloads"
    )
    needs = needs_of(condition for rule in rules for condition in iter_conditions(rule.expression))
    measured = frozenset(threshold for threshold in needs.thresholds if threshold.metric in METRICS)
    lives = Lives(Needs(frozenset(METRICS), measured))
    batches = list(site.cluster.scrapes(scrapes))
    times = follow(site, lives, batches[: -RUNS - 1])
    report.add("count one scrape, median", statistics.median(times[1:]), "ms", budget=20)
    report.add("  worst but the first, which compiles", max(times[1:]), "ms")
    report.add("memory of the statistics", lives.nbytes / 1e6, "MB", budget=300)
    judged_ms = refresh_ms(lives, LifeViews(lives), rules, batches[-RUNS - 1 :])
    report.add(f"judge {len(rules)} rules again after a scrape", judged_ms, "ms", budget=100)
    path = folder / "lives.zip"
    report.add("write a checkpoint", median_ms(lambda: write_checkpoint(lives, path)), "ms")
    report.add("  its size", path.stat().st_size / 1e6, "MB")
    compare_with_peer(report, site, lives, batches, folder)
    return report


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--scrapes", type=int, default=480)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = measure(options.gpus, options.scrapes, Path(folder))
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
