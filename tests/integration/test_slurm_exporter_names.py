"""A real Slurm whose exporters go by other names: GPUs count once, unclear names are asked about, silence is the right node's."""

import io
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from servers.demo import get_json, wait_until
from servers.exporters import NodeExporter, node_exporters
from servers.roots import SUITES
from servers.serving import Served, serving
from servers.slurm import SlurmServer, slurm_server

pytestmark = pytest.mark.server

NODES = {"gpu01": 8, "gpu02": 8, "gpu03": 8, "vgpu1": 4}


@pytest.fixture(scope="module", params=[None, *SUITES], ids=lambda version: version or "installed")
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmServer]:
    with (
        slurm_server(version=request.param) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PATH", server.environment["PATH"])
        yield server


@pytest.fixture
def exporters() -> Iterator[list[NodeExporter]]:
    """One for each node, all of them reached under localhost, as over forwarded ports."""
    with node_exporters(list(NODES), gpus=8) as nodes:
        nodes[3].gpus, nodes[3].model = 4, "Tesla V100-SXM2-32GB"
        yield nodes


def settings(slurm: SlurmServer, targets: Sequence[str], folder: Path, more: str = "") -> str:
    return f"""
[storage]
data_dir = "{folder / "data"}"
[server]
port = 0
[collect.slurm]
mode = "cli"
conf = "{slurm.conf}"
interval_s = 1
history_days = 0
[collect.dcgm]
targets = {json.dumps(list(targets))}
interval_s = 1
timeout_s = 1
{more}
"""


def run_doctor(config: str, folder: Path) -> tuple[int, dict[str, dict[str, Any]], str]:
    """The exit code, the checks by subject, and the printed text."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "doctor.toml"
    path.write_text(config)
    path.chmod(0o600)
    command = [sys.executable, "-m", "clusterscape.cli", "doctor", "--config", str(path)]
    process = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120, check=False)
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return process.returncode, {check["what"]: check for check in json.loads(process.stdout)}, shown.stdout


def count(served: Served) -> tuple[int, int]:
    """GPUs and nodes of the summary."""
    summary = get_json(f"{served.url}/api/v1/cluster")
    return summary["units"]["total"], summary["nodes"]


def gpus_by_sinfo(slurm: SlurmServer) -> tuple[int, int]:
    lines = slurm.command("sinfo", "-h", "-N", "-p", "all", "-o", "%n %G").split("\n")
    gpus = [int(line.split("gpu:")[1].split(":")[1].split("(")[0].split(",")[0]) for line in lines if "gpu:" in line]
    return sum(gpus), len(gpus)


def test_cluster_is_as_large_as_sinfo_says_when_exporters_are_behind_forwarded_ports(
    slurm: SlurmServer, exporters: list[NodeExporter], tmp_path: Path
) -> None:
    exporters[1].host = "gpu02.cluster.example.org"
    config = settings(slurm, [exporter.address for exporter in exporters], tmp_path)
    code, checks, shown = run_doctor(config, tmp_path / "doctor")
    assert checks["names of nodes"]["message"] == (
        "28 GPUs on 4 nodes; every node with GPUs has an exporter, every exporter its node"
    )
    assert (code, "All checks passed" in shown) == (0, True), shown

    with serving(tmp_path, config) as served:
        # Slurm alone has these numbers as well: wait until every exporter's GPUs are known by what they measure.
        wait_until(lambda: all(exporter.scrapes >= 2 for exporter in exporters))
        sampled = {row["unit"] for row in wait_for_units(served) if row["gpu_util_ratio"] is not None}
        assert count(served) == gpus_by_sinfo(slurm) == (28, 4)
        assert sampled == {f"{node}:{index}" for node, gpus in NODES.items() for index in range(gpus)}
        sources = get_json(f"{served.url}/api/v1/sources")
        assert (sources["questions"], sources["nodes_without_exporter"]) == ([], [])


def wait_for_units(served: Served) -> list[dict[str, Any]]:
    def read() -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{served.url}/api/v1/units.parquet", timeout=30) as response:
            table = pl.read_parquet(io.BytesIO(response.read()))
        rows = table.to_dicts()
        sampled = [row for row in rows if row.get("gpu_util_ratio") is not None]
        return rows if len(sampled) == len(rows) else []

    units: list[dict[str, Any]] = []

    def are_sampled() -> bool:
        units[:] = read()
        return bool(units)

    wait_until(are_sampled)
    return units


def settings_of_questions(served: Served) -> list[str]:
    """The lines of the settings that would answer the open questions."""
    return [question["setting"] for question in get_json(f"{served.url}/api/v1/sources")["questions"]]


def test_alias_is_asked_about_and_counts_once_when_nothing_ties_it(
    slurm: SlurmServer, exporters: list[NodeExporter], tmp_path: Path
) -> None:
    exporters[2].host = "c7a9f2b1d3e4"  # a container
    targets = [exporter.address for exporter in exporters[:3]]  # and none for vgpu1
    config = settings(slurm, targets, tmp_path)
    line = f'"{exporters[2].address}" = "gpu03"'

    code, checks, shown = run_doctor(config, tmp_path / "doctor")
    check = checks[f"exporter {exporters[2].address}"]
    assert code == 1
    assert "All checks passed" not in shown
    assert not check["ok"]
    assert line in check["hint"]
    lacking = checks["nodes without an exporter"]
    assert (lacking["ok"], lacking["message"].partition(":")[0]) == (False, "gpu03, vgpu1")

    with serving(tmp_path, config) as served:
        # Until the first rounds of all sources are in, other nodes lack an exporter, too.
        wait_until(lambda: get_json(f"{served.url}/api/v1/sources")["nodes_without_exporter"] == ["gpu03", "vgpu1"])
        wait_until(lambda: settings_of_questions(served) == [line])
        assert count(served) == gpus_by_sinfo(slurm)
        assert get_json(f"{served.url}/api/v1/cluster")["open_questions"] == 3

    answered = settings(slurm, targets, tmp_path, f"[collect.node_names]\n{line}")
    _, checks, _ = run_doctor(answered, tmp_path / "answered")
    assert f"exporter {exporters[2].address}" not in checks
    with serving(tmp_path, answered) as served:
        wait_until(lambda: get_json(f"{served.url}/api/v1/sources")["nodes_without_exporter"] == ["vgpu1"])
        assert count(served) == gpus_by_sinfo(slurm)
        assert get_json(f"{served.url}/api/v1/sources")["questions"] == []


def test_gpus_count_once_when_one_exporter_is_listed_twice(
    slurm: SlurmServer, exporters: list[NodeExporter], tmp_path: Path
) -> None:
    first = exporters[0]
    twice = [
        *(exporter.address for exporter in exporters),
        f"http://127.0.0.1:{first.port}/metrics",
        f"127.0.0.1:{first.port}",
    ]
    with serving(tmp_path, settings(slurm, twice, tmp_path)) as served:
        wait_for_units(served)
        time_before = first.scrapes
        wait_until(lambda: first.scrapes > time_before + 4)
        assert count(served) == gpus_by_sinfo(slurm)
        assert get_json(f"{served.url}/api/v1/sources")["questions"] == []


def test_all_gpus_of_the_node_are_silent_when_its_exporter_at_an_address_falls_silent(
    slurm: SlurmServer, exporters: list[NodeExporter], tmp_path: Path
) -> None:
    """Seven of eight are held: the one that is free is stale, but silent are all eight."""
    targets = [f"127.0.0.1:{exporter.port}" for exporter in exporters]
    job = slurm.submit("--gpus=7", "-w", "gpu01")
    slurm.wait_for_state(job, "RUNNING")
    try:
        with serving(tmp_path, settings(slurm, targets, tmp_path)) as served:
            wait_for_units(served)
            wait_until(lambda: units_of(served)["allocated"] == 7)
            assert (units_of(served)["silent"], units_of(served)["stale"]) == (0, 0)
            exporters[0].is_down = True
            wait_until(lambda: units_of(served)["silent"] > 0)
            assert (units_of(served)["silent"], units_of(served)["stale"]) == (8, 1)
            nodes = {node["node"]: node["is_stale"] for node in get_json(f"{served.url}/api/v1/nodes")}
            assert nodes == {"gpu01": True, "gpu02": False, "gpu03": False, "vgpu1": False}
            exporters[0].is_down = False
            wait_until(lambda: units_of(served)["silent"] == 0)
        exporters[0].is_down = True
        with serving(tmp_path, settings(slurm, targets, tmp_path)) as served:  # which has never heard it
            wait_until(lambda: units_of(served)["silent"] == 8)
    finally:
        slurm.cancel_all()


def units_of(served: Served) -> dict[str, int]:
    """The summary's units by state."""
    counts: dict[str, int] = get_json(f"{served.url}/api/v1/cluster")["units"]
    return counts
