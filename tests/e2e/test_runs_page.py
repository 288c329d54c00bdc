"""The runs page on the demo: choose runs, compare them in every drawing, open one, save an insight, take the link along."""

import re
import struct
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from hangs.made_up import write_case
from playwright.sync_api import Page, expect
from servers.demo import get_json, wait_until
from servers.picture import read_address

from clusterscape.analyze.hang.condense import condense_look
from clusterscape.collect.hangs.reading import read_looks
from clusterscape.model.hangs import write_plain
from clusterscape.model.run_frames import encode_event

pytestmark = pytest.mark.browser

EXPERIMENT = "sharing a GPU"
RUNS = 30


@pytest.fixture(scope="module")
def runs_url(demo_url: str) -> str:
    """The demo once it has sent its tracked runs."""

    def has_all() -> bool:
        return len(get_json(f"{demo_url}/api/v1/runs/tree")["rows"]) == RUNS

    wait_until(has_all, 120)
    return demo_url


@pytest.fixture
def runs_page(page: Page, runs_url: str) -> Page:
    del runs_url
    page.goto("/runs")
    expect(page.get_by_role("list", name="Legend")).to_be_visible(timeout=90_000)
    return page


def test_repeats_are_compared_at_once_when_nothing_was_chosen(runs_page: Page) -> None:
    legend = runs_page.get_by_role("list", name="Legend")
    expect(legend).to_contain_text("alone")
    expect(legend).to_contain_text("mps · A")
    expect(legend).to_contain_text("×3")
    for metric in ("loss", "GPU utilization", "Power"):
        expect(runs_page.get_by_role("region", name=metric, exact=True)).to_be_visible()


def test_the_cost_of_sharing_is_shown_when_bars_are_drawn(runs_page: Page) -> None:
    runs_page.get_by_text("Bars", exact=True).click()
    card = runs_page.get_by_role("region", name="Slowdown", exact=True)
    slowdown = re.compile(r"time slices · A\s*([\d.]+)")
    expect(card).to_contain_text(slowdown)
    slowed = slowdown.search(card.inner_text())
    assert slowed is not None
    assert 1.5 < float(slowed.group(1)) < 2.5  # two at once on one GPU
    expect(runs_page.get_by_role("region", name="GPU energy")).to_contain_text("estimated")


def test_runs_are_found_by_their_parameters_when_searched(runs_page: Page) -> None:
    runs_page.get_by_role("textbox", name="Filter runs").fill("batch-size=512")
    picker = runs_page.get_by_role("region", name="Runs to compare")
    expect(picker.get_by_role("button", name="batch size")).to_be_visible()
    expect(picker.get_by_role("button", name=EXPERIMENT)).to_have_count(0)
    runs_page.get_by_role("textbox", name="Filter runs").fill("batch-size>4000")
    expect(picker).to_contain_text("No runs match.")


def test_a_link_shows_the_same_comparison_when_it_is_opened_again(runs_page: Page) -> None:
    picker = runs_page.get_by_role("region", name="Runs to compare")
    picker.get_by_role("checkbox", name=f"Compare all of {EXPERIMENT}").click()
    picker.get_by_role("checkbox", name="Compare all of batch size").check()
    expect(runs_page.get_by_role("list", name="Legend")).not_to_contain_text("mps")
    runs_page.get_by_text("Scatter", exact=True).click()
    points = runs_page.locator("circle[role=button]")
    expect(points).to_have_count(get_count(runs_page))
    link = read_address(runs_page)
    runs_page.goto("about:blank")
    runs_page.goto(link)
    expect(points).to_have_count(get_count(runs_page))
    points.first.click()
    details = runs_page.get_by_role("complementary", name="Details")
    expect(details).to_contain_text("clusterscape run --repeat")
    runs_page.go_back()
    expect(details).to_have_count(0)


def get_count(page: Page) -> int:
    return len(re.findall(r"[?&]run=", read_address(page)))


def test_everything_is_in_the_table_and_its_file_when_asked_for(runs_page: Page, tmp_path: Path) -> None:
    runs_page.get_by_text("Table", exact=True).click()
    grid = runs_page.get_by_role("grid", name="Runs")
    expect(grid).to_contain_text("completed")
    runs_page.get_by_role("button", name="Export the comparison").click()
    with runs_page.expect_download() as waiting:
        runs_page.get_by_role("menuitem", name=re.compile("CSV")).click()
    file = tmp_path / "runs.csv"
    waiting.value.save_as(file)
    header, *lines = file.read_text().strip().splitlines()
    assert header.startswith("Run,Experiment,State")
    assert len(lines) == 20


