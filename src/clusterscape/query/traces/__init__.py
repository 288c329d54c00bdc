"""Queries on imported traces: lists, the report, the Marey graph, operators, communication, curves, and comparisons.

``answers``: the shapes of answers.
``describing``: converts documents, and one span with its related spans, to answers.
``flow``: the execution flow, and the node of a span in it.
``opened``: traces in memory.
``query``: lists, reports and tables for charts.
"""

from clusterscape.analyze.trace.aggregate import Merge
from clusterscape.analyze.trace.changes import Change
from clusterscape.analyze.trace.drawn import Level
from clusterscape.query.traces.query import TraceQuery

__all__ = ["Change", "Level", "Merge", "TraceQuery"]
