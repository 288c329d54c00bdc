"""The Slurm collector against a real Slurm with accounting: by commands and by slurmrestd, in health and in failure."""

import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from servers.reliability import note
from servers.slurm import SlurmServer, slurm_server, strays_of

from clusterscape.collect.slurm import SlurmCollector
from clusterscape.model import (
    Allocation,
    AllocationSource,
    HistoryObserved,
    InventoryObserved,
    Node,
    NodeState,
    PrioritiesObserved,
    QueueObserved,
    SourceStatus,
    UnixMs,
    Workload,
    WorkloadState,
)
from clusterscape.settings import SlurmSettings

pytestmark = pytest.mark.server


def clock() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


@dataclass
class Observations:
    """One poll's observations, sorted."""

    inventory: InventoryObserved | None
    queue: QueueObserved | None
    history: dict[str, Workload]
    history_allocations: list[Allocation]
    statuses: dict[str, SourceStatus]

    @property
    def workloads(self) -> dict[str, Workload]:
        assert self.queue is not None
        return {workload.id: workload for workload in self.queue.workloads}

    @property
    def nodes(self) -> dict[str, Node]:
        assert self.inventory is not None
        return {node.id: node for node in self.inventory.nodes}

    def units_of(self, workload: str) -> list[str]:
        assert self.queue is not None
        return [allocation.unit for allocation in self.queue.allocations if allocation.workload == workload]


async def look(collector: SlurmCollector) -> Observations:
    observations = Observations(None, None, {}, [], {})
    async for observation in collector.poll(clock()):
        if isinstance(observation, InventoryObserved):
            observations.inventory = observation
        elif isinstance(observation, QueueObserved):
            observations.queue = observation
        elif isinstance(observation, HistoryObserved):
            observations.history |= {workload.id: workload for workload in observation.workloads}
            observations.history_allocations += observation.allocations
        elif isinstance(observation, SourceStatus):
            observations.statuses[observation.source] = observation
    return observations


@pytest.fixture(scope="module")
def shared_server() -> Iterator[SlurmServer]:
    with slurm_server(accounting=True) as server:
        yield server


@pytest.fixture
def server(shared_server: SlurmServer) -> Iterator[SlurmServer]:
    """The server, emptied of jobs after each test."""
    yield shared_server
    shared_server.cancel_all()


@pytest.fixture(params=["cli", "text", "rest"])
async def collector(
    request: pytest.FixtureRequest, server: SlurmServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SlurmCollector]:
    if request.param == "text":
        forget_json(tmp_path, monkeypatch)
    opened = by_rest(server) if request.param == "rest" else by_commands(server)
    yield opened
    await opened.close()


