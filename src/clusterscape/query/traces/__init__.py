"""Questions about imported traces: lists, the report, the Marey graph, operators, links, curves, two runs compared."""

from clusterscape.analyze.trace.aggregate import Merge
from clusterscape.analyze.trace.changes import Change
from clusterscape.analyze.trace.drawn import Level
from clusterscape.query.traces.query import TraceQuery

__all__ = ["Change", "Level", "Merge", "TraceQuery"]
