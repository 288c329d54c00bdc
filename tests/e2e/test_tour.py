"""A newcomer takes the tour: five steps through three views, and it can be left."""

import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_newcomer_is_led_through_the_page_when_the_tour_is_taken(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Take the tour").click()
    for title, path in (
        ("A square is a GPU", "/"),
        ("Arrange squares to answer a question", "/"),
        ("Rules find wasted GPUs", "/"),
        ("Which GPU is the outlier?", "/diagnostics"),
        ("Why does it wait?", "/scheduling"),
    ):
        card = page.get_by_role("dialog", name=title)
        expect(card).to_be_visible(timeout=90_000)
        expect(page).to_have_url(re.compile(rf"{path}(\?|$)"), timeout=90_000)
        card.get_by_role("button", name=re.compile("Next|Done")).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    # After the first visit the tour is offered without a message.
    page.reload()
    expect(page.get_by_role("button", name="Tour of the page")).to_be_visible()


def test_tour_is_over_when_escape_is_pressed(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Take the tour").click()
    expect(page.get_by_role("dialog", name="A square is a GPU")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
