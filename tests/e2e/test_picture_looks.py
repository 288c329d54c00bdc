"""How the overview fits its screen: nothing clipped or stacked, conditions visible, and the way back from a zoomed group."""

import re

import pytest
from playwright.sync_api import Page, expect
from servers.picture import open_held_picture, open_picture, wait_for_rest

pytestmark = pytest.mark.browser

SIZES = [(1440, 900), (1024, 768)]
_CLIPPED = """element => element.scrollWidth > element.clientWidth"""


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_nothing_of_the_head_is_clipped(page: Page, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    open_picture(page)
    views = page.get_by_role("navigation", name="Views")
    assert not views.evaluate(_CLIPPED)
    expect(views.get_by_role("link", name="Runs")).to_be_in_viewport(ratio=1)
    strip = page.get_by_role("region", name="Summary")
    expect(strip.get_by_text("stranded")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_conditions_are_above_the_fold(page: Page, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    open_picture(page)
    expect(page.get_by_role("button", name="add a condition")).to_be_in_viewport(ratio=1)


def test_hosts_are_colored_by_the_size_of_their_workloads(page: Page) -> None:
    open_picture(page, "/?picture=fragmentation-by-host")
    choice = page.get_by_role("combobox", name=re.compile("^Color"))
    expect(choice.locator("option:checked")).to_have_text("GPUs of the workload")


def test_path_leads_back_when_a_group_is_zoomed_to(page: Page) -> None:
    picture = open_held_picture(page)
    path = page.get_by_role("navigation", name="Zoomed to")
    expect(path).to_have_count(0)
    picture.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("z")
    wait_for_rest(page)
    crumbs = path.get_by_role("button")
    expect(crumbs.first).to_have_text("Everything")
    assert crumbs.count() >= 2
    outer = crumbs.nth(1).inner_text()
    crumbs.nth(1).click()
    wait_for_rest(page)
    expect(path.locator("[aria-current=location]")).to_have_text(outer)
    crumbs.first.click()
    wait_for_rest(page)
    expect(path).to_have_count(0)
