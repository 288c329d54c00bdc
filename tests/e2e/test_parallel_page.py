"""Further features of the parallel page, on the demo's traces: pictures as files, curves in the lanes, hardware below the
graph, two runs compared, folders brought by choosing and by dropping, and the ways between graph and flow.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Download, Locator, Page, expect
from servers.demo import get_json, running_demo, wait_until

pytestmark = pytest.mark.browser

RECORDED = Path(__file__).parents[1] / "data/h200/traces"
OUTPUT = Path(__file__).parent / "output"
SLOW_MS = 120_000
IMPORT_LIMIT_S = 240


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_demo(tmp_path_factory.mktemp("parallel-page"), gpus=64) as url:
        yield url


@pytest.fixture(scope="module")
def traces(demo_url: str) -> dict[str, str]:
    """The recorded traces of the demo once they are read; first letters of the name → id."""

    def ready() -> list[dict[str, str]]:
        return [row for row in get_json(f"{demo_url}/api/v1/traces")["traces"] if row["state"] == "ready"]

    wait_until(lambda: len(ready()) >= 2, IMPORT_LIMIT_S)
    return {"pipe" if row["name"].startswith("Pipe") else "ddp": row["trace_id"] for row in ready()}


@pytest.fixture
def wide(page: Page) -> Page:
    page.set_viewport_size({"width": 1440, "height": 900})
    return page


def graph(page: Page) -> Locator:
    return page.get_by_role("group", name=re.compile("^Marey graph of"))


def flow(page: Page) -> Locator:
    return page.get_by_role("application", name=re.compile("^Execution flow"))


def open_graph(page: Page, trace: str, query: str = "") -> None:
    page.goto(f"/parallel?trace={trace}{query}")
    expect(graph(page).first).to_have_attribute("aria-busy", "false", timeout=SLOW_MS)
    expect(graph(page).first).to_have_attribute("data-drawn", re.compile(r"\d~\d"), timeout=SLOW_MS)


def download(page: Page, subject: str, kind: str) -> tuple[Download, bytes]:
    page.get_by_role("button", name=f"Export {subject}", exact=True).click()
    with page.expect_download(timeout=SLOW_MS) as waiting:
        page.get_by_role("menuitem", name=kind).click()
    return waiting.value, Path(waiting.value.path()).read_bytes()


def png_size(data: bytes) -> tuple[int, int]:
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def test_the_graph_is_a_file_when_it_is_saved(wide: Page, traces: dict[str, str]) -> None:
    open_graph(wide, traces["pipe"])
    saved, picture = download(wide, "the graph", "PNG")
    assert saved.suggested_filename.startswith("pipeline-of-4-stages-8-micro-batches-step-")
    width, height = png_size(picture)
    assert width > 1000
    assert height > 400
    assert len(picture) > 20_000, "what WebGL has drawn is in it"
    _, drawing = download(wide, "the graph", "SVG")
    text = drawing.decode()
    bands = re.findall(
        r'<path fill="#[0-9a-f]{6}" opacity="[0-9.]+" clip-path="[^"]+" d="M[^hLz]+L[^hLz]+L[^hLz]+L[^hLz]+z"/>', text
    )
    assert len(bands) > 50
    assert all(f">stage {stage}</text>" in text for stage in range(4))


def test_the_flow_is_a_table_and_a_file_when_asked_for(wide: Page, traces: dict[str, str]) -> None:
    wide.goto(f"/parallel?trace={traces['pipe']}&drawn=flow")
    expect(flow(wide).locator("g[data-class=send_receive]").first).to_be_visible(timeout=SLOW_MS)
    _, drawing = download(wide, "the flow", "SVG")
    nodes = drawing.decode().count('<text x="9"')
    assert ">Stage 3</text>" in drawing.decode()
    _, picture = download(wide, "the flow", "PNG")
    assert png_size(picture)[0] > 1000
    wide.get_by_role("radio", name="Table").nth(1).check(force=True)
    wide.wait_for_url(re.compile("drawn=flow_table"))
    table = wide.get_by_role("grid", name="Nodes of the flow")
    expect(table).to_have_attribute("aria-rowcount", str(nodes + 1), timeout=SLOW_MS)
    expect(table).to_contain_text("pipeline message")
    saved, rows = download(wide, "these nodes", "CSV")
    assert saved.suggested_filename.endswith("-flow.csv")
    assert rows.decode().count("\n") >= nodes
    table.focus()
    wide.keyboard.press("ArrowDown")
    wide.keyboard.press("Enter")
    expect(wide.get_by_role("complementary", name="Selected node")).to_be_visible()
    # A link to the table leads to the drawing, too.
    wide.reload()
    expect(table).to_be_visible(timeout=SLOW_MS)
    wide.get_by_role("radio", name="Drawing").check(force=True)
    expect(flow(wide).locator("g[data-selected]")).to_be_in_viewport(timeout=SLOW_MS)


def test_graph_and_flow_lead_to_each_other_when_an_operator_is_selected(wide: Page, traces: dict[str, str]) -> None:
    open_graph(wide, traces["pipe"])
    graph(wide).focus()
    wide.keyboard.press(".")
    expect(wide.locator("[data-span]")).to_be_visible(timeout=SLOW_MS)
    wide.get_by_role("button", name="Show in flow").click()
    wide.wait_for_url(re.compile(r"drawn=flow.*at_span=|at_span=.*drawn=flow"))
    chosen = wide.get_by_role("complementary", name="Selected node")
    expect(chosen).to_be_visible(timeout=SLOW_MS)
    selected = flow(wide).locator("g[data-selected]")
    expect(selected).to_be_in_viewport(timeout=SLOW_MS)
    # Another node, and back: its time is zoomed to and its longest span selected.
    flow(wide).focus()
    wide.keyboard.press("ArrowRight")
    wide.keyboard.press("ArrowDown")
    name = chosen.get_by_role("heading").first.inner_text()
    wide.get_by_role("button", name="Show in graph").click()
    wide.wait_for_url(re.compile(r"(?=.*ns=\d+~\d+)(?=.*at_span=\d+)(?!.*drawn=flow)"))
    expect(graph(wide).first).to_have_attribute("aria-busy", "false", timeout=SLOW_MS)
    expect(wide.locator("[data-span]")).to_be_visible(timeout=SLOW_MS)
    # And from there to the same node again, or to the operator in it.
    wide.get_by_role("button", name="Show in flow").click()
    expect(chosen).to_contain_text(name, timeout=SLOW_MS)


def test_only_curves_that_were_recorded_are_offered_when_a_trace_has_no_memory(
    wide: Page, traces: dict[str, str]
) -> None:
    open_graph(wide, traces["ddp"])
    choices = wide.get_by_role("region", name="Graph settings")
    expect(choices.get_by_label("Compute share")).to_be_attached(timeout=SLOW_MS)
    expect(choices.get_by_label("Memory", exact=True)).to_have_count(0)
    expect(choices.get_by_label(re.compile("^FLOPs per second"))).to_have_count(0)
    before = graph(wide).screenshot()
    choices.get_by_label("Compute share").check(force=True)
    wide.wait_for_url(re.compile("curve=compute"))
    wide.mouse.move(5, 5)
    wait_until(lambda: graph(wide).screenshot() != before)  # curves are drawn in the lanes


def test_hardware_stands_below_the_graph_when_the_workload_was_measured(
    wide: Page, demo_url: str, traces: dict[str, str]
) -> None:
    workload = get_json(f"{demo_url}/api/v1/traces/{traces['pipe']}")["row"]["workload_id"]
    open_graph(wide, traces["pipe"])
    hardware = wide.get_by_role("region", name="Hardware around the trace")
    for title in ("GPU utilization", "Power", "Memory used"):
        expect(hardware.get_by_text(re.compile(f"^{title} \\d"))).to_be_visible(timeout=SLOW_MS)
    expect(hardware.locator("canvas").first).to_be_visible()
    hardware.get_by_role("button", name="Diagnose this window").click()
    wide.wait_for_url(re.compile(rf"/diagnostics\?.*workload={re.escape(quote(workload, safe=':'))}"))
    assert re.search(r"(from|window|between|time)=", wide.url), "the same window is looked at"


def test_two_runs_are_compared_when_the_second_is_chosen(wide: Page, traces: dict[str, str]) -> None:
    open_graph(wide, traces["ddp"])
    wide.get_by_role("combobox", name="Compare with").select_option(traces["pipe"])
    wide.wait_for_url(re.compile("against="))
    expect(graph(wide)).to_have_count(2, timeout=SLOW_MS)
    changed = wide.get_by_role("region", name="Differences")
    expect(changed.get_by_role("table", name="Changes")).to_be_visible(timeout=SLOW_MS)
    expect(changed.get_by_role("row").nth(1)).to_contain_text("step")
    saved, rows = download(wide, "the differences", "CSV")
    assert saved.suggested_filename == "trace-diff.csv"
    assert rows.decode().startswith("kind,name,rank,before_s,after_s")
    for shown in (graph(wide).first, graph(wide).last):
        box = shown.bounding_box()
        assert box is not None
        assert box["height"] > 180, "four rows have room"
    OUTPUT.mkdir(exist_ok=True)
    wide.screenshot(path=OUTPUT / "parallel-7-diff.png")
    wide.get_by_role("combobox", name="Compare with").select_option("")
    expect(graph(wide)).to_have_count(1, timeout=SLOW_MS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a run, ranks in folders of their own."""
    run_folder = tmp_path / "my-run"
    for rank in range(4):
        (run_folder / f"rank_{rank}").mkdir(parents=True)
        shutil.copy(RECORDED / f"pipe_rank{rank}.json.gz", run_folder / f"rank_{rank}/trace.json.gz")
    return run_folder


