"""A site without data, and broken links: the page explains the state and the next step."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from servers.own_server import own_server

pytestmark = [pytest.mark.browser, pytest.mark.server]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("empty")
    with own_server(folder, f'cluster = "empty"\n[storage]\ndata_dir = "{folder}/data"\n') as url:
        yield url


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=site)
    page = context.new_page()
    page.set_default_timeout(120_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()
    assert not problems


def test_page_says_how_to_begin_when_no_source_is_configured(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_text("No GPUs yet")).to_be_visible()
    expect(page.get_by_text("clusterscape init")).to_be_visible()


def test_page_says_so_when_nothing_is_stored_of_a_past_minute(page: Page) -> None:
    page.goto("/?at=2026-01-01T12:00Z")
    expect(page.get_by_text("No data for this time")).to_be_visible()
    page.get_by_role("button", name="Back to now", exact=True).click()
    expect(page.get_by_text("No GPUs yet")).to_be_visible()


def test_rules_say_so_when_there_is_nothing_to_judge(page: Page) -> None:
    page.goto("/rules")
    expect(page.get_by_text("Rules are not evaluated yet")).to_be_visible()
    page.get_by_role("button", name="Show rules").click()
    expect(page.get_by_role("region", name="All rules").get_by_role("listitem").first).to_be_visible()


def test_overview_is_shown_with_a_notice_when_the_link_names_no_view(page: Page) -> None:
    page.goto("/nowhere")
    expect(page.get_by_text("There is no view named nowhere; the overview is shown.")).to_be_visible()
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_text("There is no view named nowhere")).to_have_count(0)


@pytest.mark.parametrize(
    ("selected", "words"),
    [("workload:slurm:empty/999", "999"), ("node:nowhere", "nowhere"), ("unit:nowhere:3", "This unit does not exist")],
)
def test_details_say_so_when_the_link_selects_a_missing_object(page: Page, selected: str, words: str) -> None:
    page.goto(f"/?select={selected}")
    details = page.get_by_role("complementary", name="Details")
    expect(details).to_contain_text(words)
    details.get_by_role("button", name="Close details").first.click()
    expect(details).to_have_count(0)


def test_keys_are_listed_when_the_question_mark_is_pressed(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_text("No GPUs yet")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("Move between units")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("shortcuts")
    page.get_by_role("option", name="Keyboard shortcuts").click()
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
