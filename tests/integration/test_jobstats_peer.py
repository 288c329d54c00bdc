"""The card of real jobs compared with the one that jobstats itself prints: real Slurm, and one real Prometheus with series as
the exporters write them, read by both.
"""

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from clusters.opened import open_queries
from servers.prometheus import prometheus_server
from servers.slurm import SlurmServer, slurm_server
from servers.slurm_conf import NodeGroup

from clusterscape.analyze.jobcard.text import card_text
from clusterscape.collect.prometheus import PrometheusCollector
from clusterscape.collect.slurm import SlurmCollector
from clusterscape.ingest.pipeline import Ingest
from clusterscape.model import Names, SampleBatch, UnixMs
from clusterscape.query import QueryContext
from clusterscape.settings import PrometheusSettings, RetentionSettings, SlurmSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.prometheus_api import PrometheusApi
from clusterscape.store.metrics.sample_writers import SeriesEncoder, compress, labelled_unit
from clusterscape.store.records import open_record_store

JOBSTATS = (
    Path(os.environ.get("CLUSTERSCAPE_REFERENCE_DATA", Path(__file__).parents[3] / "shared/data/reference"))
    / "jobstats"
)
GROUPS = (NodeGroup(names=("gpu01", "gpu02", "gpu03"), gpu_type="a100", gpus=8, partitions=("a100",), features="a100"),)
CLUSTER = "test"
SETTINGS = """
PROM_SERVER, PROM_RETENTION_DAYS, GPU_EXPORTER_JOBID, SAMPLING_PERIOD = "{url}", 30, False, 1
EXTERNAL_DB_CONFIG, CLUSTER_TRANS, CLUSTER_TRANS_INV, NOTES = {{"enabled": False}}, {{}}, {{}}, []
GPU_UTIL_RED, GPU_UTIL_BLACK, CPU_UTIL_RED, CPU_UTIL_BLACK = 15, 25, 65, 80
TIME_EFFICIENCY_RED, TIME_EFFICIENCY_BLACK, MIN_MEMORY_USAGE, MIN_RUNTIME_SECONDS = 10, 60, 70, 10
MAX_JOBNAME_LEN = 64
"""
PEER = """
import runpy, sys
sys.path[:0] = [{settings!r}, {jobstats!r}]
sys.argv = ["jobstats", "--no-color", {job!r}]
runpy.run_path({jobstats!r} + "/jobstats", run_name="__main__")
"""

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not JOBSTATS.is_dir(), reason=f"{JOBSTATS} is not on this machine"),
]


def clock() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmServer]:
    pytest.importorskip("requests")
    with slurm_server(node_groups=GROUPS, accounting=True, options=("MinJobAge=3600",)) as server:
        server.command("sacctmgr", "-i", "add", "account", "team")
        server.command("sacctmgr", "-i", "add", "user", "root", "account=team")
        yield server


@pytest.fixture(scope="module")
def prometheus() -> Iterator[str]:
    with prometheus_server([], scrape_interval="1s", receives=True) as url:
        yield url


class Site:
    """A ClusterScape that reads the Slurm and the Prometheus."""

    def __init__(self, slurm: SlurmServer, url: str, folder: Path) -> None:
        storage = StorageSettings(data_dir=folder)
        self.metrics, self.records = open_metric_store(storage, RetentionSettings()), open_record_store(storage)
        changes = Changes()
        self._ingest = Ingest(self.metrics, self.records, changes, clock=clock)
        self._slurm = SlurmSettings(conf=slurm.conf, mode="cli", history_days=0.2)
        self._prometheus = PrometheusSettings(url=url)
        context = QueryContext(
            metrics=self.metrics, records=self.records, changes=changes, clock=clock, cluster=CLUSTER
        )
        self.queries = open_queries(context)

    def poll_slurm(self) -> None:
        asyncio.run(self._poll(SlurmCollector(self._slurm, clock)))

    def poll_prometheus(self) -> None:
        asyncio.run(self._poll(PrometheusCollector(self._prometheus, clock)))

    async def _poll(self, collector: SlurmCollector | PrometheusCollector) -> None:
        async for observation in collector.poll(clock()):
            self._ingest.accept(observation)
        await collector.close()


@pytest.fixture
def site(slurm: SlurmServer, prometheus: str, tmp_path: Path) -> Iterator[Site]:
    site = Site(slurm, prometheus, tmp_path / "data")
    yield site
    site.metrics.close()
    site.records.close()


