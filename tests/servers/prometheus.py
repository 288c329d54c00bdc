"""A real Prometheus from Debian's package that scrapes exporters on loopback, and a small exporter for it to scrape."""

import json
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from servers.programs import free_port, need_program

START_TIMEOUT_S = 180.0


@dataclass
class Exporter:
    """Answers every request with ``text``, which a test may change; None means it is down (HTTP 503)."""

    port: int
    text: str | None

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextmanager
def exporter(text: str) -> Iterator[Exporter]:
    """An HTTP exporter of ``text`` in a thread of this process."""
    state = Exporter(port=0, text=text)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = (state.text or "").encode()
            self.send_response(503 if state.text is None else 200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def prometheus_server(
    targets: Sequence[str],
    *,
    scrape_interval: str = "200ms",
    password_hash: str | None = None,
    receives: bool = False,
    port: int | None = None,
) -> Iterator[str]:
    """A server that scrapes ``targets``; yields its address. With ``password_hash`` (bcrypt) only user ``site`` may ask.

    One that ``receives`` takes remote writes, of any age and in any order.
    """
    program = need_program("prometheus", "prometheus")
    port = port or free_port()
    with tempfile.TemporaryDirectory(prefix="clusterscape-prometheus-", ignore_cleanup_errors=True) as folder:
        config = Path(folder, "prometheus.yml")
        # YAML takes JSON as it is.
        config.write_text(
            json.dumps(
                {
                    "global": {
                        "scrape_interval": scrape_interval,
                        "scrape_timeout": scrape_interval,
                        "evaluation_interval": scrape_interval,  # also the resolution of subqueries
                    },
                    "scrape_configs": [{"job_name": "dcgm", "static_configs": [{"targets": list(targets)}]}],
                    **({"storage": {"tsdb": {"out_of_order_time_window": "20y"}}} if receives else {}),
                }
            )
        )
        users = {} if password_hash is None else {"basic_auth_users": {"site": password_hash}}
        web_config = Path(folder, "web.yml")
        web_config.write_text(json.dumps(users))
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    program,
                    f"--config.file={config}",
                    f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}",
                    f"--web.config.file={web_config}",
                    *(("--web.enable-remote-write-receiver", "--storage.tsdb.retention.time=90y") if receives else ()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_until_ready(url, process, Path(folder, "log"))
            yield url
        finally:
            process.terminate()
            process.wait(30)


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=2):
                return
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 401:
                return
        except OSError:
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Prometheus did not start:\n{log.read_text()}")
        time.sleep(0.05)
