"""A whole cluster in real stores behind the real server, in a process of its own, for benchmarks of the page.

Unlike ``clusterscape demo`` nothing is scraped: on a small machine that would take the time that is to be measured. New values of
every unit arrive every ``--tick-s`` seconds, as they would.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import uvicorn
from clusters.opened import metrics_of

from benchmarks.snapshot_wire import _samples, build_site
from clusterscape.model import SampleBatch, UnixMs
from clusterscape.query import Queries
from clusterscape.serve.app import create_app
from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.http_protocol import HttpConfig


@contextmanager
def served_site(gpus: int, *, tick_s: float = 15) -> Iterator[str]:
    """The address of a cluster of this size."""
    command = [sys.executable, "-m", "benchmarks.served_site", "--gpus", str(gpus), "--tick-s", str(tick_s)]
    child = subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        url = child.stdout.readline().strip()
        if not url:
            raise SystemExit("the site ended before it was ready")
        yield url
    finally:
        child.terminate()
        child.wait()


def keep_ticking(queries: Queries, first: SampleBatch, tick_s: float, ends: threading.Event) -> None:
    """Write new values of every unit, each batch a millisecond later than the one before."""
    random = np.random.default_rng(11)
    time_ms = first.time_ms.copy()
    while not ends.wait(tick_s):
        time_ms = time_ms + 1
        values = first.value * random.uniform(0.9, 1.0, len(first.value))
        metrics_of(queries.context).append(replace(first, time_ms=time_ms, value=values))
        queries.context.changes.bump_tick(UnixMs(int(time_ms[0])))


def main() -> None:
    """Serve until stopped; the address is the first line that is printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--tick-s", type=float, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        queries = build_site(Path(folder), options.gpus)
        samples = _samples(list(queries.context.records.units()), np.random.default_rng(7))
        guard = HttpGuard()
        app = create_app(queries, guard=guard)
        server = uvicorn.Server(HttpConfig(app, guard, host="127.0.0.1", port=0, log_level="error"))
        ends = threading.Event()
        ticker = threading.Thread(target=keep_ticking, args=(queries, samples, options.tick_s, ends), daemon=True)

        def announce() -> None:
            while not server.started:
                if ends.wait(0.05):
                    return
            port = server.servers[0].sockets[0].getsockname()[1]
            print(f"http://127.0.0.1:{port}", flush=True)
            ticker.start()

        threading.Thread(target=announce, daemon=True).start()
        try:
            server.run()
        finally:
            ends.set()


if __name__ == "__main__":
    main()
