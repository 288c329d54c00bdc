"""The behavior of the collector and its commands; tests/integration covers real Slurm."""

import os
from pathlib import Path
from typing import TypeVar

import orjson
import pytest
from unit.collect.slurm.documents import (
    HISTORY,
    NODES,
    OLD_JOBS,
    PARTITIONS,
    history_job,
    jobs,
    node,
    nodes,
    old_job,
)

from clusterscape.collect.contract import Collector
from clusterscape.collect.slurm import SlurmCollector
from clusterscape.collect.slurm.cli import SlurmCommands
from clusterscape.collect.slurm.collector import AHEAD_S
from clusterscape.collect.slurm.parse_nodes import SlurmInventory, parse_partitions
from clusterscape.collect.slurm.source import Document
from clusterscape.errors import SourceError
from clusterscape.model import (
    HistoryObserved,
    InventoryObserved,
    Observation,
    PreemptionRules,
    QueueObserved,
    SourceStatus,
    UnixMs,
)
from clusterscape.settings import SlurmSettings

NOW = UnixMs(1_700_010_000_000)


class StoredAnswers:
    """A SlurmSource that responds from memory; a part set to a SourceError fails."""

    def __init__(self) -> None:
        self.jobs: Document | SourceError = OLD_JOBS
        self.nodes: Document | SourceError = NODES
        self.partitions: Document | SourceError = PARTITIONS
        self.history: Document | SourceError = HISTORY
        self.windows: list[tuple[int, int]] = []
        self.priorities: dict[str, dict[str, int]] | SourceError | None = None
        self.reservations: Document | SourceError = {"reservations": []}

    async def fetch_jobs(self) -> Document:
        return _or_raise(self.jobs)

    async def fetch_nodes(self) -> Document:
        return _or_raise(self.nodes)

    async def fetch_partitions(self) -> Document:
        return _or_raise(self.partitions)

    async def fetch_history(self, start_s: int, end_s: int) -> Document:
        self.windows.append((start_s, end_s))
        return _or_raise(self.history)

    async def fetch_priorities(self) -> dict[str, dict[str, int]] | None:
        if isinstance(self.priorities, SourceError):
            raise self.priorities
        return self.priorities

    async def fetch_reservations(self) -> Document:
        return _or_raise(self.reservations)

    async def fetch_preemption(self) -> PreemptionRules | None:
        return None

    def describe(self) -> str:
        return "stored answers"

    async def close(self) -> None:
        pass


def _or_raise(answer: Document | SourceError) -> Document:
    if isinstance(answer, SourceError):
        raise answer
    return answer


def collector_of(source: StoredAnswers, history_days: float = 0.25) -> SlurmCollector:
    return SlurmCollector(SlurmSettings(mode="cli", history_days=history_days), lambda: NOW, source=source)


async def poll(collector: Collector, now_ms: UnixMs = NOW) -> list[Observation]:
    return [observation async for observation in collector.poll(now_ms)]


def statuses(observations: list[Observation]) -> dict[str, bool]:
    return {observed.source: observed.is_ok for observed in observations if isinstance(observed, SourceStatus)}


Kind = TypeVar("Kind")


def find(observations: list[Observation], kind: type[Kind]) -> list[Kind]:
    return [observed for observed in observations if isinstance(observed, kind)]


async def test_all_observations_are_yielded_when_slurm_responds() -> None:
    observed = await poll(collector_of(StoredAnswers()))
    (inventory,), (queue,) = find(observed, InventoryObserved), find(observed, QueueObserved)
    assert (len(inventory.nodes), len(inventory.units), len(inventory.partitions)) == (4, 20, 2)
    assert (len(queue.workloads), len(queue.allocations), queue.is_complete) == (3, 3, True)
    assert [workload.id for history in find(observed, HistoryObserved) for workload in history.workloads]
    assert all(statuses(observed).values())


@pytest.mark.parametrize(
    ("part", "source", "lost"),
    [
        ("jobs", "slurm queue", QueueObserved),
        ("nodes", "slurm nodes", InventoryObserved),
        ("history", "slurm accounting", HistoryObserved),
    ],
)
async def test_other_parts_are_observed_when_one_fails(part: str, source: str, lost: type[Observation]) -> None:
    answers = StoredAnswers()
    setattr(answers, part, SourceError("broken", hint="fix it"))
    observed = await poll(collector_of(answers))
    kinds = {type(observation) for observation in observed}
    assert {InventoryObserved, QueueObserved, HistoryObserved} - kinds == {lost}
    assert [name for name, is_ok in statuses(observed).items() if not is_ok] == [source]
    failed = next(status for status in find(observed, SourceStatus) if not status.is_ok)
    assert (failed.message, failed.hint, failed.kind) == ("broken", "fix it", "slurm")


