"""Exporters of dcgm text in threads of the test: they count requests, and may be slow."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class NodeExporter:
    """One node's exporter. ``is_asked`` is set while it answers; ``pause_s`` is how long it takes.

    One that ``counts`` says as used memory, in MiB, how often it has answered: a scrape that is lost or doubled shows.
    """

    node: str
    gpus: int
    port: int = 0
    pause_s: float = 0.0
    scrapes: int = 0
    counts: bool = False
    is_down: bool = False
    host: str | None = None  # what it calls itself; by default as its node is called
    model: str = "NVIDIA A100-SXM4-80GB"
    lines: list[str] = field(default_factory=list)  # more of its text
    is_asked: threading.Event = field(default_factory=threading.Event)

    @property
    def target(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics#{self.node}"

    @property
    def address(self) -> str:
        """Where it is asked, without the name of its node."""
        return f"localhost:{self.port}"

    def labels(self, gpu: int) -> str:
        """As dcgm-exporter writes them. The UUID is the machine's, whatever it calls itself."""
        host = self.node if self.host is None else self.host
        return f'gpu="{gpu}",UUID="GPU-{self.node}-{gpu}",modelName="{self.model}",Hostname="{host}"'

    def text(self) -> str:
        lines = [f"DCGM_FI_DEV_GPU_UTIL{{{self.labels(i)}}} {10 + i}" for i in range(self.gpus)]
        if self.counts:
            lines += ["# TYPE DCGM_FI_DEV_FB_USED gauge"]
            lines += [f"DCGM_FI_DEV_FB_USED{{{self.labels(i)}}} {self.scrapes + 1}" for i in range(self.gpus)]
        return "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n" + "\n".join([*lines, *self.lines]) + "\n"


@contextmanager
def node_exporters(nodes: int | Sequence[str], *, gpus: int = 2, counts: bool = False) -> Iterator[list[NodeExporter]]:
    """Exporters of the named nodes, or of nodes gpu-1, gpu-2, …"""
    names = [f"gpu-{number + 1}" for number in range(nodes)] if isinstance(nodes, int) else nodes
    with ExitStack() as stack:
        yield [stack.enter_context(_serving(NodeExporter(name, gpus, counts=counts))) for name in names]


@contextmanager
def _serving(exporter: NodeExporter) -> Iterator[NodeExporter]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            exporter.is_asked.set()
            time.sleep(exporter.pause_s)
            body = exporter.text().encode()
            with suppress(ConnectionError):  # the client has disconnected
                self.send_response(503 if exporter.is_down else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            exporter.scrapes += not exporter.is_down

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    exporter.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield exporter
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
