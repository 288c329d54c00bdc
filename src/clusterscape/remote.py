"""Python client of a running server: all data of the page, as polars frames and dictionaries.

Sends requests and translates errors; docs/reference/api.md lists all paths. `response_frames.py` makes frames of rows.
Light to import.
"""

import io
import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from http import HTTPStatus
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from clusterscape.errors import AccessError, QueryError, SourceError

if TYPE_CHECKING:
    import polars as pl

    from clusterscape.response_frames import ResponseSchema

API = "/api/v1"
TIMEOUT_S = 60.0
WARM_UP_S = 300.0
"""How long to wait for a server that is warming up."""

log = logging.getLogger(__name__)

_JOINED = frozenset({"metrics", "units", "ranks", "nodes", "compare"})
"""Parameters whose values are joined by commas; of the others, a list is repeated."""

PAGE_ROWS = 1000
"""Rows per request of a list that comes in pages."""

Value = str | int | float | bool | datetime | None
Texts = str | Sequence[str]
Query = Mapping[str, Value | Sequence[Value]]


class Server:
    """A server at ``url``, with an API ``token`` if it needs one. Connects at the first request."""

    def __init__(self, url: str, token: str | None = None, *, timeout_s: float = TIMEOUT_S) -> None:
        check_address(url)
        self._root = url.rstrip("/")
        self._token = token
        self._timeout_s = timeout_s

    def get(self, path: str, **query: Value | Sequence[Value]) -> Any:
        """The answer to ``GET path``: JSON as it is, a table as a polars frame, anything else as bytes.

        ``path`` is one of the reference, with or without ``/api/v1``; parameters that are None are left out; a list may be
        given for any parameter that takes several values. A page of a longer list is reported by a warning, unless a
        ``limit`` was given.
        """
        answer = self.send("GET", path, query=query)
        if isinstance(answer, dict) and "limit" not in query and {"total", "limit", "offset"} <= answer.keys():
            end = answer["offset"] + answer["limit"]
            if answer["total"] > end:
                log.warning("%s: %d of %d; limit= and offset= ask for others", path, answer["limit"], answer["total"])
        return answer

    def workloads(
        self,
        *,
        state: Texts | None = None,
        user: str | None = None,
        project: str | None = None,
        partition: str | None = None,
        node: str | None = None,
        text: str | None = None,
        at: datetime | None = None,
    ) -> "pl.DataFrame":
        """All workloads that match, newest submission first; with ``at``, those active at that time."""
        query = {"state": state, "user": user, "project": project, "partition": partition, "node": node, "text": text}
        return self._frame("/workloads", "workloads", **query, at=at)

    def nodes(self, *, at: datetime | None = None) -> "pl.DataFrame":
        """All nodes, now or at a past minute."""
        return self._frame("/nodes", None, at=at)

    def units(self, *, at: datetime | None = None) -> "pl.DataFrame":
        """All GPUs (and MIG instances) with their node, their workload and the latest value of every metric."""
        frame: pl.DataFrame = self.get("/units.parquet", at=at)
        return frame

    def samples(
        self,
        metrics: Texts,
        *,
        units: Texts | None = None,
        workload: str | None = None,
        node: str | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        points: int = 1000,
    ) -> "pl.DataFrame":
        """``metric``, ``unit``, ``time``, ``value``, ``min``, ``max`` of these units, or of a workload, or of a node.

        At most ``points`` (up to 20,000) steps for each series: ``value`` is the mean of a step.
        """
        series = self.get(
            "/series",
            metric=metrics,
            unit=[units] if isinstance(units, str) else units,
            workload=workload,
            node=node,
            start=start,
            end=end,
            points=points,
        )
        return self._times(series)

    def violations(
        self,
        *,
        hours: float = 24.0,
        start: datetime | None = None,
        end: datetime | None = None,
        rule: str | None = None,
        user: str | None = None,
        project: str | None = None,
        is_open: bool | None = None,
    ) -> "pl.DataFrame":
        """Violations of rules in the last ``hours`` or from ``start`` to ``end``, most GPU-hours first."""
        query = {"hours": hours, "start": start, "end": end, "rule": rule, "user": user, "project": project}
        return self._frame("/violations", "violations", **query, is_open=is_open)

    def runs(self, *, experiment: str | None = None, limit: int = 10_000) -> "pl.DataFrame":
        """Tracked runs, newest first, with a column for each param (``params.lr``) and result (``results.loss``)."""
        return self._frame("/runs", None, experiment=experiment, limit=limit)

    def run_samples(self, runs: Texts, metrics: Texts, *, axis: str = "time", points: int = 1000) -> "pl.DataFrame":
        """``run``, ``metric``, ``place``, ``scope``, ``x``, ``value``; ``axis`` is ``time`` (s), ``step`` or ``epoch``."""
        frame: pl.DataFrame = self.get("/runs/series", run=runs, metric=metrics, axis=axis, points=points)
        return frame

    def traces(self, *, workload: str | None = None) -> "pl.DataFrame":
        """Profiler traces, newest first, with their first verdict (``headline``)."""
        return self._frame("/traces", "traces", workload=workload)

    def queue(self) -> "pl.DataFrame":
        """Waiting workloads in queue order, with their planned and likely starts."""
        return self._frame("/scheduling/queue", "workloads")

    def _frame(self, path: str, field: str | None, **query: Value | Sequence[Value]) -> "pl.DataFrame":
        """All rows of a list, page by page; ``field`` holds them in the response, None: the response is the list."""
        from clusterscape.response_frames import rows_to_frame

        rows: list[dict[str, Any]] = []
        while True:
            offset = {"limit": PAGE_ROWS, "offset": len(rows)} if field is not None and self._has_pages(path) else {}
            answer = self.get(path, **query, **offset)
            page = answer if field is None else answer[field]
            rows += page
            if not offset or not page or len(rows) >= answer["total"]:
                return rows_to_frame(rows, self._schema.row_types(_full_path(path), field))

    def _has_pages(self, path: str) -> bool:
        return self._schema.has_parameter(_full_path(path), "offset")

    def _times(self, frame: "pl.DataFrame") -> "pl.DataFrame":
        from clusterscape.response_frames import with_time

        return with_time(frame)

    @cached_property
    def _schema(self) -> "ResponseSchema":
        """Types of the fields of responses, as the server declares them."""
        from clusterscape.response_frames import ResponseSchema

        return ResponseSchema(self.get("/openapi.json"))

    def send(self, method: str, path: str, body: Any = None, *, query: Query | None = None) -> Any:
        """The answer to any request with a JSON body; None where there is nothing to say."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        address = f"{self._root}{_full_path(path)}{_format_query(query or {})}"
        request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310 – checked when it was made
        with open_url(request, self._token, timeout_s=self._timeout_s) as response:
            return _read(response.read(), response.headers.get_content_type(), address)


def connect(url: str = "http://127.0.0.1:8321", token: str | None = None, *, timeout_s: float = TIMEOUT_S) -> Server:
    """A client of a running server: ``connect().workloads(state="running")`` is a polars frame."""
    return Server(url, token, timeout_s=timeout_s)


def check_address(url: str) -> None:
    """Raise SourceError if ``url`` is not the address of a server."""
    if not url.startswith(("http://", "https://")):
        raise SourceError(f"{url} is not an address", hint="Give --url http://HOST:PORT.")


@contextmanager
def open_url(request: urllib.request.Request, token: str | None, *, timeout_s: float = 10.0) -> Iterator[HTTPResponse]:
    """The answer of a running server; every failure says what to do. Waits for one that is warming up."""
    url = request.full_url
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with _open_warm(request, timeout_s) as response:
            yield response
    except urllib.error.HTTPError as error:
        if error.code == 401:
            raise AccessError(f"{url} asks for a token", hint="Give it with --token.") from None
        message, hint = _problem_of(error)
        answered = f"{url} answers {error.code} {error.reason}"
        raise SourceError(f"{message} ({answered})" if message else answered, hint=hint) from None
    except (urllib.error.URLError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            raise SourceError(
                f"{url} has not answered within {timeout_s:g} s",
                hint="Something listens there. If it is a ClusterScape, it is busy: try again, or look at its log.",
            ) from None
        raise SourceError(
            f"no ClusterScape answers at {url}: {reason}",
            hint="Start one with `clusterscape demo` or `clusterscape serve`, or name another with --url.",
        ) from None


def _open_warm(request: urllib.request.Request, timeout_s: float) -> HTTPResponse:
    """The answer; one that a server puts off because it has just started is asked for again until it comes."""
    end = time.monotonic() + WARM_UP_S
    is_logged = False
    while True:
        try:
            return urllib.request.urlopen(request, timeout=timeout_s)  # type: ignore[no-any-return] # noqa: S310 – made from a checked address
        except urllib.error.HTTPError as error:
            body = error.read() if error.code == HTTPStatus.SERVICE_UNAVAILABLE else b""
            if b'"warming_up"' not in body or time.monotonic() > end:
                if not body:
                    raise
                raise urllib.error.HTTPError(
                    error.url, error.code, error.msg, error.headers, io.BytesIO(body)
                ) from None
            if not is_logged:
                log.warning("%s", json.loads(body)["error"]["message"])
                is_logged = True
            time.sleep(float(error.headers.get("Retry-After", 1)))


def _problem_of(error: urllib.error.HTTPError) -> tuple[str, str | None]:
    """Message and hint of a ClusterScape error response; empty for other servers."""
    try:
        problem = json.load(error)["error"]
        return str(problem["message"]), problem["hint"]
    except (ValueError, KeyError, TypeError):
        return "", None


def _full_path(path: str) -> str:
    if not path.startswith("/"):
        raise QueryError(f"{path!r} is not a path", hint="Write it as /workloads; docs/reference/api.md lists them.")
    return path if path.startswith((f"{API}/", "/healthz", "/openapi.json")) else f"{API}{path}"


def _format_query(query: Query) -> str:
    pairs = []
    for name, value in query.items():
        values = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
        items = [_format_value(item) for item in values if item is not None]
        pairs += [(name, item) for item in ([",".join(items)] if name in _JOINED and items else items)]
    return f"?{urlencode(pairs)}" if pairs else ""


def _format_value(value: object) -> str:
    """Times as Unix ms; a time without a zone is local."""
    if isinstance(value, datetime):
        return str(round(value.timestamp() * 1000))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(content: bytes, kind: str, address: str) -> Any:
    if not content:
        return None
    if kind == "application/json":
        return json.loads(content)
    if kind == "application/vnd.apache.arrow.stream":
        import polars as pl

        return pl.read_ipc_stream(io.BytesIO(content))
    if "parquet" in kind:
        import polars as pl

        return pl.read_parquet(io.BytesIO(content))
    if kind == "text/html":
        raise SourceError(
            f"{address} does not answer in JSON", hint="Is it a ClusterScape, and the path one of its own?"
        )
    return content