async def test_partitions_come_from_nodes_when_their_list_fails() -> None:
    answers = StoredAnswers()
    answers.partitions = SourceError("broken")
    (inventory,) = find(await poll(collector_of(answers)), InventoryObserved)
    assert {partition.name for partition in inventory.partitions} == {"a100", "v100", "all"}


async def test_jobs_are_read_with_the_last_inventory_when_nodes_fail() -> None:
    answers = StoredAnswers()
    collector = collector_of(answers)
    await poll(collector)
    answers.nodes = SourceError("broken")
    (queue,) = find(await poll(collector), QueueObserved)
    assert queue.workloads[0].resource_type == "A100-3"


async def test_inventory_is_incomplete_when_a_node_was_dropped() -> None:
    answers = StoredAnswers()
    answers.nodes = nodes(node("gpu01"), {"name": None})
    (inventory,) = find(await poll(collector_of(answers)), InventoryObserved)
    assert not inventory.is_complete
    assert inventory.dropped == {"nodes: no name": 1}


async def test_history_is_read_once_and_then_in_increments_when_polled_again() -> None:
    answers = StoredAnswers()
    collector = collector_of(answers, history_days=1)
    await poll(collector)
    assert len(answers.windows) == 4
    assert not find(await poll(collector, UnixMs(NOW + 15_000)), HistoryObserved)
    await poll(collector, UnixMs(NOW + 301_000))
    assert answers.windows[4][1] == NOW // 1000 + 301 + AHEAD_S


@pytest.mark.parametrize("then", [[], [old_job(20, "PENDING", restart_cnt=1)]], ids=["removed", "requeued"])
async def test_accounting_is_read_early_when_the_queue_missed_an_end(then: list[Document]) -> None:
    answers = StoredAnswers()
    collector = collector_of(answers)
    answers.jobs = jobs(old_job(20, nodes="gpu01"))
    await poll(collector)
    answers.jobs = jobs(*then)
    await poll(collector, UnixMs(NOW + 15_000))
    assert len(answers.windows) == 1
    await poll(collector, UnixMs(NOW + 60_000))
    assert answers.windows[1][1] == NOW // 1000 + 60 + AHEAD_S


async def test_accounting_is_not_read_early_when_the_queue_shows_how_a_job_ended() -> None:
    answers = StoredAnswers()
    collector = collector_of(answers)
    answers.jobs = jobs(old_job(20, nodes="gpu01"))
    await poll(collector)
    answers.jobs = jobs(old_job(20, "COMPLETED", nodes="gpu01"))
    await poll(collector, UnixMs(NOW + 15_000))
    await poll(collector, UnixMs(NOW + 120_000))
    assert len(answers.windows) == 1


async def test_history_gives_no_allocations_when_the_queue_reported_the_indices() -> None:
    answers = StoredAnswers()
    answers.jobs = jobs(old_job(20, gres_detail=["gpu:a100:8(IDX:0-7)"], nodes="gpu01"))
    answers.history = jobs(history_job(20), history_job(22))
    (history,) = find(await poll(collector_of(answers)), HistoryObserved)
    assert {allocation.workload for allocation in history.allocations} == {"slurm:22"}


async def test_accounting_is_not_queried_when_no_history_is_wanted() -> None:
    answers = StoredAnswers()
    observed = await poll(collector_of(answers, history_days=0))
    assert not answers.windows
    assert "slurm accounting" not in statuses(observed)


async def test_check_reports_the_inventory_when_all_sources_answer() -> None:
    statuses = {status.source: status for status in await collector_of(StoredAnswers()).check()}
    assert all(status.is_ok for status in statuses.values())
    assert statuses["slurm nodes"].message == "stored answers, Slurm 22.05.8: 4 nodes, 3 with GPUs (20 in all)"
    assert "2 active jobs, 1 of them on known GPUs" in (statuses["slurm queue"].message or "")


async def test_check_explains_gres_conf_when_gpus_are_only_counted() -> None:
    answers = StoredAnswers()
    answers.nodes = nodes(node("gpu01", gres="gpu:8", gres_used="gpu:0"))
    statuses = {status.source: status for status in await collector_of(answers).check()}
    assert not statuses["slurm GPU indices"].is_ok
    assert "AutoDetect=nvml" in (statuses["slurm GPU indices"].hint or "")


async def test_check_explains_gres_types_when_no_node_has_gpus() -> None:
    answers = StoredAnswers()
    answers.nodes = nodes(node("c1", gres=""))
    statuses = {status.source: status for status in await collector_of(answers).check()}
    assert not statuses["slurm nodes"].is_ok
    assert "GresTypes=gpu" in (statuses["slurm nodes"].hint or "")


