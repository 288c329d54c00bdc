"""What operators ask of several views, each on the running demo: what waits and why, what is stranded, rules and nodes."""

import re
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from servers.demo import get_json, wait_until
from servers.picture import open_held_picture, read_address

pytestmark = pytest.mark.browser


def waiting_of(url: str) -> list[dict[str, Any]]:
    listed = get_json(f"{url}/api/v1/workloads?state=waiting&limit=10000")["workloads"]
    return [row for row in listed if row["gpus_requested"]]


def test_waiting_view_counts_gpus_or_workloads_and_keeps_those_apart_that_wait_for_something_else(
    page: Page, demo_url: str
) -> None:
    picture = open_held_picture(page, "/?picture=waiting-by-resource-type")
    waiting = waiting_of(demo_url)
    gpus = int(picture.get_attribute("data-unit-count") or 0)
    assert gpus > 0
    if gpus != sum(row["gpus_requested"] for row in waiting):
        page.reload()  # a workload started between the two
        picture = open_held_picture(page, "/?picture=waiting-by-resource-type")
        waiting = waiting_of(demo_url)

    # The outermost boxes say what for: those that wait for anything but GPUs stand apart.
    kinds = {row["waits_for"] for row in waiting}
    assert "room" in kinds
    description = picture.locator("p").first
    expect(description).to_contain_text("grouped by waits for, then resource type, then workload")
    expect(description).to_contain_text("free GPUs with")

    bar = page.get_by_role("region", name="Waiting")
    bar.get_by_role("group", name="A square is one of the").get_by_text("Workloads").click()
    page.wait_for_url(re.compile("layout="))
    wait_until(lambda: picture.get_attribute("data-unit-count") == str(len(waiting)), limit_s=90)
    expect(page.get_by_role("status").filter(has_text=f"{len(waiting)} workload").first).to_be_visible()

    # The trend names every type that waits, and counts as the picture does.
    types = Counter(row["resource_type"] for row in waiting)
    legend = bar.get_by_role("list", name="Resource types")
    for name in types:
        expect(legend).to_contain_text(name)
    trend = bar.get_by_role("group", name="Waiting workloads by resource type over the last 24 hours")
    expect(bar.get_by_text(re.compile(r"^\d\d:00$")).first).to_be_visible()
    trend.focus()
    page.keyboard.press("ArrowLeft")
    expect(trend).to_contain_text(re.compile(r"\d+\sworkloads?"))
    bar.get_by_text("GPUs", exact=True).click()
    expect(bar.get_by_role("group", name=re.compile("^Waiting GPUs by resource type"))).to_be_visible()
    wait_until(lambda: "layout=" not in read_address(page))


def test_timeline_by_type_adds_up_to_all_that_waits(demo_url: str) -> None:
    timeline = get_json(f"{demo_url}/api/v1/timeline?points=100")
    assert timeline["waiting"]
    for step, total in enumerate(timeline["waiting_gpus"]):
        assert sum(row["gpus"][step] for row in timeline["waiting"]) == total


