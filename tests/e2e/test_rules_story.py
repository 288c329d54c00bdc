"""User B of HPC²lusterScape, section 8.2: stacks two rules and finds the stalled trainings, all of them and no others.

The demo knows who stalls. R2 alone also marks interactive sessions and jobs that worked hard and then idle: busy now and then,
drawing little most of the time, which is what a 95th and a 50th percentile say. But those are idle for long, so R1 marks them,
too. The paper's R2 is after "consistently high utilization": stacked, a bar of R2 without one of R1 is a stalled training.
"""

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from servers.demo import get_json, running_demo, wait_until
from servers.picture import picture_of

from clusterscape.demo import DemoCluster
from clusterscape.demo.jobs import Behavior
from clusterscape.model import UnixMs

pytestmark = pytest.mark.browser

GPUS = 256
DAY_MS = 86_400_000
SLOW_MS = 120_000
R1 = "gpu_util p5 < 15%"
R2 = "gpu_util p95 > 90% and power p50 < 70%"


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rules")


@pytest.fixture(scope="module")
def demo_url(demo_folder: Path) -> Iterator[str]:
    """A demo whose shipped rules are disabled: the story begins without any."""
    with running_demo(demo_folder, gpus=GPUS) as url:
        wait_until(lambda: get_json(f"{url}/api/v1/rules")["judged_at"] is not None)
        for rule in get_json(f"{url}/api/v1/rules")["rules"]:
            _put(f"{url}/api/v1/rules/{rule['key']}", {"is_enabled": False})
        yield url


def test_stacked_rules_mark_exactly_the_stalled_jobs(page: Page, demo_url: str, demo_folder: Path) -> None:
    page.goto("/")
    expect(picture_of(page)).to_have_attribute("data-marked-groups", "0", timeout=SLOW_MS)
    _define_r1_by_form(page)
    marked_by_r1 = _await_count(page, demo_url, "r1")
    assert marked_by_r1 > 0
    expect(picture_of(page)).not_to_have_attribute("data-marked-groups", "0", timeout=SLOW_MS)
    expect(page.get_by_text(re.compile(r"Rules broken: R1 by \d+\sunits"))).to_be_attached()

    _define_r2_by_text(page)
    _await_count(page, demo_url, "r2")

    def finds_the_stalled() -> bool:
        """R2 finds every stalled training, and stacked on R1 nobody else. Jobs start and end meanwhile."""
        units, stalled = _broken(demo_url), set(_stalled(demo_folder)[0])
        return bool(stalled) and units["r2"] - units["r1"] == stalled

    wait_until(finds_the_stalled)
    stalled, jobs = _stalled(demo_folder)

    page.goto("/?table=units&where=rule:r2:broken&where=!rule:r1:broken")
    expect(page.get_by_role("status").filter(has_text=re.compile(rf"^{len(stalled)} of "))).to_be_visible(
        timeout=SLOW_MS
    )
    listed = page.get_by_role("grid").inner_text()
    assert all(unit in listed for unit in stalled)

    workload = jobs[0]
    page.goto(f"/?select=workload:{workload}")
    card = page.get_by_role("complementary", name="Details").get_by_role("region", name="Rules")
    expect(card.get_by_text(re.compile("broken by"))).to_have_count(1, timeout=SLOW_MS)
    expect(card.get_by_role("group").filter(has_text="R1")).to_contain_text(
        "past", timeout=SLOW_MS
    )  # while it started; history is evaluated in the background
    card.get_by_text("R2").click()
    expect(card.get_by_text("power p50 < 70%")).to_be_visible()

    before_s = time.time() // 60 * 60 - 2 * 3600
    # A new rule judges the past in the background; a page of the past shows what was known when it was opened.
    wait_until(lambda: bool(_broken(demo_url, at_ms=int(before_s * 1000)).get("r2")))
    page.goto(f"/?at={time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime(before_s))}")
    expect(_chip(page, "r2").locator("b")).to_have_text(re.compile(r"^[1-9]"), timeout=SLOW_MS)
    expect(picture_of(page)).not_to_have_attribute("data-marked-groups", "0", timeout=SLOW_MS)


def test_rules_are_moved_hidden_deleted_and_brought_back(page: Page, demo_url: str) -> None:
    for key, text in (("a1", R1), ("a2", R2)):
        _put(f"{demo_url}/api/v1/rules/{key}", {"name": key.upper(), "severity": "critical", "text": text})
    page.set_viewport_size({"width": 1800, "height": 900})
    page.goto("/")
    chip = _chip(page, "a2")
    expect(chip).to_have_attribute("aria-pressed", "true", timeout=SLOW_MS)
    chip.focus()
    page.keyboard.press("Alt+ArrowLeft")
    wait_until(lambda: [key for key in _keys(demo_url) if key in ("a1", "a2")] == ["a2", "a1"])

    chip.click()
    expect(chip).to_have_attribute("aria-pressed", "false")
    expect(page).to_have_url(re.compile(r"rules_hidden=a2"))

    page.get_by_role("button", name="More for A1").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_text("A1 was deleted.")).to_be_visible(timeout=SLOW_MS)
    assert "a1" not in _keys(demo_url)
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(_chip(page, "a1")).to_be_visible(timeout=SLOW_MS)
    wait_until(lambda: "a1" in _keys(demo_url))

    page.get_by_role("button", name="More for A2").click()
    page.get_by_role("menuitem", name="Show only its GPUs").click()
    expect(page).to_have_url(re.compile(r"where=rule:a2:broken"))


