"""The whole diagnosis of a run: clusters by one metric, odd GPUs, what they share, findings, and notes about the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from clusterscape.analyze.diagnose.clustering import Clustering, CutKind, Linkage, cluster
from clusterscape.analyze.diagnose.distances import (
    Shape,
    compute_histograms,
    compute_jensen_shannon,
    compute_sampling_noise,
    compute_timeline_distances,
)
from clusterscape.analyze.diagnose.explain import Explanation, Value, explain_clusters
from clusterscape.analyze.diagnose.features import compute_pooled_scale
from clusterscape.analyze.diagnose.findings import find_findings
from clusterscape.analyze.diagnose.outliers import OddGpus
from clusterscape.analyze.diagnose.peers import Peers, find_odd_among_peers, find_peers
from clusterscape.analyze.diagnose.run_data import Limits, RunData, format_seconds
from clusterscape.analyze.diagnose.samples import order_samples, resample
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.findings import Finding
from clusterscape.model.ids import UnitId
from clusterscape.model.metrics import CATALOGUE, METRICS

By = Literal["histogram", "euclidean", "correlation"]

MAX_COMPARED_VALUES = 1 << 20  # per metric on the timeline grid: 512 points of 2,048 GPUs, 256 of 4,096
MAX_POINTS, MIN_POINTS = 512, 128
GAP_STEPS = 5.0
BRIDGED_STEPS = 2  # grid steps; one or two lost samples are interpolated
LEAST_MAX_LAG = 1  # grid steps; an event falls into one of two samples by chance
LAG_MARGIN, LAG_GPUS = 1.25, 64
MIN_DIFFERENCE = 0.01  # of the metric's range, or of a correlation; nearer clusters are not distinguished


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to compare GPUs. ``metric`` None: the first summary metric of the catalogue that has samples.

    ``count`` or ``height`` set the cut of the tree; otherwise it is chosen. ``max_lag``: in grid steps, for timelines; one step
    is always allowed. ``quantum``: the resolution of the metric, for values that are means of samples; None: estimated from the
    values.
    """

    metric: str | None = None
    by: By = "histogram"
    bins: int = 100
    domain: tuple[float, float] | None = None
    max_lag: int = 0
    linkage: Linkage = "average"
    count: int | None = None
    height: float | None = None
    significance: float = 0.01
    quantum: float | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """``explanations`` are aligned with the labels of the clusters; ``notes`` describe limits of the data in sentences.

    ``clustering`` is what is displayed; findings and odd GPUs rest on ``peers``.
    """

    metric: str | None
    run: RunData
    clustering: Clustering
    explanations: tuple[Explanation | None, ...]
    peers: Peers
    odd: OddGpus
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = field(default=())


def diagnose(
    times_ms: ArrayLike,
    metrics: Mapping[str, ArrayLike],
    units: Sequence[UnitId],
    *,
    attributes: Mapping[str, Sequence[Value | None]] | None = None,
    limits: Limits | None = None,
    options: Options | None = None,
) -> Diagnosis:
    """Diagnose a run.

    Parameters
    ----------
    times_ms : (T,) in any order; duplicate and non-monotonic times are repaired and reported in the notes.
    metrics : canonical name → (T × GPU) in canonical units, NaN where missing, columns in the order of ``units``.
    attributes : name ("node", "local rank" …) → value of each unit, None where unknown.

    Deterministic. With few or no GPUs, samples or metrics, the result is empty with a note; this is not an error.
    """
    options = options or Options()
    samples = order_samples(times_ms, metrics)
    run = RunData(samples, tuple(units), attributes or {}, limits or Limits())
    for name, column in [*samples.metrics.items()]:
        if column.shape[1] != len(run.units):
            raise ValueError(f"{name} has {column.shape[1]} columns, but there are {len(run.units)} units")
    metric = options.metric or _choose_metric(run)
    notes = [*samples.notes, *_describe_data(run, metric)]
    values = None if metric is None else run.find(metric)
    if metric is None or values is None:
        everyone = np.arange(len(run.units))
        none = everyone[:0]
        nothing = Clustering(none, none, everyone, np.empty((0, 4)), 0.0, CutKind.AUTOMATIC, None, ())
        peers = Peers(nothing, (), (everyone,))
        odd = OddGpus(none, (), options.significance, None)
        findings = find_findings(run, nothing, (), odd, "")
        return Diagnosis(metric, run, nothing, (), peers, odd, findings, tuple(notes))
    clustering = cluster_gpus(run, metric, options)
    explanations = explain_clusters(clustering.labels, _select(run.attributes, clustering.compared))
    peers = find_peers(clustering, run.attributes)
    odd = find_odd_among_peers(values, peers, options.significance, quantum=options.quantum)
    findings = find_findings(run, peers.clustering, peers.explanations, odd, metric, peers.groups)
    notes += clustering.notes
    if clustering.count != peers.clustering.count:
        notes.append(_describe_cut(clustering.count, peers.clustering.count))
    if odd.note is not None and values.shape[1] > 1:
        notes.append(odd.note)
    return Diagnosis(metric, run, clustering, explanations, peers, odd, findings, tuple(notes))


