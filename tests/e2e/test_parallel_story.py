"""Why is this step slow? Played in a browser on the recorded pipeline and data-parallel run: brought by the page, drawn, zoomed,
opened, shared, compared; and the error of a broken file.
"""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, Route, expect
from servers.demo import get_json, running_demo
from servers.picture import read_address, wait_for_frames

pytestmark = pytest.mark.browser

TRACES = Path(__file__).parents[1] / "data/h200/traces"
OUTPUT = Path(__file__).parent / "output"
SLOW_MS = 120_000
STAGES, MICRO_BATCHES = 4, 8
CROWDED_RANKS, CROWDED_KERNELS = 8, 300


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_demo(tmp_path_factory.mktemp("parallel"), gpus=64, needs_history=False) as url:
        yield url


@pytest.fixture(scope="module")
def job(demo_url: str) -> str:
    """A running job to hang traces on."""
    running = get_json(f"{demo_url}/api/v1/workloads?state=running&limit=100")["workloads"]
    return str([workload["workload"] for workload in running if workload["gpus_requested"] > 1][-1])


@pytest.fixture(scope="module")
def traces(browser: Browser, demo_url: str, job: str) -> dict[str, str]:
    """The pipeline, twice, and the data-parallel run, brought by the page; name → id."""
    page = browser.new_page(base_url=demo_url)
    page.goto(f"/parallel?select=workload:{job}")
    entries = page.get_by_role("region", name="Traces").get_by_role("listitem")
    for count, name in enumerate(("pipe", "ddp", "pipe"), start=1):
        page.get_by_label("Trace files").set_input_files(sorted(TRACES.glob(f"{name}_*")))
        expect(entries).to_have_count(count, timeout=SLOW_MS)
    expect(page.locator("li[data-state=ready]")).to_have_count(3, timeout=3 * SLOW_MS)
    page.close()
    rows = get_json(f"{demo_url}/api/v1/traces?workload={job}")["traces"]
    first, second = sorted((row for row in rows if row["name"] == "pipe"), key=lambda row: row["imported_at"])
    ddp = next(row for row in rows if row["name"] == "ddp")
    return {"pipe": first["trace_id"], "again": second["trace_id"], "ddp": ddp["trace_id"]}


@pytest.fixture
def wide(page: Page) -> Page:
    page.set_viewport_size({"width": 1440, "height": 900})
    return page


def graph(page: Page) -> Locator:
    return page.get_by_role("group", name=re.compile("^Marey graph of"))


def expect_drawn(page: Page, rows: int) -> None:
    """Waits until the current answer is on the canvas."""
    expect(graph(page).first).to_have_attribute("aria-label", re.compile(rf": {rows}.rows,"), timeout=SLOW_MS)
    expect(graph(page).first).to_have_attribute("aria-busy", "false", timeout=SLOW_MS)
    expect(graph(page).first).to_have_attribute("data-drawn", re.compile(r"\d~\d"), timeout=SLOW_MS)


def open_trace(page: Page, trace: str, rows: int = STAGES, query: str = "") -> None:
    page.goto(f"/parallel?trace={trace}{query}")
    expect_drawn(page, rows)


def brush(page: Page, start: float, end: float) -> None:
    """Draw a range over the graph, as shares of its width."""
    box = graph(page).first.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] * 0.6  # still on it when something comes to stand below
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + end) / 2 * box["width"], y, steps=3)
    page.mouse.move(box["x"] + end * box["width"], y, steps=3)
    page.mouse.up()


def shoot(page: Page, name: str) -> None:
    OUTPUT.mkdir(exist_ok=True)
    page.screenshot(path=OUTPUT / f"parallel-{name}.png")


def test_stages_and_micro_batches_are_drawn_when_a_pipeline_was_brought(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["pipe"])
    expect(wide.get_by_text(re.compile(r"4.ranks · 4.stages · 8.micro-batches · 3.steps"))).to_be_visible()
    for stage in range(STAGES):
        expect(wide.get_by_role("button", name=re.compile(f"^stage {stage} bubble"))).to_be_visible()
    shoot(wide, "1-pipeline")
    # The twin of the drawing: every pass of the step, with its micro-batch.
    wide.get_by_role("radio", name="Table").check(force=True)
    wide.get_by_role("textbox", name="Find operator").fill("forward mb")
    table = wide.get_by_role("grid", name="Spans")
    expect(table).to_have_attribute("aria-rowcount", str(STAGES * MICRO_BATCHES + 1))
    shoot(wide, "2-table")


def test_the_verdict_shows_its_evidence_when_its_card_is_clicked(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["pipe"])
    card = wide.get_by_role("region", name="Verdicts").get_by_role("button", name=re.compile("stage imbalance"))
    expect(card).to_contain_text("Stage 2 works")
    card.click()
    wide.wait_for_url(re.compile(r"ns=\d+~\d+.*at_span=\d+"))
    expect_drawn(wide, STAGES)
    details = wide.get_by_role("complementary", name="Details")
    expect(details).to_contain_text("stage 2 · rank 2", timeout=SLOW_MS)
    shoot(wide, "3-verdict")


