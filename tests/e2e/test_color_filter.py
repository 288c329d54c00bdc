"""Colors, their legend and conditions as a user drives them, on a running demo."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from servers.demo import get_json, wait_until
from servers.picture import open_held_picture, open_picture, picture_of, read_address

OUTPUT = Path(__file__).parent / "output"

pytestmark = pytest.mark.browser


def colors(page: Page) -> Locator:
    return page.get_by_role("region", name="Color")


def chips(page: Page) -> Locator:
    return page.get_by_role("list", name="Active filters")


def brush(page: Page) -> Locator:
    return colors(page).get_by_role("group", name=re.compile(r"of .* units?$"))


def count_matching(page: Page) -> int:
    """Of ``12 of 256 units``, or of ``256 units``, the first number."""
    text = page.get_by_role("status").filter(has_text=re.compile(r"\d\sunits?$")).inner_text()
    return int(re.split(r"\D", text.replace(",", ""))[0])


def count_drawn(page: Page) -> int:
    return int(picture_of(page).get_attribute("data-unit-count") or 0)


def drag_over(page: Page, area: Locator, start: float, end: float) -> None:
    area.hover()  # scrolls to it, and again where a render replaced it meanwhile
    box = area.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], middle)
    page.mouse.down()
    for step in range(1, 6):
        page.mouse.move(box["x"] + (start + (end - start) * step / 5) * box["width"], middle)
    page.mouse.up()


def read_ratios(page: Page) -> tuple[float, float]:
    address = read_address(page)
    ratios = re.search(r"where=gpu_util_ratio:([\d.]*?)\.\.([\d.]*)", address)
    assert ratios is not None, address
    return float(ratios[1] or 0), float(ratios[2] or 1)


def test_range_is_filtered_when_the_legend_is_brushed_by_mouse(page: Page) -> None:
    open_held_picture(page)
    total = count_matching(page)
    drag_over(page, brush(page), 0.5, 0.9)
    page.wait_for_url(re.compile(r"where=gpu_util_ratio:0\.\d+\.\.0\.\d+"))
    # The address follows the pointer: it passes through narrower ranges.
    wait_until(lambda: read_ratios(page) == pytest.approx((0.5, 0.9), abs=0.03))
    low, high = read_ratios(page)
    expect(chips(page)).to_contain_text("GPU utilization")
    wait_until(lambda: 0 < count_matching(page) < total, limit_s=90)
    # Taken in the middle it moves, taken at an end it grows.
    drag_over(page, brush(page), 0.7, 0.6)
    wait_until(lambda: read_ratios(page) == pytest.approx((low - 0.1, high - 0.1), abs=0.03), limit_s=90)
    drag_over(page, brush(page), high - 0.1, 0.95)
    wait_until(lambda: read_ratios(page)[1] == pytest.approx(0.95, abs=0.03), limit_s=90)
    brush(page).dblclick()
    expect(chips(page)).to_have_count(0)
    assert "where" not in read_address(page)


def test_range_is_filtered_when_the_legend_is_brushed_by_keys(page: Page) -> None:
    open_held_picture(page)
    upper = colors(page).get_by_role("slider", name=re.compile("up to$"))
    upper.focus()
    for _ in range(3):
        page.keyboard.press("PageDown")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile(r"where=gpu_util_ratio:\.\.0\.69"))
    lower = colors(page).get_by_role("slider", name=re.compile("from$"))
    lower.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"where=gpu_util_ratio:0\.01\.\.0\.69"))
    expect(lower).to_have_attribute("aria-valuetext", "1\u00a0%")
    upper.focus()
    page.keyboard.press("End")
    lower.focus()
    page.keyboard.press("Home")
    expect(chips(page)).to_have_count(0)


def test_names_are_filtered_when_entries_of_the_legend_are_clicked(page: Page) -> None:
    open_held_picture(page, "/?color=partition")
    entries = colors(page).get_by_role("list", name="Partition").get_by_role("button")
    first, second = entries.nth(0), entries.nth(1)
    first.click()
    expect(first).to_have_attribute("aria-pressed", "true")
    expect(chips(page)).to_have_count(1)
    total = count_drawn(page)
    wait_until(lambda: count_matching(page) < total, limit_s=90)
    alone = count_matching(page)
    second.click()
    wait_until(lambda: count_matching(page) > alone, limit_s=90)
    second.click(modifiers=["Alt"])
    expect(first).to_have_attribute("aria-pressed", "false")
    expect(second).to_have_attribute("aria-pressed", "true")
    # The lists of facets show the same condition.
    pressed = page.get_by_role("region", name="Partitions").get_by_role("button", pressed=True)
    expect(pressed).to_have_count(1)
    second.click()
    expect(chips(page)).to_have_count(0)


def test_names_are_searched_in_the_legend_when_there_are_many(page: Page) -> None:
    open_held_picture(page, "/?color=user")
    entries = colors(page).get_by_role("list", name="User").get_by_role("button")
    expect(colors(page).get_by_text(re.compile(r"other \(\d+\)"))).to_be_visible()
    name = entries.nth(2).locator("span").inner_text()
    colors(page).get_by_label("Search user").fill(name)
    expect(entries).to_have_count(1)


def test_scale_and_ends_change_when_they_are_set(page: Page) -> None:
    open_picture(page, "/?color=power_watts")
    caption = colors(page).locator("figcaption")
    expect(caption).to_contain_text("0\u00a0W")
    colors(page).get_by_label("scale").select_option(label="logarithmic")
    page.wait_for_url(re.compile("color_scale=log"))
    expect(caption).not_to_contain_text(re.compile(r"^0\u00a0W"))
    page.get_by_role("button", name="Color settings").click()
    page.get_by_label("Upper end of the ramp").fill("300")
    page.keyboard.press("Enter")
    expect(caption).to_contain_text("300\u00a0W")
    page.get_by_role("radio", name="Cividis").check()
    page.wait_for_url(re.compile(r"color_scheme=cividis&color_domain=\.\.300&color_scale=log"))
    page.get_by_role("button", name="Reset colors").click()
    page.wait_for_url(re.compile(r"\?color=power_watts$"))


def test_ramp_fits_the_filtered_units_when_it_is_remapped(page: Page) -> None:
    open_picture(page, "/?where=gpu_util_ratio:0.2..0.6")
    caption = colors(page).locator("figcaption")
    expect(caption.locator("span").last).to_have_text("100\u00a0%")
    colors(page).get_by_label("fit to filtered units").check()
    page.wait_for_url(re.compile("color_remap=yes"))
    expect(caption.locator("span").last).not_to_have_text("100\u00a0%")


def test_missing_values_and_the_reason_are_shown_when_the_server_has_no_such_metric(
    browser: Browser, demo_url: str
) -> None:
    page = browser.new_context(base_url=demo_url).new_page()
    page.route("**/api/v1/tick?*p50*", lambda route: route.fulfill(status=422, json=PROBLEM))
    open_picture(page)
    page.get_by_label("Value").select_option("p50")
    page.wait_for_url(re.compile("color=gpu_util_ratio:p50"))
    expect(colors(page).get_by_role("alert")).to_contain_text("no metric gpu_util_ratio:p50")
    expect(colors(page)).to_contain_text("No values to show")
    page.context.close()


PROBLEM = {"error": {"code": "bad_request", "message": "there is no metric gpu_util_ratio:p50", "hint": None}}


def add_condition(page: Page, search: str) -> Locator:
    page.get_by_role("button", name="+ add a condition").click()
    page.get_by_role("combobox", name="Search attributes").fill(search)
    page.keyboard.press("Enter")
    return page.get_by_role("article").last


def test_units_are_narrowed_when_conditions_are_joined_by_and_and_or(page: Page) -> None:
    open_held_picture(page)
    total = count_matching(page)
    card = add_condition(page, "machine type")
    card.get_by_role("checkbox").first.check()
    page.wait_for_url(re.compile("where=machine_type:"))
    wait_until(lambda: 0 < count_matching(page) < total, limit_s=90)
    of_type = count_matching(page)
    card = add_condition(page, "power_watts")
    card.get_by_label(re.compile("^Power, from")).fill("250")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"where=power_watts:250\.\."))
    wait_until(lambda: count_matching(page) < of_type, limit_s=90)
    both = count_matching(page)
    card.get_by_role("button", name="+ or").click()
    page.get_by_role("combobox", name="Search attributes").fill("state")
    page.keyboard.press("Enter")
    card.get_by_role("list", name="State values").get_by_role("checkbox").first.check()
    page.wait_for_url(re.compile(r"where=power_watts:250\.\.%7Cunit_state:"))
    wait_until(lambda: both < count_matching(page) <= of_type, limit_s=90)
    card.get_by_label("How state is compared").select_option(label="is none of")
    page.wait_for_url(re.compile(r"%7C!unit_state:"))
    expect(page.get_by_role("list", name="Active filters")).to_contain_text("or state not")


def test_units_leave_the_picture_when_filtered_ones_vanish(page: Page, demo_url: str) -> None:
    picture = open_picture(page, "/?where=unit_state:allocated")
    total = str(get_json(f"{demo_url}/api/v1/cluster")["units"]["total"])
    expect(picture).to_have_attribute("data-unit-count", total)
    page.get_by_role("radio", name="vanish").check(force=True)
    expect(picture).not_to_have_attribute("data-unit-count", total)
    wait_until(lambda: picture.get_attribute("data-unit-count") == str(count_matching(page)), limit_s=90)
    page.get_by_role("radio", name="fade").check(force=True)
    expect(picture).to_have_attribute("data-unit-count", total)


def test_facets_count_only_what_the_arrangement_draws(page: Page) -> None:
    open_held_picture(page)
    states = page.get_by_role("region", name="State", exact=True)
    expect(states.locator("label", has_text="requested").locator("small")).to_have_text("0")


def test_condition_is_said_not_to_apply_when_a_table_has_no_such_attribute(page: Page) -> None:
    page.goto("/?table=nodes&where=wait_s:60..&where=partition~a100")
    expect(page.get_by_text("Nodes have no waiting time: not applied here.")).to_be_visible()
    expect(page.get_by_role("row").nth(1)).to_be_visible()
    page.get_by_role("radio", name=re.compile("^Workloads")).check(force=True)
    expect(page.get_by_text("not applied here")).to_have_count(0)


LINK = (
    "/?color=power_watts&color_scheme=mako&color_domain=..400&color_scale=quantize-4"
    "&where=gpu_util_ratio:0.1..&where=!user:nobody&where=partition:~%7Cnode~gpu"
)


def test_link_brings_back_colors_and_conditions_when_it_is_opened_elsewhere(
    page: Page, browser: Browser, demo_url: str
) -> None:
    open_picture(page, LINK)
    expect(chips(page).get_by_role("listitem")).to_have_count(4)
    other = browser.new_context(base_url=demo_url, color_scheme="light").new_page()
    open_picture(other, page.url)
    assert read_address(other) == read_address(page)
    expect(other.get_by_label("Color by")).to_have_value("power_watts")
    expect(colors(other).get_by_label("scale")).to_have_value("quantize")
    expect(colors(other).locator("figcaption")).to_contain_text("400\u00a0W")
    texts = chips(page).get_by_role("listitem").all_inner_texts()
    expect(chips(other).get_by_role("listitem")).to_have_text(texts, use_inner_text=True)
    other.context.close()


def test_page_opens_and_says_what_it_left_out_when_a_link_means_nothing(page: Page) -> None:
    open_picture(page, "/?where=mood:good&where=gpu_util_ratio:high&where=user~x&color_scale=cubic&color=mood")
    notices = page.get_by_role("status").filter(has_text="ignored")
    expect(notices.get_by_role("listitem")).to_have_count(4)
    expect(notices).to_contain_text("there is no attribute “mood”")
    expect(chips(page)).to_contain_text("user with “x”")


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768)])
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_controls_are_drawn_when_the_window_is_of_any_size(
    browser: Browser, demo_url: str, width: int, height: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        base_url=demo_url,
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    open_picture(page, "/?color=power_watts&where=power_watts:150..&where=machine_type:A100-80G")
    page.get_by_role("region", name="Filter", exact=True).scroll_into_view_if_needed()
    expect(colors(page).get_by_role("slider")).to_have_count(2)
    OUTPUT.mkdir(exist_ok=True)
    page.screenshot(path=OUTPUT / f"color-filter-{width}-{scheme}.png")
    context.close()
