"""A real ``clusterscape serve`` whose Slurm and metrics server go away for a while and come back.

Owns the course of events and what must hold at each of its turns; how long it lasts is up to the caller.
"""

import itertools
import re
import statistics
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from clusterscape.model import UnixMs
from clusterscape.store.metrics import VictoriaMetricStore
from servers.demo import get_json, wait_until
from servers.exporters import NodeExporter, node_exporters
from servers.programs import lasting_port
from servers.serving import Served, serving
from servers.slurm import SlurmServer, slurm_server
from servers.slurm_conf import NodeGroup
from servers.victoria import run_victoria

CLUSTER = "outages"
NODES = (NodeGroup(names=("gpu01", "gpu02"), gpu_type="a100", gpus=8, partitions=("main",), features="a100"),)
FORGOTTEN_AFTER_S = 8
"""slurmctld keeps ended jobs so long: longer than a look may take, short enough to wait for."""
LIMIT_S = 900.0
"""Accounting is read every five minutes, where nothing asks for it earlier."""
MIB = 2**20


@dataclass
class OutageResult:
    """Measurements of an outage."""

    outage_s: float = 0.0
    waited_samples: int = 0
    spool_bytes: int = 0
    scrapes: int = 0
    log_lines: list[str] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)

    def memory_thirds(self) -> tuple[float, float]:
        """Medians of the second and the last third of the outage; the first is warming up."""
        third = max(1, len(self.memory_mb) // 3)
        return statistics.median(self.memory_mb[third : 2 * third]), statistics.median(self.memory_mb[-third:])


@dataclass
class Site:
    """Everything that runs. ``view`` is the slurm.conf that ClusterScape reads: its ports may lead nowhere."""

    folder: Path
    slurm: SlurmServer
    exporters: list[NodeExporter]
    victoria: ExitStack
    victoria_port: int
    view: Path
    served: Served

    def start_victoria(self) -> None:
        self.victoria.enter_context(run_victoria(self.folder / "victoria", port=self.victoria_port))

    def stop_victoria(self) -> None:
        self.victoria.close()

    def cut_off(self) -> None:
        """Slurm goes on, but ClusterScape cannot reach it."""
        text = self.slurm.conf.read_text()
        self.view.write_text(re.sub(r"^(SlurmctldPort|AccountingStoragePort)=\d+$", r"\1=9", text, flags=re.MULTILINE))

    def join_again(self) -> None:
        self.view.write_text(self.slurm.conf.read_text())

    # jobs

    def submit(self, name: str, *options: str) -> int:
        """A job that runs until ``finish``."""
        script = f"while [ ! -e {self.folder}/{name}.done ]; do sleep 0.2; done"
        return self.slurm.submit("-N1", "-c1", f"--job-name={name}", *options, script=script)

    def finish(self, name: str) -> None:
        (self.folder / f"{name}.done").touch()

    def accounted(self, job: int) -> tuple[str, str, str]:
        """State, start and end (Unix seconds) by Slurm's own accounting."""
        command = ("sacct", "-n", "-X", "-P", "-o", "state,start,end", "-j", str(job))
        lines = self.slurm.command("env", "SLURM_TIME_FORMAT=%s", *command).split()
        state, start, end = lines[-1].split("|")
        return state, start, end

    def is_forgotten(self, job: int) -> bool:
        """Whether slurmctld knows the job no more."""
        listed = self.slurm.command("squeue", "-h", "-t", "all", "-o", "%A").split()
        return str(job) not in listed

    # state in ClusterScape

    def ask(self, path: str) -> Any:
        return get_json(f"{self.served.url}/api/v1{path}")

    def workload(self, job: int) -> Any:
        try:
            return self.ask(f"/workloads/slurm:{job}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return {"workload": {"state": None, "ended_at": None, "started_at": None}, "allocations": []}

    def state(self, job: int) -> str | None:
        state: str | None = self.workload(job)["workload"]["state"]
        return state

    def held(self, job: int) -> list[str]:
        """The units it holds now."""
        return sorted(
            allocation["unit"] for allocation in self.workload(job)["allocations"] if allocation["to_at"] is None
        )

    def failing(self) -> int:
        return sum(group["failing"] for group in self.ask("/sources")["groups"])

    def wait_for_accounted_end(self, job: int, units: list[str]) -> None:
        """It ended, and let go of its units, when Slurm says so."""
        deadline = time.monotonic() + LIMIT_S
        while wrong := self._differs_from_accounting(job, units):
            assert time.monotonic() < deadline, wrong
            time.sleep(0.2)

    def _differs_from_accounting(self, job: int, units: list[str]) -> str | None:
        state, start, end = self.accounted(job)
        detail = self.workload(job)
        reported = [detail["workload"][name] for name in ("state", "started_at", "ended_at")]
        held = {allocation["unit"]: allocation["to_at"] for allocation in detail["allocations"]}
        ended = int(end) * 1000
        is_same = reported == [state.split()[0].lower(), int(start) * 1000, ended] and held == dict.fromkeys(
            units, ended
        )
        return None if is_same else f"accounting: {state} {start} {end} {units}; reported: {reported} {held}"

    def log(self) -> list[str]:
        """Log lines of the server."""
        return self.served.log.read_text().splitlines()


@contextmanager
def outage_site(folder: Path, *, scrape_s: float, look_s: float) -> Iterator[Site]:
    """Slurm with accounting, VictoriaMetrics, exporters that count, and the server that reads them all."""
    with (
        slurm_server(node_groups=NODES, accounting=True, options=(f"MinJobAge={FORGOTTEN_AFTER_S}",)) as slurm,
        node_exporters(slurm.node_names, gpus=8, counts=True) as exporters,
        ExitStack() as victoria,
    ):
        view = folder / "view.conf"
        view.write_text(slurm.conf.read_text())
        port = lasting_port()
        victoria.enter_context(run_victoria(folder / "victoria", port=port))
        config = f"""
cluster = "{CLUSTER}"
[storage]
metrics = "http://127.0.0.1:{port}"
[storage.metrics_server]
spool_bytes = {64 * MIB}
[collect.slurm]
mode = "cli"
conf = "{view}"
interval_s = {look_s}
history_days = 0.02
[collect.dcgm]
targets = {[exporter.target for exporter in exporters]}
interval_s = {scrape_s}
timeout_s = 120
jitter_s = 0
"""
        with serving(folder / "site", config) as served:
            yield Site(folder, slurm, exporters, victoria, port, view, served)


def live_through(folder: Path, *, outage_s: float, scrape_s: float, look_s: float) -> OutageResult:
    """The whole course: both away, both back, then Slurm out of reach. Raises AssertionError where a promise is broken."""
    result = OutageResult(outage_s=outage_s)
    with outage_site(folder, scrape_s=scrape_s, look_s=look_s) as site:
        ending, through = (
            site.submit("ending", "-w", "gpu01", "--gpus=2"),
            site.submit("through", "-w", "gpu02", "--gpus=2"),
        )
        for job in (ending, through):
            site.slurm.wait_for_state(job, "RUNNING")
        waiting = site.submit("waiting", "-w", "gpu01", "--gpus=8")
        wait_until(lambda: [site.state(job) for job in (ending, through, waiting)] == ["running", "running", "waiting"])
        wait_until(lambda: site.ask("/cluster")["gpu_util_ratio"] is not None, LIMIT_S)
        wait_until(lambda: site.failing() == 0, LIMIT_S)
        units = {job: site.held(job) for job in (ending, through)}
        before = len(site.log())

        _both_go_away(site, result, ending, through, units)
        _both_come_back(site, ending, through, waiting, units)
        _slurm_is_out_of_reach(site)

        wait_until(lambda: site.failing() == 0, LIMIT_S)
        result.log_lines = site.log()[before:]
        exporters, port = site.exporters, site.victoria_port
        _stop(site.served)
        assert_every_scrape_is_there_once(f"http://127.0.0.1:{port}", exporters, scrape_s, result)
    _assert_few_lines(result.log_lines)
    return result


def _both_go_away(site: Site, result: OutageResult, ending: int, through: int, units: dict[int, list[str]]) -> None:
    site.slurm.stop("slurmctld")
    site.stop_victoria()
    gone_at = time.monotonic()
    wait_until(lambda: _slurm_failures(site) >= 3 and site.ask("/sources")["store"]["waiting_samples"] > 0, LIMIT_S)
    sources = site.ask("/sources")
    for failure in (entry for group in sources["groups"] for entry in group["failures"]):
        assert "slurmctld does not respond" in failure["hint"], failure
        assert len(failure["message"]) < 300, failure
    assert "does not answer" in sources["store"]["trouble"], sources["store"]
    assert _refusal(f"{site.served.url}/api/v1/series?metric=gpu_util_ratio&unit=gpu01:0") == 503
    server = psutil.Process(site.served.process.pid)
    is_finished = False
    while (away_s := time.monotonic() - gone_at) < result.outage_s:
        result.memory_mb.append(server.memory_info().rss / MIB)
        if not is_finished and away_s > result.outage_s / 2:
            site.finish("ending")  # nobody is there to hear of it
            is_finished = True
        # Nothing is known to have ended, so nothing is said to have.
        assert [site.held(job) for job in (ending, through)] == [units[ending], units[through]]
        time.sleep(min(15.0, result.outage_s / 10))
    if not is_finished:
        site.finish("ending")
    result.memory_mb.append(server.memory_info().rss / MIB)
    result.waited_samples = site.ask("/sources")["store"]["waiting_samples"]
    spool = site.folder / "site/data/spool"
    result.spool_bytes = sum(path.stat().st_size for path in spool.glob("*.parquet"))
    assert result.spool_bytes < 64 * MIB


def _both_come_back(site: Site, ending: int, through: int, waiting: int, units: dict[int, list[str]]) -> None:
    site.slurm.start_controller()
    site.slurm.wait_for_nodes()
    site.slurm.wait_until(lambda: site.accounted(ending)[2].isdigit(), "the end of the job to be accounted")
    site.slurm.wait_for_state(waiting, "RUNNING")
    site.wait_for_accounted_end(ending, units[ending])
    wait_until(lambda: site.state(waiting) == "running", LIMIT_S)
    assert site.held(through) == units[through]
    wait_until(lambda: site.held(waiting) == [f"gpu01:{at}" for at in range(8)], LIMIT_S)
    site.start_victoria()
    wait_until(lambda: site.ask("/sources")["store"]["waiting_samples"] == 0, LIMIT_S)
    wait_until(lambda: site.ask("/sources")["store"]["trouble"] is None, LIMIT_S)
    assert site.ask("/sources")["store"]["lost_samples"] == 0
    wait_until(lambda: site.failing() == 0, LIMIT_S)
    wait_until(lambda: site.ask("/cluster")["gpu_util_ratio"] is not None, LIMIT_S)


def _slurm_is_out_of_reach(site: Site) -> None:
    """Jobs end, and are forgotten by slurmctld, while ClusterScape cannot look: only accounting can tell it."""
    missed = site.submit("missed", "-w", "gpu02", "--gpus=3")
    site.slurm.wait_for_state(missed, "RUNNING")
    wait_until(lambda: len(site.held(missed)) == 3, LIMIT_S)
    held = site.held(missed)
    site.cut_off()
    wait_until(lambda: _slurm_failures(site) >= 3, LIMIT_S)
    unseen = site.submit("unseen", "-w", "gpu02", "--gpus=1")
    site.slurm.wait_for_state(unseen, "RUNNING")
    site.finish("missed")
    site.finish("unseen")
    site.slurm.wait_until(lambda: all(map(site.is_forgotten, (missed, unseen))), "slurmctld to forget the jobs")
    site.slurm.wait_until(lambda: all(site.accounted(job)[2].isdigit() for job in (missed, unseen)), "accounting")
    assert site.held(missed) == held
    site.join_again()
    site.wait_for_accounted_end(missed, held)
    # Accounting does not know devices: of a part of a node that nobody saw in use nothing is said.
    site.wait_for_accounted_end(unseen, [])


def _slurm_failures(site: Site) -> int:
    return sum(group["failing"] for group in site.ask("/sources")["groups"] if group["kind"] == "slurm")


def _refusal(url: str) -> int:
    """The status of an answer that cannot be given now."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code if b"does not answer" in error.read() else 0


def _stop(served: Served) -> None:
    served.process.terminate()
    served.process.wait(60)


def assert_every_scrape_is_there_once(
    url: str, exporters: list[NodeExporter], scrape_s: float, result: OutageResult
) -> None:
    """By the numbers that the exporters counted: each once, in the order of time, and no round lost.

    A number that is not there is a round that was lost only where the time of a round is missing, too: anybody on this machine
    may have asked the exporter.
    """
    with urllib.request.urlopen(f"{url}/internal/force_flush", timeout=60):
        pass
    store = VictoriaMetricStore(url, cluster=CLUSTER)
    rows = store.read_all(["memory_used_bytes"], start_ms=UnixMs(0), end_ms=UnixMs(2**45)).sort("time_ms")
    store.close()
    for exporter in exporters:
        for gpu in range(exporter.gpus):
            stored = rows.filter(unit=f"{exporter.node}:{gpu}").select("time_ms", "value").rows()
            for (before_ms, before), (at_ms, value) in itertools.pairwise(stored):
                steps = round((value - before) / MIB)
                assert steps == 1 or (steps > 1 and at_ms - before_ms < 1500 * scrape_s), (
                    f"{exporter.node}:{gpu} has {before / MIB:.0f} at {before_ms}, then {value / MIB:.0f} at {at_ms}"
                )
            assert exporter.scrapes - 1 <= round(stored[-1][1] / MIB), "the last one may have come after the end"
            result.scrapes = len(stored)


def _assert_few_lines(lines: list[str]) -> None:
    """One line for each thing that begins and one for each that ends, however long it takes."""
    text = "\n".join(lines)
    assert "Traceback" not in text, text
    assert text.count("samples wait on disk") == 1, text
    assert text.count("accepts samples again") == 1, text
    for part in ("nodes", "partitions", "queue"):
        # Twice away; a server that is going down may say other last words than one that is gone.
        assert 2 <= text.count(f"slurm {part}:") <= 6, text
        assert 2 <= text.count(f"slurm {part} responds again") <= 4, text
    assert len(lines) <= 40, text
