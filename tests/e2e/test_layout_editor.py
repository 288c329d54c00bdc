"""The layout editor and saved views as a user drives them, on a running demo."""

import json
import re
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from servers.demo import get_json
from servers.picture import open_held_picture, open_picture, read_address

OUTPUT = Path(__file__).parent / "output"

pytestmark = pytest.mark.browser

BUILT_IN = ["Project", "User", "Workload"]


def card(page: Page, title: str) -> Locator:
    """The handle of a layer."""
    return page.get_by_role("list", name="Layers, outermost first").get_by_role(
        "button", name=re.compile(rf": {title} (pack|fill|list)")
    )


def expect_layers(page: Page, titles: list[str]) -> None:
    layers = page.get_by_role("list", name="Layers, outermost first").locator("li span")
    expect(layers).to_have_text(titles)


def add_layer(page: Page, title: str) -> None:
    page.get_by_role("button", name="add a layer").click()
    page.get_by_role("combobox", name="Search attributes").fill(title)
    page.keyboard.press("Enter")


def layout_of(page: Page) -> dict[str, list[object]] | None:
    """The edited layout that the address holds."""
    layouts = parse_qs(urlsplit(read_address(page)).query).get("layout")
    return json.loads(layouts[0]) if layouts else None


def save_as(page: Page, title: str, scope: str) -> None:
    page.get_by_role("button", name="Save as …").click()
    form = page.get_by_role("dialog", name="Save view")
    form.get_by_label("Name").fill(title)
    form.get_by_text(scope).click()
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_text(f"“{title}” saved.")).to_be_visible()


def put(url: str, body: object) -> None:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="PUT")
    urllib.request.urlopen(request, timeout=10).close()


def test_picture_is_regrouped_at_once_when_a_layer_is_added_and_comes_back_when_undone(page: Page) -> None:
    picture = open_picture(page)
    expect_layers(page, BUILT_IN)
    before = picture.get_attribute("data-unit-count")
    add_layer(page, "machine type")
    expect_layers(page, [*BUILT_IN, "Machine type"])
    expect(picture).to_have_attribute("data-unit-count", before or "")
    expect(page.get_by_text("Edited")).to_be_visible()
    assert layout_of(page) is not None
    page.keyboard.press("Control+z")
    expect_layers(page, BUILT_IN)
    assert layout_of(page) is None
    page.keyboard.press("Control+Shift+z")
    expect_layers(page, [*BUILT_IN, "Machine type"])
    page.get_by_role("button", name="Undo").click()
    expect_layers(page, BUILT_IN)


def test_layers_change_places_when_one_is_dragged_by_the_mouse(page: Page) -> None:
    open_held_picture(page)
    source, target = card(page, "Workload").bounding_box(), card(page, "Project").bounding_box()
    assert source is not None
    assert target is not None
    page.mouse.move(source["x"] + 20, source["y"] + source["height"] / 2)
    page.mouse.down()
    page.mouse.move(source["x"] + 20, source["y"] - 10, steps=4)
    page.mouse.move(target["x"] + 20, target["y"] + 4, steps=8)
    page.mouse.up()
    expect_layers(page, ["Workload", "Project", "User"])
    page.keyboard.press("Control+z")
    expect_layers(page, BUILT_IN)


def test_layers_are_reordered_and_removed_when_only_keys_are_used(page: Page) -> None:
    open_picture(page)
    card(page, "User").focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("User picked up, layer 2 of 3.")).to_be_attached()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_text("User would be layer 1 of 3.")).to_be_attached()
    page.keyboard.press("Space")
    expect_layers(page, ["User", "Project", "Workload"])
    card(page, "User").focus()
    page.keyboard.press("Alt+ArrowDown")
    expect_layers(page, BUILT_IN)
    expect(card(page, "User")).to_be_focused()
    page.keyboard.press("Alt+ArrowDown")
    expect_layers(page, ["Project", "Workload", "User"])
    page.keyboard.press("Delete")
    expect_layers(page, ["Project", "Workload"])
    expect(card(page, "Workload")).to_be_focused()


def palette(page: Page) -> Locator:
    return page.get_by_role("region", name="Attributes to add")


