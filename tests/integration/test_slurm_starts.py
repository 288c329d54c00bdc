"""Planned starts compared with Slurm's own: on a real Slurm, with a maintenance, preemption and partitions that share nodes."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from clusters.opened import open_queries
from servers.roots import SUITES
from servers.slurm import SlurmServer, slurm_server

from clusterscape.collect.slurm import SlurmCollector
from clusterscape.ingest.pipeline import Ingest
from clusterscape.model import UnixMs
from clusterscape.query import Queries, QueryContext
from clusterscape.query.scheduling.live_queue import read_live_queue
from clusterscape.query.scheduling.queue_answers import QueueRow
from clusterscape.query.scheduling.queue_plan import plan_queue
from clusterscape.settings import RetentionSettings, SlurmSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store

pytestmark = pytest.mark.server

SLACK_S = 120
"""Slurm plans in steps of a minute, and looks at its queue every second or so."""


def clock() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


@pytest.fixture(scope="module", params=[None, *SUITES], ids=lambda version: version or "installed")
def server(request: pytest.FixtureRequest) -> Iterator[SlurmServer]:
    options = ("PreemptType=preempt/qos", "PreemptMode=REQUEUE")
    with (
        slurm_server(accounting=True, options=options, version=request.param) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PATH", server.environment["PATH"])
        server.command("sacctmgr", "-i", "add", "qos", "low", "high")
        server.command("sacctmgr", "-i", "modify", "qos", "high", "set", "preempt=low", "priority=1000")
        server.command("sacctmgr", "-i", "modify", "qos", "low", "set", "preemptmode=requeue")
        server.command("sacctmgr", "-i", "add", "account", "team")
        server.command("sacctmgr", "-i", "add", "user", "root", "account=team", "qos=normal,low,high")
        yield server


@pytest.fixture
def queries(tmp_path: Path) -> Iterator[tuple[Queries, Ingest]]:
    storage = StorageSettings(data_dir=tmp_path)
    metrics, records = open_metric_store(storage, RetentionSettings()), open_record_store(storage)
    changes = Changes()
    ingest = Ingest(metrics, records, changes, clock=clock)
    context = QueryContext(metrics=metrics, records=records, changes=changes, clock=clock, cluster="test")
    yield open_queries(context, ingest), ingest
    metrics.close()
    records.close()


async def read_rows(server: SlurmServer, queries: tuple[Queries, Ingest]) -> dict[str, QueueRow]:
    opened, ingest = queries
    collector = SlurmCollector(SlurmSettings(conf=server.folder / "etc/slurm.conf", history_days=0), clock)
    async for observation in collector.poll(clock()):
        ingest.accept(observation)
    await collector.close()
    return {row.workload.removeprefix("slurm:"): row for row in opened.queue.all().workloads}


def submit(server: SlurmServer, *words: str) -> str:
    return server.command("sbatch", "--parsable", "--mem=1000", *words, "--wrap", "sleep 600").strip()


def slurm_start_s(server: SlurmServer, job: str) -> float:
    """Start by ``squeue --start``, once Slurm's backfilling has planned the job."""
    planned = ""

    def is_planned() -> bool:
        nonlocal planned
        planned = server.command("squeue", "--start", "-h", "-j", job, "-o", "%S").strip()
        return bool(re.match(r"\d{4}-", planned))

    server.wait_until(is_planned, f"Slurm to plan {job}")
    return datetime.fromisoformat(planned).timestamp()


@pytest.fixture
def clean(server: SlurmServer) -> Iterator[SlurmServer]:
    yield server
    server.command("scancel", "--me")
    for name in re.findall(r"ReservationName=(\S+)", server.command("scontrol", "--oneliner", "show", "reservation")):
        server.command("scontrol", "delete", f"reservationname={name}")
    server.wait_until(lambda: not server.command("squeue", "-h").strip(), "the queue to be empty")


