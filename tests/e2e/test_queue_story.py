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


def last_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The workload with most others ahead of it: it still waits when the test ends."""
    return max((row for row in rows if row["position"] is not None), key=lambda row: int(row["ahead"]))


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
    ahead = last_of(queue_of(demo_url))
    assert ahead["ahead"] > 0
    page.goto(f"/scheduling?select=workload:{ahead['workload']}")
    wait_for_place(page, demo_url, ahead["workload"])
    expect(details.get_by_text("if all jobs ahead run to their limits")).to_be_visible()
    expect(details.get_by_role("heading", name=re.compile("ahead"))).to_be_visible()

    form = page.get_by_role("region", name="What if", exact=True)
    form.get_by_role("combobox", name=re.compile("^Order")).select_option("size-priority")
    results = page.get_by_role("region", name="What-if results")
    form.get_by_role("button", name="Simulate").click()
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
    waiting = last_of(queue_of(demo_url))["workload"]
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


def test_form_says_what_will_run_before_it_runs_when_changes_are_chosen(page: Page, demo_url: str) -> None:
    page.goto("/scheduling")
    form = page.get_by_role("region", name="What if", exact=True)
    plan = form.get_by_role("status", name="What will be simulated")
    expect(plan).to_have_text("Choose a change to simulate; nothing runs before.")
    simulate = form.get_by_role("button", name="Simulate")
    expect(simulate).to_be_disabled()

    # Nodes are not added by anything but their own button, and nothing runs meanwhile.
    form.get_by_role("combobox", name=re.compile("^Order")).select_option("sjf")
    form.get_by_label("Count").fill("3")
    expect(plan).to_have_text("Will simulate the current queue with order Shortest first, and without.")
    form.get_by_role("button", name="Add", exact=True).click()
    expect(plan).to_contain_text("order Shortest first, +3 nodes in")
    form.get_by_role("button", name=re.compile("^Remove .3 nodes in")).click()
    expect(page.get_by_role("region", name="What-if results")).to_have_count(0)
    assert "policy=" not in page.evaluate("location.href")

    simulate.click()
    results = page.get_by_role("region", name="What-if results")
    expect(results).to_be_visible()
    expect(results.get_by_role("progressbar").or_(results.get_by_role("table")).first).to_be_visible()
    expect(results.get_by_role("heading", name="With policy sjf")).to_be_visible(timeout=SLOW_MS)
    expect(plan).to_contain_text("Simulated the current queue with order Shortest first")
    expect(simulate).to_be_disabled()


def test_explanation_has_one_baseline_when_changes_would_help(page: Page, demo_url: str) -> None:
    """No change starts a job sooner by more than it likely waits, and nobody has a higher priority who has the same."""

    def stories() -> list[dict[str, Any]]:
        names = [row["workload"] for row in queue_of(demo_url) if row["position"] is not None]
        answers = [get_json(f"{demo_url}/api/v1/scheduling/queue/{name}") for name in names]
        return [answer for answer in answers if answer["row"]]

    waiting = stories()
    assert any(story["changes"] for story in waiting)
    for story in waiting:
        likely = story["row"]["likely"]
        for change in story["changes"]:
            assert story["baseline"] == "likely"
            assert change["gain_s"] == (likely["likely_at"] - change["start_at"]) // 1000
            assert change["start_at"] >= story["at"] - 1000
        if story["ahead"] and all(row["why"].startswith("same priority") for row in story["ahead"]):
            assert "higher priority" not in " ".join(story["text"]) or story["row"]["ahead"] > len(story["ahead"])
    chosen = max((story for story in waiting if story["changes"]), key=lambda story: int(story["row"]["ahead"]))
    page.goto(f"/scheduling?select=workload:{chosen['workload']}")
    details = page.get_by_role("complementary", name="Details")
    expect(details.get_by_role("heading", name="Changes that would make its likely start sooner")).to_be_visible(
        timeout=SLOW_MS
    )
    expect(details.get_by_text("Compared with the latest start")).to_have_count(0)
