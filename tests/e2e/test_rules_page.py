"""The rules page on the demo: violations, filtered and sorted by link; details, mutes, comments; the rules themselves."""

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from servers.demo import get_json, wait_until
from servers.picture import wait_for_frames

OUTPUT = Path(__file__).parent / "output"

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def judged_url(demo_url: str) -> str:
    """The demo once its stored past was judged by all rules, one after the other."""
    wait_until(lambda: rules_due(demo_url) == 0 and any(row["until"] for row in violations(demo_url)))
    return demo_url


@pytest.fixture
def rules_page(page: Page, judged_url: str) -> Page:
    del judged_url
    return page


def rules_due(url: str) -> float:
    """Rules that have not yet evaluated the stored history, from the server's own metrics."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as response:
        (due,) = re.findall(r"^clusterscape_rules_due (\S+)$", response.read().decode(), re.MULTILINE)
    return float(due)


def violations(url: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = get_json(f"{url}/api/v1/violations?hours=24")["violations"]
    return rows


def worst_open(url: str) -> dict[str, Any]:
    return next(row for row in violations(url) if row["until"] is None and not row["mute"])


def send(method: str, url: str, body: object = None) -> None:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=30).close()


def open_rules(page: Page, query: str = "") -> Locator:
    page.goto(f"/rules{query}")
    grid = page.get_by_role("grid", name="Violations")
    expect(grid).to_be_visible(timeout=90_000)
    return grid


def link_of(page: Page) -> str:
    return str(page.evaluate("location.pathname + location.search"))


def cells(grid: Locator, column: int) -> list[str]:
    """All of one column at one time: rows come and go while they are read one after the other."""
    texts: list[str] = grid.locator("tbody tr").evaluate_all(
        "(rows, column) => rows.map((row) => row.querySelectorAll('td')[column].innerText)", column
    )
    return texts


def test_violations_are_listed_by_cost_when_the_page_is_opened(rules_page: Page, judged_url: str) -> None:
    rules_page.goto("/")
    rules_page.get_by_role("navigation", name="Views").get_by_role("link", name="Rules").click()
    grid = rules_page.get_by_role("grid", name="Violations")
    first = grid.locator("tbody tr").first
    expect(first).to_be_visible(timeout=90_000)

    def is_worst_first() -> bool:
        """Waits until page and API agree; GPU-hours grow meanwhile."""
        worst, text = violations(judged_url)[0], first.inner_text()
        return worst["rule_name"] in text and worst["user"] in text

    wait_until(is_worst_first, 90)
    hours = [float(text.replace(",", "").replace("<", "")) for text in cells(grid, 5)]
    assert hours == sorted(hours, reverse=True)
    expect(rules_page.get_by_role("region", name="Summary")).to_contain_text("GPU-hours in violation, 24 h")
    assert link_of(rules_page) == "/rules"


def test_rows_follow_every_filter_and_the_link_when_narrowed(rules_page: Page, judged_url: str) -> None:
    grid = open_rules(rules_page)
    worst = worst_open(judged_url)  # one that is past would not be listed under "Now"
    rules_page.get_by_role("region", name="Rules").get_by_text(worst["rule_name"], exact=True).click()
    bar = rules_page.get_by_role("list", name="GPU-hours in violation by user").get_by_role("button")
    bar.filter(has_text=worst["user"]).click()
    rules_page.get_by_role("radio", name="Now").check(force=True)
    expect(grid.locator("tbody tr").first).to_contain_text(worst["workload_name"])
    wait_until(lambda: set(cells(grid, 0)) == {worst["rule_name"]} and set(cells(grid, 2)) == {worst["user"]}, 90)
    link = link_of(rules_page)
    assert f"rule={worst['rule']}" in link
    assert f"whose={worst['user']}" in link
    assert "when=now" in link
    rules_page.goto(link)
    expect(rules_page.get_by_role("button", name=f"Show all, not only user {worst['user']}")).to_be_visible()
    expect(grid.locator("tbody tr").first).to_contain_text(worst["workload_name"])
    rules_page.get_by_role("textbox", name="Filter violations").fill("no such thing")
    expect(rules_page.get_by_text("No violations match")).to_be_visible()
    rules_page.get_by_role("button", name="Clear filters").click()
    expect(grid.locator("tbody tr").nth(3)).to_be_visible()
    assert link_of(rules_page) == "/rules"


def test_order_is_in_the_link_when_a_heading_is_clicked(rules_page: Page) -> None:
    grid = open_rules(rules_page)
    grid.get_by_role("button", name="Workload").click()
    expect(grid.locator("th[aria-sort]")).to_have_attribute("aria-sort", "ascending")
    assert "by=workload" in link_of(rules_page)
    wait_for_frames(rules_page)
    names = [re.sub(r"\d+$", "", text).lower() for text in cells(grid, 1)]
    assert names[0] <= names[5]


def test_time_is_narrowed_when_a_range_is_drawn_on_the_timeline(rules_page: Page) -> None:
    open_rules(rules_page)
    chart = rules_page.get_by_role("group", name="GPUs in violation over time, by rule")
    box = chart.bounding_box()
    assert box is not None
    rules_page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 30)
    expect(chart.get_by_role("status")).to_contain_text("GPU")
    rules_page.mouse.down()
    rules_page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 30, steps=6)
    rules_page.mouse.up()
    expect(rules_page.get_by_role("region", name="Summary")).to_contain_text("chosen time")
    assert re.search(r"between=\d{4}-\d\d-\d\dT\d\d:\d\dZ~", link_of(rules_page))
    rules_page.get_by_role("button", name="Show all", exact=True).click()
    expect(rules_page.get_by_role("region", name="Summary")).to_contain_text("24 h")
    chart.focus()
    rules_page.keyboard.press("ArrowLeft")
    rules_page.keyboard.press("Shift+ArrowLeft")
    expect(rules_page.get_by_role("region", name="Summary")).to_contain_text("chosen time")
    rules_page.keyboard.press("Escape")
    expect(rules_page.get_by_role("region", name="Summary")).to_contain_text("24 h")


def test_details_show_the_violation_and_links_when_a_row_is_chosen(rules_page: Page, judged_url: str) -> None:
    worst = worst_open(judged_url)
    grid = open_rules(rules_page)
    grid.locator("tbody tr").filter(has_text=worst["workload_name"]).filter(has_text=worst["rule_name"]).first.click()
    details = rules_page.get_by_role("complementary", name="Details")
    expect(details.get_by_role("heading", level=1)).to_have_text(worst["workload_name"])
    expect(details.get_by_role("region", name="Violations", exact=True)).to_contain_text(worst["rule_name"])
    expect(details.get_by_role("img", name=re.compile("times in violation are shaded")).first).to_be_visible()
    expect(details.get_by_role("region", name="Rules now")).to_contain_text("broken")
    assert f"select=workload:{worst['workload']}" in link_of(rules_page)
    details.get_by_role("button", name="Show in the overview").click()
    expect(rules_page.get_by_role("complementary", name="Details")).to_contain_text(worst["workload_name"])
    views = rules_page.get_by_role("navigation", name="Views")
    expect(views.locator("[aria-current=page]")).to_have_text("Overview")


def test_violation_is_muted_with_reason_until_it_is_ended_when_muted(rules_page: Page, judged_url: str) -> None:
    worst = worst_open(judged_url)
    open_rules(rules_page, f"?select=workload:{worst['workload']}&broke={worst['rule']}")
    details = rules_page.get_by_role("complementary", name="Details")
    details.get_by_role("button", name="Mute…").click()
    details.get_by_role("textbox", name="Reason").fill("known, being fixed")
    details.get_by_role("textbox", name="Your name").fill("ada")
    details.get_by_role("button", name="Mute", exact=True).click()
    expect(details).to_contain_text("Muted for this workload by ada")
    expect(rules_page.get_by_role("row", selected=True)).to_contain_text("muted")
    rules_page.goto("/rules?when=muted")
    expect(rules_page.get_by_role("grid", name="Violations").locator("tbody tr")).to_have_count(1)
    rules_page.goto("/rules?list=rules")
    mutes = rules_page.get_by_role("region", name="Mutes")
    expect(mutes).to_contain_text("known, being fixed")
    mutes.get_by_role("button", name="Unmute").click()
    expect(mutes).to_contain_text("No mutes.")
    assert get_json(f"{judged_url}/api/v1/mutes") == []


def test_comment_stays_until_it_is_removed_when_written(rules_page: Page, judged_url: str) -> None:
    worst = worst_open(judged_url)
    open_rules(rules_page, f"?select=workload:{worst['workload']}")
    card = rules_page.get_by_role("region", name="Comments")
    card.get_by_role("textbox", name="Comment", exact=True).fill("<b>waits</b> for\nthe data loader")
    card.get_by_role("textbox", name="Comment as").fill("grace")
    card.get_by_role("button", name="Comment", exact=True).click()
    expect(card.get_by_role("listitem")).to_contain_text("<b>waits</b> for")
    rules_page.reload()
    expect(card.get_by_role("listitem")).to_contain_text("grace")
    card.get_by_role("button", name="Remove comment by grace").click()
    expect(card.get_by_role("listitem")).to_have_count(0)


def test_rules_are_explained_switched_and_ordered_when_listed(rules_page: Page, judged_url: str) -> None:
    open_rules(rules_page)
    rules_page.get_by_role("radio", name=re.compile("^Rules")).check(force=True)
    rows = rules_page.get_by_role("region", name="All rules").locator("ol > li")
    expect(rows.first).to_be_visible()
    names = [row.locator("b").first.inner_text() for row in rows.all()]
    assert len(names) == len(get_json(f"{judged_url}/api/v1/rules")["rules"])
    rows.first.get_by_role("button", name=re.compile(re.escape(names[0]))).first.click()
    expect(rows.first).to_contain_text("Applies to every workload")
    switch = rules_page.get_by_role("switch", name=f"Enable {names[-1]}")
    switch.click()
    expect(switch).not_to_be_checked()
    wait_until(lambda: not get_json(f"{judged_url}/api/v1/rules")["rules"][-1]["is_enabled"])
    switch.click()
    expect(switch).to_be_checked()
    wait_until(lambda: get_json(f"{judged_url}/api/v1/rules")["rules"][-1]["is_enabled"])
    rules_page.get_by_role("button", name=f"Move {names[0]} down").click()
    expect(rows.nth(1)).to_contain_text(names[0])
    rules_page.get_by_role("button", name=f"Move {names[0]} up").click()
    expect(rows.first).to_contain_text(names[0])
    expect(rules_page.get_by_role("region", name="Alert channels")).to_contain_text("No channels.")


def test_rule_is_edited_in_the_editor_when_asked(rules_page: Page) -> None:
    rules_page.goto("/rules?list=rules")
    rules_page.get_by_role("button", name="Edit Low utilization").click()
    expect(rules_page.get_by_role("dialog")).to_contain_text("Edit Low utilization")
    rules_page.keyboard.press("Escape")
    rules_page.get_by_role("button", name="New rule").click()
    expect(rules_page.get_by_role("dialog")).to_contain_text("New rule")


def test_new_rule_shows_its_past_when_it_is_added(rules_page: Page, judged_url: str) -> None:
    name = "GPUs that ever drew power " + "x" * 70
    body = {"text": "power max > 1W after 30m", "name": name, "severity": "info"}
    send("PUT", f"{judged_url}/api/v1/rules/everybody", body)
    try:
        past = f"{judged_url}/api/v1/violations?rule=everybody&is_open=false"
        wait_until(lambda: bool(get_json(past)["violations"]), 60)
        grid = open_rules(rules_page, "?rule=everybody&when=past")
        expect(grid.locator("tbody tr").first).to_contain_text("GPUs that ever drew power")
    finally:
        send("DELETE", f"{judged_url}/api/v1/rules/everybody")
    rules_page.goto("/rules?rule=everybody")
    expect(rules_page.get_by_text("No rule is named everybody")).to_be_visible()
    expect(rules_page.get_by_text("No violations match")).to_be_visible()


def test_link_with_nonsense_still_shows_the_page_when_opened(page: Page, judged_url: str) -> None:
    del judged_url
    grid = open_rules(page, "?span=1y&severity=huge&by=color&between=yesterday&when=ever")
    expect(grid.locator("tbody tr").first).to_be_visible()
    expect(page.get_by_text("The link says span=1y")).to_be_visible()


@pytest.fixture
def tolerant_page(browser: Browser, judged_url: str) -> Iterator[Page]:
    """A page that may have failed requests."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=judged_url)
    page = context.new_page()
    yield page
    page.unroute_all(behavior="ignoreErrors")
    context.close()


