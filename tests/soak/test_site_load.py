"""A whole site under load: GPUs scraped every 15 s by a real server, browsers that listen and fetch what pages fetch.

How much is set by ``SOAK_GPUS`` (one number, or steps with commas between), ``SOAK_BROWSERS`` (200), ``SOAK_MINUTES`` (10) of
the first step and ``SOAK_STEP_MINUTES`` (2) of the others. What is promised is that everybody is answered and, over a long run,
that memory stays flat; how quick the answers are, how long a round of scrapes takes and what it costs is noted, not judged.
"""

import asyncio
import json
import os
import re
import time
import urllib.parse
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import numpy as np
import pytest
from servers.demo import running_demo
from servers.reliability import note

pytestmark = pytest.mark.server

STEPS = [int(text) for text in os.environ.get("SOAK_GPUS", "10000").split(",")]
MINUTES = float(os.environ.get("SOAK_MINUTES", "10"))
STEP_MINUTES = float(os.environ.get("SOAK_STEP_MINUTES", "2"))
BROWSERS = int(os.environ.get("SOAK_BROWSERS", "200"))
TICK = (
    "/api/v1/tick?metrics=gpu_util_ratio,sm_active_ratio,tensor_active_ratio,dram_active_ratio,power_watts,"
    "memory_used_bytes,gpu_temperature_celsius"
)
CLUSTER, SNAPSHOT, RULES, BROKEN = (f"/api/v1/{path}" for path in ("cluster", "snapshot", "rules", "violations/units"))
OPENED = (CLUSTER, SNAPSHOT, TICK, RULES, BROKEN, "/api/v1/timeline")
"""Paths that a page fetches when opened."""
LOOKED_AT = ("/api/v1/workloads?state=running", "/api/v1/scheduling/queue", "/api/v1/nodes", "/api/v1/waste")
"""Paths of other views, visited now and then."""
MEMORY_SLACK = 0.25
LONG_MINUTES = 5
"""Shorter runs do not tell whether memory is flat."""
LOOK_EVERY_S = 10


@dataclass
class LoadResult:
    """Responses to all browsers."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)
    ticks: int = 0
    unchanged: int = 0


@dataclass
class Looks:
    """The server's own metrics, every ten seconds."""

    memory_mb: list[float] = field(default_factory=list)
    round_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)

    def cpu_share(self) -> float:
        """Of one core."""
        return (self.cpu_s[-1] - self.cpu_s[0]) / (self.at_s[-1] - self.at_s[0])


class Browser:
    """One page: revalidates cached responses and follows versions as the client does."""

    def __init__(self, client: aiohttp.ClientSession, result: LoadResult) -> None:
        self._client = client
        self._result = result
        self._tags: dict[str, str] = {}
        self._inventories: dict[str, str] = {}
        self._versions: dict[str, int] = {}

    async def ask(self, path: str) -> None:
        begun = time.perf_counter()
        try:
            async with self._client.get(path, headers={"If-None-Match": self._tags.get(path, "")}) as answer:
                await answer.read()
                if answer.status not in (200, 304):
                    self._result.failures.append(f"{path}: {answer.status}")
                self._result.unchanged += answer.status == 304
                self._tags[path] = answer.headers.get("ETag", "")
                self._inventories[path] = answer.headers.get("X-Inventory-Version", "")
        except (aiohttp.ClientError, TimeoutError) as error:
            self._result.failures.append(f"{path}: {type(error).__name__}")
        self._result.seconds[urllib.parse.urlsplit(path).path].append(time.perf_counter() - begun)

    async def follow(self, line: bytes) -> None:
        versions: dict[str, int] = json.loads(line.removeprefix(b"data:"))
        changed = {name for name, version in versions.items() if self._versions.get(name) != version}
        self._versions = versions
        if changed & {"inventory_version", "tick_version"}:
            await self.ask(TICK)
            if self._inventories[TICK] != self._inventories[SNAPSHOT]:
                await self.ask(SNAPSHOT)
            await self.ask(CLUSTER)
        if "rules_version" in changed:
            await self.ask(RULES)
            await self.ask(BROKEN)


