"""URLs, history and server process of the demo, for its command."""

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from clusterscape.demo.hardware import MAX_GPUS, MIN_GPUS, build_hardware
from clusterscape.demo.records import iter_allocations, iter_node_turns, iter_workloads
from clusterscape.demo.scenario import DEFAULT_PLACEMENT, DemoScenario
from clusterscape.demo.telemetry import DemoTelemetry
from clusterscape.model import Allocation, NodeStateChange, SampleBatch, UnixMs, Workload

if TYPE_CHECKING:
    from clusterscape.settings import CollectSettings

HOST = "127.0.0.1"
HISTORY_STEPS_S = (60, 120, 300, 600)
MAX_DAY_POINTS = 3_000_000
"""Samples of all GPUs per day of history; larger clusters get a longer step, so that the history is written quickly."""

ACCOUNTING_DAYS = 0.25
"""Short, because the history is written separately; accounting covers only what the collector missed while stopped."""

STOP_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPart:
    """A part of the history, ready to be stored. ``done_ratio``: the share of the requested time up to its end, 0–1."""

    batches: Sequence[SampleBatch]
    workloads: Sequence[Workload]
    allocations: Sequence[Allocation]
    node_state_changes: Sequence[NodeStateChange]
    done_ratio: float


class DemoCluster:
    """A demo cluster, deterministic in (gpus, seed, anchor, placement). Cheap to create: events are simulated on demand."""

    def __init__(self, *, gpus: int, seed: int, anchor_ms: UnixMs, placement: str = DEFAULT_PLACEMENT) -> None:
        if not MIN_GPUS <= gpus <= MAX_GPUS:
            raise ValueError(f"a demo cluster has {MIN_GPUS} to {MAX_GPUS} GPUs, not {gpus}")
        self.gpus = gpus
        self.seed = seed
        self.anchor_ms = anchor_ms
        self.placement = placement

    @cached_property
    def scenario(self) -> DemoScenario:
        """All events: jobs, outages, errors."""
        return DemoScenario(self.gpus, self.seed, self.anchor_ms, self.placement)

    @cached_property
    def telemetry(self) -> DemoTelemetry:
        """The metrics."""
        return DemoTelemetry(self.scenario)

    @property
    def history_step_ms(self) -> int:
        """Time between samples of the history, in ms."""
        return 1000 * next(
            (step_s for step_s in HISTORY_STEPS_S if self.gpus * 86_400 // step_s <= MAX_DAY_POINTS),
            HISTORY_STEPS_S[-1],
        )

    def collect_settings(self, port: int) -> "CollectSettings":
        """Settings for the regular collectors to read the demo's server."""
        # Imported here: only the command needs settings, and their imports would delay the server's start.
        from clusterscape.settings import CollectSettings, DcgmSettings, SlurmSettings

        base = f"http://{HOST}:{port}"
        nodes = [node.name for node in build_hardware(self.gpus, self.seed).nodes]
        return CollectSettings(
            dcgm=DcgmSettings(
                targets=tuple(f"{base}/nodes/{name}/metrics#{name}" for name in nodes),
                # The first scrape may come while the child still builds a large cluster.
                timeout_s=30.0,
            ),
            slurm=SlurmSettings(mode="rest", url=base, history_days=ACCOUNTING_DAYS),
        )

    def history(self, start_ms: UnixMs, end_ms: UnixMs, step_ms: int | None = None) -> Iterator[HistoryPart]:
        """Samples, ended workloads and closed allocations of [start, end), in parts.

        The first part has all records. Running jobs are left to the collectors.
        """
        workloads, allocations = self.history_records(start_ms, end_ms)
        ended = [workload for workload in workloads if not workload.state.is_active]
        turns = list(iter_node_turns(self.scenario, start_ms, end_ms))
        closed = [allocation for allocation in allocations if allocation.to_at is not None]
        for batches in self.telemetry.history(start_ms, end_ms, step_ms or self.history_step_ms):
            last_ms = int(batches[0].time_ms.max(initial=start_ms))
            done_ratio = min(1.0, (last_ms - start_ms) / max(1, end_ms - start_ms))
            yield HistoryPart(
                batches=batches, workloads=ended, allocations=closed, node_state_changes=turns, done_ratio=done_ratio
            )
            ended, closed, turns = [], [], []
        yield HistoryPart(batches=(), workloads=ended, allocations=closed, node_state_changes=turns, done_ratio=1.0)

    def history_records(self, start_ms: UnixMs, end_ms: UnixMs) -> tuple[list[Workload], list[Allocation]]:
        """Workloads and allocations of [start, end) in their state at ``end``, including open ones."""
        workloads = list(iter_workloads(self.scenario, start_ms, end_ms))
        return workloads, list(iter_allocations(self.scenario, start_ms, end_ms))


@contextmanager
def start_demo_server(cluster: DemoCluster) -> Iterator[int]:
    """Serve the cluster from a child process; yields the port. Requests wait until the child is ready.

    The child ends with the context, or when this process dies, which closes its standard input.
    """
    with socket.create_server((HOST, 0), backlog=socket.SOMAXCONN) as listener:
        port: int = listener.getsockname()[1]
        command = [
            *(sys.executable, "-m", "clusterscape.demo.server"),
            *("--gpus", str(cluster.gpus), "--seed", str(cluster.seed), "--anchor", str(cluster.anchor_ms)),
            *("--placement", cluster.placement, "--listener", str(listener.fileno())),
        ]
        # A separate session, so that Ctrl-C reaches only this process, which then ends the child.
        child = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(listener.fileno(),), start_new_session=True)
    try:
        yield port
    finally:
        child.terminate()
        try:
            child.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdin is not None:
            child.stdin.close()
