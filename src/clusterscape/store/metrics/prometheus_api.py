"""HTTP client of a Prometheus-compatible server: persistent connections, instant and range queries, import, export and
remote write. Translates HTTP errors.
"""

import base64
import gzip
import http.client
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict
from urllib.parse import SplitResult, unquote, urlencode, urlsplit

import numpy as np
import orjson

from clusterscape.errors import StoreError, StoreFullError
from clusterscape.model.arrays import Float64s, Int64s

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_GZIP_LEVEL = 1
Labels = Mapping[str, str]


class _Item(TypedDict):
    """One series of an instant (``value``) or range (``values``) query; a pair is [seconds, "value"]."""

    metric: dict[str, str]
    value: tuple[float, str]
    values: list[tuple[float, str]]


class NotSupportedError(StoreError):
    """The server does not have this endpoint: it is not VictoriaMetrics."""


class RefusedSamplesError(StoreError):
    """The server will never accept these samples (too old, out of order, too many labels); retrying is pointless."""


@dataclass(frozen=True, slots=True)
class Points:
    """One series of a response."""

    labels: Labels
    time_ms: Int64s
    value: Float64s


def format_time(time_ms: int) -> str:
    """Seconds for the ``time``, ``start`` and ``end`` of a query.

    The extra 0.2 ms keeps servers that truncate on the right millisecond; others round it away.
    """
    return f"{time_ms // 1000}.{time_ms % 1000:03d}2"


def quote(text: str) -> str:
    """A PromQL string literal."""
    return json.dumps(text, ensure_ascii=False)


