"""Frames a second of the picture while it is panned, zoomed and rearranged, in Chromium with software rendering.

The real page on a running demo, driven by real events; every frame is forced to complete by reading a pixel back. Beside it, in
the same page and on a canvas of the same size, a plain instanced WebGL2 layer that draws as many squares and nothing else.
Budgets: ≥ 20 frames/s at 10,000 units, ≥ 5 at 100,000; the first picture ≤ 1.5 s after navigation at 10,000.
"""

import argparse
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page
from servers.browser import chromium
from servers.demo import running_demo

from benchmarks.report import Report

SCRIPTS = Path(__file__).parent / "page_scripts"
BUDGETS = {10_000: 20.0, 100_000: 5.0}
FIRST_PICTURE_S = 1.5
VISITS = 5
READY_MS = 240_000


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames a second of one kind of movement: ours, and the peer's where it was measured."""

    what: str
    ours: float
    peer: float | None


def open_picture(page: Page, url: str, path: str = "/") -> int:
    """How many units it shows, once they are there."""
    page.goto(f"{url}{path}")
    page.wait_for_selector("[data-unit-count]", timeout=READY_MS)
    return int(page.get_attribute("[data-unit-count]", "data-unit-count") or 0)


def measure_frames(page: Page, units: int) -> list[Frames]:
    """Panning, zooming, another arrangement; and the peer under the same movement."""
    page.wait_for_timeout(1500)
    page.evaluate((SCRIPTS / "frames.js").read_text())
    peer = {what: float(page.evaluate(f"measurePeer({units}, '{what}')")) for what in ("pan", "zoom", "transition")}
    found = []
    for what in ("pan", "zoom"):
        found.append(Frames(what, float(page.evaluate(f"measureMoves('{what}')")), peer[what]))
        page.wait_for_timeout(500)
    page.get_by_role("button", name="Fit").click()
    page.wait_for_timeout(800)
    flights = [
        float(page.evaluate(f"measureFlight('{title}')")) for title in ("Fragmentation by host", "Who uses what")
    ]
    found.append(Frames("transition", min(flights), peer["transition"]))
    return found


def measure_first_picture(browser: Browser, url: str) -> tuple[float, float]:
    """Seconds from navigation until every unit is drawn, with an empty cache; the median of some visits, and the worst."""
    times = []
    for _ in range(VISITS):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.add_init_script((SCRIPTS / "first.js").read_text())
        open_picture(page, url)
        page.wait_for_function("window.firstPictureMs > 0", timeout=READY_MS)
        times.append(float(page.evaluate("window.firstPictureMs")) / 1000)
        context.close()
    return sorted(times)[VISITS // 2], max(times)


def measure(url: str, gpus: int, report: Report) -> None:
    """Everything at one size, added to the report."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        units = open_picture(page, url)
        for frames in measure_frames(page, units):
            report.add(
                f"{frames.what}, {units:,} units", frames.ours, "frames/s", frames.peer, "plain instancing",
                budget=BUDGETS.get(gpus), higher_is_better=True,
            )  # fmt: skip
        page.close()
        median, worst = measure_first_picture(browser, url)
        is_bound = gpus <= 10_000
        report.add(f"first picture, {units:,} units", median, "s", budget=FIRST_PICTURE_S if is_bound else None)
        report.add(f"  the slowest of {VISITS} visits", worst, "s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--url", help="A demo that runs already; then --gpus says what it was started with.")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = Report(f"Frames of the picture (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
    for gpus in options.gpus:
        if options.url:
            measure(options.url, gpus, report)
            continue
        with (
            tempfile.TemporaryDirectory() as folder,
            running_demo(Path(folder), gpus=gpus, needs_history=False, limit_s=600) as url,
        ):
            measure(url, gpus, report)
    rows: list[dict[str, Any]] = report.rows
    print(json.dumps(rows) if options.json else report.text())


if __name__ == "__main__":
    main()
