"""From exporters' text to durable samples: 1,250 nodes × 8 GPUs × 25 metrics, fetched, parsed, normalized and stored.

Budget: ≤ 3 s of a 15 s interval in one process, and parsing ≥ 10 times as fast as prometheus_client's parser.
"""

import argparse
import asyncio
import functools
import gc
import itertools
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.report import Report
from clusterscape.collect.dcgm import DcgmCollector
from clusterscape.collect.exposition import ExpositionParser
from clusterscape.ingest.drops import Drops
from clusterscape.ingest.normalize import Normalizer
from clusterscape.model import UnixMs
from clusterscape.settings import DcgmSettings, RetentionSettings
from clusterscape.store.metrics import EmbeddedMetricStore

INTERVAL_S = 15.0
GPUS_PER_NODE = 8
NEW_JOBS_PER_ROUND = 0.02
"""Share of nodes on which a job ends and another starts between two scrapes: a mean run time of 12 minutes."""

# Name, and how the value moves from scrape to scrape: (lowest, span) of a gauge with one decimal, or a counter's pace.
FIELDS: dict[str, tuple[float, float] | float] = {
    "DCGM_FI_DEV_SM_CLOCK": (1095, 315),
    "DCGM_FI_DEV_MEM_CLOCK": (1593, 1),
    "DCGM_FI_DEV_MEMORY_TEMP": (40, 40),
    "DCGM_FI_DEV_GPU_TEMP": (35, 45),
    "DCGM_FI_DEV_POWER_USAGE": (62, 338),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 5_250_000.0,
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 0.01,
    "DCGM_FI_DEV_GPU_UTIL": (0, 100),
    "DCGM_FI_DEV_MEM_COPY_UTIL": (0, 100),
    "DCGM_FI_DEV_ENC_UTIL": (0, 1),
    "DCGM_FI_DEV_DEC_UTIL": (0, 1),
    "DCGM_FI_DEV_XID_ERRORS": (0, 1),
    "DCGM_FI_DEV_FB_FREE": (1_000, 70_000),
    "DCGM_FI_DEV_FB_USED": (10_000, 70_000),
    "DCGM_FI_DEV_FB_RESERVED": (600, 10),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": 3_000_000.0,
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": (0, 1),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": 0.001,
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": 0.001,
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": (0, 1),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": (0, 1),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (0, 1),
    "DCGM_FI_PROF_DRAM_ACTIVE": (0, 1),
    "DCGM_FI_PROF_PCIE_TX_BYTES": (10_000_000, 2_000_000_000),
    "DCGM_FI_PROF_PCIE_RX_BYTES": (10_000_000, 2_000_000_000),
}


def node_name(number: int) -> str:
    """The node's short name."""
    return f"gpu-{number:04d}"


def exposition_text(node: int, turn: int) -> bytes:
    """Response of the exporter of ``node`` to the ``turn``-th request."""
    jobs_before = int(turn * NEW_JOBS_PER_ROUND + node * 0.618_034 % 1)
    values: list[bytes] = []
    for number, motion in enumerate(FIELDS.values()):
        values += [_value(motion, node * 31 + gpu * 7 + number, turn) for gpu in range(GPUS_PER_NODE)]
    frame = _frame(node, 4_000_000 + node * 1_000 + jobs_before)
    return b"".join(itertools.chain.from_iterable(zip(frame, values, strict=True))) + b"\n"


@functools.lru_cache(maxsize=2_000)
def _frame(node: int, job: int) -> list[bytes]:
    """The text before each value."""
    labels = [
        f'gpu="{gpu}",UUID="GPU-{node:08x}-3643-5dd7-b823-e7af1ce2586{gpu}",pci_bus_id="00000000:{gpu * 16 + 7:02X}:00.0",'
        f'device="nvidia{gpu}",modelName="NVIDIA A100-SXM4-80GB",Hostname="{node_name(node)}",'
        f'DCGM_FI_DRIVER_VERSION="535.129.03",hpc_job="{job}"'
        for gpu in range(GPUS_PER_NODE)
    ]
    frame: list[bytes] = []
    for name, motion in FIELDS.items():
        kind = "counter" if isinstance(motion, float) else "gauge"
        comments = f"# HELP {name} As dcgm-exporter tells it.\n# TYPE {name} {kind}\n"
        frame += [f"\n{comments * (gpu == 0)}{name}{{{label}}} ".encode() for gpu, label in enumerate(labels)]
    frame[0] = frame[0].lstrip()
    return frame


def _value(motion: tuple[float, float] | float, place: int, turn: int) -> bytes:
    if isinstance(motion, float):
        return b"%d" % int((place % 97 + turn) * motion)
    phase = (place * 0.618_034 + turn * 0.271_828) % 1  # spreads evenly without a random generator
    low, span = motion
    return b"%.6f" % (low + span * phase) if span <= 1 else b"%d" % int(low + span * phase)


class _ExporterProtocol(asyncio.Protocol):
    """The least of HTTP that a scraper needs: GET /NUMBER/metrics, keep-alive."""

    turns: dict[int, int]

    def __init__(self, turns: dict[int, int]) -> None:
        self.turns = turns

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        node = int(data.split(b"/", 2)[1])
        turn = self.turns[node] = self.turns.get(node, -1) + 1
        body = exposition_text(node, turn)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


