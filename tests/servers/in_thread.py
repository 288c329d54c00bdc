"""The server in a thread of this process, over queries that a test or benchmark built."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from clusters.opened import open_services

from clusterscape.query import Queries
from clusterscape.serve.app import create_app
from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.http_protocol import HttpConfig


@contextmanager
def served_in_thread(queries: Queries) -> Iterator[str]:
    """The address of a server on a free port of loopback."""
    guard = HttpGuard()
    app = create_app(queries, services=open_services(queries), guard=guard)
    config = HttpConfig(app, guard, host="127.0.0.1", port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
            assert thread.is_alive(), "the server ended before it was ready"
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
