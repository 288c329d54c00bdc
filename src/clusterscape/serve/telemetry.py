"""ClusterScape's own Prometheus metrics (scrape lag and rounds, samples, drops, query times, cached responses, traffic),
and the restricted HTTP interface of a process that only collects: health and these metrics.
"""

import time
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clusterscape.model import SourceStatus
from clusterscape.query import IngestState, Queries
from clusterscape.serve.costs import RequestLimits
from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.live import LiveHub
from clusterscape.serve.refusals import Refusal
from clusterscape.serve.response_cache import ResponseCache
from clusterscape.store.artifacts.quota import UploadQuota
from clusterscape.supervision import LoopState


class _State(Collector):
    """Reads the current values when Prometheus scrapes."""

    def __init__(
        self,
        queries: Queries,
        ingest: IngestState | None,
        live: LiveHub,
        responses: ResponseCache,
        limits: RequestLimits,
        guard: HttpGuard,
        quota: UploadQuota | None,
    ) -> None:
        self._quota = quota
        self._limits = limits
        self._guard = guard
        self._queries = queries
        self._ingest = ingest
        self._live = live
        self._responses = responses

    def collect(self) -> Iterable[Metric]:
        """The metric families of one exposition."""
        context = self._queries.context
        versions = context.changes.versions
        if versions.newest_sample_at is not None:
            lag = max(0.0, (context.clock() - versions.newest_sample_at) / 1000)
            yield GaugeMetricFamily("clusterscape_scrape_lag_seconds", "Age of the newest sample.", value=lag)
        yield GaugeMetricFamily(
            "clusterscape_ingest_paused", "1 while samples cannot be stored.", value=float(versions.paused is not None)
        )
        yield GaugeMetricFamily("clusterscape_live_clients", "Open live streams.", value=self._live.clients)
        yield GaugeMetricFamily(
            "clusterscape_rules_due",
            "Rules that have not yet been applied to stored data.",
            value=self._queries.rules.count_due(),
        )
        yield from _describe_cache(self._responses)
        yield from _describe_loops(context.loops.states())
        yield from _describe_limits(self._limits)
        yield from _describe_http(self._guard)
        if self._quota is not None:
            yield from _describe_uploads(self._quota)
        info = context.metrics.info()
        if info.bytes_on_disk is not None:
            yield GaugeMetricFamily("clusterscape_store_bytes", "Metric store on disk.", value=info.bytes_on_disk)
        yield GaugeMetricFamily(
            "clusterscape_collecting", "1 if this process collects.", value=float(context.collects())
        )
        yield GaugeMetricFamily(
            "clusterscape_spooled_samples", "Samples that wait for the metrics server.", value=info.spooled_samples
        )
        yield CounterMetricFamily(
            "clusterscape_lost_samples", "Samples dropped by the spool or the server.", value=info.lost_samples
        )
        if self._ingest is None:
            return
        yield CounterMetricFamily("clusterscape_samples", "Samples stored.", value=self._ingest.samples_total)
        drops = CounterMetricFamily("clusterscape_dropped", "Rows not stored.", labels=["kind", "reason"])
        notes = CounterMetricFamily("clusterscape_noted", "Unusual rows that were stored.", labels=["kind", "reason"])
        for row in self._ingest.drop_table():
            (notes if row.is_stored else drops).add_metric([row.kind, row.reason], row.count)
        yield drops
        yield notes
        sources = GaugeMetricFamily("clusterscape_sources", "Sources by state.", labels=["kind", "state"])
        counts: dict[tuple[str, str], int] = {}
        limited: dict[str, int] = {}
        for status in self._ingest.statuses:
            key = (status.kind, "ok" if status.is_ok else "failing")
            counts[key] = counts.get(key, 0) + 1
            limited[status.kind] = limited.get(status.kind, 0) + status.is_limited
        for (kind, state), count in counts.items():
            sources.add_metric([kind, state], count)
        yield sources
        limited_sources = GaugeMetricFamily(
            "clusterscape_limited_sources", "Sources that exceed limits.sources.", labels=["kind"]
        )
        for kind, count in limited.items():
            limited_sources.add_metric([kind], count)
        yield limited_sources
        yield _describe_rounds(self._ingest.statuses)


def _describe_limits(limits: RequestLimits) -> Iterable[Metric]:
    requests = GaugeMetricFamily(
        "clusterscape_limited_requests", "Requests under a concurrency limit.", labels=["cost", "state"]
    )
    refused = CounterMetricFamily(
        "clusterscape_refused_requests", "Requests above a concurrency limit, answered with 429.", labels=["cost"]
    )
    for cost, limit in limits.by_cost.items():
        requests.add_metric([cost.value, "running"], limit.running)
        requests.add_metric([cost.value, "waiting"], limit.queued)
        refused.add_metric([cost.value], limit.refused)
    yield requests
    yield refused


