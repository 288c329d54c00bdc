"""A link to the overview shows elsewhere what it showed where it was copied: zoom, pan, selection and layout."""

import re
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from servers.demo import get_json
from servers.picture import open_picture, picture_of, read_address, wait_for_frames, wait_for_rest

MINUTE_MS = 60_000

pytestmark = pytest.mark.browser


def open_past(page: Page, url: str) -> Locator:
    """A minute of the past, which is the same for everybody."""
    at_ms = get_json(f"{url}/api/v1/cluster")["at"] - 6 * 60 * MINUTE_MS
    return open_picture(page, f"/?at={datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%MZ}")


def viewport_of(page: Page) -> list[float]:
    """Center and size of the visible part, from the address."""
    (text,) = parse_qs(urlsplit(read_address(page)).query)["viewport"]
    return [float(part) for part in text.split("/")[0].split(",")[:4]]


def unit_in_the_middle(page: Page) -> str:
    """The unit nearest to the middle of the picture, by a walk of the pointer."""
    box = picture_of(page).bounding_box()
    assert box is not None
    tip = page.get_by_role("tooltip")
    for step in range(40):
        page.mouse.move(box["x"] + box["width"] / 2 + 3 * step, box["y"] + box["height"] / 2 + 2 * step)
        wait_for_frames(page)
        unit = re.match(r"gpu-\d+:\d", tip.inner_text()) if tip.count() else None
        if unit:
            return unit[0]
    raise AssertionError("no unit near the middle")


def zoom_in(page: Page, picture: Locator) -> None:
    picture.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    # Details narrow the picture: it is zoomed once they are there, otherwise the link changes after it was read.
    expect(page.get_by_role("complementary", name="Details").get_by_role("heading", level=1)).to_be_visible()
    wait_for_rest(page)
    page.keyboard.press("z")
    wait_for_rest(page)
    page.wait_for_url(re.compile("viewport="))


def test_link_keeps_zoom_pan_and_selection_on_a_screen_of_the_same_size(
    page: Page, browser: Browser, demo_url: str
) -> None:
    zoom_in(page, open_past(page, demo_url))
    link, viewport, unit = read_address(page), viewport_of(page), unit_in_the_middle(page)
    assert "select=" in link
    context = browser.new_context(viewport=page.viewport_size, base_url=demo_url, color_scheme="dark")
    other = context.new_page()
    open_picture(other, link)
    expect(other.get_by_role("complementary", name="Details")).to_be_visible()
    assert unit_in_the_middle(other) == unit
    assert viewport_of(other) == pytest.approx(viewport, rel=0.02, abs=0.02)
    context.close()


def test_link_shows_the_same_units_on_a_smaller_screen(page: Page, browser: Browser, demo_url: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    zoom_in(page, open_past(page, demo_url))
    link, unit = read_address(page), unit_in_the_middle(page)
    context = browser.new_context(viewport={"width": 1024, "height": 768}, base_url=demo_url, color_scheme="light")
    other = context.new_page()
    open_picture(other, link)
    assert unit_in_the_middle(other) == unit
    path = other.get_by_role("navigation", name="Zoomed to")
    expect(path).to_have_text(page.get_by_role("navigation", name="Zoomed to").inner_text().replace("\n", ""))
    context.close()


def test_link_is_short_again_when_everything_is_visible(page: Page, demo_url: str) -> None:
    picture = open_past(page, demo_url)
    zoom_in(page, picture)
    page.keyboard.press("0")
    wait_for_rest(page)
    page.wait_for_url(lambda url: "viewport=" not in url)


def test_another_arrangement_begins_with_everything(page: Page, demo_url: str) -> None:
    zoom_in(page, open_past(page, demo_url))
    page.get_by_role("group", name="Arrangement").locator("label", has_text="Fragmentation by host").click()
    page.wait_for_url(lambda url: "picture=fragmentation-by-host" in url and "viewport=" not in url)
    wait_for_rest(page)
    expect(page.get_by_role("navigation", name="Zoomed to")).to_have_count(0)
