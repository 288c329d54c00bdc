"""The page as a user drives it, on a running demo."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from servers.demo import get_json, running_demo
from servers.picture import picture_of, read_address, wait_for_rest
from servers.programs import free_port

OUTPUT = Path(__file__).parent / "output"

pytestmark = pytest.mark.browser


def open_overview(page: Page, path: str = "/") -> None:
    page.goto(path)
    expect(page.get_by_text("utilization of allocated")).to_be_visible(timeout=90_000)


def show_table(page: Page, name: str) -> None:
    page.get_by_role("group", name="Show").locator("label", has_text=name).click()


def test_summary_says_what_the_api_says_when_the_page_opens(page: Page, demo_url: str) -> None:
    open_overview(page)
    summary = get_json(f"{demo_url}/api/v1/cluster")
    expect(page.get_by_text(f"GPUs on {summary['nodes']} nodes")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^live"))).to_be_visible()
    views = page.get_by_role("navigation", name="Views").get_by_role("link")
    assert views.all_inner_texts() == ["Overview", "Rules", "Diagnostics", "Parallel", "Scheduling", "Runs", "Usage"]


def test_link_brings_back_the_same_screen_when_it_is_shared(page: Page, browser: Browser, demo_url: str) -> None:
    open_overview(page)
    show_table(page, "Units")
    page.get_by_label("Filter units").fill("gpu-001")
    first = page.get_by_role("row").nth(1)
    first.click()
    expect(page.get_by_role("complementary", name="Details")).to_be_visible()
    page.wait_for_url(lambda url: "q=gpu-001" in url and "select=" in url)
    other = browser.new_context(base_url=demo_url).new_page()
    other.goto(read_address(page))
    expect(other.get_by_label("Filter units")).to_have_value("gpu-001")
    expect(other.get_by_role("complementary", name="Details")).to_be_visible()
    other.context.close()


def test_back_button_undoes_a_step_when_tables_are_switched(page: Page) -> None:
    open_overview(page, "/?table=workloads")
    show_table(page, "Nodes")
    expect(page.get_by_label("Filter nodes")).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Filter workloads")).to_be_visible()


def test_palette_finds_and_opens_a_node_when_only_keys_are_used(page: Page) -> None:
    open_overview(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("gpu-003", delay=40)
    page.keyboard.press("Enter")  # before the search has answered: the typed text counts
    expect(page.get_by_role("complementary", name="Details")).to_contain_text("gpu-003")


def test_sources_panel_shows_collectors_and_drops_when_the_live_state_is_clicked(page: Page) -> None:
    open_overview(page)
    page.get_by_role("button", name=re.compile("^live")).click()
    panel = page.get_by_role("dialog")
    expect(panel).to_contain_text("dcgm")
    expect(panel).to_contain_text("slurm")


def test_page_says_so_and_recovers_when_the_server_goes_and_comes_back(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    port = free_port()
    page = browser.new_page()
    for attempt in ("first", "second"):
        with running_demo(tmp_path_factory.mktemp(attempt), gpus=8, port=port) as url:
            if attempt == "first":
                open_overview(page, url)
            expect(page.get_by_role("button", name=re.compile("^live"))).to_be_visible(timeout=90_000)
        expect(page.get_by_role("button", name=re.compile("^reconnecting"))).to_be_visible(timeout=90_000)
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1920, 1080), (480, 900)])
def test_page_fits_its_window_when_sizes_and_themes_change(
    browser: Browser, demo_url: str, theme: str, width: int, height: int
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        base_url=demo_url,
        color_scheme="dark" if theme == "dark" else "light",
    )
    page = context.new_page()
    OUTPUT.mkdir(exist_ok=True)
    open_overview(page, "/?table=workloads")
    page.get_by_role("row").nth(1).click()
    expect(page.get_by_role("complementary", name="Details").get_by_role("heading", level=1)).to_be_visible()
    page.screenshot(path=OUTPUT / f"overview-table-{theme}-{width}.png")
    open_overview(page)
    expect(picture_of(page)).to_have_attribute("data-unit-count", re.compile(r"\d+"))
    wait_for_rest(page)
    page.screenshot(path=OUTPUT / f"overview-{theme}-{width}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "nothing sticks out sideways"
    context.close()
