"""Queries and services over stores that a test built."""

from typing import cast

from clusterscape.query import IngestState, Queries, QueryContext
from clusterscape.services import ServiceContext, Services
from clusterscape.services.site_secret import ensure_secret
from clusterscape.settings.limits import ItemLimits
from clusterscape.store.artifacts.contract import ArtifactStore
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore
from clusterscape.watch.watcher import Watch


def records_of(context: QueryContext) -> RecordStore:
    """The store that the site's own queries read: tests hand them one that can be written."""
    return cast(RecordStore, context.records)


def metrics_of(context: QueryContext) -> MetricStore:
    return cast(MetricStore, context.metrics)


def artifacts_of(context: QueryContext) -> ArtifactStore | None:
    return cast(ArtifactStore | None, context.artifacts)


def open_queries(context: QueryContext, ingest: IngestState | None = None, *, watch: Watch | None = None) -> Queries:
    """Queries without rule evaluation, unless there is a watch."""
    records = records_of(context)
    if context.is_private:
        ensure_secret(records, context.clock)
    if watch is None:
        watch = Watch(records=records, metrics=metrics_of(context), changes=context.changes, clock=context.clock)
    return Queries(context, ingest, watch=watch)


def open_services(queries: Queries, *, items: ItemLimits | None = None) -> Services:
    """Services that write into the stores that ``queries`` read."""
    context = queries.context
    return Services(
        queries,
        ServiceContext(
            reads=context,
            records=records_of(context),
            artifacts=artifacts_of(context),
            items=items or ItemLimits(),
        ),
    )
