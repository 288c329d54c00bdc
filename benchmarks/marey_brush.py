"""Brushing the Marey graph: 64 lanes with 100,000 device spans, the real page on a real server, Chromium with software rendering.

From letting go of the mouse until the server's answer for the new window is on the screen, a pixel read back; the coarse picture
moves at once. Budget: p95 ≤ 100 ms. Beside it what the server needs for the same windows, asked one by one.
"""

import argparse
import json
import os
import random
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import CDPSession, Page
from servers.browser import chromium
from servers.demo import get_json, running_demo, wait_until

from benchmarks.report import Report

LANES = 64
SPANS = 100_000
STEPS = 5
SHARED_EVERY = 50
START_US = 1_700_000_000_000_000.0
KERNELS = ("ampere_sgemm_128x64_tn", "flash_fwd_kernel", "vectorized_elementwise_kernel", "layer_norm_kernel")
SHARED = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
BUDGET_MS = 100.0
BRUSHES = 40
READY_MS = 120_000

WATCH = """
() => {
  const graph = document.querySelector('[data-drawn]');
  const gl = graph.querySelectorAll('canvas')[1].getContext('webgl2');
  const pixel = new Uint8Array(4);
  window.brushed = { up: 0, drawn: 0 };
  window.addEventListener('pointerup', (event) => { window.brushed = { up: event.timeStamp, drawn: 0 }; }, true);
  new MutationObserver(() => {
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    if (!window.brushed.drawn) window.brushed.drawn = performance.now();
  }).observe(graph, { attributeFilter: ['data-drawn'] });
}
"""


def make_rank(rank: int, ranks: int, kernels: int) -> dict[str, Any]:
    """A rank's file: steps of kernels with gaps between them, so that few merge, and all-reduces that end together."""
    own, shared = random.Random(rank), random.Random(-1)
    found: list[dict[str, Any]] = []
    at = together = START_US
    for step in range(STEPS):
        begin = at
        for number in range(kernels // STEPS):
            is_shared = number % SHARED_EVERY == SHARED_EVERY - 1
            at += own.uniform(2, 60)
            if is_shared:
                together += SHARED_EVERY * 55 + shared.uniform(0, 200)
            length = max(5.0, together - at) if is_shared else own.uniform(4, 40)
            stream = 20 if is_shared else 7
            name = SHARED if is_shared else own.choice(KERNELS)
            arguments = {"correlation": len(found), "stream": stream, "device": 0}
            found.append(
                {
                    "ph": "X",
                    "cat": "kernel",
                    "name": name,
                    "pid": 0,
                    "tid": stream,
                    "ts": at,
                    "dur": length,
                    "args": arguments,
                }
            )
            at += length
        mark = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 100, "tid": 100}
        found.append({**mark, "ts": begin, "dur": at - begin, "args": {}})
    info = {"backend": "nccl", "rank": rank, "world_size": ranks}
    return {"schemaVersion": 1, "distributedInfo": info, "traceEvents": found}


def bring_trace(url: str, lanes: int, spans: int) -> dict[str, Any]:
    """A made-up run of so many ranks on the server, imported."""
    row = send("POST", f"{url}/api/v1/traces", json.dumps({"name": "brushed", "workload_id": None}).encode())
    trace = f"{url}/api/v1/traces/{row['trace_id']}"
    for rank in range(lanes):
        made = make_rank(rank, lanes, -(-spans // lanes))
        send("PUT", f"{trace}/files/rank{rank}.json", json.dumps(made).encode())
    send("POST", f"{trace}/import", b"")
    wait_until(lambda: get_json(trace)["row"]["state"] != "importing", 600)
    answer: dict[str, Any] = get_json(trace)
    return answer


def send(method: str, url: str, body: bytes) -> Any:
    """One request; its JSON answer."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def read_cpu_ms(session: CDPSession) -> float:
    """Processor time of the page's main thread until now."""
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


def measure_brushes(page: Page, session: CDPSession, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each brush, of windows of all sizes anywhere in the trace; and those the main thread worked for it."""
    generator = random.Random(0)
    graph = page.locator("[data-drawn]")
    box = graph.bounding_box()
    assert box is not None
    page.evaluate(WATCH)
    found, worked = [], []
    for _ in range(count):
        width = generator.uniform(0.02, 0.6)
        left = generator.uniform(0, 1 - width)
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + left * box["width"], y)
        page.mouse.down()
        page.mouse.move(box["x"] + (left + width) * box["width"], y, steps=4)
        before = read_cpu_ms(session)
        page.mouse.up()
        page.wait_for_function("window.brushed.drawn > window.brushed.up", timeout=READY_MS)
        found.append(float(page.evaluate("window.brushed.drawn - window.brushed.up")))
        worked.append(read_cpu_ms(session) - before)
        page.get_by_role("button", name="All steps").click()
        page.wait_for_timeout(400)
    return found, worked


def measure_server(url: str, trace: str, extent_ns: float, count: int) -> list[float]:
    """Milliseconds of the same requests without a page."""
    generator = random.Random(0)
    found = []
    for _ in range(count):
        width = generator.uniform(0.02, 0.6)
        start = generator.uniform(0, 1 - width) * extent_ns
        window = f"level=rank&from_ns={start:.0f}&to_ns={start + width * extent_ns:.0f}&pixels=1250"
        begin = time.perf_counter()
        with urllib.request.urlopen(f"{url}/api/v1/traces/{trace}/marey?{window}", timeout=60) as response:
            response.read()
        found.append(1000 * (time.perf_counter() - begin))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", type=int, default=LANES)
    parser.add_argument("--spans", type=int, default=SPANS, help="device spans of all lanes together")
    parser.add_argument("--brushes", type=int, default=BRUSHES)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_demo(Path(folder), gpus=8, needs_history=False) as url,
        chromium() as browser,
    ):
        answer = bring_trace(url, options.lanes, options.spans)
        trace, extent_ns = answer["row"]["trace_id"], answer["extent_ns"]
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{url}/parallel?trace={trace}&ns=0~{extent_ns:.0f}&show=compute,communication")
        page.wait_for_selector("[data-drawn*='~']", timeout=READY_MS)
        page.wait_for_timeout(1000)
        drawn = page.get_attribute("[data-drawn]", "aria-label")
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        brushes, worked = measure_brushes(page, session, options.brushes)
        server = measure_server(url, trace, extent_ns, options.brushes)
    load = os.getloadavg()[0]
    report = Report(f"Brushing {options.spans:,} spans on {options.lanes} lanes (load average {load:.1f}). {drawn}")
    report.add("brush to refined picture, p95", float(np.percentile(brushes, 95)), "ms", budget=BUDGET_MS)
    report.add("brush to refined picture, median", float(np.median(brushes)), "ms")
    report.add("of it work of the page's main thread, median", float(np.median(worked)), "ms of CPU")
    report.add("of it the server's answer, p95", float(np.percentile(server, 95)), "ms")
    report.add("of it the server's answer, median", float(np.median(server)), "ms")
    print(json.dumps(report.rows) if options.json else report.text())


if __name__ == "__main__":
    main()