async def browse(url: str, number: int, until: float, result: LoadResult) -> None:
    """One reader: opens the page, follows the live stream, looks at something else at times."""
    await asyncio.sleep(number * 30 / BROWSERS)  # staggered starts
    limit = aiohttp.ClientTimeout(total=None, sock_read=120)
    # Bodies are read, not unpacked: on one machine that would take the server's time.
    async with aiohttp.ClientSession(
        url, timeout=limit, headers={"Accept-Encoding": "gzip"}, auto_decompress=False
    ) as client:
        browser = Browser(client, result)
        for path in OPENED:
            await browser.ask(path)
        async with client.get("/api/v1/live") as stream:
            followed = 0
            while time.monotonic() < until:
                line = await stream.content.readline()
                if not line:
                    result.failures.append("/api/v1/live: ended")
                    return
                if not line.startswith(b"data:"):
                    continue
                followed += 1
                result.ticks += 1
                await browser.follow(line)
                if followed % 8 == number % 8:
                    await browser.ask(LOOKED_AT[followed // 8 % len(LOOKED_AT)])


async def look(client: aiohttp.ClientSession, looks: Looks) -> None:
    async with client.get("/metrics") as answer:
        text = await answer.text()
    metrics = {name: float(value) for name, value in re.findall(r"^([a-z_]+(?:{[^}]*})?) (\S+)$", text, re.MULTILINE)}
    looks.at_s.append(time.monotonic())
    looks.memory_mb.append(metrics["process_resident_memory_bytes"] / 2**20)
    looks.cpu_s.append(metrics["process_cpu_seconds_total"])
    looks.round_s.append(metrics['clusterscape_round_seconds{kind="dcgm"}'])


async def run_load(url: str, minutes: float, result: LoadResult) -> Looks:
    until = time.monotonic() + minutes * 60
    browsers = [asyncio.create_task(browse(url, number, until, result)) for number in range(BROWSERS)]
    looks = Looks()
    async with aiohttp.ClientSession(url) as client:
        while time.monotonic() < until:
            await asyncio.sleep(LOOK_EVERY_S)
            await look(client, looks)
    for browser in browsers:
        browser.cancel()
    for failure in await asyncio.gather(*browsers, return_exceptions=True):
        if isinstance(failure, Exception):
            result.failures.append(f"a browser: {failure!r}")
    return looks


def note_all(gpus: int, minutes: float, result: LoadResult, looks: Looks, memory: str) -> None:
    total = sum(map(len, result.seconds.values()))
    rounds = f"rounds of scrapes median {np.median(looks.round_s):.1f} s, longest {max(looks.round_s):.1f} s"
    note(
        "load",
        what=f"{gpus:,} GPUs at 15 s, {BROWSERS} browsers, {minutes:g} minutes",
        promised="everybody is answered, memory stays flat",
        measured=f"{total:,} requests ({result.unchanged:,} not changed), none failed; {memory}; "
        f"server {looks.cpu_share():.0%} of a core; {rounds}",
    )
    for path, times in sorted(result.seconds.items()):
        p50, p99 = (float(np.quantile(times, share)) * 1000 for share in (0.5, 0.99))
        note(
            "load",
            what=f"{gpus:,} GPUs: {path}",
            promised="–",
            measured=f"median {p50:,.0f} ms, p99 {p99:,.0f} ms of {len(times):,}",
        )


@pytest.mark.parametrize("gpus", STEPS)
def test_everybody_is_answered_and_memory_stays_flat_when_many_look(gpus: int, tmp_path: Path) -> None:
    minutes = MINUTES if gpus == STEPS[0] else STEP_MINUTES
    result = LoadResult()
    with running_demo(tmp_path, gpus=gpus, limit_s=900) as url:
        looks = asyncio.run(run_load(url, minutes, result))
    assert not result.failures, result.failures[:20]
    assert result.ticks >= BROWSERS
    # The first third is warming up.
    third = len(looks.memory_mb) // 3
    before, after = (
        float(np.median(part)) for part in (looks.memory_mb[third : 2 * third], looks.memory_mb[2 * third :])
    )
    memory = f"{before:.0f} MB, then {after:.0f} MB"
    note_all(gpus, minutes, result, looks, memory)
    if minutes >= LONG_MINUTES:
        assert after < before * (1 + MEMORY_SLACK), memory