def _define_r1_by_form(page: Page) -> None:
    page.get_by_role("button", name="+ rule").click()
    sheet = page.get_by_role("dialog")
    sheet.get_by_label("Name", exact=True).fill("R1")
    for field, choice in (
        ("metric", "GPU utilization"),
        ("statistic", "percentile"),
        ("operator", "<"),
        ("unit", "%"),
        ("window", "whole life"),
    ):
        sheet.get_by_label(f"Condition 1: {field}", exact=True).select_option(label=choice)
    sheet.get_by_label("Condition 1: percentile").fill("5")
    value = sheet.get_by_label("Condition 1: value")
    value.fill("much")
    expect(sheet.get_by_role("alert").filter(has_text="`much` is not a number")).to_be_visible(timeout=SLOW_MS)
    value.fill("15")
    expect(sheet.get_by_text("GPU utilization, 5th percentile")).to_be_visible(timeout=SLOW_MS)
    expect(sheet.locator("code", has_text=R1)).to_be_visible()
    _save(sheet)


def _define_r2_by_text(page: Page) -> None:
    page.get_by_role("button", name="+ rule").click()
    sheet = page.get_by_role("dialog")
    sheet.get_by_label("Name", exact=True).fill("R2")
    sheet.get_by_label("critical", exact=True).check()
    sheet.get_by_label("Text", exact=True).check()
    text = sheet.get_by_role("combobox", name="Rule as text")
    expect(text).to_have_value(R1, timeout=SLOW_MS)  # the form's default
    text.fill("")
    text.press_sequentially("gpu_")
    expect(sheet.get_by_role("option", name="gpu_util")).to_be_visible(timeout=SLOW_MS)
    text.press("Escape")
    expect(sheet.get_by_role("option")).to_have_count(0)
    text.fill(R2.replace("power", "pwoer"))
    expect(sheet.locator("mark")).to_have_text("pwoer", timeout=SLOW_MS)
    expect(sheet.locator("mark")).to_have_attribute("data-column", "24")
    sheet.get_by_role("button", name="Use power").click()
    expect(text).to_have_value(R2)
    expect(sheet.get_by_text("Power, 50th percentile")).to_be_visible(timeout=SLOW_MS)
    sheet.get_by_label("Form", exact=True).check()
    expect(sheet.get_by_label("Condition 2: value")).to_have_value("70")
    sheet.get_by_role("button", name="Last 24 h").click()
    expect(sheet.get_by_text(re.compile(r"would have fired \d+.times on \d+.workloads"))).to_be_visible(timeout=SLOW_MS)
    _save(sheet)


def _save(sheet: Locator) -> None:
    sheet.get_by_role("button", name="Add rule").click()
    expect(sheet).to_be_hidden(timeout=SLOW_MS)


def _chip(page: Page, key: str) -> Locator:
    return page.locator(f"button[data-rule={key}]")


def _await_count(page: Page, url: str, key: str) -> int:
    """Waits until the server has judged and the bar says the same; how many workloads break the rule."""

    def counts() -> Any:
        return next((rule["counts"] for rule in get_json(f"{url}/api/v1/rules")["rules"] if rule["key"] == key), None)

    wait_until(lambda: counts() is not None and key in _broken(url))
    shown = _chip(page, key).locator("b")
    # Rules are evaluated all the time: page and API agree once both have the same state.
    wait_until(lambda: shown.inner_text() == str(counts()["workloads"]))
    return int(shown.inner_text())


def _broken(url: str, at_ms: int | None = None) -> dict[str, set[str]]:
    moment = "" if at_ms is None else f"?at={at_ms}"
    return {rule["rule"]: set(rule["units"]) for rule in get_json(f"{url}/api/v1/violations/units{moment}")["rules"]}


def _keys(url: str) -> list[str]:
    return [rule["key"] for rule in get_json(f"{url}/api/v1/rules")["rules"]]


def _stalled(folder: Path) -> tuple[list[str], list[str]]:
    """The units and workloads of the demo that stall, as the demo itself knows it."""
    note = json.loads((folder / "data" / "demo.json").read_text())
    cluster = DemoCluster(anchor_ms=UnixMs(note["anchor_ms"]), **note["cluster"])
    now_ms = UnixMs(time.time_ns() // 1_000_000)
    _, allocations = cluster.history_records(UnixMs(now_ms - DAY_MS), now_ms)
    behaviors = {f"slurm:{life.demo.native_id}": life.demo.behavior for life in cluster.scenario.lives.values()}
    held = [row for row in allocations if row.to_at is None and behaviors[row.workload] is Behavior.STALLED]
    return sorted(str(row.unit) for row in held), sorted({str(row.workload) for row in held})


def _put(url: str, body: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=json.dumps(body).encode(), method="PUT", headers=headers)
    with urllib.request.urlopen(request, timeout=30):
        pass
