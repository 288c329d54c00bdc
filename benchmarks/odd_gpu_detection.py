"""One odd GPU planted among 512, five kinds, 100 seeds each, and 100 runs without: how often it comes first, how often we err.

Budgets: ranked first in at least 95 % of each kind; at most 5 % of the runs without an odd GPU raise an alarm.
"""

import argparse
import time
from collections import Counter

import numpy as np
from clusters.odd_gpus import Oddness, make_power, make_utilization

from benchmarks.report import Report
from clusterscape.analyze.diagnose import find_odd_gpus


def detect(oddness: Oddness | None, gpus: int, seeds: int) -> tuple[float, float, float, str, float]:
    """Shares of runs: planted one first, planted one significant, another one significant; usual feature; seconds a run."""
    first = significant = wrong = 0
    features: Counter[str] = Counter()
    spent_s = 0.0
    for seed in range(seeds):
        _, watts, odd = make_power(np.random.default_rng([seed, gpus]), gpus, oddness=oddness)
        start = time.perf_counter()
        result = find_odd_gpus(watts)
        spent_s += time.perf_counter() - start
        first += bool(result.ranked[0] == odd)
        significant += any(gpu.column == odd for gpu in result.odd)
        wrong += any(gpu.column != odd for gpu in result.odd)
        features.update(gpu.features[0][0] for gpu in result.odd if gpu.column == odd)
    usual = ", ".join(f"{name} {count}" for name, count in features.most_common(2))
    return first / seeds, significant / seeds, wrong / seeds, usual, spent_s / seeds


def alarm_in_steps(gpus: int, seeds: int) -> float:
    """The share of runs with an alarm where rounding and a sample of lag are all that differs."""
    runs = (make_utilization(np.random.default_rng([seed, gpus]), gpus)[1] for seed in range(seeds))
    return sum(bool(find_odd_gpus(values).odd) for values in runs) / seeds


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=512)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = Report(f"Odd GPUs: one planted among {options.gpus}, {options.seeds} seeds of each kind")
    seconds = []
    for oddness in Oddness:
        first, significant, wrong, usual, spent_s = detect(oddness, options.gpus, options.seeds)
        seconds.append(spent_s)
        report.add(f"{oddness}: ranked first", 100 * first, "%", budget=95, higher_is_better=True)
        report.add(f"  significant ({usual})", 100 * significant, "%")
        report.add("  another GPU named in addition", 100 * wrong, "%")
    _, _, wrong, _, _ = detect(None, options.gpus, options.seeds)
    report.add("none planted: false alarms", 100 * wrong, "%", budget=5)
    report.add(
        "  whole percents, some a sample behind", 100 * alarm_in_steps(options.gpus, options.seeds), "%", budget=5
    )
    report.add("one run of all GPUs", 1e3 * float(np.mean(seconds)), "ms")
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