def test_a_page_without_a_server_shows_the_charts_when_it_is_saved(runs_page: Page, tmp_path: Path) -> None:
    runs_page.get_by_role("button", name="Export the comparison").click()
    with runs_page.expect_download() as waiting:
        runs_page.get_by_role("menuitem", name=re.compile("HTML")).click()
    file = tmp_path / "runs.html"
    waiting.value.save_as(file)
    runs_page.goto(file.as_uri())
    expect(runs_page.locator("svg")).to_be_visible()
    expect(runs_page.locator("tbody tr")).to_have_count(20)


def test_an_exported_figure_has_title_legend_axes_and_caption(runs_page: Page, tmp_path: Path) -> None:
    """A figure is used elsewhere: it says by itself what is drawn, of which runs, and when it was made."""
    expect(runs_page.get_by_role("region", name="Power", exact=True)).to_be_visible(timeout=90_000)
    shown = {name: save_figure(runs_page, tmp_path, name) for name in ("Lines", "Bars", "Scatter", "Params")}
    assert "Metrics over time" in shown["Lines"]
    assert {"loss", "GPU utilization", "Time"} <= set(re.findall(r">([^<>]+)</text>", shown["Lines"]))
    assert re.search(r"20\s+runs; .*repeats grouped; mean with", shown["Lines"])
    assert "Slowdown" in shown["Bars"]
    for name, svg in shown.items():
        assert EXPERIMENT in svg, name
        assert re.search(r"mps · A", svg), name
        assert re.search(r"\d{4}, \d\d:\d\d:\d\d .*ClusterScape", svg), name
        assert "Display as" not in svg, name
        assert re.search(r'<rect width="\d+" height="\d+" fill="rgb\(', svg), "it has a background"
    runs_page.get_by_role("button", name="Export the comparison").click()
    with runs_page.expect_download() as waiting:
        runs_page.get_by_role("menuitem", name=re.compile("PNG")).click()
    picture = tmp_path / "runs.png"
    waiting.value.save_as(picture)
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    svg_size = re.search(r'width="(\d+)" height="(\d+)"', shown["Params"])
    assert svg_size is not None
    assert (width, height) == tuple(2 * int(side) for side in svg_size.groups())


def save_figure(page: Page, folder: Path, drawing: str) -> str:
    """The comparison in one drawing, as SVG."""
    page.get_by_role("toolbar", name="Comparison").get_by_text(drawing, exact=True).click()
    page.get_by_role("button", name="Export the comparison").click()
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name=re.compile("SVG")).click()
    file = folder / f"{drawing}.svg"
    waiting.value.save_as(file)
    return file.read_text()


def test_an_insight_is_there_for_everybody_when_it_was_saved(runs_page: Page) -> None:
    runs_page.get_by_text("Bars", exact=True).click()
    runs_page.get_by_role("button", name=re.compile("^Insights")).click()
    runs_page.get_by_role("menuitem", name="Save this comparison…").click()
    runs_page.get_by_role("textbox", name="Insight name").fill("What sharing costs")
    runs_page.get_by_role("button", name="Save", exact=True).first.click()
    expect(runs_page.get_by_role("button", name="Insights 1")).to_be_visible()
    runs_page.goto("/runs")
    runs_page.get_by_role("button", name="Insights 1").click()
    runs_page.get_by_role("menuitem", name="What sharing costs").click()
    expect(runs_page.get_by_role("region", name="Slowdown", exact=True)).to_be_visible()


def test_unfinished_runs_and_repeats_are_told_apart_in_every_drawing(runs_page: Page) -> None:
    """A cancelled run looks fast: it is marked wherever it is drawn. Repeats of one name have numbers and dates."""
    picker = runs_page.get_by_role("region", name="Runs to compare")
    for name in ("waits for data #1", "waits for data #2", "alone #3", "time slices #1"):
        expect(picker.get_by_role("button", name=name, exact=True)).to_be_visible()
    expect(picker).to_contain_text("2 × time slices")
    legend = runs_page.get_by_role("list", name="Legend")
    stopped = legend.get_by_role("listitem").filter(has_text="stopped")
    expect(stopped).to_contain_text("cancelled")
    expect(legend.get_by_text("cancelled")).to_have_count(1)
    runs_page.get_by_text("Bars", exact=True).click()
    throughput = runs_page.get_by_role("region", name="Throughput, samples/s", exact=True)
    expect(throughput.get_by_text("cancelled")).to_have_count(1)
    expect(throughput.locator("[data-unfinished]")).to_have_count(1)
    runs_page.get_by_text("Scatter", exact=True).click()
    expect(runs_page.locator("circle[data-unfinished]")).to_have_count(1)
    runs_page.get_by_text("Params", exact=True).click()
    expect(runs_page.locator("path[stroke-dasharray='5 4']")).to_have_count(1)
    runs_page.get_by_text("Table", exact=True).click()
    expect(runs_page.get_by_role("grid", name="Runs")).to_contain_text("time slices")


