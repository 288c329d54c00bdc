"""Consistency of all views: time, filters, export, sharing, selection and the back button."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from servers.demo import get_json, wait_until

pytestmark = pytest.mark.browser

SLOW_MS = 120_000
MINUTE_MS = 60_000
VIEWS = ["Overview", "Rules", "Diagnostics", "Parallel", "Scheduling", "Runs"]
ORDER = ["CSV", "Parquet", "JSON", "PNG", "SVG", "HTML", "Copy link"]
"""Order of the entries in export menus."""


def open_view(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Views").get_by_role("link", name=name).click()
    expect(page.get_by_role("link", name=name, exact=True)).to_have_attribute("aria-current", "page")


def largest(url: str) -> dict[str, object]:
    """The running workload with most GPUs."""
    running = get_json(f"{url}/api/v1/workloads?state=running&limit=1000")["workloads"]
    return dict(max(running, key=lambda workload: (workload["gpus_requested"], workload["workload"])))


def past(url: str, minutes: int) -> str:
    now = int(get_json(f"{url}/api/v1/cluster")["at"])
    return f"{datetime.fromtimestamp(now / 1000 - minutes * 60, UTC):%Y-%m-%dT%H:%MZ}"


def details(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Details")


def test_time_and_selection_are_kept_when_switching_through_all_views(page: Page, demo_url: str) -> None:
    workload, at = str(largest(demo_url)["workload"]), past(demo_url, 5)
    page.goto(f"/?select=workload:{workload}&at={at}")
    expect(page.get_by_role("button", name=re.compile("^past: .* back to now"))).to_be_visible()
    for name in VIEWS[1:]:
        open_view(page, name)
        expect(page).to_have_url(re.compile(rf"select=workload:{workload}.*at={at}"))
        is_past = name in ("Rules", "Diagnostics")
        said = "past" if is_past else "past elsewhere"
        expect(page.get_by_role("button", name=re.compile(rf"^{said}: .* back to now"))).to_be_visible()
    # Each view was one step.
    for name in reversed(VIEWS[:-1]):
        page.go_back()
        expect(page.get_by_role("link", name=name, exact=True)).to_have_attribute("aria-current", "page")
    page.go_forward()
    expect(page.get_by_role("link", name="Rules", exact=True)).to_have_attribute("aria-current", "page")
    page.get_by_role("button", name=re.compile("back to now")).click()
    expect(page).not_to_have_url(re.compile("at="))
    page.go_back()
    expect(page).to_have_url(re.compile(f"at={at}"))


@pytest.mark.parametrize("path", ["/", "/rules"])
def test_time_is_picked_by_the_same_bar_and_keys_when_a_view_has_a_past(page: Page, path: str) -> None:
    page.goto(path)
    track = page.get_by_role("slider", name="Time shown")
    expect(track.locator("svg")).to_be_visible(timeout=SLOW_MS)
    track.focus()
    page.keyboard.press("Shift+ArrowLeft")
    expect(page).to_have_url(re.compile("at="))
    first = page.evaluate("location.href")
    length = page.evaluate("history.length")
    page.keyboard.press("ArrowLeft")
    expect(page).not_to_have_url(first)
    assert page.evaluate("history.length") == length, "steps through time are one entry"
    page.keyboard.press("End")
    expect(page).not_to_have_url(re.compile("at="))


def test_windows_are_drawn_by_the_same_keys_when_time_is_drawn(page: Page, demo_url: str) -> None:
    page.goto(f"/diagnostics?workload={largest(demo_url)['workload']}")
    timeline = page.get_by_role("region", name="Timeline")
    chart = timeline.get_by_role("group").first
    expect(chart).to_be_visible(timeout=SLOW_MS)
    length = page.evaluate("history.length")
    draw(page, chart)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("window="))
    assert page.evaluate("history.length") == length + 1, "drawing is no step, zooming is one"
    window = re.search(r"window=[^&]+", page.evaluate("location.href"))
    assert window is not None
    for name in ("Parallel", "Overview", "Diagnostics"):
        open_view(page, name)
        expect(page).to_have_url(re.compile(re.escape(window.group())))
    expect(timeline.get_by_role("button", name="Whole life")).to_be_visible(timeout=SLOW_MS)
    timeline.get_by_role("group").first.focus()
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("window="))

    page.goto("/rules?span=24h")
    chart = page.get_by_role("group", name=re.compile("^GPUs in violation over time"))
    expect(chart).to_be_visible(timeout=SLOW_MS)
    length = page.evaluate("history.length")
    draw(page, chart)
    expect(page).to_have_url(re.compile("between="))
    assert page.evaluate("history.length") == length + 1
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("between="))


def draw(page: Page, chart: Locator) -> None:
    chart.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    for _ in range(6):
        page.keyboard.press("Shift+ArrowRight")


def open_queue(page: Page) -> bool:
    """Whether any workload waits."""
    page.goto("/scheduling")
    box = page.get_by_role("textbox", name="Filter workloads")
    expect(box.or_(page.get_by_text("No workloads waiting"))).to_be_visible(timeout=SLOW_MS)
    return box.is_visible()


def kinds_of(page: Page, subject: str) -> list[str]:
    """Entries of an export menu, which is closed again."""
    button = page.get_by_role("button", name=f"Export {subject}", exact=True)
    expect(button).to_be_visible(timeout=SLOW_MS)
    button.click()
    items = page.get_by_role("menu").get_by_role("menuitem")
    expect(items.last).to_contain_text("Copy link")
    kinds = [next(kind for kind in ORDER if text.startswith(kind)) for text in items.all_inner_texts()]
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    return kinds


def test_the_same_export_menu_is_offered_when_a_view_has_data(page: Page, demo_url: str) -> None:
    wait_until(lambda: bool(get_json(f"{demo_url}/api/v1/runs/tree")["rows"]))
    workload = largest(demo_url)["workload"]
    offered = {
        ("/", "the picture"): ["PNG", "SVG", "Copy link"],
        ("/?table=units", "these rows"): ["CSV", "Parquet", "Copy link"],
        ("/?table=workloads", "these rows"): ["CSV", "Copy link"],
        ("/rules", "these violations"): ["CSV", "Copy link"],
        (f"/diagnostics?workload={workload}", "Timeline"): ["PNG", "SVG", "Copy link"],
        ("/scheduling?tab=history", "How jobs end"): ["CSV", "PNG", "SVG", "Copy link"],
        ("/runs", "the comparison"): ["CSV", "PNG", "SVG", "HTML", "Copy link"],
    }
    for (path, subject), kinds in offered.items():
        page.goto(path)
        assert kinds_of(page, subject) == kinds, path
    if open_queue(page):
        assert kinds_of(page, "these workloads") == ["CSV", "Copy link"]


@pytest.fixture
def sharing(browser: Browser, demo_url: str) -> Iterator[Page]:
    """A page whose clipboard can be read."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=demo_url)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(SLOW_MS)
    yield page
    context.close()