def serve_exporters(ready: Connection) -> None:
    """Play all exporters on one port of the loopback interface, in a process of its own, until ended."""

    async def serve() -> None:
        turns: dict[int, int] = {}
        server = await asyncio.get_running_loop().create_server(lambda: _ExporterProtocol(turns), "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


@dataclass
class Costs:
    """Seconds of each round."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    fetch_and_parse: list[float] = field(default_factory=list)
    normalize: list[float] = field(default_factory=list)
    store: list[float] = field(default_factory=list)
    samples: int = 0


async def scrape_rounds(urls: Sequence[str], rounds: int, folder: Path) -> tuple[Costs, Costs, int]:
    """The first round, the others, and the most memory held until then, bytes."""
    collector = DcgmCollector(
        DcgmSettings(targets=tuple(urls), interval_s=INTERVAL_S, timeout_s=INTERVAL_S, jitter_s=0), _clock
    )
    normalizer = Normalizer(Drops())
    store = EmbeddedMetricStore(folder, RetentionSettings())
    first, later = Costs(), Costs()
    try:
        for number in range(rounds + 1):
            await _scrape_once(collector, normalizer, store, later if number else first)
        memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    finally:
        await collector.close()
        store.close()
    return first, later, memory_bytes


async def _scrape_once(
    collector: DcgmCollector, normalizer: Normalizer, store: EmbeddedMetricStore, costs: Costs
) -> None:
    cpu, began = time.process_time(), time.perf_counter()
    normalize_s = store_s = 0.0
    async for observation in collector.poll(_clock()):
        failed = [status for status in observation.statuses if not status.is_ok]
        assert not failed, failed[0]
        before = time.perf_counter()
        batch = normalizer.normalize(observation.scrapes, now_ms=_clock()).batch
        between = time.perf_counter()
        store.append(batch)
        normalize_s += between - before
        store_s += time.perf_counter() - between
        costs.samples += len(batch)
    wall = time.perf_counter() - began
    costs.wall.append(wall)
    costs.cpu.append(time.process_time() - cpu)
    costs.normalize.append(normalize_s)
    costs.store.append(store_s)
    costs.fetch_and_parse.append(wall - normalize_s - store_s)


def _clock() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


def time_parsers(nodes: int) -> tuple[float, float]:
    """Seconds that our parser, having seen a scrape, and prometheus_client's take for one round's text."""
    parsers = [ExpositionParser(node_name(node)) for node in range(nodes)]
    for turn in range(2):
        texts = [exposition_text(node, turn) for node in range(nodes)]
        began = time.perf_counter()
        for parser, text in zip(parsers, texts, strict=True):
            parser.parse(text, fetched_at=_clock())
        ours_s = time.perf_counter() - began
    began = time.perf_counter()
    for text in texts:
        for family in text_string_to_metric_families(text.decode()):
            for _ in family.samples:
                pass
    return ours_s, time.perf_counter() - began


def measure(nodes: int, rounds: int) -> Report:
    """Serve, scrape, store, and compare."""
    context = multiprocessing.get_context("spawn")
    ready, child_ready = context.Pipe()
    server = context.Process(target=serve_exporters, args=(child_ready,), daemon=True)
    server.start()
    try:
        port = ready.recv()
        urls = [f"http://127.0.0.1:{port}/{node}/metrics#{node_name(node)}" for node in range(nodes)]
        with tempfile.TemporaryDirectory() as folder:
            first, later, memory_bytes = asyncio.run(scrape_rounds(urls, rounds, Path(folder) / "metrics"))
    finally:
        server.terminate()
        server.join()
    gc.collect()
    ours_s, theirs_s = time_parsers(nodes)
    samples = later.samples // rounds
    cpu_s = statistics.median(later.cpu)
    report = Report(
        f"Scrape to store: {nodes:,} exporters, {samples:,} samples a round, median of {rounds} rounds without jitter"
    )
    report.add("round, wall", statistics.median(later.wall), "s", budget=3.0)
    report.add("  slowest round", max(later.wall), "s")
    report.add("  first round, nothing known yet", first.wall[0], "s")
    report.add("  fetched and parsed", statistics.median(later.fetch_and_parse), "s")
    report.add("  normalized", statistics.median(later.normalize), "s")
    report.add("  stored durably", statistics.median(later.store), "s")
    report.add("round, CPU", cpu_s, "s")
    report.add(f"share of one core at {INTERVAL_S:g} s", 100 * cpu_s / INTERVAL_S, "%")
    report.add("memory, at most", memory_bytes / 2**20, "MiB")
    report.add("parsing alone", ours_s, "s", theirs_s, "prometheus_client", budget=theirs_s / 10)
    report.add(
        "whole round compared with parsing alone", statistics.median(later.wall), "s", theirs_s, "prometheus_client"
    )
    return report


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=1_250)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    report = measure(chosen.nodes, chosen.rounds)
    report.publish(as_json=chosen.json)


if __name__ == "__main__":
    main()
