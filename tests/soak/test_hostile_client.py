"""One hostile client beside 20 honest pages on the 1,024-GPU demo: the pages are answered as quickly as they would be alone.

How long is set by ``SOAK_ALONE_MINUTES`` (4) and ``SOAK_HOSTILE_MINUTES`` (10).
"""

import asyncio
import os
import re
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import numpy as np
import pytest
from servers.demo import running_demo
from servers.hostile import Attacker, attack
from servers.reliability import note

pytestmark = pytest.mark.server

GPUS = 1024
PAGES = 20
ALONE_MINUTES = float(os.environ.get("SOAK_ALONE_MINUTES", "4"))
HOSTILE_MINUTES = float(os.environ.get("SOAK_HOSTILE_MINUTES", "10"))
SLOWER = 2.0
"""How many times as long the slowest hundredth of honest answers may take."""
GROWTH_MB = 200
SCRAPE_S = 15
METRICS = "gpu_util_ratio,power_watts,memory_used_bytes"
ASKED = (
    f"/api/v1/tick?metrics={METRICS}",
    "/api/v1/cluster",
    "/api/v1/snapshot",
    "/api/v1/violations/units",
    "/api/v1/workloads?state=running",
    "/api/v1/nodes",
)
"""What a page fetches when it is told of something new."""
PROXY = {
    "CLUSTERSCAPE_AUTH__MODES": "proxy",
    "CLUSTERSCAPE_AUTH__TRUSTED_PROXIES": "127.0.0.1",
    "CLUSTERSCAPE_AUTH__ROLES__RESEARCHERS": "researcher",
    "CLUSTERSCAPE_AUTH__ROLES__OPERATORS": "operator",
    "CLUSTERSCAPE_AUTH__DEFAULT_ROLE": "viewer",
}


@dataclass
class Answers:
    """How long honest pages waited, by path."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)

    def p99_s(self) -> float:
        return float(np.quantile([each for times in self.seconds.values() for each in times], 0.99))


def as_user(url: str, login: str, groups: str = "viewers") -> aiohttp.ClientSession:
    headers = {"X-Remote-User": login, "X-Remote-Groups": groups}
    return aiohttp.ClientSession(url, headers=headers, timeout=aiohttp.ClientTimeout(total=120))


async def look(url: str, number: int, until: float, answers: Answers) -> None:
    """One page: asks for what it shows once a second, each page at its own moment."""
    await asyncio.sleep(number / PAGES)
    async with as_user(url, f"honest{number}") as session:
        while time.monotonic() < until:
            for path in ASKED:
                begun = time.perf_counter()
                try:
                    async with session.get(path) as answer:
                        await answer.read()
                        if answer.status not in (200, 304):
                            answers.failures.append(f"{path}: {answer.status}")
                except (aiohttp.ClientError, TimeoutError) as error:
                    answers.failures.append(f"{path}: {error!r}")
                answers.seconds[path].append(time.perf_counter() - begun)
                await asyncio.sleep(1.0)


async def watch_memory(url: str, until: float, answers: Answers) -> None:
    async with as_user(url, "operator", "operators") as session:
        while time.monotonic() < until:
            async with session.get("/metrics") as answer:
                resident = re.search(r"^process_resident_memory_bytes (\S+)$", await answer.text(), re.MULTILINE)
            assert resident is not None
            answers.memory_mb.append(float(resident[1]) / 2**20)
            await asyncio.sleep(5)


async def follow_pages(url: str, minutes: float, attacker: Attacker | None = None) -> Answers:
    """Honest pages for some minutes, and an attacker beside them where there is one."""
    until = time.monotonic() + minutes * 60
    answers = Answers()
    async with asyncio.TaskGroup() as tasks:
        for number in range(PAGES):
            tasks.create_task(look(url, number, until, answers))
        tasks.create_task(watch_memory(url, until, answers))
        if attacker is not None:
            tasks.create_task(attack(attacker, until))
    return answers


async def find_victims(url: str) -> tuple[str, str]:
    """Somebody's run, and a unit that somebody's job holds."""
    async with as_user(url, "operator", "operators") as session:
        async with session.get("/api/v1/runs") as answer:
            run = (await answer.json())[0]["run"]
        async with session.get("/api/v1/workloads?state=running&limit=1") as answer:
            workload = (await answer.json())["workloads"][0]["workload"]
        async with session.get(f"/api/v1/workloads/{workload}") as answer:
            unit = (await answer.json())["allocations"][0]["unit"]
    return run, unit


async def find_gaps(url: str, unit: str, start_ms: int, end_ms: int) -> list[float]:
    """Seconds between two samples of a unit that are longer than a scrape's interval and a half."""
    asked = f"/api/v1/series?metric=gpu_util_ratio&unit={unit}&start={start_ms}&end={end_ms}&points=20000"
    async with as_user(url, "operator", "operators") as session, session.get(asked) as answer:
        assert answer.status == 200, await answer.text()
        table = await answer.read()
    import polars as pl

    times = pl.read_ipc_stream(table)["time_ms"].unique().sort().to_numpy()
    assert len(times) > 1
    return [float(gap) / 1000 for gap in np.diff(times) if gap > 1.5 * SCRAPE_S * 1000]


def test_honest_pages_are_answered_as_alone_when_a_client_is_hostile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in PROXY.items():
        monkeypatch.setenv(name, value)
    operator = {"X-Remote-User": "operator", "X-Remote-Groups": "operators"}
    with running_demo(tmp_path, gpus=GPUS, headers=operator) as url:
        run, unit = asyncio.run(find_victims(url))
        alone = asyncio.run(follow_pages(url, ALONE_MINUTES))
        attacker = Attacker(url, run, unit)
        begun_ms = int(time.time() * 1000)
        beside = asyncio.run(follow_pages(url, HOSTILE_MINUTES, attacker))
        gaps = asyncio.run(find_gaps(url, unit, begun_ms, int(time.time() * 1000)))
    growth_mb = max(beside.memory_mb) - max(alone.memory_mb)
    measured = (
        f"p99 {alone.p99_s() * 1000:.0f} ms alone, {beside.p99_s() * 1000:.0f} ms beside it; memory "
        f"{max(alone.memory_mb):.0f} MB, then at most {max(beside.memory_mb):.0f} MB; {len(gaps)} scrapes missed; "
        f"{sum(attacker.answers.values()):,} attacks"
    )
    print(measured, dict(attacker.answers), gaps, sep="\n")
    for path in ASKED:
        both = [float(np.quantile(each.seconds[path], 0.99)) * 1000 for each in (alone, beside)]
        print(f"{path}: p99 {both[0]:.0f} ms, then {both[1]:.0f} ms")
    note(
        "load",
        what=f"a hostile client for {HOSTILE_MINUTES:g} minutes beside {PAGES} honest pages, {GPUS:,} GPUs",
        promised="honest p99 at most twice that of the pages alone, memory within 200 MB, no scrape missed",
        measured=measured,
    )
    assert not alone.failures + beside.failures, (alone.failures + beside.failures)[:10]
    assert not [each for each in attacker.answers if re.search(r": 50[0-2]$", each)], attacker.answers
    assert not gaps
    assert growth_mb <= GROWTH_MB, measured
    assert beside.p99_s() <= SLOWER * alone.p99_s(), measured