def test_link_brings_everything_back_elsewhere_when_it_was_copied(
    sharing: Page, browser: Browser, demo_url: str
) -> None:
    sharing.goto("/?table=workloads")
    box = sharing.get_by_role("textbox", name="Filter workloads")
    box.fill("gpus>=1 state=running")
    expect(sharing).to_have_url(re.compile(r"q=gpus"))
    rows = sharing.get_by_role("status").filter(has_text=re.compile(r"\d+( of | rows)"))
    sharing.get_by_role("row").nth(1).click()
    expect(details(sharing).get_by_role("region", name="Facts")).to_be_visible()  # before, the heading is the id
    shown = details(sharing).get_by_role("heading", level=1).inner_text()
    sharing.get_by_role("button", name="Export these rows").click()
    sharing.get_by_role("menuitem", name=re.compile("Copy link")).click()
    expect(sharing.get_by_role("menuitem", name=re.compile("Link copied"))).to_be_visible()
    link = sharing.evaluate("navigator.clipboard.readText()")
    assert link == sharing.evaluate("location.href")

    other = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    other.goto(link)
    expect(other.get_by_role("textbox", name="Filter workloads")).to_have_value("gpus>=1 state=running")
    expect(details(other).get_by_role("heading", level=1, name=shown)).to_be_visible(timeout=SLOW_MS)
    elsewhere = other.get_by_role("status").filter(has_text=re.compile(r"\d+( of | rows)"))
    wait_until(lambda: elsewhere.inner_text() == rows.inner_text())  # jobs start and end meanwhile
    other.context.close()


