"""Tracked runs: lists, single runs, run workloads, and metrics as lines.

``answers``: the shapes of answers.
``hangs``: who hangs in a job, by the looks of all of its trackers.
``query``: lists, the tree, and details of one run.
``rows``: rows and facts of runs, and derived metrics.
``series``: metrics as lines over seconds, steps or epochs; repeats as bands.
"""

from clusterscape.query.runs.hangs import HangQuery
from clusterscape.query.runs.query import RunQuery
from clusterscape.query.runs.series import RunSeriesQuery

__all__ = ["HangQuery", "RunQuery", "RunSeriesQuery"]
