"""Which GPUs of a run are outliers, when, and what they have in common: pure functions on (time × GPU) arrays, NaN if missing.

``diagnose`` combines all parts; each part can also be used alone.

``bivariate``: two metrics plotted against each other: outliers and density.
``clustering``: hierarchical clusters of GPUs: the tree, where to cut it, stable colors of labels.
``series_findings``: findings about all GPUs over time; thresholds and reasons are in ``thumb_rules.toml``.
``diagnosis``: the whole diagnosis (``diagnose``).
``distances``: distances between GPUs.
``explain``: the attribute that the GPUs of a cluster share and others do not.
``features``: numbers that describe how a GPU differs from the others of its run.
``findings``: all findings, ranked; among them those about GPUs that differ from the others.
``kernels``: compiled inner loops.
``outliers``: single odd GPUs and their significance.
``peers``: the GPUs that each GPU is compared with, and odd ones among them.
``run_data``: the input of a diagnosis, and the thresholds of ``thumb_rules.toml``.
``samples``: samples sorted, resampled to one grid, and downsampled for a screen.
``signals``: patterns of one time series, each with its error.
``stragglers``: the GPU for which the others of a synchronous training wait, the kind of delay, and since when.
"""

from clusterscape.analyze.diagnose.bivariate import Density, Mahalanobis, compute_density, compute_mahalanobis
from clusterscape.analyze.diagnose.clustering import Clustering, CutKind, CutRule, Linkage, cluster, match_colors
from clusterscape.analyze.diagnose.diagnosis import Diagnosis, Options, cluster_gpus, diagnose
from clusterscape.analyze.diagnose.distances import (
    Histograms,
    Shape,
    TimelineDistances,
    compute_histograms,
    compute_jensen_shannon,
    compute_timeline_distances,
)
from clusterscape.analyze.diagnose.explain import Explanation, explain_clusters, explain_group
from clusterscape.analyze.diagnose.findings import find_findings, rank_findings
from clusterscape.analyze.diagnose.outliers import OddGpu, OddGpus, find_odd_gpus
from clusterscape.analyze.diagnose.peers import Peers, find_odd_among_peers, find_peers
from clusterscape.analyze.diagnose.run_data import Limits, RunData, ThumbRule, read_thumb_rules
from clusterscape.analyze.diagnose.samples import Grid, Lines, OrderedSamples, downsample, order_samples, resample

__all__ = [
    "Clustering",
    "CutKind",
    "CutRule",
    "Density",
    "Diagnosis",
    "Explanation",
    "Grid",
    "Histograms",
    "Limits",
    "Lines",
    "Linkage",
    "Mahalanobis",
    "OddGpu",
    "OddGpus",
    "Options",
    "OrderedSamples",
    "Peers",
    "RunData",
    "Shape",
    "ThumbRule",
    "TimelineDistances",
    "cluster",
    "cluster_gpus",
    "compute_density",
    "compute_histograms",
    "compute_jensen_shannon",
    "compute_mahalanobis",
    "compute_timeline_distances",
    "diagnose",
    "downsample",
    "explain_clusters",
    "explain_group",
    "find_findings",
    "find_odd_among_peers",
    "find_odd_gpus",
    "find_peers",
    "match_colors",
    "order_samples",
    "rank_findings",
    "read_thumb_rules",
    "resample",
]