def test_gone_workload_is_said_when_a_link_names_it(tolerant_page: Page) -> None:
    open_rules(tolerant_page, "?select=workload:slurm:0000")
    details = tolerant_page.get_by_role("complementary", name="Details")
    expect(details).to_contain_text("No workload")
    details.get_by_role("button", name="Close details").click()
    expect(details).to_be_hidden()


def answer_with(page: Page, url: str, rows: list[dict[str, Any]], file: Path) -> None:
    """The page gets these violations in place of the server's; they are written once, for every tick asks again."""
    whole = get_json(f"{url}/api/v1/violations?hours=24")
    file.write_text(json.dumps({**whole, "violations": rows, "gpu_hours": sum(row["gpu_hours"] for row in rows)}))
    page.route(
        re.compile(r"/api/v1/violations\?"),
        lambda route: route.fulfill(path=file, content_type="application/json"),
    )


def test_empty_state_is_shown_when_nothing_was_broken(tolerant_page: Page, judged_url: str, tmp_path: Path) -> None:
    answer_with(tolerant_page, judged_url, [], tmp_path / "violations.json")
    tolerant_page.goto("/rules")
    expect(tolerant_page.get_by_text("No violations")).to_be_visible()
    tolerant_page.get_by_role("button", name="Show 30 days").click()
    expect(tolerant_page.get_by_text("No workload broke a rule in the last 30 d.")).to_be_visible()


