"""One GPU that delays a synchronous training, from telemetry alone: how often the GPU and the kind of delay are right.

Budget: F1 of at least 0.90 (Minder publishes 0.893 on its own data). Odd seeds are held back. The baseline is a distance between
GPUs over all metrics (after Minder): it names no kind.
"""

import argparse
from collections import Counter

import numpy as np
from clusters.stragglers import KINDS, Delay, PlantedRun, make_run

from benchmarks.report import Report
from clusterscape.analyze.diagnose.run_data import RunData, read_thumb_rules
from clusterscape.analyze.diagnose.samples import order_samples
from clusterscape.analyze.diagnose.stragglers import find_straggler
from clusterscape.model.findings import FindingKind
from clusterscape.model.ids import UnitId

FAR = 3.0


def answer_ours(planted: PlantedRun) -> tuple[int, str, int] | None:
    """The GPU, the kind and the first sample that shows it."""
    samples = order_samples(planted.times_ms, planted.metrics)
    gpus = planted.metrics["power_watts"].shape[1]
    run = RunData(samples, tuple(UnitId(f"n{at // 8}:{at % 8}") for at in range(gpus)))
    straggler = find_straggler(run, read_thumb_rules()[FindingKind.STRAGGLER], [np.arange(gpus)])
    return None if straggler is None else (straggler.column, straggler.sign.kind, straggler.row)


def answer_distance(planted: PlantedRun) -> int | None:
    """The GPU that is farthest from all others, if that is far in robust spreads."""
    means = np.stack([np.nanmean(values, axis=0) / np.nanmean(values) for values in planted.metrics.values()], axis=1)
    distances = np.linalg.norm(means[:, None] - means[None], axis=2).sum(axis=1)
    spread = 1.4826 * float(np.median(np.abs(distances - np.median(distances)))) or 1e-9
    at = int(np.argmax(distances))
    return at if (distances[at] - np.median(distances)) / spread > FAR else None


def measure_f1(right: int, answered: int, planted: int) -> float:
    """The harmonic mean of precision and recall."""
    return 2 * right / (answered + planted) if answered + planted else 0.0


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40, help="of each kind; as many healthy runs as planted ones")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = Report(f"Stragglers by telemetry alone: {options.seeds} seeds of each kind")
    for half, name in ((0, "tuning half"), (1, "held-back half")):
        counts: Counter[str] = Counter()
        for seed in range(half, options.seeds, 2):
            for number, delay in enumerate([*Delay, *[None] * len(Delay)]):
                planted = make_run(np.random.default_rng([seed, number]), delay)
                answer, far = answer_ours(planted), answer_distance(planted)
                counts["planted"] += delay is not None
                counts["answered"] += answer is not None
                counts["far"] += far is not None
                counts["far right"] += far is not None and far == planted.guilty
                counts["blamed"] += delay is None and answer is not None
                if delay is not None and answer is not None and answer[0] == planted.guilty:
                    counts["gpu"] += 1
                    counts["kind"] += answer[1] == KINDS[delay]
                    counts["since"] += abs(answer[2] - planted.onset) <= 0.05 * planted.times_ms.size
                    counts[delay.value] += answer[1] == KINDS[delay]
        planted_count = counts["planted"]
        report.add(
            f"{name}: F1 of the GPU", measure_f1(counts["gpu"], counts["answered"], planted_count), "", budget=0.9,
            higher_is_better=True,
        )  # fmt: skip
        report.add("  F1 of GPU and kind", measure_f1(counts["kind"], counts["answered"], planted_count), "")
        report.add("  healthy runs blamed", 100 * counts["blamed"] / planted_count, "%", budget=2)
        report.add("  onset within 5 % of the time", 100 * counts["since"] / max(1, counts["gpu"]), "%")
        report.add("  F1 of the distance", measure_f1(counts["far right"], counts["far"], planted_count), "")
        for delay in Delay:
            report.add(
                f"  {delay.value}: GPU and kind right", 100 * counts[delay.value] / (planted_count / len(Delay)), "%"
            )
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
