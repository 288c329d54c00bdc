"""The picture keeps its places while workloads start and end, until it is packed again."""

import re
from datetime import UTC, datetime
from itertools import product

import pytest
from playwright.sync_api import Locator, Page, expect
from servers.demo import get_json, wait_until
from servers.picture import open_picture, wait_for_frames, wait_for_rest

MINUTE_MS = 60_000
MINUTES = 4

pytestmark = pytest.mark.browser


def open_minute(page: Page, at_ms: int) -> Locator:
    """The picture of a past minute: nothing changes there unless the test steps on."""
    picture = open_picture(page, f"/?at={datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%MZ}")
    wait_for_minute(page)
    return picture


def wait_for_minute(page: Page) -> None:
    wait_for_frames(page)  # otherwise the former answer is taken for this one
    expect(page.get_by_role("slider", name="Time shown")).to_have_attribute("aria-busy", "false", timeout=90_000)
    wait_for_rest(page)


def take_camera(page: Page, picture: Locator) -> None:
    """From now on the picture is not fitted to the window: a point of the page is a point of the layout."""
    picture.focus()
    page.keyboard.press("+")
    page.keyboard.press("-")
    wait_for_rest(page)


def step_on(page: Page, minutes: int) -> None:
    page.get_by_role("slider", name="Time shown").focus()
    for _ in range(minutes):
        page.keyboard.press("ArrowRight")
        wait_for_minute(page)


def read_units(page: Page, picture: Locator) -> dict[tuple[int, int], str]:
    """The unit at each of many points of the picture, where there is one."""
    box = picture.bounding_box()
    assert box is not None
    units = {}
    tip = page.get_by_role("tooltip")
    columns, lines = range(20, int(box["width"]), 45), range(30, int(box["height"]), 45)
    for right, down in product(columns, lines):
        page.mouse.move(box["x"] + right, box["y"] + down)
        wait_for_frames(page)
        text = tip.inner_text() if tip.count() else ""
        unit = re.match(r"gpu-\d+:\d", text)
        if unit:
            units[right, down] = unit[0]
    page.mouse.move(5, 5)
    return units


def find_change(url: str) -> int:
    """A minute of the past, a few minutes after which some other workloads hold GPUs."""
    now = int(get_json(f"{url}/api/v1/cluster")["at"]) // MINUTE_MS * MINUTE_MS

    def running(at_ms: int) -> set[str]:
        listed = get_json(f"{url}/api/v1/workloads?at={at_ms}&limit=10000")["workloads"]
        return {row["workload"] for row in listed if row["state"] == "running"}

    for quarter in range(8, 90):
        at = now - quarter * 15 * MINUTE_MS
        before, after = running(at), running(at + MINUTES * MINUTE_MS)
        if 0 < len(before ^ after) < len(before) / 10:
            return at
    raise AssertionError("no workload started or ended")


def test_units_stay_where_they_are_when_workloads_start_and_end(page: Page, demo_url: str) -> None:
    picture = open_minute(page, find_change(demo_url))
    expect(picture).not_to_have_attribute("data-kept", "true")
    take_camera(page, picture)
    before = read_units(page, picture)
    step_on(page, MINUTES)
    expect(picture).to_have_attribute("data-kept", "true")
    after = read_units(page, picture)
    assert len(before) > 20
    stayed = [point for point, unit in before.items() if after.get(point) == unit]
    assert len(stayed) > 0.75 * len(before), (before, after)


def test_gaps_are_closed_when_a_button_or_a_key_asks_for_it(page: Page, demo_url: str) -> None:
    picture = open_minute(page, find_change(demo_url))
    repack = page.get_by_role("button", name="Repack")
    expect(repack).to_be_disabled()
    step_on(page, MINUTES)
    repack.click()
    expect(picture).not_to_have_attribute("data-kept", "true")
    expect(repack).to_be_disabled()
    step_on(page, 1)
    expect(picture).to_have_attribute("data-kept", "true")
    picture.focus()
    page.keyboard.press("r")
    wait_until(lambda: picture.get_attribute("data-kept") is None)
