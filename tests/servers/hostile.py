"""A hostile client: every attack on a running server that has been seen to work once, one after another.

As a researcher behind the proxy (``X-Remote-User``) and, from another address, as nobody. Loopback only, bounded in time.
"""

import asyncio
import gzip
import io
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import aiohttp

from clusterscape.model.run_frames import NO_STEP, encode_event, encode_samples

STRANGER_ADDRESS = "127.0.0.2"
"""Not the proxy's address: requests from here are unauthenticated."""
ATTACK_S = 20.0
"""One attack goes on no longer."""
CONNECTIONS = 100
FORTY_MB = 40 * 2**20


@dataclass
class Attacker:
    """``answers``: how often each attack was answered how."""

    url: str
    victim_run: str
    victim_unit: str
    answers: Counter[str] = field(default_factory=Counter)
    begun: list[tuple[float, str]] = field(default_factory=list)
    """When each attack began, by ``time.monotonic``."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def session(self, login: str = "mallory") -> aiohttp.ClientSession:
        headers = {"X-Remote-User": login, "X-Remote-Groups": "researchers", "X-ClusterScape-Page": "1"}
        return aiohttp.ClientSession(self.url, headers=headers, timeout=aiohttp.ClientTimeout(total=ATTACK_S))

    async def send(self, name: str, method: str, path: str, **body: object) -> None:
        """One request, its status noted under the attack's name."""
        if isinstance(data := body.get("data"), bytes):
            body["data"] = io.BytesIO(data)  # sent in parts
        with suppress(aiohttp.ClientError, TimeoutError, ConnectionError):
            async with self.session() as session, session.request(method, path, **body) as answer:  # type: ignore[arg-type]
                await answer.read()
                self.answers[f"{name}: {answer.status}"] += 1
                return
        self.answers[f"{name}: cut off"] += 1

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A bare connection of nobody."""
        parts = urlsplit(self.url)
        return await asyncio.open_connection(parts.hostname, parts.port, local_addr=(STRANGER_ADDRESS, 0))


Attack = Callable[[Attacker], Awaitable[None]]


async def attack(attacker: Attacker, until: float) -> None:
    """All attacks, again and again."""
    for behavior in itertools.cycle(ATTACKS):
        if time.monotonic() >= until:
            return
        attacker.begun.append((time.monotonic(), behavior.__name__))
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(ATTACK_S * 1.5):
                await behavior(attacker)


def attack_for(
    url: str, victim_run: str, victim_unit: str, until: float
) -> tuple[Counter[str], list[tuple[float, str]]]:
    """All attacks until then, from a process of its own and at a low priority: the attacker's computing, which would be done on
    another machine, must not delay the measurement.
    """
    os.nice(10)
    attacker = Attacker(url, victim_run, victim_unit)
    asyncio.run(attack(attacker, until))
    return attacker.answers, attacker.begun


def _samples(codes: range | list[int], time_us: int | None = None) -> bytes:
    now_us = int(time.time() * 1e6) if time_us is None else time_us
    return encode_samples(codes, [now_us] * len(codes), [NO_STEP] * len(codes), [1.0] * len(codes))


def _series(code: int, name: str, unit: str | None = None) -> bytes:
    event = {"event": "series", "code": code, "name": name, "unit": unit, "scope": "device", "method": "measured"}
    return encode_event(event)


def _run(run: str, **fields: object) -> bytes:
    about = {"user": "mallory", "name": "x.py", "host": "n", "command": ["x"], "devices": ["0"], **fields}
    return encode_event({"event": "run", "run": run, "queued_at": int(time.time() * 1000), "params": {}, **about})


async def take_over_a_run(attacker: Attacker) -> None:
    data = _run(attacker.victim_run)
    await attacker.send("take over", "POST", f"/api/v1/runs/{attacker.victim_run}/files/zz.spool", data=data)


async def write_units_of_others(attacker: Attacker) -> None:
    for unit in (f"run:{attacker.victim_run}", attacker.victim_unit):
        run = f"mallory-{next(attacker.numbers)}"
        data = _run(run) + _series(0, "gpu_util_ratio", unit) + _samples(range(1))
        await attacker.send("foreign unit", "POST", f"/api/v1/runs/{run}/files/tracker.spool", data=data)


async def send_odd_events(attacker: Attacker) -> None:
    odd: list[bytes] = [
        _run("odd", workload=[]),
        _run("odd", command=5),
        _run("odd", devices=["1" * 5000] * 5000),
        _run("odd") + _series(0, "loss") + _samples(range(1), 9 * 10**18),
        _run("odd") + _series(0, "loss") + _samples(range(1), -9 * 10**18),
        _run("odd") + _series(2**32 - 1, "loss") + _samples([2**32 - 1]),
        _run("odd") + b"".join(_series(code, f"m{code}") for code in range(20_000)) + _samples(range(20_000)),
        _run("odd") + encode_event({"event": "params", "params": {f"p{at}": "v" * 100 for at in range(50_000)}}),
        _run("odd") + encode_event({"event": "nonsense", "deep": json.loads("[" * 100 + "]" * 100)}),
    ]
    for data in odd:
        run = f"mallory-{next(attacker.numbers)}"
        await attacker.send("odd event", "POST", f"/api/v1/runs/{run}/files/tracker.spool", data=data)


async def send_without_end(attacker: Attacker, head: bytes, part: bytes) -> None:
    """``head``, then ``part`` again and again until the server has enough, or 40 MB are sent."""
    reader, writer = await attacker.connect()
    try:
        writer.write(head)
        for _ in range(FORTY_MB // len(part)):
            writer.write(part)
            await writer.drain()
        answer = await asyncio.wait_for(reader.read(200), ATTACK_S)
        attacker.answers[f"without end: {answer[9:12].decode(errors='replace') or 'closed'}"] += 1
    except (OSError, TimeoutError):
        attacker.answers["without end: cut off"] += 1
    finally:
        writer.close()


async def send_endless_address(attacker: Attacker) -> None:
    await send_without_end(attacker, b"GET /", b"a" * 65536)


async def send_endless_headers(attacker: Attacker) -> None:
    await send_without_end(attacker, b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"X-A: " + b"b" * 1000 + b"\r\n")


async def send_endless_body(attacker: Attacker) -> None:
    head = b"POST /api/v1/session HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
    await send_without_end(attacker, head, b"10000\r\n" + b"c" * 65536 + b"\r\n")


async def hold_connections(attacker: Attacker) -> None:
    """Half a request each, and then nothing; some never read what they ask for."""
    held = []
    try:
        for number in range(CONNECTIONS):
            with suppress(OSError):
                _, writer = await attacker.connect()
                held.append(writer)
                whole = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 20
                writer.write(whole if number % 2 else b"GET /healthz HTTP/1.1\r\nHo")
        await asyncio.sleep(ATTACK_S / 2)
    finally:
        for writer in held:
            writer.close()


async def ask_oddly(attacker: Attacker) -> None:
    odd = (
        "/%00",
        "/api/v1/workloads/%00",
        "/api/v1/search?q=%ED%A0%80",
        "/api/v1/nodes/%1b%5b2J",
        "/..%2f..%2fetc/passwd",
    )
    for path in odd:
        await attacker.send("odd address", "GET", path)
    bodies = (b'{"text": "\\ud800"}', b"[" * 100_000, b'{"text": ' + b"9" * 100_000 + b"}", b"\xff\xfe")
    for body in bodies:
        json_type = {"Content-Type": "application/json"}
        await attacker.send("odd body", "POST", "/api/v1/rules/read", data=body, headers=json_type)


async def stall_uploads(attacker: Attacker) -> None:
    async def drip() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(ATTACK_S / 2)

    async with attacker.session() as session:
        names = [attacker.send("create trace", "POST", "/api/v1/traces", json={"name": "stall"})]
        await asyncio.gather(*names)
        async with session.get("/api/v1/traces") as answer:
            traces = [row["trace_id"] for row in (await answer.json())["traces"] if row["name"] == "stall"][:3]
    paths = [f"/api/v1/traces/{trace}/files/a{at}" for trace in traces for at in range(4)]
    stalls = [attacker.send("stalled upload", "PUT", path, data=drip()) for path in paths]
    stalls += [attacker.send("stalled upload", "POST", "/api/v1/job-traces?name=x", data=drip()) for _ in range(10)]
    stalls += [attacker.send("stalled upload", "POST", f"/api/v1/runs/m{at}/files/a", data=drip()) for at in range(10)]
    await asyncio.gather(*stalls)
    for trace in traces:
        await attacker.send("delete trace", "DELETE", f"/api/v1/traces/{trace}")


async def ask_for_many_what_ifs(attacker: Attacker) -> None:
    async with attacker.session() as session, session.get("/api/v1/nodes") as answer:
        nodes = [row["node"] for row in await answer.json()]
    requests = [
        attacker.send("what-if", "POST", "/api/v1/scheduling/whatif", json={"futures": 24, "drained": [node]})
        for node in itertools.islice(itertools.cycle(nodes), 60)
    ]
    await asyncio.gather(*requests)
    await attacker.send("what-if", "POST", "/api/v1/scheduling/whatif", json={"added": {"main": 10_000_000}})


async def send_bombs(attacker: Attacker) -> None:
    bomb = gzip.compress(b"0" * 2**20 + b"\n", 9)
    data = bomb * 1500
    await attacker.send("bomb", "POST", "/api/v1/job-traces?name=bomb.gz", data=data)


async def fill_caches(attacker: Attacker) -> None:
    """Questions that are never the same twice."""
    for _ in range(200):
        number = next(attacker.numbers)
        await attacker.send("other question", "GET", f"/api/v1/workloads?text=none{number}")
        await attacker.send("other question", "GET", f"/api/v1/tick?metrics=m{number}")


ATTACKS: tuple[Attack, ...] = (
    take_over_a_run,
    write_units_of_others,
    send_odd_events,
    send_endless_address,
    send_endless_headers,
    send_endless_body,
    hold_connections,
    ask_oddly,
    stall_uploads,
    ask_for_many_what_ifs,
    send_bombs,
    fill_caches,
)
