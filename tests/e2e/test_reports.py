"""HTML reports as they are opened: from a file, offline, with the numbers of ``--json``, in both themes and on paper."""

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters.job_histories import make_trace, random_trace
from clusters.run_site import JOB, RunSite, run_site
from playwright.sync_api import Browser, Page, expect
from servers.in_thread import served_in_thread
from unit.cli.test_sched_describe import write_trace

from clusterscape.analyze.jobs.describe import describe_traces
from clusterscape.cli.report import write_report
from clusterscape.model.jobs import JobTrace

__all__ = ["run_site"]

RECORDED = Path(__file__).parents[1] / "data/h200/traces"
Open = Callable[[Path], Page]


@pytest.fixture
def open_report(browser: Browser) -> Iterator[Open]:
    """Opens a file without a network; a script error, a refusal of the page's policy or a request fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True, timezone_id="UTC")
    problems: list[str] = []

    def open_page(file: Path) -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on(
            "request",
            lambda request: (
                problems.append(request.url) if not request.url.startswith(("file:", "data:", "blob:")) else None
            ),
        )
        page.goto(file.as_uri())
        return page

    yield open_page
    context.close()
    assert not problems


def command(*arguments: str) -> Any:
    """Its document."""
    words = [sys.executable, "-m", "clusterscape.cli", *arguments, "--json"]
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True, timeout=300).stdout)


def figure(value: float) -> str:
    """As the client writes it: whole from 100 on, else with up to two digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}".rstrip("0").rstrip(".")


def words_of(page: Page) -> str:
    return page.locator("main").inner_text().replace("\u00a0", " ")


def test_description_says_the_numbers_of_the_command_when_it_is_opened(tmp_path: Path, open_report: Open) -> None:
    first = write_trace(tmp_path / "learning.csv", random_trace(400, median_run_s=100))
    second = write_trace(tmp_path / "<i>classic & co.csv", random_trace(400, seed=2, size_unit="nodes"))
    file = tmp_path / "report.html"
    answer = command("sched", "describe", str(first), str(second), "--total", "4", "--total", "0", "--html", str(file))
    page = open_report(file)
    expect(page).to_have_title("Job traces: learning, <i>classic & co")
    expect(page.locator("main i", has_text="classic")).to_have_count(0)
    facts = page.get_by_role("table", name="Trace statistics")
    for label, said in {
        "Jobs": [f"{trace['jobs']:,}" for trace in answer["traces"]],
        "Unit-hours used": [figure(trace["unit_hours"]) for trace in answer["traces"]],
        "Utilization": [f"{trace['occupancy']['utilization'] * 100:.0f} %" for trace in answer["traces"]],
    }.items():
        row = facts.get_by_role("row").filter(has=page.get_by_role("rowheader", name=label, exact=True))
        assert [text.replace("\u00a0", " ") for text in row.get_by_role("cell").all_inner_texts()] == said
    verdicts = page.get_by_role("list", name="Verdicts").locator("> li")
    assert [card.get_attribute("data-verdict") for card in verdicts.all()] == [
        claim["verdict"] for claim in answer["claims"]
    ]
    words = words_of(page)
    for claim in answer["claims"]:
        assert claim["sentence"] in words
    for title in ("Submissions by weekday", "Size by queue length", "Run time by status", "How jobs end"):
        expect(page.get_by_role("region", name=title)).to_be_visible()
    assert page.locator("main svg").count() > 8
    # The same numbers as a table, and as a file.
    card = page.get_by_role("region", name="Submissions by weekday")
    card.get_by_role("button", name="as a table").click()
    assert card.get_by_role("row").count() == 1 + 2 * 7
    with page.expect_download() as download:
        card.get_by_role("button", name=re.compile("Export")).click()
        page.get_by_role("menuitem", name=re.compile("CSV")).click()
    assert download.value.suggested_filename == "clusterscape-submissions-by-weekday.csv"


@pytest.mark.parametrize(
    "trace",
    [
        make_trace(submit_s=[5]),
        make_trace(submit_s=[0, 1, 2], run_s=[0, 0, 0], wait_s=[0, 0, 0]),
        make_trace(submit_s=[0, 1], size=[0.5, 0.5], status=["failed", "completed"], user=["a", "b"]),
    ],
    ids=["one job", "nothing ran", "shared GPUs"],
)
def test_description_is_drawn_when_a_trace_says_little(tmp_path: Path, open_report: Open, trace: JobTrace) -> None:
    description = dataclasses.asdict(describe_traces([trace]))
    write_report(tmp_path / "report.html", "job-traces", "Little", {"description": description}, "")
    page = open_report(tmp_path / "report.html")
    expect(page.get_by_role("heading", name="Statistics")).to_be_visible()
    assert not re.search(r"\bNaN\b|undefined|Infinity", words_of(page))


