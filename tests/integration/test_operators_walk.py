"""The first day of an operator with a real Slurm, step by step: install, init, serve, and every number against Slurm's own."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from servers.demo import wait_until
from servers.exporters import NodeExporter, node_exporters
from servers.installed import install_wheel
from servers.programs import lasting_port
from servers.roots import SUITES
from servers.slurm import SlurmServer, slurm_server

pytestmark = pytest.mark.server

OPTIONS = ("PreemptType=preempt/qos", "PreemptMode=REQUEUE", "PreemptExemptTime=00:00:00")
GPUS = 28
LIMIT_S = 90.0
ACCOUNTING_LIMIT_S = 400.0
"""Slurm's accounting is read every five minutes, and sooner where the queue does not tell an end."""


@dataclass
class Operator:
    """An operator with a shell in an empty folder, in which the wheel was installed."""

    folder: Path
    command: Path
    slurm: SlurmServer
    url: str

    @property
    def config(self) -> Path:
        return self.folder / "clusterscape.toml"

    def environment(self) -> dict[str, str]:
        mine = {name: value for name, value in self.slurm.environment.items() if not name.startswith("PYTHON")}
        settings = {"COLLECT__SLURM__INTERVAL_S": "1", "SERVER__COMPILE_AHEAD": "true"}
        return mine | {"HOME": str(self.folder)} | {f"CLUSTERSCAPE_{key}": value for key, value in settings.items()}

    def run(self, *words: str) -> str:
        """Runs one command and returns its output."""
        done = subprocess.run(
            [str(self.command), *words], cwd=self.folder, env=self.environment(), capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def ask(self, *words: str) -> Any:
        """The JSON answer of a command to the server."""
        return json.loads(self.run(*words, "--url", self.url, "--json"))

    @contextmanager
    def serving(self) -> Iterator["subprocess.Popen[bytes]"]:
        port = self.url.rpartition(":")[2]
        with (self.folder / "serve.log").open("ab") as log:
            child = subprocess.Popen(
                [str(self.command), "serve", "--config", str(self.config), "--port", port],
                cwd=self.folder, env=self.environment(), stdout=log, stderr=log,
            )  # fmt: skip
        try:
            wait_until(lambda: self.status()["awaited"] == [], LIMIT_S)
            yield child
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(timeout=30)

    def status(self) -> Any:
        try:
            return self.ask("status")
        except AssertionError as refused:  # it does not listen yet
            raise TimeoutError(str(refused)) from None


# Slurm's own numbers


def slurm_jobs(slurm: SlurmServer) -> dict[str, tuple[str, int]]:
    """State and GPUs of every job that waits or runs, by the id as Slurm writes it; every task of an array by itself."""
    lines = slurm.command(
        "squeue", "-h", "-r", "-t", "PD,R,S", "-O", "JobID:30,JobArrayID:30,StateCompact:9,tres-alloc:300"
    )
    jobs = {}
    for line in lines.splitlines():
        parts = line.split()
        gpus = re.search(r"gres/gpu=(\d+)", parts[3]) if len(parts) > 3 else None
        jobs[parts[1]] = (parts[2], int(gpus[1]) if gpus else 0)
    return jobs


def slurm_gpu_seconds(slurm: SlurmServer) -> dict[str, int]:
    """GPU-seconds of every ended job over all its records, as ``sacct -D`` lists them."""
    lines = slurm.command(
        "sacct", "-a", "-X", "-D", "-n", "-P", "-S", "now-1day", "-o", "jobid,state,elapsedraw,alloctres"
    )
    seconds: dict[str, int] = {}
    for line in lines.splitlines():
        job, _, elapsed, tres = line.split("|")
        gpus = re.search(r"gres/gpu=(\d+)", tres)
        seconds[job] = seconds.get(job, 0) + int(elapsed) * (int(gpus[1]) if gpus else 0)
    return seconds


def check_numbers(operator: Operator) -> None:
    """Compares every number of ClusterScape with Slurm's, once both have settled."""

    def is_equal() -> bool:
        theirs = slurm_jobs(operator.slurm)
        ours = {
            row["workload"].removeprefix("slurm:"): row
            for state in ("running", "waiting", "suspended")
            for row in operator.ask("list", "workloads", "--state", state, "--limit", "1000")["workloads"]
        }
        status = operator.ask("status")
        running = {job for job, (state, _) in theirs.items() if state == "R"}
        return (
            set(ours) == set(theirs)
            and {job for job, row in ours.items() if row["state"] == "running"} == running
            and status["units"]["allocated"] == sum(gpus for state, gpus in theirs.values() if state == "R")
            and status["running"] == len([job for job in running if theirs[job][1]])
        )

    wait_until(is_equal, LIMIT_S)


# the story


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_wheel(tmp_path_factory.mktemp("installed"))


@pytest.fixture(params=[None, *SUITES], ids=lambda version: version or "installed")
def operator(
    request: pytest.FixtureRequest, tmp_path: Path, command: Path
) -> Iterator[tuple[Operator, list[NodeExporter]]]:
    with slurm_server(accounting=True, options=OPTIONS, version=request.param) as slurm:
        slurm.command("sacctmgr", "-i", "add", "qos", "low", "high")
        slurm.command("sacctmgr", "-i", "modify", "qos", "high", "set", "preempt=low", "priority=1000")
        slurm.command("sacctmgr", "-i", "add", "account", "team")
        slurm.command("sacctmgr", "-i", "add", "user", "root", "account=team", "qos=normal,low,high")
        with node_exporters(slurm.node_names[:3], gpus=8) as exporters:
            yield Operator(tmp_path, command, slurm, f"http://127.0.0.1:{lasting_port()}"), exporters


def test_the_first_day_of_an_operator(operator: tuple[Operator, list[NodeExporter]]) -> None:
    walker, exporters = operator
    slurm = walker.slurm

    # She installs it in an empty folder and has it look around. Her exporters are known by addresses, not by Slurm's names.
    addresses = ",".join(exporter.address for exporter in exporters)
    walker.run("init", "--yes", "--cluster", "mine", "--slurm", "cli", "--exporters", addresses, "--no-check")
    assert not (walker.folder / "~").exists()
    assert f'data_dir = "{walker.folder}' in walker.config.read_text()

    with walker.serving() as server:
        # Every GPU is there once, whatever its exporter is called.
        wait_until(lambda: walker.ask("status")["units"]["total"] == GPUS, LIMIT_S)
        assert walker.ask("status")["nodes"] == len(slurm.node_names)

        # Her users submit twenty jobs of all kinds.
        whole = [slurm.submit("--gres=gpu:8", "-p", "a100", "-c1", "-t", "60", "--qos=low") for _ in range(3)]
        small = slurm.submit("--gres=gpu:1", "-p", "v100", "-c1", "-t", "30")
        array = slurm.submit("--gres=gpu:1", "-p", "v100", "-c1", "-t", "30", "--array=0-5")
        held = slurm.submit("--gres=gpu:2", "-p", "a100", "-c1", "-t", "30", "--hold")
        after = slurm.submit("--gres=gpu:2", "-p", "a100", "-c1", "-t", "30", f"--dependency=afterok:{small}")
        dated = slurm.submit("--gres=gpu:2", "-p", "a100", "-c1", "-t", "30", "--begin=now+1day")
        waiting = [slurm.submit("--gres=gpu:8", "-p", "a100", "-c1", "-t", str(20 + 10 * i)) for i in range(3)]
        processors = slurm.submit("-p", "all", "-c1", "-t", "5", script="sleep 600")
        cancelled = slurm.submit("--gres=gpu:1", "-p", "v100", "-c1", "-t", "5")
        slurm.command("scancel", str(cancelled))
        for job in whole:
            slurm.wait_for_state(job, "RUNNING")
        check_numbers(walker)

        # The queue says why each waits, and the reasons are Slurm's.
        rows = {row["workload"].removeprefix("slurm:"): row for row in walker.ask("sched", "queue")["workloads"]}
        assert {str(job) for job in [*waiting, held, after, dated]} <= set(rows)
        assert rows[str(held)]["planned_at"] is None
        assert "held" in rows[str(held)]["reason_text"].lower()
        assert str(small) in rows[str(after)]["reason_text"]
        assert all(rows[str(job)]["planned_at"] for job in waiting)

        # A node is drained: its state and her own words are on the page, and nothing new is planned there.
        slurm.command("scontrol", "update", "nodename=vgpu1", "state=drain", "reason=fan 3 is loud")
        wait_until(lambda: _node(walker, "vgpu1")["state"] in ("draining", "drained"), LIMIT_S)
        assert "fan 3 is loud" in _node(walker, "vgpu1")["reason"]
        slurm.command("scontrol", "update", "nodename=vgpu1", "state=resume")

        # A maintenance is announced: everybody sees it coming.
        nodes = "gpu01,gpu02,gpu03"
        slurm.command(
            "scontrol", "create", "reservation", "reservationname=maint", "starttime=now+2hours", "duration=60",
            f"nodes={nodes}", "users=root", "flags=maint",
        )  # fmt: skip
        wait_until(
            lambda: [reservation["name"] for reservation in walker.ask("status")["reservations"]] == ["maint"], LIMIT_S
        )
        slurm.command("scontrol", "delete", "reservationname=maint")

        # Somebody important comes: Slurm preempts a job, which is requeued. What it had used until then is not lost.
        time.sleep(5)
        urgent = slurm.submit("--gres=gpu:8", "-p", "a100", "-c1", "-t", "10", "--qos=high", "--priority=900000")
        slurm.wait_for_state(urgent, "RUNNING")
        check_numbers(walker)

        # One is requeued by hand, and one fails.
        slurm.command("scontrol", "requeue", str(small))
        failing = slurm.submit("-p", "all", "-c1", "-t", "5", script="exit 3")
        check_numbers(walker)

        # The machine loses power.
        server.kill()
        server.wait()

    with walker.serving():
        check_numbers(walker)
        slurm.cancel_all()
        check_numbers(walker)
        wait_until(lambda: walker.ask("status")["units"]["allocated"] == 0, LIMIT_S)
        ended = [str(processors), *(f"{array}_{task}" for task in range(6))]
        wait_until(lambda: {_job(walker, job)["state"] for job in ended} == {"cancelled"}, LIMIT_S)

        # The hours of every job are those of Slurm's accounting, over all its lives.
        slurm.wait_until(lambda: slurm.is_accounted(urgent, small, *whole), "the accounting")

        def differences() -> dict[str, tuple[float, int]]:
            """GPU-seconds here and in Slurm's accounting, of jobs where they differ by more than its rounding to seconds."""
            theirs = {job: seconds for job, seconds in slurm_gpu_seconds(slurm).items() if seconds}
            ours = {job: _gpu_seconds(walker, job) for job in theirs}
            return {job: (ours[job], seconds) for job, seconds in theirs.items() if abs(ours[job] - seconds) > 8}

        with suppress(AssertionError):
            wait_until(lambda: not differences(), ACCOUNTING_LIMIT_S)
        assert differences() == {}
        assert (_job(walker, str(failing))["state"], _job(walker, str(failing))["exit_code"]) == ("failed", 3)


def _node(walker: Operator, name: str) -> Any:
    return next(node for node in walker.ask("list", "nodes") if node["node"] == name)


def _job(walker: Operator, job: str) -> Any:
    """By the id as Slurm writes it."""
    return json.loads(walker.run("ask", f"/workloads/{job}", "--url", walker.url))["workload"]


def _gpu_seconds(walker: Operator, job: str) -> float:
    hours = _job(walker, job)["gpu_hours"]
    return 0.0 if hours is None else hours * 3600
