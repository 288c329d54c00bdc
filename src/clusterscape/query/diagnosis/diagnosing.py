"""The diagnosis of one window: samples handed to the analysis, and what is judged by which of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.diagnose import (
    Diagnosis,
    Limits,
    Options,
    RunData,
    diagnose,
    find_findings,
    order_samples,
    rank_findings,
)
from clusterscape.analyze.diagnose.diagnosis import By
from clusterscape.analyze.diagnose.run_data import format_duration
from clusterscape.model import METRICS, UnitId
from clusterscape.model.findings import Finding
from clusterscape.query.diagnosis.holding import Holding
from clusterscape.query.diagnosis.loading import Samples

Attributes = Mapping[str, Sequence[str | int | None]]

FINDING_METRICS = (
    "gpu_util_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "power_watts",
    "memory_used_bytes",
    "memory_free_bytes",
    "memory_total_bytes",
    "sm_clock_hertz",
    "pcie_tx_bytes_per_second",
    "pcie_rx_bytes_per_second",
    "nvlink_tx_bytes_per_second",
    "nvlink_rx_bytes_per_second",
    *(name for name in METRICS if name.endswith("_throttle_seconds")),
)
"""What findings are drawn from, besides the metric that GPUs are compared by."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the analysis says of a window."""

    diagnosis: Diagnosis
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def judge(
    holding: Holding,
    metric: str | None,
    fine: Samples,
    companions: Samples,
    attributes: Attributes,
    memory_bytes: float | None,
    options: Options,
) -> Judged:
    """GPUs are compared by ``fine`` samples of one metric; findings are drawn from it and from all ``companions``.

    ``metric`` None: there is none with samples.
    """
    limits = Limits(memory_bytes=memory_bytes)
    values = {} if metric is None else {metric: fine.values[metric]}
    times = fine.times_ms
    if not values:
        values, times = {}, np.empty(0, np.int64)
    found = diagnose(times, values, holding.names, attributes=attributes, limits=limits, options=options)
    coarse = RunData(
        order_samples(companions.times_ms, companions.values), tuple(holding.names), dict(attributes), limits
    )
    kinds = {finding.kind for finding in found.findings}
    drawn = find_findings(coarse, found.clustering, found.explanations, found.odd, metric or "")
    findings = rank_findings([*found.findings, *(finding for finding in drawn if finding.kind not in kinds)])
    notes = list(found.notes)
    if fine.step_ms is not None and metric is not None:
        notes.append(
            f"There are too many samples to compare each: values are means of {format_duration(fine.step_ms / 1000)}."
        )
    return Judged(found, findings, tuple(notes))


def warm_up() -> None:
    """A diagnosis and a picture of made-up samples, small but such that every part has something to do."""
    from clusterscape.analyze.diagnose import compute_density, compute_mahalanobis, downsample

    rng = np.random.default_rng(0)
    times = np.arange(64) * 15_000
    values = rng.normal(0.8, 0.03, (64, 16))
    values[:, :4] -= 0.4
    units = [UnitId(f"n{place // 8}:{place % 8}") for place in range(16)]
    ways: tuple[By, ...] = ("histogram", "euclidean")
    for by in ways:
        diagnose(
            times,
            {"gpu_util_ratio": values, "power_watts": 700 * values},
            units,
            attributes={"local rank": [place % 8 for place in range(16)]},
            options=Options(by=by),
        )
    downsample(times, values, pixels=8)
    points = values.reshape(-1)
    compute_mahalanobis(points, points**2, robust=True)
    compute_density(points, points**2)