async def test_starts_are_after_a_maintenance_as_slurm_says_when_jobs_do_not_fit_before_it(
    clean: SlurmServer, queries: tuple[Queries, Ingest]
) -> None:
    clean.command(
        "scontrol", "create", "reservation", "reservationname=maint", "starttime=now+10minutes", "duration=120",
        "nodes=ALL", "flags=maint,ignore_jobs", "users=root",
    )  # fmt: skip
    long = submit(clean, "-p", "a100", "--gres=gpu:8", "-t", "60")
    short = submit(clean, "-p", "a100", "--gres=gpu:4", "-t", "5")
    theirs = slurm_start_s(clean, long)
    clean.wait_until(lambda: clean.command("squeue", "-h", "-j", short, "-o", "%T").strip() == "RUNNING", "it to run")
    row = (await read_rows(clean, queries))[long]
    assert row.planned_at is not None
    assert abs(row.planned_at / 1000 - theirs) <= SLACK_S
    assert row.scheduler_at is not None
    assert abs(row.scheduler_at / 1000 - theirs) <= SLACK_S
    assert row.likely is not None
    assert row.likely.from_at >= row.planned_at - SLACK_S * 1000
    (listed,) = queries[0].cluster.summary().reservations
    assert (listed.name, listed.is_maintenance, listed.is_active) == ("maint", True, False)
    # The form predicts the same start as Slurm for the same request.
    tested = dry_run_start_s(clean, "-p", "a100", "--gres=gpu:8", "-t", "60")
    prediction = queries[0].waits.ask(gpus=8, hours=1, partition="a100").start
    assert prediction.plan_at / 1000 >= tested - SLACK_S


def dry_run_start_s(server: SlurmServer, *words: str) -> float:
    """When ``sbatch --test-only`` says that such a job would start."""
    command = ["sbatch", "--test-only", "--mem=1000", *words, "--wrap", "sleep 1"]
    output = server.command("sh", "-c", '"$@" 2>&1', "sh", *command)
    match = re.search(r"to start at (\S+)", output)
    assert match is not None, output
    return datetime.fromisoformat(match[1]).timestamp()


async def test_a_job_starts_at_once_as_in_slurm_when_it_may_preempt(
    clean: SlurmServer, queries: tuple[Queries, Ingest]
) -> None:
    low = [submit(clean, "-p", "a100", "--gres=gpu:8", "-t", "60", "--qos=low") for _ in range(3)]
    clean.wait_until(lambda: clean.command("squeue", "-h", "-t", "R").count("\n") == len(low), "all to run")
    # Held until we have looked: else it has started before.
    high = submit(clean, "-p", "a100", "--gres=gpu:8", "-t", "30", "--qos=high", "--hold")
    normal = submit(clean, "-p", "a100", "--gres=gpu:8", "-t", "30", "--qos=normal")
    clean.wait_until(lambda: "Resources" in clean.command("squeue", "-h", "-j", normal, "-o", "%r"), "it to wait")
    rows = await read_rows(clean, queries)
    assert rows[high].planned_at is None  # held: nothing is planned
    planned_at = rows[normal].planned_at
    assert planned_at is not None
    assert planned_at / 1000 > time.time() + 30 * 60
    queue = read_live_queue(queries[0].context)
    assert queue.preemption is not None
    assert queue.preemption.displaces == {"high": ("low",)}
    released = queue.with_jobs(replace(job, is_planned=True) for job in queue.waiting)
    assert plan_queue(released)[0][f"slurm:{high}"] == queue.now_s
    clean.command("scontrol", "release", high)
    clean.wait_until(lambda: clean.command("squeue", "-h", "-j", high, "-o", "%T").strip() == "RUNNING", "it to start")


async def test_partitions_that_share_nodes_share_their_gpus_as_in_slurm_when_jobs_wait(
    clean: SlurmServer, queries: tuple[Queries, Ingest]
) -> None:
    for node in ("gpu01", "gpu02", "gpu03"):
        submit(clean, "-p", "a100", "--gres=gpu:8", "-t", "40", "-w", node)
    clean.wait_until(lambda: clean.command("squeue", "-h", "-t", "R").count("\n") == 3, "all to run")
    other = submit(clean, "-p", "all", "--gres=gpu:a100:8", "-t", "10")
    theirs = slurm_start_s(clean, other)
    row = (await read_rows(clean, queries))[other]
    assert row.planned_at is not None
    assert abs(row.planned_at / 1000 - theirs) <= SLACK_S