def drag(page: Page, source: Locator, target: Locator, *, above: bool) -> None:
    """Drags by the mouse to the upper or lower part of the target."""
    source.scroll_into_view_if_needed()
    start, end = source.bounding_box(), target.bounding_box()
    assert start is not None
    assert end is not None
    page.mouse.move(start["x"] + 12, start["y"] + start["height"] / 2)
    page.mouse.down()
    page.mouse.move(start["x"] + 12, start["y"] + start["height"] / 2 - 8, steps=4)
    y = end["y"] + (3 if above else end["height"] - 3)
    page.mouse.move(end["x"] + 20, y, steps=10)
    page.mouse.move(end["x"] + 21, y, steps=2)


def test_attribute_of_the_palette_becomes_a_layer_where_it_is_dropped(page: Page) -> None:
    open_picture(page)
    before = layout_of(page)
    drag(page, palette(page).get_by_role("button", name="Add Partition", exact=True), card(page, "User"), above=True)
    page.mouse.up()
    expect_layers(page, ["Project", "Partition", "User", "Workload"])
    assert layout_of(page) != before
    expect(palette(page).get_by_role("button", name="Add Partition", exact=True)).to_have_count(0)
    drag(
        page,
        palette(page).get_by_role("button", name="Add Machine type", exact=True),
        page.get_by_role("button", name=re.compile("^Squares:")),
        above=False,
    )
    page.mouse.up()
    expect_layers(page, ["Project", "Partition", "User", "Workload", "Machine type"])
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    expect_layers(page, BUILT_IN)


def test_layer_is_removed_when_it_is_dragged_out_into_the_palette(page: Page) -> None:
    open_picture(page)
    drag(page, card(page, "User"), palette(page), above=False)
    expect(page.get_by_text("Drop here to remove the layer")).to_be_visible()
    page.mouse.up()
    expect_layers(page, ["Project", "Workload"])
    expect(palette(page).get_by_role("button", name="Add User", exact=True)).to_be_visible()
    page.keyboard.press("Control+z")
    expect_layers(page, BUILT_IN)


def test_attribute_is_added_and_layer_taken_out_when_only_keys_are_used(page: Page) -> None:
    open_picture(page)
    palette(page).get_by_role("button", name="Add Partition", exact=True).focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("Partition picked up from the palette.")).to_be_attached()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    expect(page.get_by_text("Partition would be layer 2 of 4.")).to_be_attached()
    page.keyboard.press("Space")
    expect_layers(page, ["Project", "Partition", "User", "Workload"])
    card(page, "Workload").focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("Workload picked up, layer 4 of 4.")).to_be_attached()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_text("Workload would be removed.")).to_be_attached()
    page.keyboard.press("Space")
    expect_layers(page, ["Project", "Partition", "User"])


def test_settings_are_drawn_and_written_into_the_link_when_they_are_changed(page: Page) -> None:
    open_picture(page)
    page.get_by_role("button", name="Settings of Project").click()
    popup = page.get_by_role("dialog", name=re.compile("Settings of"))
    popup.get_by_role("radio", name=re.compile("List →")).click(force=True)
    popup.get_by_text("Uniform").click()
    popup.get_by_label("Aspect").fill("2")
    popup.get_by_role("button", name="Group by").click()
    popup.get_by_role("combobox").fill("utilization")
    page.keyboard.press("Enter")
    expect(popup.get_by_label("Number")).to_have_value("5")
    popup.get_by_label("Number").fill("4")
    page.keyboard.press("Escape")
    expect_layers(page, ["GPU utilization", "User", "Workload"])
    layout = layout_of(page)
    assert layout is not None
    assert layout["layers"][0] == {
        "by": {"metric": "gpu_util_ratio", "bins": 4},
        "layout": "listX",
        "size": "uniform",
        "aspect": 2,
        "sort": {"by": "count", "order": "descending"},
    }
    page.reload()
    expect_layers(page, ["GPU utilization", "User", "Workload"])


def test_shared_view_is_there_for_everybody_when_it_was_saved(page: Page, browser: Browser, demo_url: str) -> None:
    open_picture(page)
    add_layer(page, "machine type")
    page.get_by_label("Color by").select_option(label="Power")
    save_as(page, "By machine", "Everybody")
    page.wait_for_url(re.compile("picture=shared:by-machine"))
    expect(page.get_by_text("Edited")).to_be_hidden()
    page.reload()
    expect_layers(page, [*BUILT_IN, "Machine type"])
    other = browser.new_context(base_url=demo_url).new_page()
    open_picture(other, "/?picture=shared:by-machine&color=power_watts")
    expect_layers(other, [*BUILT_IN, "Machine type"])
    open_picture(other)
    expect_layers(other, BUILT_IN)
    other.get_by_role("radio", name="By machine").click(force=True)
    other.wait_for_url(re.compile("color=power_watts"))
    expect_layers(other, [*BUILT_IN, "Machine type"])
    other.context.close()


