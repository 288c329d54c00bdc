"""The pictures of the docs: every view and the four built-in arrangements, in both themes, on a running demo.

With CLUSTERSCAPE_SCREENSHOTS=1 they are taken of a larger cluster and written into ``docs/images``.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect
from servers.demo import get_json, running_demo, wait_until

IS_FOR_DOCS = bool(os.environ.get("CLUSTERSCAPE_SCREENSHOTS"))
FOLDER = Path(__file__).parents[2] / "docs/images" if IS_FOR_DOCS else Path(__file__).parent / "output"
ARRANGEMENTS = ["who-uses-what", "projects-by-partition", "waiting-by-resource-type", "fragmentation-by-host"]

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_demo(tmp_path_factory.mktemp("demo"), gpus=1024 if IS_FOR_DOCS else 256) as url:
        wait_until(lambda: get_json(f"{url}/api/v1/rules")["judged_at"] is not None)
        yield url


@pytest.fixture(params=["dark", "light"])
def themed_page(request: pytest.FixtureRequest, browser: Browser, demo_url: str) -> Iterator[Page]:
    FOLDER.mkdir(exist_ok=True)
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, base_url=demo_url, color_scheme=request.param
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def take(page: Page, name: str) -> None:
    page.wait_for_timeout(1500)  # units have flown, sparklines have come
    theme = "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    page.screenshot(path=FOLDER / f"{name}-{theme}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "nothing sticks out sideways"


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_an_arrangement_is_pictured_when_its_link_is_opened(themed_page: Page, arrangement: str) -> None:
    themed_page.goto(f"/?picture={arrangement}")
    picture = themed_page.get_by_role("application", name="Picture of all units")
    expect(picture).to_have_attribute("data-unit-count", re.compile(r"[1-9]\d*"), timeout=60_000)
    take(themed_page, f"view-{arrangement}")


def test_rules_are_pictured_when_violations_are_there(themed_page: Page) -> None:
    themed_page.goto("/rules")
    expect(themed_page.get_by_role("row").nth(2)).to_be_visible(timeout=60_000)
    take(themed_page, "rules")


def test_diagnostics_are_pictured_when_the_long_run_is_opened(themed_page: Page, demo_url: str) -> None:
    workloads = get_json(f"{demo_url}/api/v1/workloads?text=llm-13b-pretrain&state=running")["workloads"]
    themed_page.goto(f"/diagnostics?workload={quote(workloads[0]['workload'])}")
    expect(themed_page.locator("main[aria-busy=false]")).to_be_visible(timeout=60_000)
    expect(themed_page.get_by_text(re.compile("^Loading"))).to_have_count(0, timeout=60_000)
    take(themed_page, "diagnostics")


def recorded_trace(demo_url: str) -> str | None:
    """The demo's pipeline, once both of its traces are read."""
    rows = [row for row in get_json(f"{demo_url}/api/v1/traces")["traces"] if row["state"] == "ready"]
    return next((row["trace_id"] for row in rows if row["name"].startswith("Pipeline") and len(rows) > 1), None)


def test_the_parallel_page_is_pictured_when_the_recorded_pipeline_is_read(themed_page: Page, demo_url: str) -> None:
    wait_until(lambda: recorded_trace(demo_url) is not None, 240)
    themed_page.goto(f"/parallel?trace={recorded_trace(demo_url)}")
    graph = themed_page.get_by_role("group", name=re.compile("^Marey graph of"))
    expect(graph).to_have_attribute("aria-busy", "false", timeout=60_000)
    expect(graph).to_have_attribute("data-drawn", re.compile(r"\d~\d"), timeout=60_000)
    take(themed_page, "parallel")
    themed_page.get_by_role("radio", name="Flow").check(force=True)
    flow = themed_page.get_by_role("application", name=re.compile("^Execution flow"))
    expect(flow.locator("g[data-class=send_receive]").first).to_be_visible(timeout=60_000)
    take(themed_page, "execution-flow")


def find_waiting(url: str) -> str | None:
    """The last in line of its partition: one with a story."""
    rows = [row for row in get_json(f"{url}/api/v1/scheduling/queue")["workloads"] if row["ahead"] > 0]
    return str(max(rows, key=lambda row: row["ahead"])["workload"]) if rows else None


@pytest.mark.skipif(not IS_FOR_DOCS, reason="tested by the story of the queue")
def test_the_queue_is_pictured_when_a_wait_is_explained(themed_page: Page, demo_url: str) -> None:
    wait_until(lambda: find_waiting(demo_url) is not None)
    themed_page.goto(f"/scheduling?select=workload:{find_waiting(demo_url)}")
    details = themed_page.get_by_role("complementary", name="Details")
    expect(details.get_by_role("heading", name=re.compile("ahead"))).to_be_visible(timeout=60_000)
    take(themed_page, "scheduling")


@pytest.mark.skipif(not IS_FOR_DOCS, reason="tested by the page of runs")
def test_runs_are_pictured_when_the_demo_has_sent_them(themed_page: Page, demo_url: str) -> None:
    wait_until(lambda: len(get_json(f"{demo_url}/api/v1/runs/tree")["rows"]) >= 30)
    themed_page.goto("/runs")
    expect(themed_page.get_by_role("list", name="Legend")).to_be_visible(timeout=60_000)
    expect(themed_page.get_by_text(re.compile("^Loading"))).to_have_count(0, timeout=60_000)
    take(themed_page, "runs")
