"""How long requests wait while threads of the server compute in Python, with the server's switch interval and Python's default.

A simulation, a replay of rules or a parser in a thread holds the interpreter that the response needs, too.
"""

import argparse
import http.client
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from servers.in_thread import served_in_thread

from benchmarks.report import Report
from benchmarks.snapshot_wire import build_site
from clusterscape.runtime.server import SWITCH_INTERVAL_S

DEFAULT_S = 0.005
"""Python's."""
ROUNDS = 8
REQUESTS = 60
PATH = "/api/v1/violations/units"
THREADS = (1, 2)


@contextmanager
def computing(threads: int) -> Iterator[list[int]]:
    """Threads that compute in Python; the list counts their steps."""
    is_over, steps = threading.Event(), [0] * threads

    def compute(place: int) -> None:
        while not is_over.is_set():
            sum([value * value for value in range(2000)])
            steps[place] += 1

    started = [threading.Thread(target=compute, args=(place,)) for place in range(threads)]
    for thread in started:
        thread.start()
    try:
        yield steps
    finally:
        is_over.set()
        for thread in started:
            thread.join()


def ask(url: str, replies: Connection) -> None:
    """In a process of its own: times of requests, whenever asked for."""
    client = http.client.HTTPConnection(urlsplit(url).netloc)
    while replies.recv():
        times_ms = []
        for _ in range(REQUESTS):
            begun = time.perf_counter()
            client.request("GET", PATH)
            client.getresponse().read()
            times_ms.append((time.perf_counter() - begun) * 1000)
            time.sleep(0.002)
        replies.send(times_ms)


def measure(url: str) -> dict[tuple[int, float], tuple[list[float], float]]:
    """By number of threads and interval: times of requests in ms, and steps of the threads in a second of processor time."""
    ours, theirs = multiprocessing.Pipe()
    client = multiprocessing.get_context("spawn").Process(target=ask, args=(url, theirs), daemon=True)
    client.start()
    times: dict[tuple[int, float], list[float]] = {}
    steps: dict[tuple[int, float], list[float]] = {}
    for _ in range(ROUNDS):
        for threads in THREADS:
            for interval_s in (SWITCH_INTERVAL_S, DEFAULT_S):
                sys.setswitchinterval(interval_s)
                with computing(threads) as counted:
                    begun_s = time.process_time()
                    ours.send(True)
                    times.setdefault((threads, interval_s), []).extend(ours.recv())
                    spent_s = time.process_time() - begun_s
                steps.setdefault((threads, interval_s), []).append(sum(counted) / spent_s)
    ours.send(False)
    client.join()
    return {key: (times[key], float(np.median(steps[key]))) for key in times}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = Report("A request while threads of the server compute")
    with tempfile.TemporaryDirectory() as folder, served_in_thread(build_site(Path(folder), options.gpus)) as url:
        measured = measure(url)
    for threads in THREADS:
        (ours, our_steps), (peer, peer_steps) = (measured[threads, s] for s in (SWITCH_INTERVAL_S, DEFAULT_S))
        peer_name = "Python's default"
        for name, quantile in (("median", 0.5), ("p95", 0.95)):
            label = f"{name} with {threads} thread{'s' * (threads > 1)}"
            report.add(label, np.quantile(ours, quantile), "ms", np.quantile(peer, quantile), peer_name)
        report.add(
            "  steps of the threads a second of CPU", our_steps, "", peer_steps, peer_name, higher_is_better=True
        )
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