def test_deleted_view_comes_back_when_that_is_undone(page: Page, demo_url: str) -> None:
    put(f"{demo_url}/api/v1/views/short-lived", {"version": 1, "title": "Short-lived", "layers": [{"by": "node"}]})
    open_picture(page)
    page.get_by_role("button", name="More for Short-lived").click(force=True)
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("radio", name="Short-lived")).to_have_count(0)
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_role("radio", name="Short-lived")).to_be_attached()
    names = [view["name"] for view in get_json(f"{demo_url}/api/v1/views")["views"]]
    assert "short-lived" in names


def test_own_view_works_from_its_link_in_another_browser_when_that_does_not_know_it(
    page: Page, browser: Browser, demo_url: str
) -> None:
    open_picture(page)
    add_layer(page, "machine type")
    save_as(page, "Just mine", "This browser")
    page.wait_for_url(re.compile("picture=mine:just-mine"))
    page.reload()
    expect(page.get_by_role("radio", name="Just mine")).to_be_checked()
    other = browser.new_context(base_url=demo_url).new_page()
    open_picture(other, page.url)
    expect_layers(other, [*BUILT_IN, "Machine type"])
    expect(other.get_by_text("Not saved")).to_be_visible()
    other.context.close()


def test_page_opens_with_the_start_view_when_one_was_chosen(page: Page, browser: Browser, demo_url: str) -> None:
    open_picture(page)
    page.get_by_role("button", name="More for Fragmentation by host").click(force=True)
    page.get_by_role("menuitemcheckbox", name="Make it the site default").click()
    expect(page.get_by_text("This view is now the site default.")).to_be_visible()
    other = browser.new_context(base_url=demo_url).new_page()
    open_picture(other)
    expect(other.get_by_role("radio", name="Fragmentation by host")).to_be_checked()
    other.get_by_role("button", name="Start with Projects by partition").click(force=True)
    open_picture(other)
    expect(other.get_by_role("radio", name="Projects by partition")).to_be_checked()
    other.context.close()
    put(f"{demo_url}/api/v1/start-view", {"name": None})


def test_view_opens_with_what_is_valid_when_the_link_is_not(page: Page) -> None:
    layout = {
        "version": 1,
        "layers": [{"by": "partition", "layout": "spiral"}, {"by": "zodiac"}, {"by": "node"}],
    }
    open_picture(page, f"/?layout={quote(json.dumps(layout))}")
    expect_layers(page, ["Partition", "Node"])
    notices = page.get_by_role("status").filter(has_text="ignored")
    expect(notices).to_contain_text("Layer 2 groups by “zodiac”, which units do not have; it was ignored.")
    expect(notices).to_contain_text("Layer 1 has layout “spiral”")
    page.goto("/?picture=shared:long-gone")
    expect(page.get_by_role("status").filter(has_text="long-gone")).to_be_visible()
    expect_layers(page, BUILT_IN)


def test_import_says_where_it_is_wrong_when_the_text_is_no_view(page: Page) -> None:
    open_picture(page)
    page.get_by_role("button", name="Import JSON").click()
    page.get_by_label("View as JSON").fill('{"layers": [')
    page.get_by_role("button", name="Open", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("This is not JSON")
    page.get_by_label("View as JSON").fill('{"title": "Nodes", "layers": [{"by": "node"}, {"by": "zodiac"}]}')
    page.get_by_role("button", name="Open", exact=True).click()
    expect_layers(page, ["Node"])
    expect(page.get_by_role("status").filter(has_text="zodiac")).to_be_visible()


@pytest.mark.parametrize(("scheme", "width", "height"), [("dark", 1440, 900), ("light", 1024, 768)])
def test_editor_is_drawn_when_its_settings_are_open(
    browser: Browser, demo_url: str, scheme: str, width: int, height: int
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        base_url=demo_url,
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    open_picture(page)
    page.get_by_role("button", name="Settings of Project").click()
    expect(page.get_by_role("dialog", name="Settings of Project")).to_be_visible()
    OUTPUT.mkdir(exist_ok=True)
    page.screenshot(path=OUTPUT / f"layout-editor-{scheme}.png")
    context.close()
