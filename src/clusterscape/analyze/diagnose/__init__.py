"""Which GPU of a run is odd, when, and what the odd ones share: pure functions on (time × GPU) arrays, NaN where missing.

``diagnose`` puts all of it together; the parts are usable by themselves.
"""

from clusterscape.analyze.diagnose.bivariate import Density, Mahalanobis, compute_density, compute_mahalanobis
from clusterscape.analyze.diagnose.clustering import Clustering, CutKind, CutRule, Linkage, cluster, match_colors
from clusterscape.analyze.diagnose.diagnosis import Diagnosis, Options, cluster_gpus, diagnose, find_odd_in_clusters
from clusterscape.analyze.diagnose.distances import Shape, TimelineDistances, compute_timeline_distances
from clusterscape.analyze.diagnose.distributions import Histograms, compute_histograms, compute_jensen_shannon
from clusterscape.analyze.diagnose.downsample import Lines, downsample
from clusterscape.analyze.diagnose.explain import Explanation, explain_clusters, explain_group
from clusterscape.analyze.diagnose.findings import find_findings, rank_findings
from clusterscape.analyze.diagnose.outliers import OddGpu, OddGpus, find_odd_gpus
from clusterscape.analyze.diagnose.run_data import Limits, RunData
from clusterscape.analyze.diagnose.samples import Grid, OrderedSamples, order_samples, resample
from clusterscape.analyze.diagnose.thumb_rules import ThumbRule, read_thumb_rules

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
    "find_odd_gpus",
    "find_odd_in_clusters",
    "match_colors",
    "order_samples",
    "rank_findings",
    "read_thumb_rules",
    "resample",
]
