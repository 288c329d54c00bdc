"""The picture of all units as a user drives it, on a running demo."""

import re
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from servers.demo import get_json, wait_until
from servers.picture import open_held_picture, open_picture, point_until, wait_for_frames, wait_for_rest

OUTPUT = Path(__file__).parent / "output"

pytestmark = pytest.mark.browser


def arrange(page: Page, title: str) -> None:
    page.get_by_role("group", name="Arrangement").locator("label", has_text=title).click()


def point_at_a_unit(page: Page, picture: Locator) -> tuple[float, float]:
    """Move the pointer over the picture until a tooltip says which unit is under it; those of groups do not count."""
    box = picture.bounding_box()
    assert box is not None
    tip = page.get_by_role("tooltip").filter(has_text=re.compile(r"gpu-\d+:\d"))
    points = product(range(30, 400, 7), range(30, 400, 7))
    return point_until(page, ((box["x"] + right, box["y"] + down) for down, right in points), tip)


def count_painted(picture: Locator) -> int:
    """Pixels of the squares' canvas that are not empty, read in the frame that a turn of the wheel draws."""
    return int(
        picture.evaluate(
            """element => {
              const squares = element.querySelectorAll("canvas")[1];
              const copy = new OffscreenCanvas(squares.width, squares.height).getContext("2d");
              const wheel = { deltaY: -20, clientX: squares.width, clientY: squares.height };
              element.dispatchEvent(new WheelEvent("wheel", { ...wheel, cancelable: true }));
              return new Promise((resolve) => requestAnimationFrame(() => {
                copy.drawImage(squares, 0, 0);
                const { data } = copy.getImageData(0, 0, squares.width, squares.height);
                let painted = 0;
                for (let at = 3; at < data.length; at += 4) if (data[at] > 0) painted += 1;
                resolve(painted);
              }));
            }"""
        )
    )


def test_picture_has_as_many_units_as_the_api_says_when_arranged_in_any_way(page: Page, demo_url: str) -> None:
    picture = open_picture(page)
    summary = get_json(f"{demo_url}/api/v1/cluster")
    total = str(summary["units"]["total"])
    expect(picture).to_have_attribute("data-unit-count", total)
    for title in ("Projects by partition", "Fragmentation by host"):
        arrange(page, title)
        page.wait_for_url(re.compile("picture="))
        expect(picture).to_have_attribute("data-unit-count", total)
    arrange(page, "Waiting by resource type")
    # The queue changes meanwhile: page and API agree once both have the same state.
    wait_until(
        lambda: picture.get_attribute("data-unit-count") == str(get_json(f"{demo_url}/api/v1/cluster")["waiting_gpus"]),
        limit_s=90,
    )


def test_details_open_when_a_square_is_clicked(page: Page) -> None:
    picture = open_held_picture(page)
    x, y = point_at_a_unit(page, picture)
    page.mouse.click(x, y)
    expect(page.get_by_role("complementary", name="Details")).to_be_visible()
    page.wait_for_url(re.compile(r"select=(workload|unit):"))


def test_unit_is_found_and_selected_when_only_keys_are_used(page: Page) -> None:
    picture = open_held_picture(page)
    picture.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tooltip")).to_contain_text("gpu-001:0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Details")).to_be_visible()


def test_link_brings_back_the_same_picture_when_it_is_shared(page: Page, browser: Browser, demo_url: str) -> None:
    open_picture(page)
    arrange(page, "Fragmentation by host")
    page.get_by_label("Color by").select_option(label="Power")
    page.wait_for_url(re.compile("picture=fragmentation-by-host&color=power_watts"))
    other = browser.new_context(base_url=demo_url).new_page()
    open_picture(other, page.url)
    expect(other.get_by_label("Color by")).to_have_value("power_watts")
    expect(other.get_by_role("radio", name=re.compile("Fragmentation by host"))).to_be_checked()
    other.context.close()


def test_units_fade_but_stay_when_a_filter_leaves_them_out(page: Page, demo_url: str) -> None:
    picture = open_picture(page, "/?partition=nowhere")
    total = get_json(f"{demo_url}/api/v1/cluster")["units"]["total"]
    expect(picture).to_have_attribute("data-unit-count", str(total))
    expect(page.get_by_role("status").filter(has_text=f"0 of {total}")).to_be_visible()


@pytest.mark.parametrize(
    "name", ["who-uses-what", "projects-by-partition", "waiting-by-resource-type", "fragmentation-by-host"]
)
def test_squares_are_painted_when_an_arrangement_is_opened(page: Page, name: str) -> None:
    picture = open_picture(page, f"/?picture={name}")
    OUTPUT.mkdir(exist_ok=True)
    page.screenshot(path=OUTPUT / f"picture-{name}.png")
    assert int(picture.get_attribute("data-unit-count") or 0) > 0
    wait_until(lambda: count_painted(picture) > 1000, limit_s=90)


def test_unit_stays_under_the_pointer_when_its_details_open_and_close(page: Page) -> None:
    picture = open_held_picture(page)
    right, down = point_at_a_unit(page, picture)

    def name_under_pointer() -> str:
        page.mouse.move(right + 1, down)
        page.mouse.move(right, down)
        wait_for_frames(page)
        return page.get_by_role("tooltip").inner_text().splitlines()[0]

    before = name_under_pointer()
    page.mouse.click(right, down)
    details = page.get_by_role("complementary", name="Details")
    expect(details).to_be_visible()
    expect(details.get_by_role("heading", level=1)).to_be_visible()
    wait_for_rest(page)
    assert name_under_pointer() == before
    details.get_by_role("button", name=re.compile("Close")).click()
    expect(details).to_be_hidden()
    wait_for_rest(page)
    assert name_under_pointer() == before
