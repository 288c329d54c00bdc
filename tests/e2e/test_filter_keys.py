"""While a condition is added, the keys stay in it: nothing that is typed reaches the shortcuts of the page."""

import re

import pytest
from playwright.sync_api import Page, expect
from servers.picture import open_picture, read_address

pytestmark = pytest.mark.browser


def add_condition(page: Page, title: str) -> None:
    page.get_by_role("button", name="+ add a condition").click()
    page.keyboard.type(title)
    page.keyboard.press("Enter")


def test_typed_letters_stay_in_the_new_condition_when_they_are_shortcuts(page: Page) -> None:
    open_picture(page)
    add_condition(page, "workload's name")
    card = page.get_by_role("article", name="Condition Workload's name")
    expect(card).to_be_in_viewport(ratio=0.95)
    card.get_by_role("combobox").select_option(label="contains")
    field = card.get_by_label("Workload's name contains")
    field.click()
    # P pauses, B and L draw, R repacks, ? opens the help, where they reach the page.
    page.keyboard.type("pblr?")
    expect(field).to_have_value("pblr?")
    expect(field).to_be_focused()
    page.wait_for_url(re.compile("workload_name(~|%7E)pblr"))
    for _ in range(5):
        page.keyboard.press("Backspace")
    expect(field).to_have_value("")
    expect(field).to_be_focused()
    page.keyboard.type("pretrain")
    expect(field).to_have_value("pretrain")
    assert re.search("workload_name(~|%7E)pretrain", read_address(page))
    expect(page.get_by_role("button", name="Pause live updates (P)")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_number_is_typed_at_once_when_a_condition_on_a_number_is_added(page: Page) -> None:
    open_picture(page)
    add_condition(page, "gpu utilization")
    card = page.get_by_role("article", name="Condition GPU utilization", exact=True)
    expect(card).to_be_in_viewport(ratio=0.95)
    field = card.get_by_label("GPU utilization, from")
    expect(field).to_be_focused()
    page.keyboard.type("40")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"gpu_util_ratio(:|%3A)0\.4"))
    expect(card.get_by_label("GPU utilization, from")).to_be_focused()
    expect(page.get_by_role("button", name="Pause live updates (P)")).to_be_visible()