def smallest_requests(waiting: list[dict[str, Any]], partition: str) -> int | None:
    """The fewest GPUs on one node that a workload of the partition needs that waits for nothing but GPUs."""
    needs = [
        -(-row["gpus_requested"] // max(1, row["nodes_requested"] or 1))
        for row in waiting
        if row["partition"] == partition and row["waits_for"] == "room"
    ]
    return min(needs, default=None)


def test_stranded_gpus_are_those_that_no_workload_in_line_for_gpus_can_use(page: Page, demo_url: str) -> None:
    page.goto("/")
    stranded = page.get_by_role("region", name="Summary").get_by_role("button", name=re.compile("stranded$"))
    expect(stranded).to_be_visible()

    def is_demand_of_those_in_line() -> bool:
        cluster, waiting = get_json(f"{demo_url}/api/v1/cluster"), waiting_of(demo_url)
        places = [(part["name"], place) for part in cluster["partitions"] for place in part["largest_startable"]]
        for name, place in places:
            smallest = smallest_requests(waiting, name)
            if place["smallest_request"] != smallest:
                return False
            if smallest is not None and place["one_node_gpus"] < smallest:
                assert place["stranded"] == place["free"]
        return any(place["stranded"] for _, place in places)

    wait_until(is_demand_of_those_in_line, limit_s=90)
    stranded.click()
    page.wait_for_url(re.compile("where=free_use:stranded"))

    def says_how_many() -> bool:
        count = get_json(f"{demo_url}/api/v1/cluster")["stranded"]
        return page.get_by_role("status").filter(has_text=f"{count} of 256").count() == 1

    wait_until(says_how_many, limit_s=90)


def largest_running(url: str) -> dict[str, Any]:
    rows = get_json(f"{url}/api/v1/workloads?state=running&limit=10000")["workloads"]
    return dict(max(rows, key=lambda row: row["gpus_allocated"]))


def test_rule_is_made_tried_edited_and_deleted_without_leaving_the_diagnosis(page: Page, demo_url: str) -> None:
    workload = largest_running(demo_url)["workload"]
    page.goto(f"/diagnostics?workload={workload}")
    page.get_by_role("button", name="+ rule").click()
    sheet = page.get_by_role("dialog", name="New rule")
    sheet.get_by_label("Name", exact=True).fill("Warm enough")
    sheet.get_by_label("Text", exact=True).check()
    sheet.get_by_role("combobox", name="Rule as text").fill("gpu_util p5 < 15%")
    expect(sheet.get_by_text("GPU utilization, 5th percentile")).to_be_visible()
    sheet.get_by_role("button", name="Last 24 h").click()
    expect(sheet.get_by_text(re.compile(r"would (not )?have fired"))).to_be_visible()
    sheet.get_by_role("button", name="Add rule").click()
    expect(sheet).to_have_count(0)
    mark = page.get_by_role("list", name="Rules").get_by_role("button", name=re.compile("^Warm enough: "))
    mark.click()
    page.get_by_role("menuitem", name="Edit …").click()
    edited = page.get_by_role("dialog", name="Edit Warm enough")
    expect(edited.get_by_label("Name", exact=True)).to_have_value("Warm enough")
    page.keyboard.press("Escape")
    assert f"workload={workload}" in read_address(page).replace("%3A", ":")
    mark.click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(mark).to_have_count(0)


def test_node_is_opened_as_a_whole_from_the_diagnosis_of_one_of_its_workloads(page: Page, demo_url: str) -> None:
    row = largest_running(demo_url)
    node = sorted(row["nodes"])[0]
    page.goto(f"/diagnostics?workload={row['workload']}")
    page.get_by_role("button", name="open a node ▾").click()
    page.get_by_role("menuitem", name=node).click()
    page.wait_for_url(re.compile(rf"select=node(:|%3A){node}"))
    details = page.get_by_role("complementary", name="Details")
    expect(details.get_by_role("heading", name=node)).to_be_visible()
    expect(details.get_by_role("heading", name=re.compile(r"^\d+ workloads?$"))).to_be_visible()
    expect(details.get_by_role("heading", name="Last 6 hours")).to_be_visible()


def ticks_stand_apart(heading: Locator) -> bool:
    """Whether no label of the axis touches the next one."""
    boxes = [box for tick in heading.locator("i").all() if (box := tick.bounding_box())]
    return len(boxes) > 1 and all(left["x"] + left["width"] < right["x"] for left, right in pairwise(boxes))


def test_queue_has_a_labelled_axis_and_lists_blocked_workloads_after_those_in_line(page: Page, demo_url: str) -> None:
    page.goto("/scheduling")
    table = page.get_by_role("grid", name="Waiting workloads")
    heading = table.get_by_role("columnheader", name=re.compile("^Likely start"))
    for width in (1024, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        expect(heading).to_contain_text("now")
        expect(heading).to_contain_text(re.compile(r"\d\s[hd]"))
        wait_until(lambda: ticks_stand_apart(heading))
    expect(table.get_by_role("row").nth(1)).to_be_visible()
    places = [row.get_by_role("gridcell").first.inner_text() for row in table.get_by_role("row").all()[1:]]
    in_line = [bool(re.fullmatch(r"[\d,]+", place)) for place in places]
    assert any(in_line)
    assert in_line == sorted(in_line, reverse=True)


def test_diagnosis_begins_where_samples_do_and_its_axes_have_ticks(page: Page, demo_url: str) -> None:
    workload = largest_running(demo_url)["workload"]
    page.goto(f"/diagnostics?workload={workload}")
    scatter = page.get_by_role("region", name="Two metrics")
    expect(scatter.get_by_text(re.compile(r"^\d+\sW$")).nth(1)).to_be_visible()
    timeline = page.get_by_role("region", name="Timeline", exact=True)
    expect(timeline.get_by_role("button", name=re.compile("Metrics|GPU utilization")).first).to_be_visible()
    for tick in ("0\u00a0%", "50\u00a0%", "100\u00a0%"):
        expect(timeline.get_by_text(tick, exact=True).first).to_be_visible()
    # At this width the head is one line: what to compare with stands beside the rules.
    page.set_viewport_size({"width": 1440, "height": 900})
    rules, compare = page.get_by_role("list", name="Rules"), page.get_by_role("combobox", name="Compare with")
    expect(compare).to_be_visible()
    above, below = rules.bounding_box(), compare.bounding_box()
    assert above is not None
    assert below is not None
    assert below["y"] < above["y"] + above["height"]
    answer = get_json(f"{demo_url}/api/v1/workloads/{workload}/diagnosis")
    if any("first sample is" in note for note in answer["notes"]):
        expect(timeline).to_contain_text("Begins with the first sample")