def _describe_http(guard: HttpGuard) -> Iterable[Metric]:
    refused = CounterMetricFamily(
        "clusterscape_http_refused", "Requests and connections refused by limits.http.", labels=["reason"]
    )
    for refusal in Refusal:
        refused.add_metric([refusal.reason], guard.refusals.counts[refusal])
    yield refused
    yield GaugeMetricFamily("clusterscape_http_connections", "Open connections.", value=guard.connections)
    yield GaugeMetricFamily("clusterscape_http_held_body_bytes", "Request bodies in memory.", value=guard.held_bytes)


def _describe_uploads(quota: UploadQuota) -> Iterable[Metric]:
    use, limits = quota.use(), quota.limits
    kept = GaugeMetricFamily("clusterscape_uploads", "Stored traces and job traces.", labels=["what"])
    size = GaugeMetricFamily("clusterscape_upload_bytes", "Stored bytes of uploads, and their limit.", labels=["what"])
    kept.add_metric(["kept"], use.uploads)
    kept.add_metric(["limit"], limits.stored_traces)
    size.add_metric(["kept"], use.size_bytes)
    size.add_metric(["limit"], limits.stored_bytes)
    yield kept
    yield size


def _describe_loops(states: Sequence[LoopState]) -> Iterable[Metric]:
    failures = CounterMetricFamily(
        "clusterscape_background_failures", "Rounds of background loops that failed.", labels=["loop"]
    )
    failing = GaugeMetricFamily(
        "clusterscape_background_failing", "1 if the last round of a background loop failed.", labels=["loop"]
    )
    for state in states:
        failures.add_metric([state.loop], state.failures)
        failing.add_metric([state.loop], float(state.error is not None))
    yield failures
    yield failing


def _describe_cache(responses: ResponseCache) -> Iterable[Metric]:
    answers = CounterMetricFamily("clusterscape_shared_answers", "Requests for shared responses.", labels=["how"])
    counts = responses.counts
    for how, count in (("kept", counts.hits), ("joined", counts.joined), ("made", counts.misses)):
        answers.add_metric([how], count)
    yield answers
    yield GaugeMetricFamily(
        "clusterscape_kept_answer_bytes", "Cached responses, compressed.", value=responses.size_bytes
    )


def _describe_rounds(statuses: Sequence[SourceStatus]) -> Metric:
    """Time from the first request to the last response of the last round of each kind, including deliberate staggering."""
    rounds = GaugeMetricFamily("clusterscape_round_seconds", "Length of the last round of a kind.", labels=["kind"])
    spans: dict[str, tuple[int, float]] = {}
    for status in statuses:
        if status.is_ok and status.duration_s is not None:
            first, last = spans.get(status.kind, (status.at, 0.0))
            spans[status.kind] = min(first, status.at), max(last, status.at + status.duration_s * 1000)
    for kind, (first, last) in spans.items():
        rounds.add_metric([kind], (last - first) / 1000)
    return rounds


class Telemetry:
    """The metrics of one app. One registry each, so that several apps in one process (tests) do not share values."""

    def __init__(
        self,
        queries: Queries,
        ingest: IngestState | None,
        live: LiveHub,
        responses: ResponseCache,
        limits: RequestLimits,
        guard: HttpGuard,
        quota: UploadQuota | None = None,
    ) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_State(queries, ingest, live, responses, limits, guard, quota))
        ProcessCollector(registry=self.registry)
        self.query_seconds = Histogram(
            "clusterscape_query_seconds",
            "Time to answer a request.",
            labelnames=["route", "status"],
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
            registry=self.registry,
        )

    def exposition(self) -> bytes:
        """The metrics in the Prometheus text format."""
        return generate_latest(self.registry)


class TimeRequests:
    """ASGI middleware: measures the time until the response starts, by route template."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self._app = app
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Time one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()

        async def observe(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "page")
                self._telemetry.query_seconds.labels(route, str(message["status"])).observe(time.perf_counter() - begin)
            await send(message)

        await self._app(scope, receive, observe)


HEALTH_PATHS = frozenset({"/healthz", "/metrics"})


class OnlyHealth:
    """ASGI middleware that answers only HEALTH_PATHS."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with 404."""
        if scope["type"] != "http" or scope["path"] in HEALTH_PATHS:
            await self._app(scope, receive, send)
            return
        message = "this process only collects data"
        hint = "Send the request to a process started with `clusterscape serve --role web`."
        error = {"code": "not_found", "message": message, "hint": hint}
        await JSONResponse({"error": error}, status_code=404)(scope, receive, send)
