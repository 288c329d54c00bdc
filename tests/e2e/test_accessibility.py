"""Every view, in both themes, as axe-core judges it: names, roles, contrast, order. What canvases draw is in tables, too."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from servers.demo import get_json
from servers.picture import wait_for_frames

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
WAIT_MS = 60_000
RULES = {"label-content-name-mismatch": {"enabled": True}}
"""Voice control: accessible names contain the visible text. An experimental rule, so it is enabled here."""
VIEWS = {
    "overview": ("/", '[aria-label="Time shown"] svg'),
    "workloads": ("/?table=workloads", '[role="grid"]'),
    "rules": ("/rules", '[role="grid"]'),
    "diagnostics": ("/diagnostics?workload={job}", "main[aria-busy=false]"),
    "parallel": ("/parallel", '[aria-label="Traces"] li'),
    "queue": ("/scheduling", '[role="grid"], main [role="status"]'),
    "history": ("/scheduling?tab=history", "main h2"),
    "simulator": ("/scheduling?tab=simulator", "main"),
    "predictions": ("/scheduling?tab=quality", "main"),
    "runs": ("/runs", "main canvas, main svg"),
}
"""Address, and the element that appears last."""
FADED_IN = """() => {
  const ends = (animation) => animation.effect?.getComputedTiming().endTime !== Infinity;
  const finished = document.getAnimations().filter(ends).map((animation) => animation.finished.catch(() => null));
  return Promise.all(finished).then(() => null);
}"""
"""Animations end before the check."""


@pytest.fixture(params=["dark", "light"])
def themed(request: pytest.FixtureRequest, browser: Browser, demo_url: str) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, base_url=demo_url, color_scheme=request.param, bypass_csp=True
    )
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    yield page
    context.close()


def find_job(url: str) -> str:
    running = get_json(f"{url}/api/v1/workloads?state=running&limit=100")["workloads"]
    return str(max(running, key=lambda job: job["gpus_requested"])["workload"])


@pytest.mark.parametrize("view", VIEWS)
def test_no_violation_is_found_when_axe_checks_a_view(view: str, themed: Page, demo_url: str) -> None:
    address, drawn = VIEWS[view]
    themed.goto(address.format(job=find_job(demo_url)))
    themed.locator(drawn).first.wait_for()
    wait_for_frames(themed)
    themed.evaluate(FADED_IN)
    themed.add_script_tag(path=AXE)
    results: Any = themed.evaluate("rules => axe.run(document, {resultTypes: ['violations'], rules})", RULES)
    violations = [
        f"{violation['id']} ({violation['impact']}): {violation['help']}; "
        + json.dumps(
            [
                node["html"][:160] + " | " + (node["any"][0]["message"] if node["any"] else "")
                for node in violation["nodes"]
            ][:6]
        )
        for violation in results["violations"]
    ]
    assert not violations, "\n".join(violations)
