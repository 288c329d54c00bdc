"""The researcher's story of the HPC2lusterScape paper (section 7.2), played in a browser on the demo's 64-GPU job.

A job whose GPUs should be alike is marked by two rules; its small plots show two clusters; what the odd ones share is their
local rank; the outliers of two metrics tell when; the clusters stay when one looks closer or at timelines.
"""

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from servers.demo import get_json, running_demo, wait_until

pytestmark = pytest.mark.browser

GPUS = 512
JOB_GPUS = 64
NODES = 8
SLOW_MS = 120_000
R1 = "gpu_util p95 < 80%"
R2 = "gpu_util p50 < 50%"
EXPLANATION = "All 8 differ from the other 56; they are exactly local rank 0."
OUTPUT = Path(__file__).parent / "output"


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A demo with the two rules of the paper instead of the shipped ones."""
    with running_demo(tmp_path_factory.mktemp("diagnostics"), gpus=GPUS) as url:
        wait_until(lambda: get_json(f"{url}/api/v1/rules")["judged_at"] is not None)
        for rule in get_json(f"{url}/api/v1/rules")["rules"]:
            put(f"{url}/api/v1/rules/{rule['key']}", {"is_enabled": False})
        for key, text in (("r1", R1), ("r2", R2)):
            put(f"{url}/api/v1/rules/{key}", {"name": key.upper(), "severity": "warning", "text": text})
        wait_until(lambda: {"r1", "r2"} <= broken(url, find_job(url)).keys())
        yield url


def put(url: str, body: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="PUT")
    urllib.request.urlopen(request, timeout=30).close()


def find_job(url: str) -> str:
    running = get_json(f"{url}/api/v1/workloads?state=running&limit=1000")["workloads"]
    return str(next(job["workload"] for job in running if job["name"] == "llm-13b-pretrain"))


def broken(url: str, job: str) -> dict[str, set[str]]:
    """The job's units that break each rule now."""
    units = {allocation["unit"] for allocation in get_json(f"{url}/api/v1/workloads/{job}")["allocations"]}
    rules = get_json(f"{url}/api/v1/violations/units")["rules"]
    return {rule["rule"]: set(rule["units"]) & units for rule in rules if set(rule["units"]) & units}


def plots(page: Page) -> Locator:
    return page.get_by_role("group", name=re.compile(rf"^{JOB_GPUS} plots of"))


def clusters(page: Page) -> Locator:
    return page.get_by_role("list", name="Clusters")


def timeline(page: Page) -> Locator:
    return page.get_by_role("region", name="Timeline")


def expect_two_clusters(page: Page) -> None:
    """Waits for the current answer, not for the former one that stays visible until it arrives."""
    expect(page.get_by_role("main")).to_have_attribute("aria-busy", "false", timeout=SLOW_MS)
    expect(plots(page)).to_have_attribute("aria-label", re.compile("; 2 clusters of 56 and 8 GPUs;"), timeout=SLOW_MS)
    expect(clusters(page)).to_contain_text(EXPLANATION, timeout=SLOW_MS)