class Series:
    """Samples of all jobs as the exporters of jobstats report them, one a second."""

    def __init__(self, url: str, seed: int) -> None:
        self._url = url
        self._random = random.Random(seed)
        self._units, self._metrics = Names(), Names()
        self._rows: list[tuple[int, int, int, float]] = []

    def add(self, name: str, labels: dict[str, str], second: int, value: float) -> None:
        unit = self._units.code(labelled_unit({"cluster": CLUSTER, **labels}))
        self._rows.append((unit, self._metrics.code(name), second * 1000, value))

    def add_job(
        self, number: str, nodes: list[str], gpus: dict[str, list[str]], start: int, end: int, cores: int
    ) -> None:
        """``cores``: of each node."""
        for node in nodes:
            job = {"instance": f"{node}:9306", "jobid": number}
            cpu_s, rate = 0.0, self._random.random() * cores
            for second in range(start + 1, end + 1):
                cpu_s += rate * self._random.random()
                self.add("cgroup_cpu_total_seconds", job, second, cpu_s)
                self.add("cgroup_cpus", job, second, cores)
                self.add("cgroup_memory_total_bytes", job, second, 4 * 2**30)
                self.add("cgroup_memory_rss_bytes", job, second, self._random.randrange(3 * 2**30))
                self.add("cgroup_memory_shmem_bytes", job, second, self._random.randrange(2**28))
            for index in gpus.get(node, []):
                card = {"instance": f"{node}:9445", "minor_number": index, "uuid": f"GPU-{node}-{index}"}
                is_used = self._random.random() > 0.2
                for second in range(start + 1, end + 1):
                    self.add("nvidia_gpu_jobId", card, second, int(number))
                    self.add("nvidia_gpu_duty_cycle", card, second, is_used * self._random.randrange(101))
                    self.add("nvidia_gpu_memory_used_bytes", card, second, self._random.randrange(80 * 2**30))
                    self.add("nvidia_gpu_memory_total_bytes", card, second, 80 * 2**30)

    def write(self) -> None:
        rows = np.array(self._rows, np.float64)
        batch = SampleBatch(
            self._units,
            self._metrics,
            rows[:, 0].astype(np.int32),
            rows[:, 1].astype(np.int32),
            rows[:, 2].astype(np.int64),
            rows[:, 3],
        )
        api = PrometheusApi(f"{self._url}/api/v1/write", timeout_s=30)
        api.write_remote(compress(SeriesEncoder("", {}).encode(batch, np.arange(len(batch)))))
        api.close()


def submit_jobs(slurm: SlurmServer) -> None:
    """Jobs of all kinds, short enough to end soon."""
    slurm.submit("-n1", "--job-name=one core", script="sleep 8")
    slurm.submit("-N1", "-n4", "--mem=350M", script="sleep 9")
    slurm.submit("-N2", "-n4", "--time=10", script="sleep 7")
    slurm.submit("-N1", "--gpus=1", script="sleep 10")
    slurm.submit("-N1", "--gpus=3", "--time=0:30", script="sleep 11")
    slurm.submit("-N2", "--gpus-per-node=2", script="sleep 9")
    slurm.submit("-N1", "--gpus=1", script="sleep 6; exit 3")
    slurm.submit("--array=0-15", "-n1", script="sleep 7")
    slurm.submit("--array=1-12:2", "-N1", "--gpus=1", script="sleep 8")
    slurm.command(
        "sbatch", "--parsable", "--output=/dev/null", "-N1", "-n1", ":", "-N1", "--gpus=1", "-n1", "--wrap=sleep 8"
    )  # fmt: skip


def read_ended(slurm: SlurmServer) -> list[dict[str, str]]:
    names = ("jobid", "jobidraw", "start", "end", "nnodes", "ncpus", "state")
    words = ("env", "SLURM_TIME_FORMAT=%s", "sacct", "-n", "-X", "-P", "-a", "-o", ",".join(names))
    rows = [dict(zip(names, line.split("|"), strict=True)) for line in slurm.command(*words).splitlines()]
    return [row for row in rows if row["end"].isdigit() and row["start"].isdigit()]


def peer_card(slurm: SlurmServer, url: str, job: str, folder: Path) -> str:
    """What jobstats prints."""
    (folder / "config.py").write_text(SETTINGS.format(url=url))
    program = PEER.format(settings=str(folder), jobstats=str(JOBSTATS), job=job)
    done = subprocess.run(
        [sys.executable, "-c", program], env=slurm.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers_of(card: str) -> list[str]:
    """The lines up to those that only one of both has, with the nodes in order."""
    lines = [line.rstrip() for line in card.splitlines() if line.strip()]
    ends = [index for index, line in enumerate(lines) if line.strip() in ("Notes", "Over Time")]
    return sorted(lines[: ends[0]] if ends else lines)


def test_every_line_is_that_of_jobstats_when_real_jobs_of_all_kinds_have_ended(
    slurm: SlurmServer, prometheus: str, site: Site, tmp_path: Path
) -> None:
    submit_jobs(slurm)
    deadline = time.monotonic() + 180
    while slurm.command("squeue", "-h", "-t", "PD,R,CG").strip() and time.monotonic() < deadline:
        site.poll_slurm()
        time.sleep(1)
    slurm.wait_until(lambda: len(read_ended(slurm)) == 31, "31 jobs to be accounted")
    site.poll_slurm()
    rows = read_ended(slurm)
    series = Series(prometheus, seed=11)
    for row in rows:
        workload = site.queries.workloads.find(row["jobid"])
        gpus: dict[str, list[str]] = {}
        for allocation in site.records.allocations(workload=workload.id):
            node, _, index = allocation.unit.partition(":")
            gpus.setdefault(node, []).append(index)
        cores = int(row["ncpus"]) // int(row["nnodes"])
        series.add_job(row["jobidraw"], list(workload.nodes), gpus, int(row["start"]), int(row["end"]), cores)
    series.write()
    site.poll_prometheus()

    differing = {}
    for row in rows:
        expected = numbers_of(peer_card(slurm, prometheus, row["jobid"], tmp_path))
        ours = numbers_of(card_text(asdict(site.queries.jobs.card(row["jobid"]))))
        if ours != expected:
            differing[row["jobid"]] = sorted(set(expected) ^ set(ours))

    assert len(rows) == 31
    assert not differing
