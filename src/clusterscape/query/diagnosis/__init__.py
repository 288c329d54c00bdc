"""The diagnosis of one workload: loads its samples, compares its GPUs, explains the differences, and prepares the charts.

``answers``: the shapes of answers.
``diagnosing``: runs the analysis of a window, and converts its results to answers.
``events``: events of a workload, wasted GPU-hours and energy.
``holding``: the GPUs that a workload held, their times, ranks and attributes.
``loading``: samples as (time × GPU) arrays.
``pictures``: histograms, scatter plots and lines, as tables.
``query``: the queries; the analysis is imported on first use.
"""

from clusterscape.query.diagnosis.query import DiagnosisQuery

__all__ = ["DiagnosisQuery"]