class PrometheusApi:
    """Requests to one server, from any thread. ``headers`` go with every request, ``parameters`` with every query."""

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
        parameters: Mapping[str, str] | None = None,
        setting: str = "storage.metrics",
    ) -> None:
        self._url: SplitResult = urlsplit(url)
        self._timeout_s = timeout_s
        self._parameters = dict(parameters or {})
        self._setting = setting
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._headers: dict[str, str] = dict(headers or {})
        if self._url.username is not None:
            user, password = unquote(self._url.username), unquote(self._url.password or "")
            self._headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        self.address = self._url._replace(netloc=self._url.netloc.rpartition("@")[2]).geturl().rstrip("/")

    def query(self, expression: str, *, time_ms: int, label: str) -> tuple[list[str], Float64s]:
        """An instant query: the label values of ``label``, and the sample values, of each series that has the label."""
        reply = self._get_json("/api/v1/query", {"query": expression, "time": format_time(time_ms)})
        series = [item for item in reply if label in item["metric"]]
        value = np.array([float(item["value"][1]) for item in series], dtype=np.float64)
        return [item["metric"][label] for item in series], value

    def query_raw(self, selector: str, *, start_ms: int, end_ms: int) -> list[Points]:
        """The samples in [start, end) of the series that match ``selector``, from any Prometheus-compatible server."""
        expression = f"{selector}[{end_ms - start_ms}ms]"
        reply = self._get_json("/api/v1/query", {"query": expression, "time": format_time(end_ms - 1)})
        return [_points(item["metric"], item["values"]) for item in reply]

    def query_range(self, expression: str, *, start_ms: int, last_ms: int, step_ms: int) -> list[Points]:
        """A range query: one point at each ``start + i × step`` up to ``last``."""
        parameters = {
            "query": expression,
            "start": format_time(start_ms),
            "end": format_time(last_ms),
            "step": f"{step_ms}ms",
        }
        return [_points(item["metric"], item["values"]) for item in self._get_json("/api/v1/query_range", parameters)]

    def label_values(self, label: str, selector: str, *, start_ms: int, end_ms: int) -> list[str]:
        """The values of ``label`` in series that match ``selector`` and have samples around [start, end)."""
        parameters = {
            "match[]": selector,
            "start": format_time(start_ms),
            "end": format_time(end_ms - 1),
            **self._parameters,
        }
        content = self._request("GET", f"/api/v1/label/{label}/values?{urlencode(parameters)}", None, {})
        try:
            values: list[str] = orjson.loads(content)["data"] or []
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"the response of {self.address} is not that of Prometheus",
                hint=f"Check the address in `{self._setting}`.",
            ) from error
        return values

    def export(self, selector: str, *, start_ms: int, end_ms: int) -> Iterator[Points]:
        """As ``query_raw``, in VictoriaMetrics' own format, which is several times faster to read."""
        parameters = {"match[]": selector, "start": format_time(start_ms), "end": format_time(end_ms - 1)}
        for line in self._post_form("/api/v1/export", parameters).splitlines():
            if line:
                series = orjson.loads(line)
                value = np.array(series["values"], dtype=np.float64)  # null becomes NaN
                yield Points(series["metric"], np.array(series["timestamps"], dtype=np.int64), value)

    def import_lines(self, lines: bytes) -> None:
        """VictoriaMetrics' import: JSON lines with ``metric``, ``values`` and ``timestamps``."""
        headers = {"Content-Type": "application/json"}
        if self._url.hostname not in _LOOPBACK:
            lines = gzip.compress(lines, _GZIP_LEVEL)
            headers["Content-Encoding"] = "gzip"
        self._request("POST", "/api/v1/import", lines, headers)

    def write_remote(self, request: bytes, path: str = "") -> None:
        """Prometheus' remote write, version 1: a ``WriteRequest`` in snappy's block format."""
        headers = {
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "snappy",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
        }
        self._request("POST", path, request, headers)

    def delete_series(self, selector: str) -> None:
        """Delete series; NotSupportedError if the server does not support it or it is disabled."""
        try:
            self._post_form("/api/v1/admin/tsdb/delete_series", {"match[]": selector})
        except StoreError as error:
            if "admin APIs disabled" in error.message:
                raise NotSupportedError(error.message, hint="Start it with --web.enable-admin-api.") from None
            raise

    def is_range_closed(self, *, time_ms: int) -> bool:
        """Whether ``[5m]`` includes a sample that is exactly five minutes old: yes in Prometheus 2, no in Prometheus 3.

        Determined by a subquery of a constant with points at whole minutes: two or three in a range of two minutes.
        """
        minute = f"{time_ms // 60_000 * 60}"
        reply = self._get_json("/api/v1/query", {"query": "count_over_time(vector(1)[2m:1m])", "time": minute})
        return bool(reply) and float(reply[0]["value"][1]) > 2

    def get_text(self, path: str) -> str:
        """The response to a GET request."""
        return self._request("GET", path, None, {}).decode("utf-8", errors="replace")

    def _get_json(self, path: str, parameters: Mapping[str, str]) -> list[_Item]:
        # `nocache` also prevents VictoriaMetrics from adjusting the requested time; Prometheus ignores it.
        content = self._post_form(path, {**parameters, **self._parameters, "nocache": "1"})
        try:
            result: list[_Item] = orjson.loads(content)["data"]["result"]
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"the response of {self.address}{path} is not that of Prometheus",
                hint=f"Check the address in `{self._setting}`.",
            ) from error
        return result

    def _post_form(self, path: str, parameters: Mapping[str, str]) -> bytes:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._request("POST", path, urlencode(parameters).encode("ascii"), headers)

    def _request(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        is_kept = connection is not None
        if connection is None:
            connection = self._connect()
        try:
            connection.request(method, self._url.path.rstrip("/") + path, body, {**self._headers, **headers})
            response = connection.getresponse()
            status, content = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            if is_kept and isinstance(error, ConnectionError | http.client.RemoteDisconnected):
                return self._request(method, path, body, headers)  # the server had closed the idle connection
            raise StoreError(
                f"{self.address} does not answer: {error or type(error).__name__}",
                hint=f"Check that the server runs there and that `{self._setting}` names it.",
            ) from error
        with self._lock:
            self._idle.append(connection)
        if status // 100 != 2:
            is_write = "Content-Encoding" in headers or path.endswith("/import")
            raise self._failure(status, path, content, is_write=is_write)
        return content

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        return kind(self._url.hostname or "", self._url.port, timeout=self._timeout_s)

    def _failure(self, status: int, path: str, content: bytes, *, is_write: bool) -> Exception:
        text = content.decode("utf-8", errors="replace").strip()
        if status == 404 or "unsupported path requested" in text:
            return NotSupportedError(
                f"{self.address} does not support {path or 'this path'}: it is not VictoriaMetrics",
                hint=f"Set `{self._setting}` to the address of a VictoriaMetrics, or `writes` to `remote_write` or `off`.",
            )
        if "read-only mode" in text or "no space left" in text:
            return StoreFullError(
                f"the disk of {self.address} is full", hint="Free space there; writing then resumes by itself."
            )
        if status in (401, 403) or (status == 400 and "auth token" in text):  # vmauth without credentials
            hint = "Put the user into the address (http://user:password@host:port), or set a token, org_id or headers."
            return StoreError(f"{self.address} refuses access ({status})", hint=hint)
        if status in (400, 409, 413, 422) and is_write:
            return RefusedSamplesError(
                f"{self.address} rejected samples ({status}): {text[:300]}",
                hint="Check its limits on the age and order of samples.",
            )
        return StoreError(f"{self.address}{path} failed ({status}): {text[:300]}", hint="See the server's log.")

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def _points(labels: Labels, pairs: Sequence[tuple[float, str]]) -> Points:
    seconds = np.array([pair[0] for pair in pairs], dtype=np.float64)
    value = np.array([float(pair[1]) for pair in pairs], dtype=np.float64)
    return Points(labels, np.rint(seconds * 1000).astype(np.int64), value)
