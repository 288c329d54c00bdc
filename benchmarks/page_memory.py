"""Memory of the page with 100,000 units on the screen after some minutes live. Budget: ≤ 400 MB.

Counted: the JavaScript heap after a collection, and what the page's own process has in memory that no other process shares (the
heap, typed arrays, decoded fonts, the canvases' pixels). The peer is the same browser showing an empty page.
"""

import argparse
import os
import time
from pathlib import Path

from playwright.sync_api import Browser, Page
from servers.browser import chromium

from benchmarks.report import Report
from benchmarks.served_site import served_site

BUDGET_MB = 400
READY_MS = 600_000
MB = 2**20


def private_mb(pid: int) -> float:
    """Private memory of a process in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024 / MB


def page_mb(browser: Browser) -> float:
    """Memory of the page's process; spare renderers of Chromium are smaller."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return max(private_mb(int(process["id"])) for process in processes if process["type"] == "renderer")


def heap_mb(page: Page) -> float:
    """The JavaScript heap after a garbage collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used = float(session.send("Runtime.getHeapUsage")["usedSize"]) / MB
    session.detach()
    return used


def measure(url: str, minutes: float, report: Report) -> None:
    """Watch the live picture and report its memory."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto("about:blank")
        empty = page_mb(browser)
        page.goto(url)
        page.wait_for_selector("[data-unit-count]", timeout=READY_MS)
        units = int(page.get_attribute("[data-unit-count]", "data-unit-count") or 0)
        page.wait_for_timeout(5000)
        report.add(f"heap at first, {units:,} units", heap_mb(page), "MB")
        end = time.monotonic() + 60 * minutes
        peak = 0.0
        while time.monotonic() < end:
            page.wait_for_timeout(5000)
            peak = max(peak, page_mb(browser))
        report.add(f"highest in {minutes:g} minutes live, with garbage", peak, "MB")
        report.add("heap in the end", heap_mb(page), "MB")
        page.wait_for_timeout(2000)
        report.add(
            f"process of the page, {units:,} units", page_mb(browser), "MB", empty, "empty page",
            budget=BUDGET_MB,
        )  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--url", help="A server that runs already, such as a demo.")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = Report(f"Memory of the page (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
    if options.url:
        measure(options.url, options.minutes, report)
    else:
        with served_site(options.gpus) as url:
            measure(url, options.minutes, report)
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