def test_only_visible_rows_are_drawn_when_there_are_thousands(
    tolerant_page: Page, judged_url: str, tmp_path: Path
) -> None:
    violation = violations(judged_url)[0]
    long = "n" * 200
    many = [
        {
            **violation,
            "workload": f"slurm:{index}",
            "workload_name": long,
            "user": f"{long}{index % 50}",
            "gpu_hours": index,
        }
        for index in range(10_000)
    ]
    answer_with(tolerant_page, judged_url, many, tmp_path / "violations.json")
    grid = open_rules(tolerant_page)
    expect(grid).to_have_attribute("aria-rowcount", "10001")
    expect(grid.locator("tbody tr").first).to_contain_text("9,999")
    assert grid.locator("tbody tr").count() < 100
    tolerant_page.get_by_role("textbox", name="Filter violations").fill("slurm:77")
    expect(grid).to_have_attribute("aria-rowcount", "112")
    overflow = tolerant_page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow == 0


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768)])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_is_pictured_when_open(browser: Browser, judged_url: str, width: int, height: int, theme: Any) -> None:
    worst = worst_open(judged_url)
    context = browser.new_context(viewport={"width": width, "height": height}, base_url=judged_url, color_scheme=theme)
    page = context.new_page()
    OUTPUT.mkdir(exist_ok=True)
    open_rules(page)
    page.screenshot(path=OUTPUT / f"rules-{width}-{theme}.png")
    open_rules(page, f"?select=workload:{worst['workload']}&broke={worst['rule']}")
    expect(page.get_by_role("region", name="Violations", exact=True)).to_be_visible()
    page.screenshot(path=OUTPUT / f"rules-details-{width}-{theme}.png")
    page.goto("/rules?list=rules")
    expect(page.get_by_role("region", name="Alert channels")).to_be_visible()
    page.screenshot(path=OUTPUT / f"rules-book-{width}-{theme}.png")
    context.close()