def expect_imported(page: Page, demo_url: str, name: str) -> None:
    entry = page.locator("li").filter(has_text=name).first
    expect(entry).to_have_attribute("data-state", "ready", timeout=SLOW_MS)
    (row,) = (trace for trace in get_json(f"{demo_url}/api/v1/traces")["traces"] if trace["name"] == name)
    assert row["ranks"] == 4
    page.goto("about:blank")  # other tests find the demo's traces alone
    page.request.delete(f"{demo_url}/api/v1/traces/{row['trace_id']}")


def test_a_folder_is_brought_whole_when_it_is_chosen(wide: Page, demo_url: str, folder: Path) -> None:
    wide.goto("/parallel")
    wide.get_by_label("Trace folder").set_input_files(folder)
    expect_imported(wide, demo_url, "my-run")


def test_a_folder_is_brought_whole_when_it_is_dropped(wide: Page, demo_url: str, folder: Path) -> None:
    dropped = folder.rename(folder.with_name("dropped-run"))
    wide.goto("/parallel")
    place = wide.get_by_role("region", name="Upload a trace").bounding_box()
    assert place is not None
    session = wide.context.new_cdp_session(wide)
    where = {"x": place["x"] + place["width"] / 2, "y": place["y"] + place["height"] / 2}
    data = {"items": [], "files": [str(dropped)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **where, "data": data})
    expect_imported(wide, demo_url, "dropped-run")
