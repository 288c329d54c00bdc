"""Tracked runs: lists, one run, workloads of runs that executed together, and their metrics as lines."""

from clusterscape.query.runs.query import RunQuery
from clusterscape.query.runs.series import RunSeriesQuery

__all__ = ["RunQuery", "RunSeriesQuery"]