def drag(page: Page, place: Locator, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From one place of an element to another, as shares of its size."""
    box = place.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + start[0] * box["width"], box["y"] + start[1] * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + (start[0] + end[0]) / 2 * box["width"], box["y"] + end[1] * box["height"], steps=3)
    page.mouse.move(box["x"] + end[0] * box["width"], box["y"] + end[1] * box["height"], steps=3)
    page.mouse.up()


def shoot(page: Page, name: str) -> None:
    OUTPUT.mkdir(exist_ok=True)
    page.screenshot(path=OUTPUT / f"diagnostics-{name}.png")


def test_researcher_finds_the_master_gpus_when_a_large_job_is_marked(page: Page, demo_url: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    job = find_job(demo_url)
    # Both rules mark it: all but the master GPU of each node.
    for rule in ("r1", "r2"):
        marked = broken(demo_url, job)[rule]
        assert len(marked) == JOB_GPUS - NODES
        assert not any(unit.endswith(":0") for unit in marked)

    # From the overview to the diagnosis.
    page.goto(f"/?select=workload:{job}")
    page.get_by_role("button", name="Diagnose").click()
    page.wait_for_url(re.compile(rf"/diagnostics\?.*workload={job}"))
    expect(page.get_by_role("heading", name="llm-13b-pretrain")).to_be_visible(timeout=SLOW_MS)
    for rule in ("R1", "R2"):
        expect(page.get_by_role("button", name=re.compile(rf"^{rule}: broken now by 56 of 64.GPUs$"))).to_be_visible()

    # Two clusters, and what the small one shares.
    expect_two_clusters(page)
    expect(plots(page)).to_have_attribute("data-level", "plot")
    expect(page.get_by_role("region", name="Findings")).to_contain_text("they are exactly local rank 0")
    shoot(page, "1-clusters")

    # The outliers of two metrics light up their times.
    scatter = page.get_by_role("group", name=re.compile("^Power by GPU utilization"))
    expect(scatter).to_be_visible(timeout=SLOW_MS)
    drag(page, scatter, (0.005, 0.02), (0.1, 0.99))
    page.wait_for_url(re.compile("brush="))
    expect(page.get_by_text(re.compile(r"^Brushed: [\d,]+.points of (56|64).GPUs"))).to_be_visible()
    # At these times the master GPUs stay busy while the others wait.
    then = page.get_by_text(re.compile(r"At these times: 56.GPUs at"))
    expect(then).to_be_visible()
    others, masters = re.findall(r"GPUs at (\d+)", then.inner_text())
    assert int(masters) > 60 > 20 > int(others)
    lit = timeline(page).locator("[data-lit-spans]")
    expect(lit).not_to_have_attribute("data-lit-spans", "0")
    shoot(page, "2-brushed")

    # Looking closer there keeps the clusters.
    timeline(page).get_by_role("button", name=re.compile("^Zoom to")).click()
    page.wait_for_url(re.compile("window="))
    expect(timeline(page).get_by_role("button", name="Whole life")).to_be_visible(timeout=SLOW_MS)
    expect_two_clusters(page)
    shoot(page, "3-zoomed")

    # And so do timelines.
    page.get_by_role("combobox", name="Display as").select_option("timeline")
    page.wait_for_url(re.compile("plot=timeline"))
    expect_two_clusters(page)
    expect(page.get_by_text("bottom) to")).to_be_visible(timeout=SLOW_MS)
    shoot(page, "4-timelines")

    # The link restores all of it.
    page.reload()
    expect_two_clusters(page)
    expect(page.get_by_role("combobox", name="Display as")).to_have_value("timeline")


def test_selection_is_shared_by_all_panels_when_a_cluster_is_chosen(page: Page, demo_url: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/diagnostics?workload={find_job(demo_url)}")
    expect_two_clusters(page)
    clusters(page).get_by_role("button", name=EXPLANATION).click()
    page.wait_for_url(re.compile("gpus=gpu-"))
    expect(timeline(page)).to_contain_text(
        "8 selected GPUs: one line per GPU; dashed: median of the others", timeout=SLOW_MS
    )
    expect(clusters(page)).to_contain_text(re.compile("8.GPUs selected"))

    # By keys: one more, then none.
    plots(page).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(clusters(page)).to_contain_text(re.compile("9.GPUs selected"))
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("gpus="))

    # Drawing on the timeline zooms everything, and the back button undoes it.
    chart = timeline(page).get_by_role("group").first
    drag(page, chart, (0.6, 0.5), (0.8, 0.5))
    page.wait_for_url(re.compile("window="))
    expect_two_clusters(page)
    page.go_back()
    expect(page).not_to_have_url(re.compile("window="))

    # The tree can be cut elsewhere, and the table be taken along.
    page.get_by_role("button", name=re.compile("2.clusters")).click()
    page.get_by_role("slider", name="Clusters").fill("4")
    expect(page.get_by_role("button", name=re.compile("4.clusters"))).to_be_attached(timeout=SLOW_MS)
    # More clusters than the samples support invent no odd GPU, and nobody is advised to drain a healthy node.
    expect(page.get_by_role("main")).to_have_attribute("aria-busy", "false", timeout=SLOW_MS)
    findings = page.get_by_role("region", name="Findings").inner_text()
    assert "drain" not in findings.lower()
    assert not re.search(r"p = \de-", findings)
    page.get_by_role("button", name="Automatic").click()
    page.keyboard.press("Escape")
    expect_two_clusters(page)
    page.get_by_role("combobox", name="Display as").select_option("table")
    expect(page.get_by_role("row")).to_have_count(JOB_GPUS + 1, timeout=SLOW_MS)
    page.get_by_role("button", name="Export GPU utilization, one plot per GPU").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="CSV").click()
    assert download.value.path().read_text().count("\n") == JOB_GPUS + 1


def test_two_times_stand_side_by_side_when_compared(page: Page, demo_url: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/diagnostics?workload={find_job(demo_url)}")
    expect_two_clusters(page)
    page.get_by_role("combobox", name="Compare with").select_option("its second half")
    page.wait_for_url(re.compile("compare=window:"))
    expect(plots(page)).to_have_count(2, timeout=SLOW_MS)
    expect(page.get_by_role("table", name="Differences")).to_contain_text("GPU-hours")
    expect(page.get_by_role("list", name="Differences in words")).to_contain_text(re.compile(r"\w+ .*\."))
    expect(page.get_by_role("region", name=re.compile("^Findings, "))).to_have_count(2)
    shoot(page, "5-compared")


def test_every_drawing_can_be_kept_when_the_reader_wants_it(page: Page, demo_url: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/diagnostics?workload={find_job(demo_url)}")
    expect_two_clusters(page)
    expect(page.get_by_role("group", name=re.compile("^Power by GPU utilization"))).to_be_visible(timeout=SLOW_MS)
    for panel in ("GPU utilization, one plot per GPU", "Two metrics", "Timeline"):
        expect(timeline(page).get_by_role("group").first).to_be_visible(timeout=SLOW_MS)
        for kind, begins in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
            page.get_by_role("button", name=f"Export {panel}").click()
            with page.expect_download() as download:
                page.get_by_role("menuitem", name=kind).click()
            written = download.value.path().read_bytes()
            assert written.startswith(begins)
            if kind == "SVG":
                assert ElementTree.fromstring(written).findall(".//{*}path")
    page.get_by_role("button", name=re.compile("2.clusters")).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the tree as SVG").click()
    assert ElementTree.fromstring(download.value.path().read_bytes()).findall(".//{*}path")


def test_events_are_announced_when_reached_by_keys(page: Page, demo_url: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/diagnostics?workload={find_job(demo_url)}")
    events = page.get_by_role("list", name=re.compile("^Events"))
    marks = events.get_by_role("button")
    expect(marks.nth(1)).to_be_attached(timeout=SLOW_MS)
    # One stop for Tab, whatever their number.
    assert events.locator("button[tabindex='0']").count() == 1
    marks.first.focus()
    expect(timeline(page).get_by_role("status").filter(has_text="1 of")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(marks.nth(1)).to_be_focused()
    expect(timeline(page).get_by_role("status").filter(has_text="2 of")).to_be_visible()


def test_workloads_are_offered_when_none_is_chosen(page: Page, demo_url: str) -> None:
    page.goto("/diagnostics?plot=pie")
    expect(page.get_by_text("The link says plot=pie, which is invalid")).to_be_visible()
    first = page.get_by_role("main").get_by_role("listitem").first
    expect(first).to_contain_text("64", timeout=SLOW_MS)
    first.get_by_role("button").click()
    page.wait_for_url(re.compile(r"workload="))
    expect(page.get_by_role("button", name="Choose another workload")).to_be_visible(timeout=SLOW_MS)


def test_page_says_so_when_the_workload_is_unknown(browser: Browser, demo_url: str) -> None:
    context = browser.new_context(base_url=demo_url)
    page = context.new_page()
    page.goto("/diagnostics?workload=slurm:nobody")
    expect(page.get_by_role("alert")).to_contain_text("Could not find the diagnosis", timeout=SLOW_MS)
    context.close()