def test_diagnosis_says_the_numbers_of_the_command_when_it_is_opened(
    tmp_path: Path, open_report: Open, run_site: RunSite
) -> None:
    run_site.train()
    file = tmp_path / "report.html"
    with served_in_thread(run_site.queries) as url:
        answer = command("diagnose", JOB, "--url", url, "--html", str(file))
    page = open_report(file)
    plots = page.locator("[data-plot-count]")
    expect(plots).to_have_attribute("data-plot-count", str(answer["gpus"]))
    words = words_of(page)
    for finding in answer["findings"]:
        assert finding["title"] in words
        assert finding["reason"] in words
    for cluster in answer["clusters"]:
        assert f"{cluster['size']} GPUs" in words
        assert cluster["units"][0] in words
    assert "they are exactly local rank 0." in words
    figure = page.locator("dl div").filter(has=page.locator("dt", has_text="GPU-hours"))
    assert figure.locator("dd").inner_text() == f"{answer['gpu_hours']:,.0f}"
    expect(page.get_by_role("region", name="Timeline").locator("canvas").first).to_be_visible()
    # Nothing is offered that only a server could answer; GPUs can be selected and read.
    expect(page.get_by_role("combobox", name="Metric")).to_have_count(0)
    page.get_by_role("combobox", name="Display as").select_option("table")
    rows = page.get_by_role("table").get_by_role("row")
    expect(rows).to_have_count(1 + answer["gpus"])
    page.get_by_role("region", name=re.compile("^Clusters by")).get_by_role("button").nth(1).click()
    expect(page.locator('tr[aria-selected="true"]')).to_have_count(answer["clusters"][1]["size"])


def test_trace_says_the_numbers_of_the_command_when_it_is_opened(tmp_path: Path, open_report: Open) -> None:
    file = tmp_path / "report.html"
    traces = [str(path) for path in sorted(RECORDED.glob("pipe_*"))]
    answer = command("trace", "report", *traces, "--workers", "1", "--html", str(file))
    page = open_report(file)
    words = words_of(page)
    for verdict in answer["verdicts"]:
        assert verdict["sentence"] in words
    for question in answer["what_if"]:
        assert question["question"] in words
        assert f"{question['speed_up']:.2f}×" in words
    ranks = page.locator("section", has=page.get_by_role("heading", name="Mean step by rank"))
    assert ranks.get_by_role("row").count() == 1 + len(answer["breakdown"])
    stages = page.locator("section", has=page.get_by_role("heading", name="Pipeline"))
    assert [cell.replace("\u00a0", " ") for cell in stages.locator("tbody td:last-child").all_inner_texts()] == [
        f"{share * 100:.0f} %" for share in answer["bubble"]["stage_bubble_ratio"]
    ]
    graph = page.get_by_role("group", name=re.compile("^Marey graph"))
    expect(graph).to_have_attribute("data-drawn", re.compile(r"\d~"))
    expect(page.get_by_role("group", name=re.compile(f"^Time of {len(answer['steps'])} steps"))).to_be_visible()


def test_trace_has_no_verdict_when_only_an_operator_graph_was_read(tmp_path: Path, open_report: Open) -> None:
    operator = {"node_id": "1", "name": "Default/MatMul-op1", "scope": "Default", "type": "MatMul"}
    stage = {"rank_ids": ["0", "1"], "op_nodes": [operator]}
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps({"metadata": {"parallel_type": "pipeline"}, "graphs": {"0": stage}}))
    file = tmp_path / "report.html"
    command("trace", "report", str(graph), "--html", str(file))
    words = words_of(open_report(file))
    assert "Operator graph only: no times recorded." in words
    assert "Nothing significant" not in words


def test_report_is_read_when_scripts_are_forbidden_and_printed_when_wanted(tmp_path: Path, browser: Browser) -> None:
    trace = write_trace(tmp_path / "learning.csv", random_trace(400))
    file = tmp_path / "report.html"
    answer = command("sched", "describe", str(trace), "--html", str(file))
    plain = browser.new_context(java_script_enabled=False, offline=True)
    page = plain.new_page()
    page.goto(file.as_uri())
    assert answer["claims"][0]["sentence"] in page.locator("pre").inner_text()
    plain.close()
    dark = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="dark", offline=True)
    page = dark.new_page()
    page.goto(file.as_uri())
    expect(page.get_by_role("heading", name="Statistics")).to_be_visible()
    look = """() => ({
        background: getComputedStyle(document.body).backgroundColor,
        widest: Math.max(...[...document.querySelectorAll("main svg")].map((svg) => svg.getBoundingClientRect().right)),
        page: document.querySelector("main").getBoundingClientRect().right,
    })"""
    on_screen = page.evaluate(look)
    page.evaluate(f"window.addEventListener('beforeprint', () => {{ window.printed = ({look})() }})")
    page.pdf(prefer_css_page_size=True)
    printed = page.evaluate("window.printed")
    # Paper is white, whatever the screen is, and charts have been drawn again for its width.
    assert printed["background"] == "rgb(255, 255, 255)"
    assert printed["widest"] <= printed["page"] < on_screen["page"]
    # The page's policy forbids `wait_for_function`, which evaluates text.
    for _ in range(200):
        if page.evaluate(look) == on_screen:
            break
        page.wait_for_timeout(50)
    assert page.evaluate(look) == on_screen
    dark.close()
