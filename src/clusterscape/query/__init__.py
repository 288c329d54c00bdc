"""Answers named after what a view asks; the only reader of the stores."""

from clusterscape.query.cluster import ClusterQuery
from clusterscape.query.context import QueryContext
from clusterscape.query.search import SearchQuery
from clusterscape.query.series import SeriesQuery
from clusterscape.query.sources import IngestState, SourceQuery
from clusterscape.query.timeline import TimelineQuery
from clusterscape.query.views import ViewQuery
from clusterscape.query.waste import WasteQuery
from clusterscape.query.workloads import WorkloadQuery


class Queries:
    """All questions the API and the command line can ask."""

    def __init__(self, context: QueryContext, ingest: IngestState | None = None) -> None:
        self.context = context
        self.cluster = ClusterQuery(context)
        self.workloads = WorkloadQuery(context, self.cluster.past)
        self.series = SeriesQuery(context, self.workloads)
        self.search = SearchQuery(context, self.cluster)
        self.sources = SourceQuery(context, ingest)
        self.timeline = TimelineQuery(context, self.cluster)
        self.views = ViewQuery(context)
        self.waste = WasteQuery(context, self.cluster)


__all__ = ["IngestState", "Queries", "QueryContext"]
