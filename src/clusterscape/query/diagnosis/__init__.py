"""One workload, diagnosed: its samples loaded, compared and explained, and everything that is drawn of it."""

from clusterscape.query.diagnosis.query import DiagnosisQuery

__all__ = ["DiagnosisQuery"]
