"""Marks of rules in the picture, and the bar that explains them."""

import json
import re
import urllib.request
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from servers.demo import get_json, wait_until
from servers.picture import hold_picture, open_picture, wait_for_frames, wait_for_rest

MINUTE_MS = 60_000

pytestmark = pytest.mark.browser


def list_rules(url: str) -> list[dict[str, Any]]:
    return [rule for rule in get_json(f"{url}/api/v1/rules")["rules"] if rule["is_enabled"]]


def is_broken(rule: dict[str, Any]) -> bool:
    counts = rule["counts"] or {}
    return bool(counts.get("workloads") or counts.get("units"))


def bar_of(page: Page) -> Locator:
    return page.get_by_role("region", name="Rules", exact=True).first


def shown_keys(page: Page) -> list[str]:
    chips = bar_of(page).locator("button[data-rule]")
    return [chip.get_attribute("data-rule") or "" for chip in chips.all()]


@pytest.fixture(scope="module")
def judged_url(demo_url: str) -> str:
    wait_until(lambda: sum(map(is_broken, list_rules(demo_url))) >= 3)
    return demo_url


def test_bar_shows_broken_rules_first_in_one_line_and_says_how_many_more_there_are(page: Page, judged_url: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    open_picture(page)
    expect(bar_of(page).locator("button[data-rule]").first).to_be_visible()

    def agrees() -> bool:
        rules = {rule["key"]: rule for rule in list_rules(judged_url)}
        shown = shown_keys(page)
        broken = [key for key, rule in rules.items() if is_broken(rule)]
        hidden = [key for key in broken if key not in shown]
        more = bar_of(page).get_by_role("button", name=re.compile(rf"^\+{len(hidden)} broken"))
        return all(is_broken(rules[key]) for key in shown) and (not hidden or more.count() == 1)

    wait_until(agrees)
    boxes = [chip.bounding_box() for chip in bar_of(page).locator("button[data-rule]").all()]
    assert len({round(box["y"]) for box in boxes if box}) == 1


def test_new_rule_is_in_the_bar_though_nobody_breaks_it(page: Page, judged_url: str) -> None:
    open_picture(page)
    expect(bar_of(page).locator("button[data-rule]").first).to_be_visible()
    rule = {"name": "Busier than ever", "text": "gpu_util p50 > 100%"}
    put(f"{judged_url}/api/v1/rules/busier", rule)
    try:
        chip = bar_of(page).locator("button[data-rule=busier]")
        expect(chip).to_be_visible()
    finally:
        request = urllib.request.Request(f"{judged_url}/api/v1/rules/busier", method="DELETE")
        urllib.request.urlopen(request, timeout=30).close()


def put(url: str, body: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=json.dumps(body).encode(), method="PUT", headers=headers)
    urllib.request.urlopen(request, timeout=30).close()


def test_every_broken_rule_has_a_slot_that_shows_its_share_when_hovered(page: Page, judged_url: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    picture = open_picture(page)

    def has_a_slot_each() -> bool:
        """Rules are judged all the time: page and API agree once both have the same state."""
        answered = get_json(f"{judged_url}/api/v1/violations/units")["rules"]
        marked = [rule["rule"] for rule in answered if rule["units"] or rule["past"]]
        return picture.get_attribute("data-rule-slots") == str(len(marked)) != "0"

    wait_until(has_a_slot_each)
    hold_picture(page)

    # Slots of the outermost groups stand right of their names.
    box = picture.bounding_box()
    assert box is not None
    share = page.get_by_role("tooltip").filter(has_text=re.compile(r"\d+ of \d+\sGPUs? · \d+"))
    wait_for_rest(page)
    points = ((x, y) for y in range(16, int(box["height"]) - 40, 3) for x in range(20, int(box["width"]) - 8, 6))
    match = None
    for x, y in points:
        page.mouse.move(box["x"] + x, box["y"] + y)
        wait_for_frames(page)
        if share.count():
            match = re.search(r"(\d+) of (\d+)\sGPUs? · ([\d.]+)", share.inner_text())
            break
    assert match is not None
    broken, units, percent = int(match[1]), int(match[2]), float(match[3])
    assert abs(percent - 100 * broken / units) < 1
