"""Exporters of dcgm text in threads of the test: they count who asks, and may take their time."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class NodeExporter:
    """One node's exporter. ``is_asked`` is set while it answers; ``pause_s`` is how long it takes."""

    node: str
    gpus: int
    port: int = 0
    pause_s: float = 0.0
    scrapes: int = 0
    is_asked: threading.Event = field(default_factory=threading.Event)

    @property
    def target(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics#{self.node}"

    def text(self) -> str:
        lines = [
            f'DCGM_FI_DEV_GPU_UTIL{{gpu="{i}",UUID="GPU-{self.node}-{i}",modelName="NVIDIA A100-SXM4-80GB",'
            f'Hostname="{self.node}"}} {10 + i}'
            for i in range(self.gpus)
        ]
        return "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n" + "\n".join(lines) + "\n"


@contextmanager
def node_exporters(nodes: int, *, gpus: int = 2) -> Iterator[list[NodeExporter]]:
    """Exporters of nodes gpu-1, gpu-2, …"""
    with ExitStack() as stack:
        yield [stack.enter_context(_serving(NodeExporter(f"gpu-{number + 1}", gpus))) for number in range(nodes)]


@contextmanager
def _serving(exporter: NodeExporter) -> Iterator[NodeExporter]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            exporter.is_asked.set()
            time.sleep(exporter.pause_s)
            body = exporter.text().encode()
            with suppress(ConnectionError):  # who asked has gone
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            exporter.scrapes += 1

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