def forget_json(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put commands on the PATH that refuse ``--json`` as those of Slurm 20.11 do, and otherwise are this machine's."""
    for command in ("squeue", "sinfo", "scontrol", "sacct"):
        script = folder / command
        refuse = (
            f'for word; do [ "$word" = --json ] && echo "{command}: unrecognized option \'--json\'" >&2 && exit 1; done'
        )
        script.write_text(f'#!/bin/sh\n{refuse}\nexec {shutil.which(command)} "$@"\n')
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def by_commands(server: SlurmServer) -> SlurmCollector:
    return SlurmCollector(SlurmSettings(mode="cli", conf=server.conf, history_days=0.2), clock)


def by_rest(server: SlurmServer) -> SlurmCollector:
    return SlurmCollector(SlurmSettings(mode="rest", url=f"unix:{server.rest_socket}", history_days=0.2), clock)


def units_by_scontrol(server: SlurmServer, job: int) -> list[str]:
    """Output of ``scontrol show job -d``, parsed independently of the collector."""
    units = []
    text = server.command("scontrol", "show", "job", "-d", str(job))
    for hosts, indices in re.findall(r"^\s+Nodes=(\S+) .*GRES=gpu:\w+:\d+\(IDX:([\d,-]+)\)", text, re.MULTILINE):
        for host in server.command("scontrol", "show", "hostnames", hosts).split():
            for piece in indices.split(","):
                first, _, last = piece.partition("-")
                units += [f"{host}:{index}" for index in range(int(first), int(last or first) + 1)]
    return units


async def test_commands_and_slurmrestd_agree_with_scontrol_when_jobs_of_all_kinds_are_there(
    server: SlurmServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uneven = server.submit("-N2", "--gpus=3", "-c1", "-w", "gpu02,gpu03", "--job-name=uneven-07")
    whole = server.submit("--exclusive", "-w", "gpu01", '--comment={"experiment": "exp-a", "model": "llama"}')
    server.wait_for_state(uneven, "RUNNING")
    server.wait_for_state(whole, "RUNNING")
    array = server.submit("--array=1-4%2", "--gpus=2", "-w", "gpu02")
    shared = server.submit("-p", "v100", "--gres=shard:2")
    server.wait_for_state(shared, "RUNNING")
    blocked = server.submit("-N3", "--gpus-per-node=8", "-p", "a100")
    held = server.submit("--hold", "--gpus=a100:4")
    failed = server.submit("-p", "v100", "--gpus=1", script="exit 3")
    server.wait_for_state(failed, "FAILED")
    server.wait_until(lambda: server.command("squeue", "-h", "-t", "R", "-j", str(array)).count("\n") == 2, "two tasks")
    server.wait_until(lambda: server.reason_of(blocked) == "Resources", "the large job to be considered")

    cli, rest = by_commands(server), by_rest(server)
    by_command, by_daemon = await look(cli), await look(rest)
    await rest.close()
    forget_json(tmp_path, monkeypatch)
    by_text = await look(by_commands(server))

    assert by_command.queue is not None
    assert by_text.queue is not None
    assert by_daemon.queue is not None
    assert by_command.queue.is_complete
    assert not by_command.queue.dropped
    # The scheduler revises its plans between the two looks.
    plans = [
        [replace(workload, expected_start_at=None) for workload in observations.workloads.values()]
        for observations in (by_command, by_daemon, by_text)
    ]
    assert plans[0] == plans[1]
    # The text of this version has no requested memory of a running exclusive job.
    assert by_text.workloads[f"slurm:{whole}"].memory_requested_bytes is None
    plans[0] = [
        replace(workload, memory_requested_bytes=None) if workload.id == f"slurm:{whole}" else workload
        for workload in plans[0]
    ]
    assert plans[0] == plans[2]
    assert by_command.queue.allocations == by_daemon.queue.allocations == by_text.queue.allocations
    assert by_command.nodes == by_daemon.nodes == by_text.nodes
    assert by_text.queue.is_complete

    for job in (uneven, whole):
        assert by_command.units_of(f"slurm:{job}") == units_by_scontrol(server, job)
    assert len(by_command.units_of(f"slurm:{uneven}")) == 3
    assert len(by_command.units_of(f"slurm:{whole}")) == 8
    assert {allocation.source for allocation in by_command.queue.allocations} == {AllocationSource.SCHEDULER_INDEX}

    jobs = by_command.workloads
    assert jobs[f"slurm:{uneven}"].experiment == "uneven"
    assert jobs[f"slurm:{uneven}"].resource_type == "A100-3"
    assert jobs[f"slurm:{uneven}"].nodes == ("gpu02", "gpu03")
    assert (jobs[f"slurm:{whole}"].experiment, jobs[f"slurm:{whole}"].tags) == ("exp-a", {"model": "llama"})
    assert jobs[f"slurm:{whole}"].gpus_requested == 8

    tasks = [jobs[f"slurm:{array}_{task}"] for task in range(1, 5)]
    assert [task.state for task in tasks] == [WorkloadState.RUNNING] * 2 + [WorkloadState.WAITING] * 2
    assert tasks[3].pending_reason == "JobArrayTaskLimit"
    assert len(by_command.units_of(tasks[0].id)) == 2
    assert not set(by_command.units_of(tasks[0].id)) & set(by_command.units_of(tasks[1].id))

    assert len(by_command.units_of(f"slurm:{shared}")) == 1
    assert (jobs[f"slurm:{shared}"].gpus_requested, jobs[f"slurm:{shared}"].tags["shared_gpu"]) == (0, "shard:2")

    assert (jobs[f"slurm:{blocked}"].state, jobs[f"slurm:{blocked}"].pending_reason) == (
        WorkloadState.WAITING,
        "Resources",
    )
    assert (jobs[f"slurm:{blocked}"].gpus_requested, jobs[f"slurm:{blocked}"].resource_type) == (24, "A100-24")
    assert (jobs[f"slurm:{held}"].pending_reason, jobs[f"slurm:{held}"].resource_type) == ("JobHeldUser", "A100-4")
    assert (jobs[f"slurm:{failed}"].state, jobs[f"slurm:{failed}"].exit_code) == (WorkloadState.FAILED, 3)


async def test_inventory_names_every_gpu_when_slurm_numbers_them(
    server: SlurmServer, collector: SlurmCollector
) -> None:
    observations = await look(collector)
    assert observations.inventory is not None
    assert {node.id: (node.machine_type, node.gpu_count) for node in observations.inventory.nodes} == {
        "gpu01": ("A100", 8),
        "gpu02": ("A100", 8),
        "gpu03": ("A100", 8),
        "vgpu1": ("V100", 4),
    }
    assert len(observations.inventory.units) == 28
    partitions = {partition.name: partition for partition in observations.inventory.partitions}
    assert partitions["a100"].nodes == ("gpu01", "gpu02", "gpu03")
    assert partitions["a100"].is_default
    assert partitions["all"].nodes == ("gpu01", "gpu02", "gpu03", "vgpu1")
    assert partitions["all"].max_time_s == 7 * 86_400
    assert all(status.is_ok for status in observations.statuses.values())


async def test_history_has_final_states_when_jobs_have_ended(server: SlurmServer, collector: SlurmCollector) -> None:
    done = server.submit("--exclusive", "-w", "gpu03", script="true")
    failed = server.submit("--gpus=1", script="exit 3")
    killed = server.submit("--gpus=1", script="kill -9 $$")
    cancelled = server.submit("--gpus=2")
    never = server.submit("--gpus=2", "--hold")
    server.wait_for_state(cancelled, "RUNNING")
    server.command("scancel", str(cancelled), str(never))
    wanted = {
        f"slurm:{done}": WorkloadState.COMPLETED,
        f"slurm:{failed}": WorkloadState.FAILED,
        f"slurm:{killed}": WorkloadState.FAILED,
        f"slurm:{cancelled}": WorkloadState.CANCELLED,
    }
    for job in (done, failed, killed, cancelled, never):
        server.wait_for_state(job, "COMPLETED", "FAILED", "CANCELLED")
    server.wait_until(lambda: server.is_accounted(done, failed, killed, cancelled), "the accounting to know")

    observations = await look(collector)
    states = {key: workload.state for key, workload in observations.history.items() if key in wanted}
    assert states == wanted
    queue, history = observations.workloads, observations.history
    assert (queue[f"slurm:{failed}"].exit_code, queue[f"slurm:{killed}"].exit_signal) == (3, 9)
    assert history[f"slurm:{killed}"].exit_signal == 9
    assert history[f"slurm:{done}"].exit_code == 0
    assert (history[f"slurm:{done}"].gpus_requested, history[f"slurm:{done}"].resource_type) == (8, "A100-8")
    assert queue[f"slurm:{never}"].started_at is None
    assert history[f"slurm:{failed}"].ended_at == queue[f"slurm:{failed}"].ended_at
    # Nobody saw which GPUs these jobs had; only of the one that had all of its node is it known.
    allocations = [allocation for allocation in observations.history_allocations if allocation.workload in wanted]
    assert {(allocation.workload, allocation.source) for allocation in allocations} == {
        (f"slurm:{done}", AllocationSource.WHOLE_NODE)
    }
    assert len(allocations) == 8


async def test_new_execution_begins_when_a_job_is_requeued(server: SlurmServer) -> None:
    collector = by_commands(server)
    started = server.folder / "started"
    job = server.submit("--gpus=1", "--requeue", script=f"touch {started}; sleep 600")
    # Slurm calls a job running before its node knows of it, and requeues one unknown to the node only minutes later.
    server.wait_until(started.exists, "the job's script to start")
    first = await look(collector)
    server.command("scontrol", "requeue", str(job))
    server.wait_for_state(job, "PENDING")
    waiting = await look(collector)
    server.start_requeued(job)
    again = await look(collector)

    key = f"slurm:{job}"
    assert (waiting.workloads[key].state, waiting.workloads[key].restarts) == (WorkloadState.WAITING, 1)
    assert not waiting.units_of(key)
    assert again.workloads[key].restarts == 1
    assert first.queue is not None
    assert again.queue is not None
    assert again.queue.allocations[0].from_at > first.queue.allocations[0].from_at


async def test_drained_node_has_its_reason_when_an_operator_drains_it(
    server: SlurmServer, collector: SlurmCollector
) -> None:
    job = server.submit("--gpus=1", "-w", "gpu02")
    server.wait_for_state(job, "RUNNING")
    server.command("scontrol", "update", "nodename=gpu02,gpu03", "state=drain", "reason=ECC errors on GPU 3")
    try:
        nodes = (await look(collector)).nodes
    finally:
        server.command("scontrol", "update", "nodename=gpu02,gpu03", "state=resume")
        server.wait_for_nodes()
    assert (nodes["gpu02"].state, nodes["gpu02"].reason) == (NodeState.DRAINING, "ECC errors on GPU 3")
    assert (nodes["gpu03"].state, nodes["gpu03"].reason) == (NodeState.DRAINED, "ECC errors on GPU 3")
    assert nodes["gpu01"].state is NodeState.IDLE


async def test_failure_is_reported_and_recovery_follows_when_slurmctld_goes_away(
    server: SlurmServer, collector: SlurmCollector
) -> None:
    job = server.submit("--gpus=2")
    server.wait_for_state(job, "RUNNING")
    before = await look(collector)
    server.stop("slurmctld")
    try:
        during = await look(collector)
    finally:
        server.start_controller()
        server.wait_for_nodes()
    after = await look(collector)

    # An empty queue here would mean that every job had ended.
    assert during.queue is None
    assert during.inventory is None
    for part in ("slurm queue", "slurm nodes", "slurm partitions"):
        assert not during.statuses[part].is_ok
        assert during.statuses[part].message
        assert "slurmctld" in (during.statuses[part].hint or "")
    assert all(status.is_ok for status in after.statuses.values())
    key = f"slurm:{job}"
    assert after.units_of(key) == before.units_of(key)
    assert after.workloads[key].started_at == before.workloads[key].started_at
    note(
        "fault",
        what="slurmctld goes away and comes back",
        promised="a failure is reported instead of an empty queue; recovery without help",
        measured="reported and recovered",
    )


async def test_only_accounting_fails_when_slurmdbd_is_down(server: SlurmServer, collector: SlurmCollector) -> None:
    server.stop("slurmdbd")
    try:
        observations = await look(collector)
    finally:
        server.start_accounting_daemon()
    assert [name for name, status in observations.statuses.items() if not status.is_ok] == ["slurm accounting"]
    assert "slurmdbd" in (observations.statuses["slurm accounting"].hint or "")
    assert observations.queue is not None
    assert observations.inventory is not None
    note(
        "fault",
        what="slurmdbd is down",
        promised="only the accounting is missing",
        measured="queue and nodes went on",
    )


async def test_hint_names_munge_when_it_is_down(server: SlurmServer) -> None:
    server.stop("munged")
    try:
        observations = await look(by_commands(server))
    finally:
        server.start_munge()
    assert observations.queue is None
    assert "munge" in (observations.statuses["slurm queue"].hint or "")


@pytest.fixture
def token_server() -> Iterator[SlurmServer]:
    with slurm_server(jwt=True) as server:
        yield server


async def test_token_is_taken_while_valid_and_named_when_expired(token_server: SlurmServer) -> None:
    url = f"http://127.0.0.1:{token_server.rest_port}"
    tokens = {life_s: token_server.make_token("root", life_s) for life_s in (600, 1)}
    expires_at = clock() + 1_000

    async def status_with(user: str | None, token: str | None) -> SourceStatus:
        collector = SlurmCollector(SlurmSettings(mode="rest", url=url, user=user, token=token, history_days=0), clock)
        observations = await look(collector)
        await collector.close()
        return observations.statuses["slurm queue"]

    assert (await status_with("root", tokens[600])).is_ok
    token_server.wait_until(lambda: clock() > expires_at + 1_000, "the token to expire")
    expired = await status_with("root", tokens[1])
    assert not expired.is_ok
    assert "the token for slurmrestd expired on" in (expired.message or "")
    assert "scontrol token username=root" in (expired.hint or "")
    assert "requires a token" in ((await status_with(None, None)).message or "")


async def test_check_reports_ok_when_everything_works(server: SlurmServer, collector: SlurmCollector) -> None:
    statuses = {status.source: status for status in await collector.check()}
    assert all(status.is_ok for status in statuses.values())
    assert "Slurm 22.05" in (statuses["slurm nodes"].message or "")
    assert "4 nodes, 4 with GPUs (28 in all)" in (statuses["slurm nodes"].message or "")
    assert set(statuses) == {"slurm nodes", "slurm partitions", "slurm queue", "slurm GPU indices", "slurm accounting"}


async def test_missing_socket_is_named_when_slurmrestd_is_not_there(server: SlurmServer) -> None:
    collector = SlurmCollector(SlurmSettings(mode="rest", url="unix:/nonexistent/sock"), clock)
    observations = await look(collector)
    await collector.close()
    assert not any(status.is_ok for status in observations.statuses.values())
    assert "no socket at unix:/nonexistent/sock" in (observations.statuses["slurm queue"].message or "")


def test_nothing_is_left_behind_when_the_server_ends_without_its_controller() -> None:
    with slurm_server() as server:
        started = server.folder / "started"
        server.submit("--gpus=1", script=f"touch {started}; sleep 600")
        server.wait_until(started.exists, "the job's script to start")
        server.stop("slurmctld")
        folder, pids = server.folder, [process.pid for process in server.processes.values()]
        assert len(strays_of(folder)) > len(pids)  # the job and its slurmstepd
    assert not folder.exists()
    server.wait_until(lambda: not strays_of(folder), "all to be gone")
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_priority_parts_are_reported_by_the_commands_when_jobs_wait(server: SlurmServer) -> None:
    running = server.submit("-N3", "--gpus-per-node=8", "-p", "a100")
    server.wait_for_state(running, "RUNNING")
    blocked = server.submit("-N3", "--gpus-per-node=8", "-p", "a100", "--nice=77")
    server.wait_until(lambda: server.reason_of(blocked) in ("Resources", "Priority"), "the second job to be considered")
    parts = {}
    for collector in (by_commands(server), by_rest(server)):
        priorities = [
            observation async for observation in collector.poll(clock()) if isinstance(observation, PrioritiesObserved)
        ]
        parts[collector] = [observation.parts for observation in priorities]
        await collector.close()
    by_command, by_daemon = parts.values()
    assert by_daemon == []  # slurmrestd does not report them
    assert by_command[0][str(blocked)]["nice"] == -77
