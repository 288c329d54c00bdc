"""Frames a second of the picture while it is panned, zoomed and rearranged, in Chromium with software rendering.

The real page on a real server, driven by events; a pixel read back completes each frame. The peer, in the same page: a plain
instanced WebGL2 layer with as many squares and nothing else. CPU time, of all of Chromium, holds on a busy machine, too. Budgets:
≥ 20 frames/s at 10,000 units, ≥ 5 at 100,000; the first picture ≤ 1.5 s after navigation at 10,000.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page
from servers.browser import chromium

from benchmarks.report import Report
from benchmarks.served_site import served_site

SCRIPTS = Path(__file__).parent / "page_scripts"
BUDGETS = {10_000: 20.0, 100_000: 5.0}
FIRST_PICTURE_S = 1.5
MOVEMENTS = ("pan", "zoom", "transition")
FLIGHTS = ("Fragmentation by host", "Who uses what")
VISITS = 5
READY_MS = 240_000


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of one kind of movement."""

    count: int
    seconds: float
    cpu_seconds: float
    drawn: int

    @property
    def per_second(self) -> float:
        """Frames a second."""
        return self.count / self.seconds

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds a frame, over all processes."""
        return 1000 * self.cpu_seconds / self.count


def open_picture(page: Page, url: str, path: str = "/") -> int:
    """How many units it shows, once they are there."""
    page.goto(f"{url}{path}")
    page.wait_for_selector("[data-unit-count]", timeout=READY_MS)
    return int(page.get_attribute("[data-unit-count]", "data-unit-count") or 0)


def time_frames(browser: Browser, page: Page, call: str) -> Frames:
    """Run one of the page's measurements, which answers with frames and milliseconds."""
    session = browser.new_browser_cdp_session()

    def cpu_seconds() -> float:
        return sum(float(process["cpuTime"]) for process in session.send("SystemInfo.getProcessInfo")["processInfo"])

    before = cpu_seconds()
    count, milliseconds, drawn = page.evaluate(call)
    spent = cpu_seconds() - before
    session.detach()
    return Frames(int(count), float(milliseconds) / 1000, spent, int(drawn))


def measure_frames(browser: Browser, page: Page, units: int) -> Iterator[tuple[str, Frames, Frames]]:
    """Panning, zooming, another arrangement; ours, and the peer under the same movement."""
    page.wait_for_timeout(2000)
    steps = 42 if units < 50_000 else 18
    page.evaluate((SCRIPTS / "frames.js").read_text())
    peers = {
        movement: time_frames(browser, page, f"measurePeer({units}, '{movement}', {steps // 3})")
        for movement in MOVEMENTS
    }
    for movement in ("pan", "zoom"):
        yield movement, time_frames(browser, page, f"measureMoves('{movement}', {steps})"), peers[movement]
        page.wait_for_timeout(1000)
    page.get_by_role("button", name="Fit").click()
    page.wait_for_timeout(1500)
    flights = [time_frames(browser, page, f"measureFlight('{title}')") for title in FLIGHTS]
    yield "transition", min(flights, key=lambda flight: flight.per_second), peers["transition"]


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
        for movement, ours, peer in measure_frames(browser, page, units):
            report.add(
                f"{movement}, {units:,} units", ours.per_second, "frames/s", peer.per_second, "plain instancing",
                budget=BUDGETS.get(gpus), higher_is_better=True,
            )  # fmt: skip
            # Where drawing is slow the page moves the last drawing and redraws it less often.
            report.add("  squares redrawn", ours.drawn / ours.seconds, "times/s")
            report.add("  CPU a frame", ours.cpu_ms, "ms", peer.cpu_ms, "plain instancing")
        page.close()
        median, worst = measure_first_picture(browser, url)
        is_bound = gpus <= 10_000
        report.add(f"first picture, {units:,} units", median, "s", budget=FIRST_PICTURE_S if is_bound else None)
        report.add(f"  the slowest of {VISITS} visits", worst, "s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--url", help="A server that runs already, such as a demo; --gpus then says how large it is.")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = Report(f"Frames of the picture (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
    for gpus in options.gpus:
        if options.url:
            measure(options.url, gpus, report)
            continue
        with served_site(gpus) as url:
            measure(url, gpus, report)
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
