"""A whole site under load: GPUs scraped every 15 s by a real server, browsers that listen and fetch what pages fetch.

How long and how much is set by ``SOAK_MINUTES`` (10), ``SOAK_BROWSERS`` (200) and ``SOAK_GPUS``.
What is promised here is that everybody is answered and memory stays flat; how quick the answers are is noted, not judged.
"""

import asyncio
import os
import time
import urllib.parse
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest
from servers.demo import running_demo
from servers.reliability import note

pytestmark = pytest.mark.server

MINUTES = float(os.environ.get("SOAK_MINUTES", "10"))
BROWSERS = int(os.environ.get("SOAK_BROWSERS", "200"))
OPENED = ("/api/v1/cluster", "/api/v1/snapshot", "/api/v1/rules", "/api/v1/violations/units", "/api/v1/timeline")
"""What a page asks for when it is opened."""
FOLLOWED = ("/api/v1/tick?metrics=gpu_util_ratio", "/api/v1/cluster")
"""What it asks for at each tick."""
LOOKED_AT = ("/api/v1/workloads?state=running", "/api/v1/scheduling/queue", "/api/v1/nodes", "/api/v1/waste")
"""Where its reader goes now and then."""
MEMORY_SLACK = 0.25


@dataclass
class Seen:
    """What all browsers saw."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)
    ticks: int = 0


async def ask(client: aiohttp.ClientSession, path: str, seen: Seen) -> None:
    begun = time.perf_counter()
    try:
        async with client.get(path) as answer:
            await answer.read()
            if answer.status != 200:
                seen.failures.append(f"{path}: {answer.status}")
    except (aiohttp.ClientError, TimeoutError) as error:
        seen.failures.append(f"{path}: {type(error).__name__}")
    seen.seconds[urllib.parse.urlsplit(path).path].append(time.perf_counter() - begun)


async def browse(url: str, number: int, until: float, seen: Seen) -> None:
    """One browser: opens the page, follows the live stream, looks at something else at times."""
    await asyncio.sleep(number * 30 / BROWSERS)  # they do not all come at once
    limit = aiohttp.ClientTimeout(total=None, sock_read=120)
    async with aiohttp.ClientSession(url, timeout=limit, headers={"Accept-Encoding": "gzip"}) as client:
        for path in OPENED:
            await ask(client, path, seen)
        async with client.get("/api/v1/live") as stream:
            followed = 0
            while time.monotonic() < until:
                line = await stream.content.readline()
                if not line:
                    seen.failures.append("/api/v1/live: ended")
                    return
                if not line.startswith(b"data:"):
                    continue
                followed += 1
                seen.ticks += 1
                for path in FOLLOWED:
                    await ask(client, path, seen)
                if followed % 8 == number % 8:
                    await ask(client, LOOKED_AT[followed // 8 % len(LOOKED_AT)], seen)


def server_memory_mb() -> float:
    """Of the demo's server, without the program that pretends to be its cluster."""
    servers = [each for each in psutil.Process().children() if "clusterscape.cli" in each.cmdline()]
    return float(sum(each.memory_info().rss for each in servers)) / 2**20


async def run_load(url: str, seen: Seen) -> list[float]:
    """Memory in MB, every ten seconds."""
    until = time.monotonic() + MINUTES * 60
    browsers = [asyncio.create_task(browse(url, number, until, seen)) for number in range(BROWSERS)]
    memory = []
    while time.monotonic() < until:
        await asyncio.sleep(10)
        memory.append(server_memory_mb())
    for browser in browsers:
        browser.cancel()
    for failure in await asyncio.gather(*browsers, return_exceptions=True):
        if isinstance(failure, Exception):
            seen.failures.append(f"a browser: {failure!r}")
    return memory


@pytest.mark.parametrize("gpus", [int(text) for text in os.environ.get("SOAK_GPUS", "10000").split(",")])
def test_everybody_is_answered_and_memory_stays_flat_when_many_look(gpus: int, tmp_path: Path) -> None:
    seen = Seen()
    with running_demo(tmp_path, gpus=gpus, limit_s=900) as url:
        memory = asyncio.run(run_load(url, seen))
    assert not seen.failures, seen.failures[:20]
    assert seen.ticks >= BROWSERS
    # The first third is warming up.
    third = len(memory) // 3
    before, after = float(np.median(memory[third : 2 * third])), float(np.median(memory[2 * third :]))
    assert after < before * (1 + MEMORY_SLACK), f"{before:.0f} MB, then {after:.0f} MB"
    total = sum(len(times) for times in seen.seconds.values())
    note(
        "load",
        what=f"{gpus:,} GPUs at 15 s, {BROWSERS} browsers, {MINUTES:g} minutes",
        promised="everybody is answered, memory stays flat",
        measured=f"{total:,} requests, none failed; {before:.0f} MB, then {after:.0f} MB",
    )
    for path, times in sorted(seen.seconds.items()):
        p50, p99 = (float(np.quantile(times, share)) * 1000 for share in (0.5, 0.99))
        note(
            "load",
            what=f"{gpus:,} GPUs: {path}",
            promised="–",
            measured=f"median {p50:,.0f} ms, p99 {p99:,.0f} ms of {len(times):,}",
        )
