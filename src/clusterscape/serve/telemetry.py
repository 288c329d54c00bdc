"""ClusterScape's own Prometheus metrics: scrape lag and rounds, samples, drops, query times, cached responses, the process."""

import time
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
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
    """Reads the numbers where they are kept, when asked."""

    def __init__(
        self,
        queries: Queries,
        ingest: IngestState | None,
        live: LiveHub,
        responses: ResponseCache,
        limits: RequestLimits,
        guard: HttpGuard,
    ) -> None:
        self._limits = limits
        self._guard = guard
        self._queries = queries
        self._ingest = ingest
        self._live = live
        self._responses = responses

    def collect(self) -> Iterable[Metric]:
        """The families of one exposition."""
        context = self._queries.context
        versions = context.changes.versions
        if versions.newest_sample_at is not None:
            lag = max(0.0, (context.clock() - versions.newest_sample_at) / 1000)
            yield GaugeMetricFamily("clusterscape_scrape_lag_seconds", "Age of the newest sample.", value=lag)
        yield GaugeMetricFamily(
            "clusterscape_ingest_paused", "1 while nothing can be stored.", value=float(versions.paused is not None)
        )
        yield GaugeMetricFamily("clusterscape_live_clients", "Open live streams.", value=self._live.clients)
        yield GaugeMetricFamily(
            "clusterscape_rules_due",
            "Rules that have yet to judge the stored past.",
            value=self._queries.rules.count_due(),
        )
        yield from _count_cached(self._responses)
        yield from _describe_loops(context.loops.states())
        yield from _describe_limits(self._limits)
        yield from _describe_http(self._guard)
        if context.quota is not None:
            yield from _describe_uploads(context.quota)
        info = context.metrics.info()
        if info.bytes_on_disk is not None:
            yield GaugeMetricFamily("clusterscape_store_bytes", "Metric store on disk.", value=info.bytes_on_disk)
        yield GaugeMetricFamily(
            "clusterscape_collecting", "1 where this process collects.", value=float(context.collects())
        )
        yield GaugeMetricFamily(
            "clusterscape_spooled_samples", "Samples that wait for the metrics server.", value=info.spooled_samples
        )
        yield CounterMetricFamily(
            "clusterscape_lost_samples", "Samples that the spool or the server dropped.", value=info.lost_samples
        )
        if self._ingest is None:
            return
        yield CounterMetricFamily("clusterscape_samples", "Samples stored.", value=self._ingest.samples_total)
        drops = CounterMetricFamily("clusterscape_dropped", "Rows not stored.", labels=["kind", "reason"])
        notes = CounterMetricFamily("clusterscape_noted", "Rows stored though odd.", labels=["kind", "reason"])
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
        beyond = GaugeMetricFamily(
            "clusterscape_limited_sources", "Sources that answer more than limits.sources accepts.", labels=["kind"]
        )
        for kind, count in limited.items():
            beyond.add_metric([kind], count)
        yield beyond
        yield _tell_rounds(self._ingest.statuses)


def _describe_limits(limits: RequestLimits) -> Iterable[Metric]:
    requests = GaugeMetricFamily(
        "clusterscape_limited_requests", "Requests under a concurrency limit.", labels=["cost", "state"]
    )
    refused = CounterMetricFamily(
        "clusterscape_refused_requests", "Requests beyond a concurrency limit, answered with 429.", labels=["cost"]
    )
    for cost, limit in limits.by_cost.items():
        requests.add_metric([cost.value, "running"], limit.running)
        requests.add_metric([cost.value, "waiting"], limit.queued)
        refused.add_metric([cost.value], limit.refused)
    yield requests
    yield refused


def _describe_http(guard: HttpGuard) -> Iterable[Metric]:
    refused = CounterMetricFamily(
        "clusterscape_http_refused", "Requests and connections beyond a limit of limits.http.", labels=["reason"]
    )
    for refusal in Refusal:
        refused.add_metric([refusal.reason], guard.refusals.counts[refusal])
    yield refused
    yield GaugeMetricFamily("clusterscape_http_connections", "Open connections.", value=guard.connections)
    yield GaugeMetricFamily(
        "clusterscape_http_held_body_bytes", "Bodies of requests in memory.", value=guard.held_bytes
    )


def _describe_uploads(quota: UploadQuota) -> Iterable[Metric]:
    use, limits = quota.use(), quota.limits
    kept = GaugeMetricFamily("clusterscape_uploads", "Traces and job traces that are kept.", labels=["what"])
    size = GaugeMetricFamily(
        "clusterscape_upload_bytes", "Bytes of uploads, and the most they may be.", labels=["what"]
    )
    kept.add_metric(["kept"], use.uploads)
    kept.add_metric(["limit"], limits.kept)
    size.add_metric(["kept"], use.size_bytes)
    size.add_metric(["limit"], limits.kept_bytes)
    yield kept
    yield size


def _describe_loops(states: Sequence[LoopState]) -> Iterable[Metric]:
    failures = CounterMetricFamily(
        "clusterscape_background_failures", "Rounds of background loops that failed.", labels=["loop"]
    )
    failing = GaugeMetricFamily(
        "clusterscape_background_failing", "1 where the last round of a background loop failed.", labels=["loop"]
    )
    for state in states:
        failures.add_metric([state.loop], state.failures)
        failing.add_metric([state.loop], float(state.error is not None))
    yield failures
    yield failing


def _count_cached(responses: ResponseCache) -> Iterable[Metric]:
    answers = CounterMetricFamily("clusterscape_shared_answers", "Requests for what many ask for.", labels=["how"])
    counts = responses.counts
    for how, count in (("kept", counts.hits), ("joined", counts.joined), ("made", counts.misses)):
        answers.add_metric([how], count)
    yield answers
    yield GaugeMetricFamily("clusterscape_kept_answer_bytes", "Kept answers, compressed.", value=responses.size_bytes)


def _tell_rounds(statuses: Sequence[SourceStatus]) -> Metric:
    """From the first question of a kind's last round to its last answer, be it that the questions were spread on purpose."""
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
    """One registry per app, so that several apps in one process (tests) do not share numbers."""

    def __init__(
        self,
        queries: Queries,
        ingest: IngestState | None,
        live: LiveHub,
        responses: ResponseCache,
        limits: RequestLimits,
        guard: HttpGuard,
    ) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_State(queries, ingest, live, responses, limits, guard))
        ProcessCollector(registry=self.registry)
        self.query_seconds = Histogram(
            "clusterscape_query_seconds",
            "Time to answer a request.",
            labelnames=["route", "status"],
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
            registry=self.registry,
        )

    def exposition(self) -> bytes:
        """Prometheus text."""
        return generate_latest(self.registry)


class TimeRequests:
    """ASGI middleware: the time until the answer's head is sent, by route template. Streams count only their start."""

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