def test_ranks_and_streams_appear_when_a_row_is_opened(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["pipe"])
    wide.get_by_role("button", name=re.compile("^stage 2")).click()
    wide.wait_for_url(re.compile("open=2"))
    expect_drawn(wide, STAGES + 1)
    wide.get_by_role("button", name=re.compile("^rank 2")).click()
    wide.wait_for_url(re.compile("open=2,r2"))
    expect(wide.get_by_text(re.compile(r"^stream \d+$")).first).to_be_visible(timeout=SLOW_MS)
    shoot(wide, "4-opened")
    wide.get_by_role("button", name=re.compile("^stage 2")).click()
    expect_drawn(wide, STAGES)


def test_windows_can_be_gone_back_and_forward_when_ranges_were_brushed(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["pipe"])
    brush(wide, 0.2, 0.5)
    wide.wait_for_url(re.compile("ns="))
    first = read_address(wide)
    expect_drawn(wide, STAGES)
    brush(wide, 0.3, 0.6)
    wide.wait_for_url(lambda url: url != first)
    second = read_address(wide)
    wide.get_by_role("button", name="Previous window").click()
    expect(wide).to_have_url(first)
    wide.get_by_role("button", name="Next window").click()
    expect(wide).to_have_url(second)
    graph(wide).dblclick(position={"x": 300, "y": 400})
    expect(wide).not_to_have_url(re.compile("ns="))


def test_the_same_screen_is_shown_when_its_link_is_opened(
    browser: Browser, wide: Page, demo_url: str, traces: dict[str, str]
) -> None:
    open_trace(wide, traces["ddp"], query="&paint=wait")
    brush(wide, 0.05, 0.4)
    wide.wait_for_url(re.compile("ns="))
    graph(wide).focus()
    wide.keyboard.press(".")
    wide.wait_for_url(re.compile(r"at_span=\d+"))
    expect(wide.locator("[data-span]")).to_be_visible(timeout=SLOW_MS)
    expect_drawn(wide, 4)
    label = graph(wide).get_attribute("aria-label")
    assert label is not None
    other = browser.new_page(base_url=demo_url, viewport={"width": 1440, "height": 900})
    other.goto(read_address(wide))
    expect(graph(other)).to_have_attribute("aria-label", label, timeout=SLOW_MS)
    expect(other.locator("[data-span]")).to_have_attribute("data-span", re.compile(r"\d+"), timeout=SLOW_MS)
    expect(other.get_by_role("radio", name="Wait")).to_be_checked()
    other.close()


def test_keys_do_what_the_mouse_does_when_the_graph_has_the_focus(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["pipe"])
    graph(wide).focus()
    wide.keyboard.press("+")
    wide.wait_for_url(re.compile("ns="))
    zoomed = read_address(wide)
    wide.keyboard.press("ArrowRight")
    wide.wait_for_url(lambda url: url != zoomed)
    wide.keyboard.press("0")
    expect(wide).not_to_have_url(re.compile("ns="))
    expect_drawn(wide, STAGES)
    wide.keyboard.press(".")
    wide.wait_for_url(re.compile(r"at_span=\d+"))
    first = read_address(wide)
    wide.keyboard.press("ArrowDown")
    wide.wait_for_url(lambda url: url != first)
    wide.keyboard.press("Escape")
    expect(wide).not_to_have_url(re.compile("at_span="))


def test_a_slow_rank_and_an_input_stall_are_named_when_the_run_is_data_parallel(
    wide: Page, traces: dict[str, str]
) -> None:
    open_trace(wide, traces["ddp"])
    cards = wide.get_by_role("region", name="Verdicts").get_by_role("button")
    expect(cards.nth(0)).to_contain_text("Rank 0")
    expect(wide.get_by_role("region", name="Verdicts")).to_contain_text("Rank 3 waits for its input")
    wide.get_by_role("button", name="Links", exact=True).click()
    expect(wide.get_by_role("table", name=re.compile("^Rank in group"))).to_be_visible(timeout=SLOW_MS)
    wide.get_by_role("radio", name="Operators").check(force=True)
    expect(wide.get_by_role("grid", name="Operators")).to_be_visible(timeout=SLOW_MS)
    shoot(wide, "5-data-parallel")


def test_two_traces_stand_on_one_scale_when_they_are_compared(wide: Page, traces: dict[str, str]) -> None:
    open_trace(wide, traces["pipe"], query=f"&against={traces['again']}")
    expect(graph(wide)).to_have_count(2, timeout=SLOW_MS)
    changed = wide.get_by_role("region", name="Differences")
    expect(changed).to_contain_text("A step takes as long as before", timeout=SLOW_MS)
    shoot(wide, "6-compared")