def test_keys_reach_a_run_when_there_is_no_mouse(runs_page: Page) -> None:
    first = runs_page.get_by_role("region", name="Runs to compare").get_by_role("button", name="stopped")
    first.focus()
    runs_page.keyboard.press("Enter")
    details = runs_page.get_by_role("complementary", name="Details")
    expect(details).to_contain_text("cancelled")
    expect(details.get_by_role("region", name="Time", exact=True)).to_contain_text("Running")


def test_run_is_gone_when_it_is_deleted_after_a_question(runs_page: Page, runs_url: str) -> None:
    """The last test of this file: the demo has one run less from here on."""
    rows = get_json(f"{runs_url}/api/v1/runs/tree")["rows"]
    stopped = next(row["run"] for row in rows if row["state"] == "cancelled")
    runs_page.goto(f"/runs?run_open={stopped}")
    details = runs_page.get_by_text(f"Run {stopped}", exact=True)
    expect(details).to_be_visible()
    runs_page.get_by_role("button", name="Delete run…").click()
    question = runs_page.get_by_role("alertdialog")
    expect(question).to_contain_text("deleted permanently, for all users")
    question.get_by_role("button", name="Keep").click()
    expect(question).to_have_count(0)
    expect(details).to_be_visible()
    runs_page.get_by_role("button", name="Delete run…").click()
    question.get_by_role("button", name="Delete run").click()
    expect(question).to_have_count(0)
    expect(details).to_have_count(0)
    assert len(get_json(f"{runs_url}/api/v1/runs/tree")["rows"]) == RUNS - 1


@pytest.fixture
def hung_job(runs_url: str, tmp_path: Path) -> Iterator[str]:
    """A running job of the demo's queue with a tracked run whose ranks were looked at twice; removed afterwards."""
    rows = get_json(f"{runs_url}/api/v1/workloads?state=running&limit=200")["workloads"]
    job, user = next((row["workload"], row["user"]) for row in rows if re.fullmatch(r"slurm:\d+", row["workload"]))
    looks = read_looks(list(write_case("absent", 3, tmp_path / "looks").looks))
    run, at = "20261119-060000-abc123", int(time.time() * 1000)
    parts = [
        {"event": "run", "run": run, "queued_at": at - 60_000, "name": "train.py", "host": "n1", "user": user},
        {"event": "moment", "moment": "running", "at": at - 60_000},
        {"event": "ranks", "job": "n1:29500", "slurm_job": job[6:], "ranks": list(range(8)), "world_size": 8},
        *({"event": "hang_look", "at": at, "number": number, "look": write_plain(condense_look(look))}
          for number, look in enumerate(looks, start=1)),
    ]  # fmt: skip
    piece = b"".join(map(encode_event, parts))
    send("POST", f"{runs_url}/api/v1/runs/{run}/files/tracker.spool", piece)
    yield job
    send("DELETE", f"{runs_url}/api/v1/runs/{run}")


def send(method: str, url: str, body: bytes | None = None) -> None:
    request = urllib.request.Request(url, data=body, method=method)
    urllib.request.urlopen(request, timeout=60).close()


def test_one_click_leads_from_rules_and_diagnostics_to_who_hangs(page: Page, hung_job: str) -> None:
    page.goto(f"/rules?select=workload:{hung_job}")
    details = page.get_by_role("complementary", name="Details")
    details.get_by_role("button", name="Who hangs?").click()
    expect(page.get_by_role("heading", name=re.compile("Rank 5"))).to_be_visible()
    picture = page.get_by_role("img", name=re.compile("8 ranks by 3 kinds of process groups"))
    expect(picture).to_be_visible()
    expect(page.get_by_role("region", name="Chain of waits")).to_contain_text("default_pg")
    stack = page.get_by_role("region", name="Stacks").get_by_role("button", name=re.compile("Rank 5"))
    stack.click()
    expect(stack).to_have_attribute("aria-pressed", "true")
    picture.hover(position={"x": 180, "y": 30})
    expect(picture.get_by_role("status")).to_contain_text("Rank")
    link = read_address(page)
    page.goto(f"/rules?select=workload:{hung_job}")
    details.get_by_role("button", name="Diagnose").click()
    page.get_by_role("main").get_by_role("button", name="Who hangs?").click()
    expect(picture).to_be_visible()
    page.goto(link)
    expect(picture).to_be_visible()