def _describe_cut(shown: int, supported: int) -> str:
    def clusters(count: int) -> str:
        return f"{count} cluster{'s' if count != 1 else ''}"

    return (
        f"{clusters(shown)} {'are' if shown != 1 else 'is'} shown as asked; the samples support {clusters(supported)}. "
        f"Findings and odd GPUs rest on {'that one' if supported == 1 else f'those {supported}'}."
    )


def cluster_gpus(run: RunData, metric: str, options: Options) -> Clustering:
    """Clusters of the run's GPUs by one metric."""
    values = run.samples.metrics[metric]
    if options.by == "histogram":
        counts = compute_histograms(values, bins=options.bins, domain=options.domain).counts
        condensed = compute_jensen_shannon(counts)
        noise = 1.5 * compute_sampling_noise(counts)
    else:
        most = int(np.clip(MAX_COMPARED_VALUES // max(values.shape[1], 1), MIN_POINTS, MAX_POINTS))
        grid = resample(run.samples.times_ms, values, max_points=most, bridged_steps=BRIDGED_STEPS)
        max_lag = max(options.max_lag, LEAST_MAX_LAG)
        condensed = compute_timeline_distances(grid, Shape(options.by), max_lag=max_lag).condensed
        noise = MIN_DIFFERENCE
        if options.by == "euclidean":
            noise *= compute_pooled_scale(values) * float(len(grid.values)) ** 0.5
        noise = max(noise, LAG_MARGIN * _measure_lag_noise(run.samples.times_ms, values, Shape(options.by), most))
    return cluster(condensed, linkage=options.linkage, count=options.count, height=options.height, noise=noise)


def _measure_lag_noise(times_ms: Int64s, values: Float64s, shape: Shape, most: int) -> float:
    """Distance of a GPU from itself one sample later, after lag compensation; not 0 if grid steps are longer than samples.

    The 95th percentile over at most LAG_GPUS evenly spaced GPUs, since GPUs with larger steps have larger distances.
    """
    if len(values) < 3:
        return 0.0
    chosen = np.unique(np.linspace(0, values.shape[1] - 1, LAG_GPUS).astype(np.int64))
    pair = np.concatenate([values[1:, chosen], values[:-1, chosen]], axis=1)
    grid = resample(times_ms[1:], pair, max_points=most, bridged_steps=BRIDGED_STEPS)
    distances = []
    for column in range(chosen.size):
        both = replace(grid, values=grid.values[:, [column, column + chosen.size]])
        distances.append(float(compute_timeline_distances(both, shape, max_lag=LEAST_MAX_LAG).condensed[0]))
    finite = [distance for distance in distances if np.isfinite(distance)]
    return float(np.quantile(finite, 0.95)) if finite else 0.0


def _choose_metric(run: RunData) -> str | None:
    preferred = [metric.name for metric in CATALOGUE if metric.summary]
    return next((name for name in [*preferred, *run.samples.metrics] if run.find(name) is not None), None)


def _select(attributes: Mapping[str, Sequence[Value | None]], columns: Int64s) -> dict[str, list[Value | None]]:
    return {name: [values[column] for column in columns] for name, values in attributes.items()}


def _describe_data(run: RunData, metric: str | None) -> list[str]:
    """Limits of the data, in sentences."""
    values = None if metric is None else run.find(metric)
    if metric is None or values is None:
        suffix = f" of {metric}" if metric else ""
        return [f"There are no samples{suffix} in this window."]
    label = METRICS[metric].label if metric in METRICS else metric
    notes = []
    if len(values) == 1:
        notes.append("There is only one sample: changes over time cannot be analyzed.")
    if values.shape[1] == 1:
        notes.append("The workload has one GPU: there are no others to compare it with.")
    is_known = np.isfinite(values)
    silent = np.flatnonzero(~is_known.any(axis=0))
    if silent.size:
        names = ", ".join(run.pick(silent[:3])) + (" …" if silent.size > 3 else "")
        notes.append(f"{label} is missing on {silent.size} of {values.shape[1]} GPUs ({names}).")
    return [*notes, *_describe_gaps(run), *_describe_replaced(run, is_known)]


def _describe_gaps(run: RunData) -> list[str]:
    steps_s = np.diff(run.samples.times_ms) / 1000.0
    gaps = steps_s[steps_s > GAP_STEPS * run.step_s] if steps_s.size else steps_s
    if gaps.size == 0:
        return []
    places = "one gap" if gaps.size == 1 else f"{gaps.size} gaps"
    return [f"There are no samples of any GPU for {format_seconds(float(gaps.sum()))} in total ({places})."]


def _describe_replaced(run: RunData, is_known: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[str]:
    """Notes about GPUs whose samples end where those of another GPU of the same node start."""
    first, last = is_known.argmax(axis=0), len(is_known) - 1 - is_known[::-1].argmax(axis=0)
    is_there = is_known.any(axis=0)
    starting = np.flatnonzero(is_there & (first > 0.02 * len(is_known)))
    ending = np.flatnonzero(is_there & (last < 0.98 * (len(is_known) - 1)))
    nodes = run.attributes.get("node")
    notes = []
    for old in ending:
        for new in starting:
            is_near = nodes is None or nodes[int(old)] == nodes[int(new)]
            if is_near and last[old] < first[new]:
                notes.append(
                    f"{run.units[int(old)]} stops where {run.units[int(new)]} starts: the GPU was probably replaced."
                )
    return notes[:5]
