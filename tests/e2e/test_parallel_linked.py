"""Graph and flow linked, the overview of a whole trace, its activity, verdicts that lead to spans; and two cases as stories."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from servers.demo import get_json, running_demo, wait_until
from servers.picture import read_address
from servers.reference import reference_data

pytestmark = pytest.mark.browser

RECORDED = Path(__file__).parents[1] / "data/h200/traces"
OUTPUT = Path(__file__).parent / "output"
SLOW_MS = 120_000
IMPORT_LIMIT_S = 240


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_demo(tmp_path_factory.mktemp("linked"), gpus=64, needs_history=False) as url:
        yield url


@pytest.fixture(scope="module")
def traces(browser: Browser, demo_url: str) -> dict[str, str]:
    """The recorded pipeline and data-parallel run, uploaded on the page; name → id."""
    page = browser.new_page(base_url=demo_url)
    page.goto("/parallel")

    def ready() -> dict[str, str]:
        rows = get_json(f"{demo_url}/api/v1/traces")["traces"]
        return {row["name"]: row["trace_id"] for row in rows if row["state"] == "ready"}

    for name in ("pipe", "ddp"):
        page.get_by_label("Trace files").set_input_files(sorted(RECORDED.glob(f"{name}_*")))
        expect(page.locator("li").filter(has_text=name).first).to_be_visible(timeout=SLOW_MS)
        wait_until(lambda name=name: name in ready(), IMPORT_LIMIT_S)  # type: ignore[misc]
    page.close()
    return ready()


@pytest.fixture
def wide(page: Page) -> Page:
    page.set_viewport_size({"width": 1440, "height": 900})
    return page


def graph(page: Page) -> Locator:
    return page.get_by_role("group", name=re.compile("^Marey graph of"))


def flow(page: Page) -> Locator:
    return page.get_by_role("application", name=re.compile("^Execution flow"))


def window(page: Page) -> Locator:
    return page.get_by_role("slider", name=re.compile("^Window"))


def expect_drawn(page: Page) -> None:
    expect(graph(page)).to_have_attribute("aria-busy", "false", timeout=SLOW_MS)
    expect(graph(page)).to_have_attribute("data-drawn", re.compile(r"\d~\d"), timeout=SLOW_MS)


def open_trace(page: Page, trace: str, query: str = "") -> None:
    page.goto(f"/parallel?trace={trace}{query}")
    expect_drawn(page)


def drag(page: Page, place: Locator, start: float, end: float, at_height: float = 0.6) -> None:
    """Drag over an element, from one share of its width to another."""
    box = place.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] * at_height
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + end) / 2 * box["width"], y, steps=3)
    page.mouse.move(box["x"] + end * box["width"], y, steps=3)
    page.mouse.up()


def running_nodes(page: Page) -> set[str]:
    return {node.get_attribute("id") or "" for node in flow(page).locator("g[data-running=true]").all()}


def shown_window(page: Page) -> tuple[int, int]:
    address = read_address(page)
    window = re.search(r"ns=(-?\d+)~(-?\d+)", address.replace("%7E", "~"))
    assert window is not None, address
    return int(window[1]), int(window[2])


def length_of(shown: tuple[int, int]) -> int:
    return shown[1] - shown[0]


def test_operators_light_up_in_the_flow_when_time_is_brushed_in_the_graph(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["pipe"])
    wide.get_by_role("radio", name="Both").check(force=True)
    wide.wait_for_url(re.compile("drawn=both"))
    status = wide.get_by_text(re.compile(r"of \d+.nodes in the window"))
    expect(status).to_be_visible(timeout=SLOW_MS)
    upper, lower = graph(wide).bounding_box(), flow(wide).bounding_box()
    assert upper is not None
    assert lower is not None
    assert upper["y"] + upper["height"] <= lower["y"] < lower["y"] + lower["height"] <= 900
    assert upper["x"] == pytest.approx(lower["x"], abs=2)
    everything = status.inner_text()
    drag(wide, graph(wide), 0.05, 0.2)
    wide.wait_for_url(re.compile("ns="))
    expect(status).not_to_have_text(everything)
    expect_drawn(wide)
    early = running_nodes(wide)
    assert early
    assert flow(wide).locator("g[data-running=false]").count() > 0
    # Backward passes are lit at the end of the step, and the first forwards no longer.
    link = read_address(wide)
    wide.get_by_role("button", name="Typical step").click()
    expect(status).to_have_text(everything)
    drag(wide, graph(wide), 0.8, 0.97)
    wide.wait_for_url(re.compile("ns="))
    expect(status).not_to_have_text(everything)
    # The former nodes stay lit until the answer for the new window is there. Some are lit in both windows;
    # why is not known yet.
    wait_until(lambda: bool((late := running_nodes(wide)) - early) and bool(early - late))
    # The link shows the same again.
    wide.goto(link)
    expect(status).not_to_have_text(everything, timeout=SLOW_MS)
    wait_until(lambda: running_nodes(wide) == early)


def test_spans_light_up_in_the_graph_when_operators_are_chosen_in_the_flow(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["pipe"], "&drawn=both")
    expect(flow(wide).locator("g[data-running]").first).to_be_visible(timeout=SLOW_MS)
    assert graph(wide).get_attribute("data-dimmed") is None
    nodes = flow(wide).locator("g[id^=flow-node]")
    nodes.nth(3).click(force=True)
    wide.wait_for_url(re.compile(r"nodes=\d+"))
    expect(graph(wide)).to_have_attribute("data-dimmed", "true")
    before = graph(wide).screenshot()
    nodes.nth(30).click(modifiers=["Shift"], force=True)
    wide.wait_for_url(re.compile(r"nodes=\d+\.\d+"))
    expect(flow(wide).locator("g[data-chosen]")).to_have_count(2)
    wait_until(lambda: graph(wide).screenshot() != before)  # another operator is highlighted
    link = read_address(wide)
    wide.goto("about:blank")
    wide.goto(link)
    expect(flow(wide).locator("g[data-chosen]")).to_have_count(2, timeout=SLOW_MS)
    expect(graph(wide)).to_have_attribute("data-dimmed", "true", timeout=SLOW_MS)
    flow(wide).focus()
    wide.keyboard.press("Escape")
    expect(graph(wide)).not_to_have_attribute("data-dimmed", "true")


def test_the_operator_of_a_span_is_selected_when_both_are_shown(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["pipe"], "&drawn=both")
    expect(flow(wide).locator("g[data-running]").first).to_be_visible(timeout=SLOW_MS)
    graph(wide).focus()
    wide.keyboard.press(".")
    wide.wait_for_url(re.compile(r"at_span=\d+"))
    expect(flow(wide).locator("g[data-selected]")).to_be_in_viewport(timeout=SLOW_MS)
    expect(wide.get_by_role("complementary", name="Selected node")).to_be_visible()
    # And back: a node selects its longest span.
    span = read_address(wide)
    flow(wide).locator("g[id^=flow-node]").nth(1).click(force=True)
    wide.wait_for_url(lambda url: url != span and "nodes=1" in url)
    expect(wide.locator("[data-span]")).to_be_visible(timeout=SLOW_MS)


def test_graph_and_flow_have_room_when_the_screen_is_small(page: Page, traces: dict[str, str]) -> None:
    page.set_viewport_size({"width": 1024, "height": 768})
    open_trace(page, traces["pipe"], "&drawn=both")
    expect(flow(page).locator("g[data-running]").first).to_be_visible(timeout=SLOW_MS)
    for shown in (graph(page), flow(page)):
        box = shown.bounding_box()
        assert box is not None
        assert box["width"] > 600
        assert box["height"] > 90
        assert box["x"] + box["width"] <= 1024
        assert box["y"] + box["height"] <= 768
    # All stages of the graph are visible without scrolling.
    rows = page.get_by_text(re.compile(r"^stage \d$"))
    expect(rows).to_have_count(4)
    for row in rows.all():
        expect(row).to_be_in_viewport(ratio=1)
    OUTPUT.mkdir(exist_ok=True)
    page.screenshot(path=OUTPUT / "parallel-8-both-small.png")


def test_the_flow_fits_the_screen_when_it_is_opened(wide: Page, traces: dict[str, str]) -> None:
    wide.goto(f"/parallel?trace={traces['pipe']}&drawn=flow")
    nodes = flow(wide).locator("g[id^=flow-node]")
    expect(nodes.first).to_be_visible(timeout=SLOW_MS)
    fits = (
        "element => element.scrollWidth <= element.clientWidth + 1 && element.scrollHeight <= element.clientHeight + 1"
    )
    assert flow(wide).evaluate(fits)
    expect(nodes.last).to_be_in_viewport()
    # A long flow takes the height, too, and the names of its stages stand apart.
    drawing, place = flow(wide).locator("svg").bounding_box(), flow(wide).bounding_box()
    assert drawing is not None
    assert place is not None
    assert drawing["height"] > 0.5 * place["height"]
    stages = flow(wide).locator("xpath=preceding-sibling::div/div")
    expect(stages).to_have_count(4)
    names = [stage.bounding_box() for stage in stages.all()]
    assert all(upper and lower and upper["y"] + 12 < lower["y"] for upper, lower in pairwise(names))
    fit = wide.get_by_role("button", name="Fit")
    expect(fit).to_be_disabled()
    for _ in range(4):
        wide.get_by_role("button", name="Zoom in").click()
    assert not flow(wide).evaluate(fits)
    fit.click()
    assert flow(wide).evaluate(fits)


def test_the_window_moves_over_the_whole_trace_when_the_overview_is_dragged(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["pipe"])
    area = window(wide).locator("xpath=..")
    expect(area.locator("canvas")).to_be_visible(timeout=SLOW_MS)
    # A new window.
    drag(wide, area, 0.1, 0.2)
    first = shown_window(wide)
    expect_drawn(wide)
    # Moved: as long as before.
    drag(wide, area, 0.15, 0.4)
    second = shown_window(wide)
    length = first[1] - first[0]
    assert second[0] - first[0] == pytest.approx(2.5 * length, rel=0.1)
    assert second[1] - second[0] == pytest.approx(length, rel=0.01)
    # Resized at its end.
    drag(wide, area, 0.45, 0.6)
    third = shown_window(wide)
    assert third[0] == pytest.approx(second[0], abs=0.02 * length)
    assert third[1] - third[0] == pytest.approx(2.5 * length, rel=0.1)
    # Keys.
    window(wide).focus()
    wide.keyboard.press("ArrowRight")
    wait_until(lambda: shown_window(wide)[0] > third[0])
    moved = shown_window(wide)
    wide.keyboard.press("+")
    wait_until(lambda: length_of(shown_window(wide)) < 0.9 * length_of(moved))
    wide.keyboard.press("Home")
    wait_until(lambda: shown_window(wide)[0] <= 0)
    wide.get_by_role("button", name="Previous window").click()
    expect_drawn(wide)


def test_a_trace_opens_at_its_activity_when_most_of_it_is_idle(wide: Page, demo_url: str) -> None:
    timeline = reference_data("traces", "mindspore", "marey_graph") / "ascend_marey_timeline_1.json.gz"
    wide.goto("/parallel")
    wide.get_by_label("Trace files").set_input_files(timeline)
    expect(wide.locator("li[data-state=ready]").filter(has_text="MindSpore")).to_have_count(
        1, timeout=IMPORT_LIMIT_S * 1000
    )
    trace = next(
        row["trace_id"] for row in get_json(f"{demo_url}/api/v1/traces")["traces"] if row["format"] == "MindSpore"
    )
    open_trace(wide, trace)
    idle = wide.get_by_role("button", name=re.compile(r"84\d.ms idle before"))
    expect(idle).to_be_visible()
    expect(wide.get_by_role("region", name="Overview of the trace")).to_contain_text(re.compile(r"8\d\d.ms idle"))
    expect(wide.get_by_role("region", name="Summary")).to_contain_text(re.compile(r"45\.9.ms"))
    # What the trace cannot tell is said.
    expect(wide.get_by_role("region", name="Verdicts")).to_contain_text("No rank records the host")
    idle.click()
    wide.wait_for_url(re.compile("ns="))
    expect(idle).to_have_count(0)
    start, end = shown_window(wide)
    assert end - start > 880e6
    wide.goto("about:blank")
    wide.request.delete(f"{demo_url}/api/v1/traces/{trace}")


def test_a_verdict_leads_to_its_spans_when_its_card_is_clicked(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["ddp"])
    card = wide.get_by_role("region", name="Verdicts").get_by_role("button").first
    expect(card).to_contain_text("Rank 0")
    card.click()
    wide.wait_for_url(re.compile(r"(?=.*verdict=0)(?=.*ns=)"))
    expect(card).to_have_attribute("aria-pressed", "true")
    expect(graph(wide)).to_have_attribute("data-dimmed", "true")
    expect_drawn(wide)
    link = read_address(wide)
    wide.goto("about:blank")
    wide.goto(link)
    expect(card).to_have_attribute("aria-pressed", "true", timeout=SLOW_MS)
    expect(graph(wide)).to_have_attribute("data-dimmed", "true")
    card.click()
    expect(graph(wide)).not_to_have_attribute("data-dimmed", "true")
    expect(wide).not_to_have_url(re.compile("verdict="))


def test_a_cause_leads_to_its_step_when_a_rank_and_step_are_chosen(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["ddp"])
    causes = wide.get_by_role("region", name="Causes by rank and step")
    cells = causes.get_by_role("group", name=re.compile("ranks and steps"))
    expect(cells).to_be_visible()
    steps = sorted({row["step"] for row in get_steps(wide, traces["ddp"])})
    box = cells.bounding_box()
    assert box is not None
    # Rank 0, the last step.
    cells.hover(position={"x": box["width"] * 0.95, "y": box["height"] * 0.05})
    expect(causes.get_by_role("status")).to_contain_text(f"Rank 0, step {steps[-1]}")
    cells.click(position={"x": box["width"] * 0.95, "y": box["height"] * 0.05})
    wide.wait_for_url(re.compile("ns="))
    expect(wide.get_by_role("heading", name=re.compile(f"^Step {steps[-1]}"))).to_be_visible()
    expect(wide).to_have_url(re.compile("verdict=0"))
    expect(graph(wide)).to_have_attribute("data-dimmed", "true")
    # Keys do the same.
    cells.focus()
    wide.keyboard.press("ArrowRight")
    wide.keyboard.press("Enter")
    expect(wide.get_by_role("heading", name=re.compile(rf"^Step ({'|'.join(map(str, steps))})"))).to_be_visible()


def get_steps(page: Page, trace: str) -> list[dict[str, int]]:
    answer = page.request.get(f"/api/v1/traces/{trace}").json()
    return [{"step": step["step"]} for step in answer["report"]["steps"]]


def test_the_pipeline_case_is_told_by_the_page(wide: Page, traces: dict[str, str]) -> None:
    """The first case: a pipeline whose devices wait. Why, which stage, which operators, and what balancing it would save?"""
    open_trace(wide, traces["pipe"])
    # The whole trace has three equal steps; the one of median length is shown.
    expect(wide.get_by_role("heading", name=re.compile(r"^Step \d \(typical\)"))).to_be_visible()
    # The first card says why: one stage does more than the others.
    card = wide.get_by_role("region", name="Verdicts").get_by_role("button", name=re.compile("stage imbalance"))
    expect(card).to_contain_text("Stage 2 works")
    # It leads to the passes of this stage, lit up among the dimmed others.
    card.click()
    wide.wait_for_url(re.compile(r"(?=.*verdict=0)(?=.*ns=)"))
    expect(graph(wide)).to_have_attribute("data-dimmed", "true")
    expect(wide.get_by_role("complementary", name="Details")).to_contain_text("stage 2 · rank 2", timeout=SLOW_MS)
    # Next to it the execution flow: the operators of the same time, on the same stage.
    wide.get_by_role("radio", name="Both").check(force=True)
    status = wide.get_by_text(re.compile(r"of \d+.nodes in the window"))
    expect(status).to_be_visible(timeout=SLOW_MS)
    expect(flow(wide).locator("g[data-selected]")).to_have_count(1, timeout=SLOW_MS)
    chosen = wide.get_by_role("complementary", name="Selected node")
    expect(chosen).to_contain_text("Stage")
    # Its messages to the next stage are chosen in the flow: in the graph they light up in every step.
    nodes = flow(wide).locator("g[id^=flow-node]")
    nodes.filter(has_text=re.compile("send")).first.click(force=True)
    wide.wait_for_url(re.compile("nodes="))
    expect(graph(wide)).to_have_attribute("data-dimmed", "true")
    wide.get_by_role("button", name="All steps").click()
    expect(wide.get_by_role("heading", name=re.compile("^Steps 4 to 6"))).to_be_visible()
    # What would help: the answer is a number, with the step that it leads to.
    wide.keyboard.press("Escape")
    wide.get_by_role("radio", name="Graph").check(force=True)
    wide.get_by_role("radio", name="Ranks").last.check(force=True)
    details = wide.get_by_role("complementary", name="Details")
    expect(details).to_contain_text("stages balanced", timeout=SLOW_MS)
    expect(details).to_contain_text(re.compile("bubble", re.IGNORECASE))
    OUTPUT.mkdir(exist_ok=True)
    wide.screenshot(path=OUTPUT / "parallel-9-pipeline-case.png")


def test_the_resnet_case_is_told_by_the_page(wide: Page, demo_url: str) -> None:
    """The second case: ResNet-50 on two stages of MindSpore, timeline and compiled graph. Which layers run where and when?"""
    folder = reference_data("traces", "mindspore")
    files = [
        folder / "marey_graph/ascend_marey_timeline_1.json.gz",
        folder / "marey_graph/scope_map_1.json.gz",
        folder / "graphs/resnet_pipeline_8p_all_data.json.gz",
    ]
    wide.goto("/parallel")
    wide.get_by_label("Trace files").set_input_files(files)
    expect(wide.locator("li[data-state=ready]").filter(has_text="MindSpore")).to_have_count(
        1, timeout=IMPORT_LIMIT_S * 1000
    )
    rows = get_json(f"{demo_url}/api/v1/traces")["traces"]
    trace = next(row["trace_id"] for row in rows if row["format"] == "MindSpore")
    open_trace(wide, trace, "&drawn=both")
    # Two stages, four micro-batches; the step of 46 ms is shown, not the 844 ms before it.
    expect(wide.get_by_text(re.compile(r"4.ranks · 2.stages · 4.micro-batches · 1.step"))).to_be_visible()
    expect(wide.get_by_role("region", name="Verdicts")).to_contain_text("pipeline bubble")
    # The strategy is in the flow: two stages, gradients aggregated, tensors redistributed.
    expect(flow(wide).locator("g[data-running]").first).to_be_visible(timeout=SLOW_MS)
    expect(wide.get_by_text(re.compile("by module"))).to_be_visible()
    # The start of the step: the first layers of the first stage run, the optimizer does not.
    drag(wide, graph(wide), 0.03, 0.1)
    wide.wait_for_url(re.compile("ns="))
    layers = flow(wide).locator("g[data-running=true]").filter(has_text="MakeLayer0")
    expect(layers.first).to_be_attached(timeout=SLOW_MS)
    some = flow(wide).locator("g[data-running=false]").count()
    assert some > 0
    # One layer chosen in the flow: it runs four times forward, once for every micro-batch, on the ranks of one stage.
    name = "layer1-MakeLayer0"
    node = flow(wide).locator("g[id^=flow-node]").filter(has=wide.locator("title", has_text=name)).first
    node.click(force=True)
    wide.wait_for_url(re.compile("nodes="))
    wide.get_by_role("button", name="Typical step").click()
    expect(graph(wide)).to_have_attribute("data-dimmed", "true", timeout=SLOW_MS)
    number = re.search(r"nodes=(\d+)", read_address(wide))
    opened = re.search(r"flow=([\d.*-]+)", read_address(wide))
    assert number is not None
    assert opened is not None
    activity = wide.request.get(
        f"{demo_url}/api/v1/traces/{trace}/flow/activity?open={opened[1].replace('.', ',')}"
    ).json()
    assert activity["is_by_module"]
    assert activity["running"][int(number[1])] > 0
    wide.screenshot(path=OUTPUT / "parallel-10-resnet-case.png")
    wide.goto("about:blank")
    wide.request.delete(f"{demo_url}/api/v1/traces/{trace}")
