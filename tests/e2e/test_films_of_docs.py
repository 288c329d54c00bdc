"""The films of the docs, played on a running demo and written into ``docs/images``; only with CLUSTERSCAPE_SCREENSHOTS=1.

What they show is tested by the stories (``test_layout_editor``, ``test_parallel_story``, ``test_diagnostics_story``,
``test_queue_story``); taking a hundred pictures of it again would only make the tests longer.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from servers.demo import get_json, running_demo, wait_until
from servers.film import POINTER, Film

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not os.environ.get("CLUSTERSCAPE_SCREENSHOTS"), reason="writes docs/images"),
]

FOLDER = Path(__file__).parents[2] / "docs/images"
SLOW_MS = 120_000
WIDTH = 960


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_demo(tmp_path_factory.mktemp("demo"), gpus=1024) as url:
        wait_until(lambda: get_json(f"{url}/api/v1/rules")["judged_at"] is not None)
        wait_until(lambda: len(get_json(f"{url}/api/v1/scheduling/queue")["workloads"]) > 5)
        wait_until(lambda: recorded_trace(url) is not None)
        yield url


@pytest.fixture
def stage(browser: Browser, demo_url: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=demo_url, color_scheme="dark")
    page = context.new_page()
    page.add_init_script(POINTER)
    page.set_default_timeout(SLOW_MS)
    page.clock.install()
    yield page
    context.close()


def recorded_trace(url: str) -> str | None:
    rows = [row for row in get_json(f"{url}/api/v1/traces")["traces"] if row["state"] == "ready"]
    return next((str(row["trace_id"]) for row in rows if row["name"].startswith("Pipeline")), None)


def open_picture(page: Page, path: str = "/") -> None:
    page.goto(path)
    picture = page.get_by_role("application", name="Picture of all units")
    expect(picture).to_have_attribute("data-unit-count", re.compile(r"[1-9]\d*"), timeout=SLOW_MS)
    page.wait_for_timeout(2500)  # everything around the picture has loaded


def test_the_overview_is_filmed_while_its_layout_changes(stage: Page) -> None:
    open_picture(stage)
    film = Film(stage, width=WIDTH)
    film.stand_still()
    film.shoot(0.4)
    for view in ("Projects by partition", "Fragmentation by host", "Who uses what"):
        film.click(stage.get_by_text(view, exact=True).first)
        stage.wait_for_timeout(2000)  # the worker has its places; units fly when the clock goes on
        film.roll(0.9)
        film.hold(0.5)
    film.write(FOLDER / "film-layout.webp")


def test_the_marey_graph_is_filmed_while_it_is_brushed(stage: Page, demo_url: str) -> None:
    stage.goto(f"/parallel?trace={recorded_trace(demo_url)}")
    graph = stage.get_by_role("group", name=re.compile("^Marey graph of")).first
    expect(graph).to_have_attribute("aria-busy", "false", timeout=SLOW_MS)
    expect(graph).to_have_attribute("data-drawn", re.compile(r"\d~\d"), timeout=SLOW_MS)
    stage.wait_for_timeout(1500)
    film = Film(stage, width=WIDTH)
    film.shoot(0.4)
    for start, end in ((0.1, 0.45), (0.3, 0.75)):
        before = graph.get_attribute("data-drawn")
        film.point_at(graph, (start, 0.98))
        stage.mouse.down()
        film.point_at(graph, (end, 0.98), length_s=0.8)
        stage.mouse.up()
        film.let_go()
        expect(graph).not_to_have_attribute("data-drawn", before or "", timeout=SLOW_MS)
        expect(graph).to_have_attribute("aria-busy", "false", timeout=SLOW_MS)
        film.roll(0.3)
        film.hold(0.4)
    film.hold(0.6)
    film.write(FOLDER / "film-marey.webp")


def test_a_diagnosis_is_filmed_from_the_overview_on(stage: Page, demo_url: str) -> None:
    workloads = get_json(f"{demo_url}/api/v1/workloads?text=llm-13b-pretrain&state=running")["workloads"]
    open_picture(stage, f"/?select=workload:{workloads[0]['workload']}")
    diagnose = stage.get_by_role("button", name="Diagnose")
    expect(diagnose).to_be_visible(timeout=SLOW_MS)
    film = Film(stage, width=WIDTH)
    film.shoot(0.6)
    film.click_and_go(diagnose)
    stage.wait_for_url(re.compile("/diagnostics"))
    expect(stage.locator("main[aria-busy=false]")).to_be_visible(timeout=SLOW_MS)
    expect(stage.get_by_text(re.compile("^Loading"))).to_have_count(0, timeout=SLOW_MS)
    stage.wait_for_timeout(1500)
    film.shoot(1.0)
    cluster = stage.get_by_role("list", name="Clusters").get_by_role("listitem").nth(1)
    film.click_and_go(cluster)
    stage.wait_for_timeout(1500)
    film.shoot(2.0)
    film.write(FOLDER / "film-diagnose.webp")


def test_a_waiting_job_is_filmed_until_another_order_is_tried(stage: Page, demo_url: str) -> None:
    rows = get_json(f"{demo_url}/api/v1/scheduling/queue")["workloads"]
    third = next(row for row in rows if row["position"] == 3)["workload"].partition(":")[2]
    stage.goto("/scheduling")
    table = stage.get_by_role("grid", name="Waiting workloads")
    expect(table).to_be_visible(timeout=SLOW_MS)
    stage.wait_for_timeout(1500)
    film = Film(stage, width=WIDTH)
    film.shoot(0.4)
    film.click_and_go(table.get_by_role("row", name=re.compile(third)))
    details = stage.get_by_role("complementary", name="Details")
    expect(details.get_by_role("heading", name=re.compile("ahead"))).to_be_visible(timeout=SLOW_MS)
    stage.wait_for_timeout(800)
    film.shoot(1.2)
    film.point_at(stage.get_by_role("combobox", name=re.compile("^Order")))
    stage.get_by_role("combobox", name=re.compile("^Order")).select_option("size-priority")
    stage.get_by_role("button", name="Simulate").click()
    film.shoot(0.3)
    film.let_go()
    results = stage.get_by_role("region", name="What-if results")
    expect(results.get_by_role("row", name=re.compile("Mean wait of small workloads"))).to_be_visible(timeout=SLOW_MS)
    expect(results.get_by_role("alert").first).to_be_visible(timeout=SLOW_MS)
    stage.wait_for_timeout(800)
    film.shoot(2.4)
    film.write(FOLDER / "film-waiting.webp")
