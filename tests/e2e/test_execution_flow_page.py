"""The execution flow in a browser: a published MindSpore graph brought by the page, opened, searched; the recorded pipeline's
flow, and from one of its nodes to the Marey graph.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from servers.demo import get_json, running_demo, wait_until
from servers.reference import reference_data

pytestmark = pytest.mark.browser

OUTPUT = Path(__file__).parent / "output"
SLOW_MS = 120_000


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_demo(tmp_path_factory.mktemp("flow"), gpus=64, needs_history=False) as url:
        yield url


def drawing(page: Page) -> Locator:
    return page.get_by_role("application", name=re.compile("^Execution flow"))


def test_stages_shards_and_stacks_are_drawn_when_a_graph_is_brought_alone(page: Page, demo_url: str) -> None:
    graph = reference_data("traces", "mindspore", "graphs", "resnet_pipeline_8p_all_data.json.gz")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{demo_url}/parallel")
    page.get_by_label("Trace files").set_input_files(graph)
    entry = page.locator("li[data-state=ready]").filter(has_text="MindSpore graph")
    expect(entry).to_have_count(1, timeout=SLOW_MS)
    rows = get_json(f"{demo_url}/api/v1/traces")["traces"]
    trace = next(row["trace_id"] for row in rows if row["format"] == "MindSpore graph")
    page.goto(f"{demo_url}/parallel?trace={trace}")
    expect(page.get_by_text(re.compile(r"5.298\s+operators in"))).to_be_visible(timeout=SLOW_MS)
    # A graph without times has no timeline.
    drawn_as = page.get_by_role("group", name="Display as")
    for title in ("Graph", "Table"):
        expect(drawn_as.get_by_role("radio", name=title)).to_be_disabled()
    expect(page.get_by_text(re.compile("operator graph only: no times recorded"))).to_be_visible()
    for text in ("Stage 0", "Stage 1"):
        expect(page.get_by_text(text).first).to_be_visible()
    for text in ("split in 4", "gradient aggregation", "redistribution"):
        expect(page.get_by_role("list", name="Marks")).to_contain_text(text)
    before = page.get_by_text(re.compile(r"5.298\s+operators in")).inner_text()
    drawing(page).locator("g[data-kind=namespace]").nth(2).dblclick()
    expect(page.get_by_text(re.compile(r"5.298\s+operators in"))).not_to_have_text(before)
    expect(page).to_have_url(re.compile("flow="))
    page.get_by_label("Find operator").fill("ApplyMomentum")
    page.get_by_role("button", name=re.compile("^Next of")).click()
    expect(page.get_by_role("complementary", name="Selected node")).to_contain_text("optimizer")
    OUTPUT.mkdir(exist_ok=True)
    page.screenshot(path=OUTPUT / "execution-flow.png")


def test_a_node_leads_to_its_time_when_the_flow_is_of_spans(page: Page, demo_url: str) -> None:
    def pipelines() -> list[str]:
        rows = get_json(f"{demo_url}/api/v1/traces")["traces"]
        return [row["trace_id"] for row in rows if row["state"] == "ready" and "Pipeline" in row["name"]]

    wait_until(lambda: bool(pipelines()))
    page.goto(f"{demo_url}/parallel?trace={pipelines()[0]}&drawn=flow")
    expect(drawing(page).locator("g[data-class=send_receive]").first).to_be_visible(timeout=SLOW_MS)
    drawing(page).focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Show in graph").click()
    expect(page.get_by_role("group", name=re.compile("^Marey graph of"))).to_be_visible()
    expect(page).to_have_url(re.compile("ns="))
