"""Brushing the Marey graph: 64 lanes with 100,000 device spans, the real page on a real server, Chromium with software rendering.

Measured from letting go of the mouse (a) until what is at hand is drawn at the new window, which is what the reader sees of a
brush: budget p95 ≤ 100 ms; and (b) until the server's answer for that window is drawn in its place. Both end when the renderer is
done (a fence behind the draw calls), not when they were called. Also: the browser's own measure of (a), from the event
to the frame on the screen (Event Timing), the page's CPU time, and what the server needs for the same windows, asked one by one.
"""

import argparse
import json
import os
import random
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
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
SETTLE_MS = 400

WATCH = """
() => {
  const graph = document.querySelector('[data-drawn]');
  const gl = graph.querySelectorAll('canvas')[1].getContext('webgl2');
  const whenDone = (tell) => {
    const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    let isDone = false;
    const check = () => {
      if (isDone || gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) return;
      isDone = true;
      tell(performance.now());
    };
    const look = () => {
      check();
      if (!isDone) setTimeout(look, 1);
    };
    setTimeout(look, 1);
    // And right behind the frame, before the page's own timers: what it does then is none of this.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = check;
    requestAnimationFrame(() => port2.postMessage(null));
  };
  window.brushed = { up: 0, moved: 0, refined: 0, shown: 0 };
  window.addEventListener('pointerup', (event) => {
    const brush = { up: event.timeStamp, moved: 0, refined: 0, shown: 0, isMoving: false };
    window.brushed = brush;
  }, true);
  for (const name of ['drawArrays', 'drawElements', 'drawArraysInstanced', 'drawElementsInstanced']) {
    const plain = gl[name].bind(gl);
    gl[name] = (...args) => {
      plain(...args);
      const brush = window.brushed;
      if (brush.up === 0 || brush.isMoving) return;
      brush.isMoving = true;
      // Behind the other draw calls of this frame.
      queueMicrotask(() => whenDone((now) => { brush.moved = now; }));
    };
  }
  new MutationObserver(() => {
    const brush = window.brushed;
    whenDone((now) => { brush.refined ||= now; });
  }).observe(graph, { attributeFilter: ['data-drawn'] });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.name === 'pointerup') window.brushed.shown = entry.startTime + entry.duration;
    }
  }).observe({ type: 'event', durationThreshold: 16 });
}
"""


@dataclass
class Brushes:
    """Milliseconds of each brush."""

    moved: list[float] = field(default_factory=list)
    refined: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)


def make_rank(rank: int, ranks: int, kernels: int) -> dict[str, Any]:
    """A rank's file: steps of kernels with gaps between them, so that few merge, and all-reduces that end together."""
    own, shared = random.Random(rank), random.Random(-1)
    events: list[dict[str, Any]] = []
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
            arguments = {"correlation": len(events), "stream": stream, "device": 0}
            events.append(
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
        events.append({**mark, "ts": begin, "dur": at - begin, "args": {}})
    info = {"backend": "nccl", "rank": rank, "world_size": ranks}
    return {"schemaVersion": 1, "distributedInfo": info, "traceEvents": events}


def bring_trace(url: str, lanes: int, spans: int) -> dict[str, Any]:
    """A generated run of ``ranks`` ranks, imported into the server."""
    row = send("POST", f"{url}/api/v1/traces", json.dumps({"name": "brushed", "workload_id": None}).encode())
    trace = f"{url}/api/v1/traces/{row['trace_id']}"
    for rank in range(lanes):
        trace_file = make_rank(rank, lanes, -(-spans // lanes))
        send("PUT", f"{trace}/files/rank{rank}.json", json.dumps(trace_file).encode())
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
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


def measure_brushes(page: Page, session: CDPSession, count: int) -> Brushes:
    """Windows of all sizes anywhere in the trace."""
    generator = random.Random(0)
    graph = page.locator("[data-drawn]")
    box = graph.bounding_box()
    assert box is not None
    page.evaluate(WATCH)
    brushes = Brushes()
    for _ in range(count):
        width = generator.uniform(0.02, 0.6)
        left = generator.uniform(0, 1 - width)
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + left * box["width"], y)
        page.mouse.down()
        page.mouse.move(box["x"] + (left + width) * box["width"], y, steps=4)
        before = read_cpu_ms(session)
        page.mouse.up()
        page.wait_for_function("window.brushed.moved && window.brushed.refined", timeout=READY_MS)
        page.wait_for_timeout(SETTLE_MS)
        times = page.evaluate("window.brushed")
        brushes.moved.append(times["moved"] - times["up"])
        brushes.refined.append(times["refined"] - times["up"])
        if times["shown"]:  # the browser reports only events of 16 ms and more
            brushes.shown.append(times["shown"] - times["up"])
        brushes.worked.append(read_cpu_ms(session) - before)
        page.get_by_role("button", name="All steps").click()
        page.wait_for_timeout(SETTLE_MS)
    return brushes


def measure_server(url: str, trace: str, extent_ns: float, count: int) -> list[float]:
    """Milliseconds of the same requests without a page."""
    generator = random.Random(0)
    times_ms = []
    for _ in range(count):
        width = generator.uniform(0.02, 0.6)
        start = generator.uniform(0, 1 - width) * extent_ns
        window = f"level=rank&from_ns={start:.0f}&to_ns={start + width * extent_ns:.0f}&pixels=1250"
        begin = time.perf_counter()
        with urllib.request.urlopen(f"{url}/api/v1/traces/{trace}/marey?{window}", timeout=60) as response:
            response.read()
        times_ms.append(1000 * (time.perf_counter() - begin))
    return times_ms


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
        page = browser.new_page(viewport={"width": 1440, "height": 900}, bypass_csp=True)  # not a script of ours
        page.goto(f"{url}/parallel?trace={trace}&ns=0~{extent_ns:.0f}&show=compute,communication")
        page.wait_for_selector("[data-drawn*='~']", timeout=READY_MS)
        page.wait_for_timeout(1000)
        drawn = page.get_attribute("[data-drawn]", "aria-label")
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        brushes = measure_brushes(page, session, options.brushes)
        server = measure_server(url, trace, extent_ns, options.brushes)
    load = os.getloadavg()[0]
    report = Report(f"Brushing {options.spans:,} spans on {options.lanes} lanes (load average {load:.1f}). {drawn}")
    rows = (
        ("(a) brush to the moved picture", brushes.moved, BUDGET_MS),
        ("(a) as the browser says, to the frame on the screen", brushes.shown, BUDGET_MS),
        ("(b) brush to the refined picture", brushes.refined, None),
        ("of it the server's answer", server, None),
    )
    for label, times, budget in rows:
        report.add(f"{label}, p95", float(np.percentile(times or [0.0], 95)), "ms", budget=budget)
        report.add(f"{label}, median", float(np.median(times or [0.0])), "ms")
    report.add("work of the page's main thread for a brush, median", float(np.median(brushes.worked)), "ms of CPU")
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
