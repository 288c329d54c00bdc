"""The picture of all units, as tests wait for it: by what the page says of itself, never for a length of time."""

import re
from collections.abc import Iterable

from playwright.sync_api import Locator, Page, expect

FIRST_PICTURE_MS = 90_000
_TWO_FRAMES = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))"""


def picture_of(page: Page) -> Locator:
    return page.get_by_role("application", name="Picture of all units")


def open_picture(page: Page, path: str = "/") -> Locator:
    """The picture once all units are at their places."""
    page.goto(path)
    picture = picture_of(page)
    expect(picture).to_have_attribute("data-unit-count", re.compile(r"\d+"), timeout=FIRST_PICTURE_MS)
    wait_for_rest(page)
    return picture


def open_held_picture(page: Page, path: str = "/") -> Locator:
    """The picture of one moment: jobs that start or end meanwhile do not move units under the pointer or the keys."""
    picture = open_picture(page, path)
    hold_picture(page)
    return picture


def hold_picture(page: Page) -> None:
    """Pauses live updates: picture, lists and counts stay as they are."""
    page.get_by_role("button", name="Pause live updates (P)").click()
    expect(page.get_by_role("button", name=re.compile("^paused for"))).to_be_visible()
    wait_for_rest(page)


def wait_for_frames(page: Page) -> None:
    """Waits until all changes are drawn."""
    page.evaluate(_TWO_FRAMES)


def wait_for_rest(page: Page) -> None:
    """Neither units nor the camera fly."""
    wait_for_frames(page)
    expect(page.locator("canvas[data-moving]")).to_have_count(0)


def point_until(page: Page, points: Iterable[tuple[float, float]], tip: Locator) -> tuple[float, float]:
    """Move the pointer from point to point of the page until the tip is there; that point."""
    for x, y in points:
        page.mouse.move(x, y)
        wait_for_frames(page)  # else the tip of a former point is taken for this one's
        if tip.count():
            return x, y
    raise AssertionError(f"no point has {tip}")


def read_address(page: Page) -> str:
    """The address now. ``page.url`` follows events, which are not received while a test waits outside of Playwright."""
    return str(page.evaluate("location.href"))
