"""How the overview fits its screen: nothing clipped or stacked, conditions visible, and the way back from a zoomed group."""

import re

import pytest
from playwright.sync_api import Page, expect
from servers.demo import get_json
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
    expect(views.get_by_role("link", name="Usage")).to_be_in_viewport(ratio=1)
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


def test_details_have_actions_on_top_folded_rules_and_eight_units_per_node(page: Page, demo_url: str) -> None:
    page.set_viewport_size({"width": 1024, "height": 768})
    running = get_json(f"{demo_url}/api/v1/workloads?state=running&limit=10000")["workloads"]
    workload = max(running, key=lambda row: len(row["nodes"]))
    page.goto(f"/?select=workload:{workload['workload']}")
    details = page.get_by_role("complementary", name="Details")
    diagnose = details.get_by_role("button", name="Diagnose")
    expect(diagnose).to_be_in_viewport(ratio=1)

    # A block per node, which is as wide as a node.
    nodes = details.locator("[data-node]")
    expect(nodes).to_have_count(len(workload["nodes"]))
    tops_of = "nodes => nodes.map(node => [...node.children].map(unit => unit.getBoundingClientRect().top))"
    for tops in nodes.evaluate_all(tops_of):
        assert len(tops) == 8
        assert max(tops) - min(tops) < 1

    # Rules that are fine come at a click, and the actions stay where they are meanwhile.
    rules = details.get_by_role("region", name="Rules")
    fine = rules.get_by_text(re.compile(r"^\d+ fine"))
    expect(rules.get_by_text("fine", exact=True).first).to_be_hidden()
    fine.click()
    expect(rules.get_by_text("fine", exact=True).first).to_be_visible()
    details.evaluate("element => element.scrollTo(0, element.scrollHeight)")
    expect(diagnose).to_be_in_viewport(ratio=1)
