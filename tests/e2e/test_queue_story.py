"""Section 8.2 of HPC²lusterScape, before it happens: why a job waits, and that a policy for large jobs pushes small ones back.

The demo has a queue. A reader opens it, selects the longest wait, reads why, tries size-priority, is warned, shares the link.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from servers.demo import get_json, running_demo, wait_until

pytestmark = pytest.mark.browser

SLOW_MS = 120_000


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A demo large enough for small and large jobs to wait for the same partition."""
    with running_demo(tmp_path_factory.mktemp("queue"), gpus=1024) as url:
        wait_until(lambda: len(get_json(f"{url}/api/v1/scheduling/queue")["workloads"]) > 5)
        yield url


def queue_of(url: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = get_json(f"{url}/api/v1/scheduling/queue")["workloads"]
    return rows


def wait_for_place(page: Page, url: str, workload: str) -> None:
    """Waits until page and API agree on the workload's place; the queue changes meanwhile."""

    def is_same_place() -> bool:
        row = next(row for row in queue_of(url) if row["workload"] == workload)
        return page.get_by_text(f"It is at position {row['position']} in {row['partition']}").is_visible()

    wait_until(is_same_place)


def test_reader_learns_why_a_job_waits_and_what_a_policy_would_do(
    page: Page, browser: Browser, demo_url: str, tmp_path: Path
) -> None:
    page.goto("/")
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Scheduling").click()
    table = page.get_by_role("grid", name="Waiting workloads")
    expect(table).to_be_visible(timeout=SLOW_MS)
    expect(page.get_by_text("GPUs requested")).to_be_visible()

    page.get_by_role("button", name=re.compile("longest wait")).click()
    details = page.get_by_role("complementary", name="Details")
    expect(details.get_by_role("region", name="Explanation")).to_be_visible(timeout=SLOW_MS)

    # A job that waits for GPUs: the jobs ahead, the GPUs it needs, and when they are free.
    ahead = next(row for row in queue_of(demo_url) if row["position"] is not None and row["ahead"] > 0)
    page.goto(f"/scheduling?select=workload:{ahead['workload']}")
    wait_for_place(page, demo_url, ahead["workload"])
    expect(details.get_by_text("if all jobs ahead run to their limits")).to_be_visible()
    expect(details.get_by_role("heading", name=re.compile("ahead"))).to_be_visible()

    page.get_by_label("Order").select_option("size-priority")
    results = page.get_by_role("region", name="What-if results")
    expect(results.get_by_role("row", name=re.compile("Mean wait of small workloads"))).to_be_visible(timeout=SLOW_MS)
    expect(results.get_by_role("alert").filter(has_text="Small workloads are pushed back")).to_be_visible()

    # The cluster without and with the change; holders are reachable by keyboard.
    then = results.get_by_role("img", name=re.compile("With the change: .* GPUs free"))
    expect(then).to_be_visible()
    expect(results.get_by_role("img", name=re.compile("Current: .* GPUs free"))).to_be_visible()
    then.focus()
    then.press("ArrowRight")
    expect(results.get_by_text(re.compile(r", GPU 0: ")).first).to_be_visible()
    results.get_by_role("slider", name="Hours from now").press("Home")
    expect(page).to_have_url(re.compile("ahead=0"), timeout=SLOW_MS)

    # The link is the screen.
    shared = page.url
    assert "policy=size-priority" in shared
    other = browser.new_page(viewport={"width": 1024, "height": 768}, color_scheme="light")
    other.goto(shared)
    expect(other.get_by_text("Small workloads are pushed back")).to_be_visible(timeout=SLOW_MS)
    wait_for_place(other, demo_url, ahead["workload"])
    other.screenshot(path=tmp_path / "shared.png")
    other.close()

    page.get_by_role("button", name="Reset", exact=True).click()
    expect(results).to_have_count(0)


def test_overview_leads_to_the_reason_when_a_waiting_workload_is_selected(page: Page, demo_url: str) -> None:
    waiting = get_json(f"{demo_url}/api/v1/scheduling/queue")["workloads"][0]["workload"]
    page.goto(f"/?select=workload:{waiting}")
    page.get_by_role("button", name="Why it waits").click(timeout=SLOW_MS)
    expect(page).to_have_url(re.compile("/scheduling"))
    expect(page.get_by_text("Why it waits", exact=True).first).to_be_visible(timeout=SLOW_MS)


def test_form_says_when_something_would_start_before_it_is_submitted(page: Page) -> None:
    page.goto("/scheduling")
    form = page.get_by_role("region", name="Before submitting")
    form.get_by_label("GPUs").fill("16")
    form.get_by_label("Hours").fill("2")
    form.get_by_role("button", name="Forecast start").click()
    expect(form.get_by_text(re.compile("Immediately|Likely")).first).to_be_visible(timeout=SLOW_MS)
    expect(page).to_have_url(re.compile("ask=16x2h"))
