"""GPU-hours compared with ``sacct --duplicates`` of a real slurmdbd: every execution of every job counts, as Slurm counts it."""

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters.opened import open_queries
from servers.roots import SUITES
from servers.slurm import SlurmServer, slurm_server
from servers.slurm_conf import NodeGroup

from clusterscape.collect.slurm import SlurmCollector
from clusterscape.ingest.pipeline import Ingest
from clusterscape.model import UnixMs, WorkloadState
from clusterscape.query import QueryContext
from clusterscape.query.scheduling.history import read_history
from clusterscape.settings import RetentionSettings, SlurmSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store

pytestmark = pytest.mark.server

GROUPS = (
    NodeGroup(names=("gpu01", "gpu02"), gpu_type="a100", gpus=8, partitions=("a100",), features="a100"),
    NodeGroup(names=("vgpu1",), gpu_type="v100", gpus=4, partitions=("v100",), features="v100"),
)
TRUNCATION_S = 1.0
"""Slurm counts whole seconds, and a running job goes on between two questions."""


def clock() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


@pytest.fixture(scope="module", params=[None, *SUITES], ids=lambda version: version or "installed")
def server(request: pytest.FixtureRequest) -> Iterator[SlurmServer]:
    options = ("PreemptType=preempt/qos", "PreemptMode=REQUEUE", "MinJobAge=3600")
    with (
        slurm_server(node_groups=GROUPS, accounting=True, options=options, version=request.param) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PATH", server.environment["PATH"])
        server.command("sacctmgr", "-i", "add", "qos", "low", "high")
        server.command("sacctmgr", "-i", "modify", "qos", "high", "set", "preempt=low", "priority=1000")
        server.command("sacctmgr", "-i", "modify", "qos", "low", "set", "preemptmode=requeue")
        server.command("sacctmgr", "-i", "add", "account", "team")
        server.command("sacctmgr", "-i", "add", "user", "root", "account=team", "qos=normal,low,high")
        yield server


class Site:
    """A ClusterScape over the Slurm, which can be restarted. ``mode``: how it reads Slurm."""

    def __init__(self, server: SlurmServer, folder: Path, mode: str) -> None:
        self._server = server
        self._mode = mode
        storage = StorageSettings(data_dir=folder)
        self.metrics, self.records = open_metric_store(storage, RetentionSettings()), open_record_store(storage)
        self._changes = Changes()
        self.restart()
        context = QueryContext(
            metrics=self.metrics, records=self.records, changes=self._changes, clock=clock, cluster="test"
        )
        self.queries = open_queries(context, self.ingest)

    def restart(self) -> None:
        """Drops all state that is not stored."""
        self.ingest = Ingest(self.metrics, self.records, self._changes, clock=clock)

    async def look(self, *, history: bool) -> None:
        """Poll once; a new collector reads the accounting from its beginning."""
        url = f"unix:{self._server.rest_socket}" if self._mode == "rest" else None
        days = 0.2 if history else 0.0
        settings = SlurmSettings(conf=self._server.conf, mode=self._mode, url=url, history_days=days)
        collector = SlurmCollector(settings, clock)
        async for observation in collector.poll(clock()):
            self.ingest.accept(observation)
        await collector.close()

    def gpu_s(self) -> dict[str, float]:
        """GPU-seconds by job, of those that started, in whole seconds as the list of workloads shows them."""
        listed = self.queries.workloads.page(limit=1000).workloads
        return {
            row.workload.removeprefix("slurm:"): row.gpu_hours * 3600 for row in listed if row.gpu_hours is not None
        }


def sacct_gpu_s(server: SlurmServer) -> dict[str, float]:
    """GPU-seconds by job, summed over all records."""
    words = ("sacct", "--duplicates", "-n", "-X", "-P", "-a", "-o", "jobid,elapsedraw,alloctres,start")
    seconds: Counter[str] = Counter()
    for line in server.command(*words).splitlines():
        job, elapsed, tres, start = line.split("|")
        gpus = re.search(r"gres/gpu=(\d+)", tres)
        if start not in ("Unknown", "None") and gpus:
            seconds[job] += int(elapsed) * int(gpus[1])
    return dict(seconds)


@pytest.fixture(params=["cli", "rest"])
def site(server: SlurmServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    site = Site(server, tmp_path, request.param)
    yield site
    server.cancel_all()
    site.metrics.close()
    site.records.close()


class Story:
    """Requeues, suspends, preempts, fails and cancels jobs in random order."""

    def __init__(self, server: SlurmServer, seed: int) -> None:
        self._server = server
        self._random = random.Random(seed)
        self.done: Counter[str] = Counter()

    def begin(self) -> None:
        submit = self._server.submit
        self._jobs = [submit("-N1", f"--gpus={n}", "--requeue", "--qos=low", "-p", "a100") for n in (1, 2, 3)]
        submit("-N1", "--gpus=4", "--requeue", "--qos=low", "-p", "v100")
        submit("--array=0-3%2", "--gpus=1", "--requeue", "-p", "a100")
        submit("-N1", "--exclusive", "--gpus=1", "-p", "a100", "--qos=low", "--requeue")
        self._server.command(
            "sbatch", "--parsable", "--output=/dev/null", "-p", "a100", "--gpus=1", "-N1", ":", "-p", "a100", "--gpus=2",
            "-N1", "--wrap=sleep 600",
        )  # fmt: skip

    def go_on(self) -> None:
        """One more event."""
        action = self._random.choice(
            (self.requeue, self.suspend, self.resume, self.preempt, self.fail_node, self.cancel)
        )
        if action():
            self.done[action.__name__] += 1

    def requeue(self) -> bool:
        job = self._choose("RUNNING")
        if job is None:
            return False
        self._server.command("scontrol", "requeue", job)
        self._server.wait_until(lambda: self._state(job) == "PENDING", f"{job} to be requeued")
        self._start_again()
        return True

    def suspend(self) -> bool:
        job = self._choose("RUNNING")
        if job is not None:
            self._server.command("scontrol", "suspend", job)
        return job is not None

    def resume(self) -> bool:
        job = self._choose("SUSPENDED")
        if job is not None:
            self._server.command("scontrol", "resume", job)
        return job is not None

    def preempt(self) -> bool:
        urgent = self._server.submit("-N1", "--gpus=3", "-p", "v100", "--qos=high", script="sleep 3")
        self._server.wait_for_state(urgent, "RUNNING", "COMPLETING", "COMPLETED")
        self._start_again()
        return True

    def fail_node(self) -> bool:
        self._server.command("scontrol", "update", "nodename=gpu02", "state=down", "reason=test")
        self._server.wait_until(self._is_node_back, "the node to be back")
        self._start_again()
        return True

    def cancel(self) -> bool:
        job = self._choose("RUNNING,SUSPENDED")
        if job is not None:
            self._server.command("scancel", job)
        return job is not None

    def _is_node_back(self) -> bool:
        if "down" not in self._server.command("sinfo", "-h", "-N", "-n", "gpu02", "-o", "%T"):
            return True
        self._server.command("scontrol", "update", "nodename=gpu02", "state=resume")
        return False

    def _choose(self, states: str) -> str | None:
        listed = self._server.command("squeue", "-h", "-t", states, "-o", "%i %q").splitlines()
        jobs = sorted(line.split()[0] for line in listed if "+" not in line and not line.endswith("high"))
        return self._random.choice(jobs) if jobs else None

    def _state(self, job: str) -> str:
        return self._server.command("squeue", "-h", "-o", "%T", "-j", job).strip()

    def _start_again(self) -> None:
        """Slurm holds requeued jobs back for two minutes."""
        time.sleep(2)  # a node refuses a new execution within the second in which the former one was revoked
        for job in self._server.command("squeue", "-h", "-t", "PENDING", "-o", "%i|%r").splitlines():
            name, _, reason = job.partition("|")
            if reason == "BeginTime":
                self._server.command("scontrol", "update", f"jobid={name}", "starttime=now")


@pytest.mark.parametrize("seed", [1, 2])
async def test_gpu_hours_equal_those_of_sacct_when_jobs_are_requeued_preempted_and_suspended(
    server: SlurmServer, site: Site, seed: int
) -> None:
    story, chance = Story(server, seed), random.Random(seed)
    story.begin()
    await site.look(history=True)
    for _ in range(14):
        story.go_on()
        if chance.random() < 0.5:
            await site.look(history=chance.random() < 0.4)
        if chance.random() < 0.2:
            site.restart()
    story.requeue()
    story.suspend()
    assert len(story.done) >= 4, story.done
    await site.look(history=True)
    running, theirs = site.gpu_s(), sacct_gpu_s(server)
    gpus = {row.workload.removeprefix("slurm:"): row.gpus_requested for row in site.queries.workloads.page().workloads}
    assert running.keys() >= theirs.keys()
    for job, seconds in theirs.items():
        assert running[job] == pytest.approx(seconds, abs=(5 + TRUNCATION_S) * max(8, gpus.get(job, 8))), job
    server.cancel_all()
    server.wait_until(
        lambda: "Unknown" not in server.command("sacct", "-D", "-n", "-X", "-a", "-o", "end"), "accounting"
    )
    # One job once differed by a second right after its end; whether Slurm or we were late is not known.
    for _ in range(20):
        await site.look(history=True)
        theirs = {job: seconds for job, seconds in sacct_gpu_s(server).items() if seconds}
        ours = {job: seconds for job, seconds in site.gpu_s().items() if seconds}
        if ours == pytest.approx(theirs):
            break
        await asyncio.sleep(1)
    assert ours == pytest.approx(theirs)
    repeated = server.command("sacct", "-D", "-n", "-X", "-P", "-a", "-o", "jobid").split()
    assert max(Counter(repeated).values()) > 1, "no job was executed twice"
    await site.look(history=False)
    assert {job: seconds for job, seconds in site.gpu_s().items() if seconds} == pytest.approx(theirs)
    # What is summed by user or project is made of the same executions.
    trace = read_history(site.records, name="test", now_ms=clock())
    assert (trace.frame["gpus"] * trace.frame["run_s"]).sum() == pytest.approx(sum(theirs.values()))


async def test_units_were_held_during_every_execution_when_a_job_was_requeued(
    server: SlurmServer, tmp_path: Path
) -> None:
    site = Site(server, tmp_path, "cli")
    job = server.submit("-N1", "--gpus=2", "--requeue", "-p", "a100")
    server.wait_for_state(job, "RUNNING")
    await site.look(history=False)
    server.command("scontrol", "requeue", str(job))
    server.wait_for_state(job, "PENDING")
    await site.look(history=False)
    server.start_requeued(job)
    await site.look(history=True)
    server.cancel_all()
    server.wait_until(lambda: server.is_accounted(job), "accounting")
    await site.look(history=True)
    detail = site.queries.workloads.detail(f"slurm:{job}")
    assert [execution.scheduler_state for execution in detail.executions] == ["REQUEUED"]
    assert not detail.executions[0].is_estimated
    assert detail.workload.state is WorkloadState.CANCELLED
    held = Counter((span.from_at, span.to_at) for span in detail.allocations)
    executions = [(execution.started_at, execution.ended_at) for execution in (detail.executions[0], detail.workload)]
    assert held == Counter(dict.fromkeys(executions, 2))
    spans = sum((span.to_at or 0) - span.from_at for span in detail.allocations)
    assert detail.workload.gpu_hours == pytest.approx(spans / 3_600_000)
    site.metrics.close()
    site.records.close()
