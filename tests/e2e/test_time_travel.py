"""The past on the page: dragged to, stepped to, linked to, played; the present held and let go."""

import re
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from servers.demo import get_json, wait_until
from servers.picture import open_picture, read_address, wait_for_frames, wait_for_rest

OUTPUT = Path(__file__).parent / "output"
MINUTE_MS = 60_000

pytestmark = pytest.mark.browser


def track_of(page: Page) -> Locator:
    """The time bar's handle, once it knows the history."""
    track = page.get_by_role("slider", name="Time shown")
    expect(track.locator("svg")).to_be_visible(timeout=90_000)
    return track


def moment_of(page: Page) -> int:
    """Unix ms of the minute that the address names."""
    address = read_address(page)
    minute = re.search(r"at=(\d{4}-\d\d-\d\dT\d\d:\d\d)Z", address)
    assert minute, address
    return int(datetime.fromisoformat(minute[1]).replace(tzinfo=UTC).timestamp() * 1000)


def wait_for_picture(page: Page) -> None:
    wait_for_frames(page)  # otherwise the former answer is taken for this one
    expect(page.get_by_role("slider", name="Time shown")).to_have_attribute("aria-busy", "false", timeout=90_000)


def drag_to(page: Page, ratio: float) -> None:
    box = track_of(page).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (ratio + 1) / 2, box["y"] + 10, steps=8)
    page.mouse.move(box["x"] + box["width"] * ratio, box["y"] + 10, steps=8)
    page.mouse.up()


def strip_of(page: Page) -> str:
    return page.get_by_role("region", name="Summary").inner_text()


def pixels_of(page: Page) -> str:
    """A hash of the pixels of the units."""
    page.mouse.move(5, 5)
    wait_for_rest(page)
    return str(
        page.get_by_role("application").evaluate(
            """element => new Promise((resolve) => {
              const [, squares] = element.querySelectorAll("canvas");
              element.dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true }));
              requestAnimationFrame(() => {
                const copy = new OffscreenCanvas(squares.width, squares.height).getContext("2d");
                copy.drawImage(squares, 0, 0);
                const { data } = copy.getImageData(0, 0, squares.width, squares.height);
                let code = 17;
                for (const value of data) code = (code * 31 + value) >>> 0;
                resolve(`${squares.width}x${squares.height}:${code}`);
              });
            })"""
        )
    )


def test_screen_is_of_the_past_when_the_handle_is_dragged(page: Page, demo_url: str) -> None:
    open_picture(page)
    drag_to(page, 0.5)
    page.wait_for_url(re.compile("at="))
    wait_for_picture(page)
    at = moment_of(page)
    then = get_json(f"{demo_url}/api/v1/cluster?at={at}")
    assert then["is_past"]
    strip = page.get_by_role("region", name="Summary")
    expect(strip).to_contain_text(f"{then['units']['allocated']:,} allocated")
    expect(strip).to_contain_text(f"{then['waiting']:,}")
    expect(page.get_by_role("button", name=re.compile("^past: .* back to now"))).to_be_visible()
    expect(page.get_by_role("application")).to_have_attribute("data-unit-count", str(then["units"]["total"]))
    OUTPUT.mkdir(exist_ok=True)
    page.screenshot(path=OUTPUT / "time-travel.png")

    page.get_by_role("group", name="Show").locator("label", has_text="Workloads").click()
    listed = get_json(f"{demo_url}/api/v1/workloads?at={at}&limit=10000")
    expect(page.get_by_role("status").filter(has_text=f"{listed['total']:,} rows")).to_be_visible()

    page.get_by_role("button", name=re.compile("back to now")).click()
    expect(page.get_by_role("button", name="Pause live updates (P)")).to_be_visible()
    assert "at=" not in read_address(page)


def test_link_brings_back_the_same_picture_when_it_names_a_minute(page: Page, browser: Browser, demo_url: str) -> None:
    now = get_json(f"{demo_url}/api/v1/cluster")["at"]
    at = (now - 9 * 60 * MINUTE_MS) // MINUTE_MS * MINUTE_MS
    link = f"/?picture=fragmentation-by-host&at={datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%dT%H:%MZ}"
    open_picture(page, link)
    wait_for_picture(page)
    size = page.viewport_size
    assert size is not None
    context = browser.new_context(base_url=demo_url, viewport=size, color_scheme="dark")
    other = context.new_page()
    open_picture(other, page.url)
    wait_for_picture(other)
    assert moment_of(other) == at

    def is_same_after_reload() -> bool:
        """Rules judge the past in the background while the demo is young; a page shows what was known when it was opened."""
        for view in (page, other):
            view.reload()
            wait_for_picture(view)
        return strip_of(other) == strip_of(page) and pixels_of(other) == pixels_of(page)

    wait_until(is_same_after_reload)
    context.close()


def test_keys_step_by_minutes_and_hours_when_the_handle_is_focused(page: Page) -> None:
    open_picture(page)
    track_of(page).focus()
    moments = []
    for key in ("ArrowLeft", "ArrowLeft", "Shift+ArrowLeft", "ArrowRight"):
        address = read_address(page)
        page.keyboard.press(key)
        expect(page).not_to_have_url(address)
        wait_for_picture(page)
        moments.append(moment_of(page))
    assert [(after - before) // MINUTE_MS for before, after in pairwise(moments)] == [-1, -60, 1]
    page.keyboard.press("End")
    page.wait_for_url(lambda url: "at=" not in url)


def test_time_goes_on_when_the_past_is_played(page: Page) -> None:
    open_picture(page)
    drag_to(page, 0.4)
    page.wait_for_url(re.compile("at="))
    start = moment_of(page)
    page.get_by_role("button", name="Play the past").click()
    wait_until(lambda: moment_of(page) >= start + 15 * MINUTE_MS, limit_s=90)
    page.get_by_role("button", name="Stop playing").click()
    wait_for_picture(page)
    stopped = moment_of(page)
    page.wait_for_timeout(1200)
    assert moment_of(page) == stopped


@pytest.mark.parametrize(
    ("at", "words"), [("yesterday", "which is invalid"), ("2999-01-01T00:00Z", "is in the future")]
)
def test_present_is_shown_with_a_notice_when_the_link_names_no_past_minute(page: Page, at: str, words: str) -> None:
    open_picture(page, f"/?at={at}")
    expect(page.get_by_role("status").filter(has_text=words)).to_be_visible()
    expect(page.get_by_role("button", name="Pause live updates (P)")).to_be_visible()


def test_picture_stays_when_it_is_held_and_catches_up_when_let_go(page: Page, demo_url: str) -> None:
    open_picture(page)
    expect(page.get_by_role("button", name="Pause live updates (P)")).to_be_visible()
    page.keyboard.press("p")
    held = page.get_by_role("button", name=re.compile("^paused for"))
    expect(held).to_be_visible()
    wait_for_frames(page)  # what was asked for before is not counted
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    tick = get_json(f"{demo_url}/api/v1/cluster")["tick_version"]
    wait_until(lambda: get_json(f"{demo_url}/api/v1/cluster")["tick_version"] > tick, limit_s=60)
    page.wait_for_timeout(500)
    assert not [url for url in requested if "/tick" in url or "/cluster" in url]
    with page.expect_request(re.compile("/api/v1/tick")):
        held.click()
    expect(page.get_by_role("button", name="Pause live updates (P)")).to_be_visible()