async def test_check_explains_accounting_when_it_does_not_record_gpus() -> None:
    answers = StoredAnswers()
    answers.jobs = jobs(old_job(1, gres_detail=["gpu:a100:1(IDX:0)"], nodes="gpu01", tres_alloc_str="cpu=1,node=1"))
    statuses = {status.source: status for status in await collector_of(answers).check()}
    assert "AccountingStorageTRES=gres/gpu" in (statuses["slurm accounting"].hint or "")


async def test_missing_command_is_named_when_not_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    collector = SlurmCollector(SlurmSettings(mode="cli", history_days=1), lambda: NOW)
    statuses = [status for status in await poll(collector) if isinstance(status, SourceStatus)]
    parts = ("nodes", "partitions", "queue", "reservations", "accounting")
    assert {status.source for status in statuses} == {f"slurm {part}" for part in parts}
    assert not any(status.is_ok for status in statuses)
    assert any("squeue is not installed" in (status.message or "") for status in statuses)
    assert all("slurm-client" in (status.hint or "") for status in statuses)


def put_command(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


async def test_command_is_ended_when_it_takes_too_long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_command(tmp_path, "squeue", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    source = SlurmCommands(SlurmSettings(mode="cli", timeout_s=0.5))
    with pytest.raises(SourceError) as caught:
        await source.fetch_jobs()
    assert "did not finish within 0.5 s" in caught.value.message
    assert "collect.slurm.timeout_s" in (caught.value.hint or "")
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_command_sees_no_personal_defaults_when_the_environment_has_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_command(tmp_path, "squeue", 'echo "{\\"jobs\\": [\\"$SQUEUE_STATES|$SLURM_CONF|$SLURM_BITSTR_LEN\\"]}"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SQUEUE_STATES", "RUNNING")
    source = SlurmCommands(SlurmSettings(mode="cli", conf=Path("/etc/other/slurm.conf")))
    assert (await source.fetch_jobs())["jobs"] == ["|/etc/other/slurm.conf|0"]


async def test_scontrol_prints_json_when_it_supports_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From 23.02 on ``sinfo --json`` does not list nodes, and scontrol prints JSON."""
    (tmp_path / "nodes").write_bytes(orjson.dumps(NODES))
    (tmp_path / "partitions").write_bytes(orjson.dumps(PARTITIONS))
    put_command(
        tmp_path,
        "scontrol",
        f"""case "$*" in *--version) echo slurm 24.05.3;; "--json --all show "*) cat {tmp_path}/$4;; *) exit 1;; esac""",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    source = SlurmCommands(SlurmSettings(mode="cli"))
    assert await source.fetch_nodes() == NODES
    assert await source.fetch_partitions() == PARTITIONS


async def test_partitions_are_read_from_text_when_scontrol_has_no_json(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The two lines are shortened output of 22.05."""
    lines = (
        "PartitionName=a100 AllowGroups=ALL Default=YES MaxTime=7-00:30:00 Nodes=gpu[01-03] State=UP TotalNodes=3\n"
        "PartitionName=old Default=NO MaxTime=UNLIMITED Nodes=(null) State=DOWN TRES=cpu=96,node=3\n"
    )
    (tmp_path / "lines").write_text(lines)
    put_command(
        tmp_path,
        "scontrol",
        f"""case "$*" in *--json*) echo "scontrol: unrecognized option '--json'" >&2; exit 1;; *) cat {tmp_path}/lines;; esac""",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    document = await SlurmCommands(SlurmSettings(mode="cli")).fetch_partitions()
    (a100, old), dropped = parse_partitions(document, SlurmInventory())
    assert not dropped
    assert (a100.nodes, a100.is_default, a100.is_up) == (("gpu01", "gpu02", "gpu03"), True, True)
    assert a100.max_time_s == 7 * 86_400 + 1800
    assert (old.nodes, old.is_default, old.is_up, old.max_time_s) == ((), False, False, None)


async def test_every_part_reports_the_failure_when_slurmrestd_is_unreachable(unused_tcp_port: int) -> None:
    settings = SlurmSettings(mode="rest", url=f"http://127.0.0.1:{unused_tcp_port}", history_days=1)
    collector = SlurmCollector(settings, lambda: NOW)
    statuses = [status for status in await poll(collector) if isinstance(status, SourceStatus)]
    await collector.close()
    assert len(statuses) == 5
    assert all(not status.is_ok and "cannot connect" in (status.message or "") for status in statuses)
    assert all("collect.slurm.url" in (status.hint or "") for status in statuses)
