"""Tenants before one real VictoriaMetrics: Debian has no vminsert and vmselect, but it has vmauth.

``cluster_proxy`` speaks the cluster's URL layout and keeps tenants apart by a label; ``vmauth_server`` is the real vmauth with a
user for each tenant. What is tested is our side of both: addresses, headers, tenants.
"""

import http.client
import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from servers.programs import free_port, need_program

_PATH = re.compile(r"/(insert|select)/(\d+(?::\d+)?)/prometheus(/.*)")
_READS = ("/api/v1/query", "/api/v1/query_range", "/api/v1/export", "/api/v1/label")
_START_TIMEOUT_S = 20.0


@dataclass
class Proxy:
    """Passes requests on and remembers their headers. ``is_away``: it answers nothing but 503."""

    url: str
    requests: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    is_away: bool = False
    takes: int | None = None
    """So many more writes pass; the next one waits until ``release``."""
    _released: threading.Event = field(default_factory=threading.Event)
    holding: threading.Event = field(default_factory=threading.Event)
    """Set while a write waits."""

    def hold(self) -> None:
        """Called for each write."""
        if self.takes is None:
            return
        self.takes -= 1
        if self.takes < 0:
            self.holding.set()
            self._released.wait(120)

    def release(self) -> None:
        """Let everything pass from now on."""
        self.takes = None
        self._released.set()


@contextmanager
def cluster_proxy(backend: str) -> Iterator[Proxy]:
    """The layout of a VictoriaMetrics cluster in front of the single node at ``backend``."""
    target = urllib.parse.urlsplit(backend)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            proxy.requests.append((self.path, dict(self.headers)))
            match = _PATH.fullmatch(self.path.partition("?")[0])
            if proxy.is_away:
                self._answer(503, b"away")
                return
            if match is None:
                self._answer(400, b"unsupported path requested")
                return
            side, tenant, path = match.groups()
            is_read = path.startswith(_READS)
            if is_read != (side == "select"):
                self._answer(400, b"unsupported path requested")
                return
            label = f"tenant={tenant}"
            extra = {"extra_label": label} if side == "insert" else {"extra_filters[]": f'{{tenant="{tenant}"}}'}
            if side == "insert":
                proxy.hold()
            else:  # as if what was written were visible at once
                urllib.request.urlopen(f"{backend}/internal/force_flush", timeout=30).close()
            connection = http.client.HTTPConnection(str(target.hostname), target.port, timeout=30)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")}
            query = "&".join(filter(None, [self.path.partition("?")[2], urllib.parse.urlencode(extra)]))
            connection.request(self.command, f"{path}?{query}", body, headers)
            response = connection.getresponse()
            content = response.read()
            connection.close()
            with suppress(ConnectionError):  # the client was killed
                self._answer(response.status, content)

        do_GET = do_POST = _pass_on

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy = Proxy(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def vmauth_server(folder: Path, backend: str, tokens: Mapping[str, str]) -> Iterator[str]:
    """A real vmauth before ``backend``: bearer token → tenant, which it adds as a label to what is written and asked."""
    program = need_program("vmauth", "victoria-metrics")
    port = free_port()
    users = [
        {"bearer_token": token, "url_prefix": f"{backend}/?extra_label=tenant={tenant}"}
        for token, tenant in tokens.items()
    ]
    config = folder / "vmauth.yml"
    config.write_text(json.dumps({"users": users}))  # YAML takes JSON as it is
    log_path = folder / "vmauth.log"
    command = [program, f"-auth.config={config}", f"-httpListenAddr=127.0.0.1:{port}"]
    with log_path.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait_until_up(f"http://127.0.0.1:{port}", process, log_path)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_until_up(url: str, process: "subprocess.Popen[bytes]", log_path: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=1).close()
        except urllib.error.HTTPError as error:  # it asks who we are: it is up
            error.close()
            return
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"vmauth did not start:\n{log_path.read_text(errors='replace')[-2000:]}")