def test_a_workload_leads_to_its_trace_and_back_when_it_has_one(wide: Page, job: str, traces: dict[str, str]) -> None:
    del traces
    wide.goto(f"/?select=workload:{job}")
    wide.get_by_role("button", name="Parallel view").click(timeout=SLOW_MS)
    wide.wait_for_url(re.compile(r"/parallel\?.*trace="))
    expect_drawn(wide, STAGES)
    wide.get_by_role("button", name="Diagnostics", exact=True).click()
    wide.wait_for_url(re.compile(rf"/diagnostics\?.*workload={re.escape(job)}"))
    expect(wide.get_by_role("button", name="Parallel view")).to_be_visible(timeout=SLOW_MS)


def test_an_open_trace_appears_by_itself_when_it_has_been_read(wide: Page, demo_url: str) -> None:
    created = wide.request.post(f"{demo_url}/api/v1/traces", data={"name": "late", "workload_id": None}).json()
    trace = f"{demo_url}/api/v1/traces/{created['trace_id']}"
    wide.goto(f"/parallel?trace={created['trace_id']}")
    expect(wide.get_by_role("main").get_by_role("status")).to_contain_text("Importing late", timeout=SLOW_MS)
    for file in sorted(TRACES.glob("ddp_*")):
        assert wide.request.put(f"{trace}/files/{file.name}", data=file.read_bytes()).ok
    assert wide.request.post(f"{trace}/import").ok
    expect_drawn(wide, 4)
    wide.goto("about:blank")
    wide.request.delete(trace)


def make_crowded_rank(rank: int) -> bytes:
    """Kernels with gaps between them, each a little later than on the rank before: thousands of bands."""
    events = [
        {
            "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1e15 + 100 * at + 7 * rank, "dur": 55,
            "args": {"correlation": at, "stream": 7, "device": 0},
        }
        for at in range(CROWDED_KERNELS)
    ]  # fmt: skip
    info = {"backend": "nccl", "rank": rank, "world_size": CROWDED_RANKS}
    return json.dumps({"schemaVersion": 1, "distributedInfo": info, "traceEvents": events}).encode()


def test_a_brush_shows_spans_at_their_places_when_the_answer_is_still_on_its_way(wide: Page, demo_url: str) -> None:
    created = wide.request.post(f"{demo_url}/api/v1/traces", data={"name": "crowded", "workload_id": None}).json()
    trace = f"{demo_url}/api/v1/traces/{created['trace_id']}"
    for rank in range(CROWDED_RANKS):
        assert wide.request.put(f"{trace}/files/rank{rank}.json", data=make_crowded_rank(rank)).ok
    assert wide.request.post(f"{trace}/import").ok
    open_trace(wide, created["trace_id"], CROWDED_RANKS)
    before = see_graph(wide)
    held: list[Route] = []
    wide.route(re.compile(r"/marey\?"), lambda route: held.append(route))
    brush(wide, 0.3, 0.7)
    wide.wait_for_url(re.compile("ns="))
    wait_for_frames(wide)
    at_once = see_graph(wide)
    wide.wait_for_timeout(1000)  # by then bands that were drawn roughly have been drawn finely
    fine = see_graph(wide)
    assert differ(before, fine) > 2 * differ(at_once, fine)
    assert held, "nothing but the last answer was drawn"
    for route in held:
        route.continue_()
    expect_drawn(wide, CROWDED_RANKS)
    wide.goto("about:blank")
    wide.request.delete(trace)


def see_graph(page: Page) -> NDArray[np.float64]:
    return np.asarray(Image.open(io.BytesIO(graph(page).screenshot())).convert("L"), np.float64)


def differ(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    return float(np.abs(first - second).mean())


def test_the_page_says_why_when_a_broken_file_is_brought(wide: Page, demo_url: str, tmp_path: Path) -> None:
    broken = tmp_path / "rank0.json.gz"
    broken.write_bytes(b"this is not a trace")
    wide.goto("/parallel")
    wide.get_by_label("Trace files").set_input_files(broken)
    failed = wide.locator("li[data-state=failed]")
    expect(failed).to_have_count(1, timeout=SLOW_MS)
    expect(failed.get_by_role("alert")).to_contain_text(re.compile("rank0.json.gz|no ", re.IGNORECASE))
    (row,) = (trace for trace in get_json(f"{demo_url}/api/v1/traces")["traces"] if trace["state"] == "failed")
    wide.goto(f"/parallel?trace={row['trace_id']}")
    alert = wide.get_by_role("main").get_by_role("alert")
    expect(alert).to_contain_text("could not be imported", timeout=SLOW_MS)
    with wide.expect_response(re.compile(r"/import$")) as again:
        alert.get_by_role("button", name="Retry import").click()
    assert again.value.ok
    expect(alert).to_contain_text("could not be imported", timeout=SLOW_MS)
    alert.get_by_role("button", name="Choose another trace").click()
    expect(failed).to_have_count(1, timeout=SLOW_MS)
    failed.hover()
    failed.get_by_role("button", name=re.compile("^Remove")).click()
    failed.get_by_role("button", name="Remove", exact=True).click()
    expect(failed).to_have_count(0, timeout=SLOW_MS)
