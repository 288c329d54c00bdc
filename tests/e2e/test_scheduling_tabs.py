"""History, Simulator and Predictions on the demo: verdicts, an uploaded trace, policies compared on it."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser

SLOW_MS = 120_000
"""The first simulation on a machine compiles the engine."""


@pytest.fixture
def swf(tmp_path: Path) -> Path:
    """Jobs that queue up on 16 processors: short ones among long ones, so that their order matters."""
    path = tmp_path / "queued.swf"
    lines = [
        f"{job} {job * 60} 30 {60 if job % 3 else 1800} {1 + job * 7 % 16} -1 -1 {1 + job * 7 % 16} "
        f"{120 if job % 3 else 3600} -1 {0 if job % 10 == 0 else 1} {job % 6} 1 -1 -1 -1 -1 -1"
        for job in range(1, 241)
    ]
    path.write_text("; MaxProcs: 16\n; UnixStartTime: 1700000000\n" + "\n".join(lines) + "\n")
    return path


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("radiogroup", name="Tab").or_(page.get_by_role("group", name="Tab")).get_by_text(
        name, exact=True
    ).click()


def test_an_uploaded_trace_is_described_and_simulated_when_it_is_brought(page: Page, swf: Path) -> None:
    page.goto("/scheduling")
    open_tab(page, "History")
    verdicts = page.get_by_role("list", name="Verdicts")
    expect(verdicts).to_contain_text("Larger jobs fail more often", timeout=90_000)
    expect(verdicts).to_contain_text(re.compile("supported|cannot tell"))

    page.get_by_label("Job trace file").set_input_files(swf)
    expect(page).to_have_url(re.compile(r"history=cluster&history=queued-"), timeout=90_000)
    expect(verdicts).to_contain_text("Deep-learning jobs are shorter than HPC jobs", timeout=90_000)
    expect(page.get_by_role("checkbox", name="queued")).to_be_checked()
    expect(page.get_by_role("img", name="Run time: cumulative")).to_be_visible()
    page.get_by_role("button", name="Run time as a table", exact=True).click()
    table = page.get_by_role("table", name="Run time", exact=True)
    expect(table).to_contain_text("queued")
    expect(table).to_contain_text("demo")

    open_tab(page, "Simulator")
    page.get_by_role("combobox", name="Trace").select_option(label="queued")
    measures = page.get_by_role("table", name="Measures")
    expect(measures.get_by_role("row", name=re.compile(r"SJF \+ EASY"))).to_contain_text("better", timeout=SLOW_MS)
    expect(measures.get_by_role("row", name=re.compile(r"FCFS \+ EASY"))).to_contain_text("±")
    expect(page.get_by_role("img", name="Schedule of FCFS + EASY")).to_be_visible()
    expect(page).to_have_url(re.compile(r"simulate=queued-.*result=[0-9a-f]+"), timeout=SLOW_MS)
    result = re.search(r"result=[0-9a-f]+", page.url)
    assert result is not None

    # The link leads to the same result, which is kept.
    page.reload()
    expect(measures).to_contain_text("SJF + EASY", timeout=SLOW_MS)
    assert result.group() in page.url
    page.get_by_role("checkbox", name="relaxed").check()
    factors = page.get_by_role("textbox", name="Relaxation factors")
    factors.fill("0.05, 0.2")
    factors.press("Enter")
    expect(measures).to_contain_text("FCFS + relaxed ω 0.2", timeout=SLOW_MS)
    expect(measures).to_contain_text("fairness over users")
    page.get_by_text("Last two", exact=True).click()
    expect(page.get_by_text("run times predicted from the last two")).to_be_visible(timeout=SLOW_MS)
    expect(measures).to_contain_text("SJF + relaxed ω 0.2", timeout=SLOW_MS)

    saved = page.get_by_role("region", name="Saved results")
    saved.get_by_role("listitem").last.get_by_role("button").first.click()
    expect(page).to_have_url(re.compile(result.group()), timeout=SLOW_MS)
    expect(measures).not_to_contain_text("relaxed", timeout=SLOW_MS)

    # Charts are read by the keyboard, too.
    chart = page.get_by_role("img", name="Longest waits by size")
    chart.focus()
    chart.press("End")
    expect(chart.get_by_role("status")).to_contain_text("SJF + EASY", timeout=SLOW_MS)


def test_machine_size_is_guessed_with_its_reason_unless_it_is_given(page: Page, swf: Path) -> None:
    lines = swf.read_text().splitlines()
    sizeless = swf.with_name("sizeless.swf")
    sizeless.write_text("\n".join(line for line in lines if "MaxProcs" not in line) + "\n")
    page.goto("/scheduling?tab=history")
    upload = page.get_by_role("region", name="Upload a job trace").or_(page.get_by_label("Upload a job trace")).first
    size = upload.get_by_label("Machine size")
    page.get_by_label("Job trace file").set_input_files(sizeless)
    expect(page).to_have_url(re.compile("history=sizeless-"), timeout=90_000)
    guessed = page.get_by_text(re.compile(r"used \(a guess: \w+"))
    expect(guessed).to_have_count(1, timeout=90_000)

    # The same file with the machine's size: twice as many processors, used half as much, and no guess.
    size.fill("32")
    given = sizeless.with_name("given.swf")
    given.write_bytes(sizeless.read_bytes())
    page.get_by_label("Job trace file").set_input_files(given)
    expect(page).to_have_url(re.compile("history=given-"), timeout=90_000)
    expect(page.get_by_text(re.compile(r"^given .* of 32.processors used")).first).to_be_visible(timeout=90_000)
    expect(guessed).to_have_count(1)


def test_error_is_explained_when_a_file_is_no_trace(browser: Browser, demo_url: str, tmp_path: Path) -> None:
    # Not the fixture's page: the browser logs the refused upload as an error.
    page = browser.new_page(base_url=demo_url)
    path = tmp_path / "letter.txt"
    path.write_text("Hello all,\n")
    page.goto("/scheduling?tab=history")
    page.get_by_label("Job trace file").set_input_files(path)
    expect(page.get_by_role("alert")).to_contain_text("letter.txt cannot be read as a job trace", timeout=90_000)
    page.close()


def test_missing_predictions_are_reported_when_nothing_was_learned(page: Page) -> None:
    page.goto("/scheduling?tab=quality")
    expect(page.get_by_role("region", name="Model of run time")).to_be_visible(timeout=90_000)
    expect(
        page.get_by_text(re.compile("No predictions to compare yet|Accuracy of run-time predictions"))
    ).to_be_visible()
