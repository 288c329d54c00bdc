"""A stand-in for the Kubernetes API server, for no registry offers one: discovery, paged lists, watches, writes, refusals.

It keeps to the API's rules where a client can tell: one resourceVersion for all writes, lists as of one moment over all pages,
watches from any version that is still known, bookmarks, 410 for what is forgotten, Status objects for errors. It schedules
nothing and checks no object. tests/integration/test_kubernetes_collector.py holds it and a real server to the same tests.
"""

import base64
import copy
import json
import ssl
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]

BUILT_IN = {
    ("", "v1"): {"nodes": ("Node", False), "pods": ("Pod", True), "namespaces": ("Namespace", False)},
    ("batch", "v1"): {"jobs": ("Job", True)},
    ("apps", "v1"): {
        "replicasets": ("ReplicaSet", True),
        "statefulsets": ("StatefulSet", True),
        "deployments": ("Deployment", True),
    },
    ("resource.k8s.io", "v1"): {"resourceclaims": ("ResourceClaim", True), "resourceslices": ("ResourceSlice", False)},
    ("apiextensions.k8s.io", "v1"): {"customresourcedefinitions": ("CustomResourceDefinition", False)},
}


@dataclass
class StandIn:
    """What is stored, and what goes wrong on demand."""

    token: str | None = "secret"
    bookmark_s: float = 0.5
    client_authority: Path | None = None
    url: str = ""
    forbidden: set[str] = field(default_factory=set)  # plurals
    garbage: set[str] = field(default_factory=set)  # plurals that are answered with nonsense
    silent: set[str] = field(default_factory=set)  # plurals that are not answered at all
    clock_ahead_s: float = 0.0
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kinds: dict[tuple[str, str], dict[str, tuple[str, bool]]] = {k: dict(v) for k, v in BUILT_IN.items()}
        self.objects: dict[tuple[str, str], dict[tuple[str, str], Json]] = {}
        self.history: list[tuple[int, str, tuple[str, str], Json]] = []
        self.version = 1000
        self.oldest = 1000
        self.pages: dict[str, list[Json]] = {}
        self.changed = threading.Condition()
        self.stopped = False
        self.streams = 0

    def write(self, kind: str, key: tuple[str, str], place: tuple[str, str], thing: Json) -> Json:
        """One change, sent to all watchers."""
        with self.changed:
            self.version += 1
            thing["metadata"]["resourceVersion"] = str(self.version)
            if kind == "DELETED":
                self.objects[key].pop(place, None)
            else:
                self.objects.setdefault(key, {})[place] = thing
            self.history.append((self.version, kind, key, copy.deepcopy(thing)))
            self.changed.notify_all()
        return thing

    def compact(self) -> None:
        """Forget what happened: watches from before and pages half read are gone."""
        with self.changed:
            self.version += 1
            self.history.clear()
            self.pages.clear()
            self.oldest = self.version

    def break_streams(self) -> None:
        """End every watch, as a proxy does that is restarted."""
        with self.changed:
            self.streams += 1
            self.changed.notify_all()


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status: Json = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        }  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    state: StandIn

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The Date header, by a clock that may be wrong."""
        return super().date_time_string((timestamp or time.time()) + self.state.clock_ahead_s)

    def do_GET(self) -> None:
        """Read, list or watch."""
        self._answer()

    do_POST = do_PUT = do_DELETE = do_PATCH = do_GET

    def _answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        self.state.requests.append(f"{self.command} {self.path}")
        try:
            self._check_token()
            self._route(body)
        except Refusal as refusal:
            self._send(refusal.status["code"], refusal.status)
        except OSError:  # the client has disconnected
            self.close_connection = True

    def _check_token(self) -> None:
        if self.state.client_authority is not None:
            return  # the handshake has checked the certificate
        if self.state.token is not None and self.headers.get("Authorization") != f"Bearer {self.state.token}":
            raise Refusal(401, "Unauthorized", "Unauthorized")

    def _send(self, code: int, answer: Json | bytes) -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _route(self, body: Json) -> None:
        parts = urlsplit(self.path)
        steps = [step for step in parts.path.split("/") if step]
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        state = self.state
        if steps == ["version"]:
            return self._send(200, {"major": "1", "minor": "34", "gitVersion": "v1.34.0-stand-in"})
        if steps == ["api"]:
            return self._send(200, {"kind": "APIVersions", "versions": ["v1"]})
        if steps == ["apis"]:
            return self._send(200, self._groups())
        if steps[0] == "api":
            group, version, rest = "", steps[1], steps[2:]
        else:
            group, version, rest = steps[1], steps[2], steps[3:]
        kinds = state.kinds.get((group, version))
        if kinds is None:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        if not rest:
            return self._send(200, _resource_list(group, version, kinds))
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name, sub = rest[0], rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else ""
        if plural not in kinds:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        self._misbehave(plural, group)
        key = (group, plural)
        if self.command == "GET" and not name and query.get("watch", "").lower() in ("1", "t", "true"):
            return self._watch(key, namespace, query)
        if self.command == "GET" and not name:
            return self._list(key, f"{group}/{version}" if group else version, kinds[plural][0], namespace, query)
        return self._send(200, self._object(key, kinds[plural][0], namespace, name, sub, body))

    def _misbehave(self, plural: str, group: str) -> None:
        state = self.state
        if plural in state.forbidden:
            of = f'resource "{plural}" in API group "{group}" at the cluster scope'
            raise Refusal(403, "Forbidden", f'{plural} is forbidden: User "clusterscape" cannot list {of}')
        if plural in state.garbage:
            self._send(200, b"<html>502 Bad Gateway</html>")
            raise BrokenPipeError
        with state.changed:
            while plural in state.silent and not state.stopped:
                state.changed.wait(0.1)

    def _groups(self) -> Json:
        versions: dict[str, list[str]] = {}
        for group, version in self.state.kinds:
            if group:
                versions.setdefault(group, []).append(version)
        groups = [
            {
                "name": group,
                "versions": [{"groupVersion": f"{group}/{version}", "version": version} for version in matching],
                "preferredVersion": {"groupVersion": f"{group}/{matching[0]}", "version": matching[0]},
            }
            for group, matching in versions.items()
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _list(self, key: tuple[str, str], api: str, kind: str, namespace: str, query: Json) -> None:
        state, limit = self.state, int(query.get("limit", 0))
        with state.changed:
            if "continue" in query:
                if query["continue"] not in state.pages:
                    raise Refusal(
                        410,
                        "Expired",
                        "The provided continue parameter is too old to display a consistent list result.",
                    )
                version = json.loads(base64.urlsafe_b64decode(query["continue"]))["rv"]
                items = state.pages[query["continue"]]
            else:
                version = state.version
                matching = sorted(state.objects.get(key, {}).items())
                items = [copy.deepcopy(thing) for (home, _), thing in matching if namespace in ("", home)]
            metadata: Json = {"resourceVersion": str(version)}
            if limit and len(items) > limit:
                token = base64.urlsafe_b64encode(json.dumps({"rv": version, "at": str(uuid.uuid4())}).encode()).decode()
                state.pages[token] = items[limit:]
                metadata |= {"continue": token, "remainingItemCount": len(items) - limit}
                items = items[:limit]
        for item in items:  # as the server does: what the list says once is not repeated
            item.pop("kind", None)
            item.pop("apiVersion", None)
        self._send(200, {"kind": f"{kind}List", "apiVersion": api, "metadata": metadata, "items": items})

    def _watch(self, key: tuple[str, str], namespace: str, query: Json) -> None:
        state = self.state
        since = int(query.get("resourceVersion") or state.version)
        end = time.monotonic() + float(query.get("timeoutSeconds", 300))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if since < state.oldest:
            expired = Refusal(410, "Expired", f"too old resource version: {since} ({state.oldest})").status
            self._chunk({"type": "ERROR", "object": expired})
            self._end_stream()
            return
        turn, sent_at = state.streams, time.monotonic()
        while not state.stopped and turn == state.streams and time.monotonic() < end:
            with state.changed:
                events = [event for event in state.history if event[0] > since and event[2] == key]
                latest = state.version  # changes during the wait are sent in the next iteration
                if not events:
                    state.changed.wait(0.05)
            for version, kind, _, thing in events:
                since = version
                if namespace in ("", thing["metadata"].get("namespace", "")):
                    self._chunk({"type": kind, "object": thing})
            if "allowWatchBookmarks" in query and not events and time.monotonic() - sent_at > state.bookmark_s:
                since, sent_at = latest, time.monotonic()
                self._chunk({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(latest)}}})
        self._end_stream()

    def _chunk(self, event: Json) -> None:
        data = json.dumps(event).encode() + b"\n"
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def _object(self, key: tuple[str, str], kind: str, namespace: str, name: str, sub: str, body: Json) -> Json:
        state = self.state
        name = name or body.get("metadata", {}).get("name", "")
        stored = state.objects.get(key, {}).get((namespace, name))
        match self.command:
            case "POST":
                if stored is not None:
                    raise Refusal(409, "AlreadyExists", f'{key[1]} "{name}" already exists')
                created: Json = {"metadata": {}} | copy.deepcopy(body)
                created["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": _now()}
                if namespace:
                    created["metadata"]["namespace"] = namespace
                if kind == "CustomResourceDefinition":
                    self._install(created)
                elif kind != "CustomResourceDefinition" and key[0] in {g for g, _ in BUILT_IN}:
                    created.pop("status", None)  # only to be written below /status
                return state.write("ADDED", key, (namespace, name), created)
            case _ if stored is None:
                raise Refusal(404, "NotFound", f'{key[1]} "{name}" not found')
            case "PUT":
                created = copy.deepcopy(stored) | (
                    {"status": body.get("status", {})} if sub == "status" else copy.deepcopy(body)
                )
                created["metadata"] = (
                    copy.deepcopy(stored["metadata"]) if sub == "status" else stored["metadata"] | body["metadata"]
                )
                return state.write("MODIFIED", key, (namespace, name), created)
            case "DELETE":
                return state.write("DELETED", key, (namespace, name), copy.deepcopy(stored))
            case _:
                return stored

    def _install(self, definition: Json) -> None:
        spec = definition["spec"]
        for version in spec["versions"]:
            kinds = self.state.kinds.setdefault((spec["group"], version["name"]), {})
            kinds[spec["names"]["plural"]] = (spec["names"]["kind"], spec["scope"] == "Namespaced")


def _resource_list(group: str, version: str, kinds: dict[str, tuple[str, bool]]) -> Json:
    resources = [
        {"name": plural, "singularName": "", "kind": kind, "namespaced": inside, "verbs": ["get", "list", "watch"]}
        for plural, (kind, inside) in kinds.items()
    ]
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def stand_in(
    *,
    port: int = 0,
    state: StandIn | None = None,
    certificate: Path | None = None,
    client_authority: Path | None = None,
) -> Iterator[StandIn]:
    """Serves until the end of the block; with ``certificate`` (PEM with key) over TLS, for clients of ``client_authority``.

    A ``state`` from before goes on where it was, as a server does that is restarted over its etcd.
    """
    state = state or StandIn()
    state.stopped = False
    state.client_authority = client_authority
    handler = type("BoundHandler", (Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    scheme = "http"
    if certificate is not None:
        scheme, tls = "https", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        if client_authority is not None:
            tls.load_verify_locations(client_authority)
            tls.verify_mode = ssl.CERT_REQUIRED
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    state.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        with state.changed:
            state.stopped = True
            state.changed.notify_all()
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