def test_the_same_words_filter_when_they_are_typed_anywhere(page: Page, demo_url: str) -> None:
    running = get_json(f"{demo_url}/api/v1/workloads?state=running&limit=10000")["workloads"]
    user = next(workload["user"] for workload in running if workload["user"])
    page.goto("/?table=workloads&workload_state=running")
    page.get_by_role("textbox", name="Filter workloads").fill(f"user={user.upper()} gpus>0")
    rows = page.get_by_role("grid").get_by_role("row")
    own = rows.filter(has_text=user)
    expect(own.first).to_be_visible(timeout=SLOW_MS)
    wait_until(lambda: rows.count() == own.count() + 1)  # jobs start and end meanwhile

    page.goto("/rules")
    expect(page.get_by_role("grid")).to_be_visible(timeout=SLOW_MS)
    page.get_by_role("textbox", name="Filter violations").fill("gpus<0")
    expect(page.get_by_role("status").filter(has_text=re.compile("^0 of "))).to_be_visible()

    if open_queue(page):
        page.get_by_role("textbox", name="Filter workloads").fill("gpus>0")
        expect(page.get_by_role("grid", name="Waiting workloads")).to_be_visible(timeout=SLOW_MS)
        page.get_by_role("textbox", name="Filter workloads").fill("gpus<0")
        expect(page.get_by_text("No waiting workloads match.")).to_be_visible()

    wait_until(lambda: bool(get_json(f"{demo_url}/api/v1/runs/tree")["rows"]))
    page.goto("/runs")
    page.get_by_role("textbox", name="Filter runs").fill("state=nothing")
    expect(page.get_by_text("No runs match.")).to_be_visible(timeout=SLOW_MS)


def test_every_view_shows_the_workload_when_it_is_selected_in_one(page: Page, demo_url: str) -> None:
    chosen = largest(demo_url)
    workload, name = str(chosen["workload"]), str(chosen["name"])
    wait_until(lambda: bool(get_json(f"{demo_url}/api/v1/runs/tree")["rows"]))
    page.goto(f"/?select=workload:{workload}")
    expect(details(page).get_by_role("heading", name=name)).to_be_visible(timeout=SLOW_MS)
    open_view(page, "Diagnostics")
    expect(page.get_by_role("heading", level=1, name=name)).to_be_visible(timeout=SLOW_MS)
    open_view(page, "Rules")
    expect(details(page).get_by_role("heading", name=name)).to_be_visible(timeout=SLOW_MS)
    open_view(page, "Scheduling")
    expect(details(page)).to_be_visible(timeout=SLOW_MS)
    open_view(page, "Runs")
    expect(page.get_by_text(f"The selected workload {workload} has no tracked runs")).to_be_visible(timeout=SLOW_MS)

    # And the other way round: a run that is opened is what the others show.
    run = get_json(f"{demo_url}/api/v1/runs/tree")["rows"][0]
    page.goto(f"/runs?select=workload:{run['workload']}")
    expect(details(page)).to_contain_text(f"Run {run['run']}", timeout=SLOW_MS)
    page.get_by_role("button", name="Close details").click()
    expect(page).not_to_have_url(re.compile("select="))


def test_views_are_filtered_by_user_when_a_users_group_is_selected(page: Page, demo_url: str) -> None:
    running = get_json(f"{demo_url}/api/v1/workloads?state=running&limit=1000")["workloads"]
    owner = next(workload for workload in running if workload["user"] and workload["project"])
    page.goto(f"/?select=group:gpus/project={owner['project']}/user={owner['user']}")
    expect(details(page)).to_be_visible(timeout=SLOW_MS)
    open_view(page, "Rules")
    expect(page.get_by_role("button", name=f"Show all, not only user {owner['user']}")).to_be_visible(timeout=SLOW_MS)
    page.go_back()
    expect(page).not_to_have_url(re.compile("[?&]user="))
    open_view(page, "Scheduling")
    expect(page).to_have_url(re.compile(f"find_waiting=user={owner['user']}"))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/diagnostics?workload=slurm:nobody", "Could not find the diagnosis"),
        ("/scheduling?select=workload:slurm:nobody", "Could not find the explanation"),
        ("/rules?select=workload:slurm:nobody", "Could not find the workload"),
        ("/?select=workload:slurm:nobody", "Could not find the workload"),
        ("/runs?run_open=nobody", "Could not find the run"),
        ("/parallel?trace=t-nobody", "Could not find the trace"),
    ],
)
def test_missing_target_is_reported_when_a_link_names_it(browser: Browser, demo_url: str, path: str, said: str) -> None:
    # Not the fixture's page: the browser logs a 404 as an error.
    context = browser.new_context(base_url=demo_url)
    page = context.new_page()
    page.goto(path)
    expect(page.get_by_role("alert").filter(has_text=said).first).to_be_visible(timeout=SLOW_MS)
    context.close()
