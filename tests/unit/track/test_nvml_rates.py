"""Rates at which values of a GPU are read, and contents of readings, with a fake driver library."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from servers.programs import need_program
from tracking.command import Command
from tracking.stub_nvml import build_stub

from clusterscape.track.listeners.nvml_reading import Part, ReadingSchedule

# In a separate process: the fake library must be loaded before any other library of its name.
READING = """\
import json, sys
from clusterscape.track.listeners.nvml_reading import Part
from clusterscape.track.listeners.nvml_reading import NvmlReader
reader = NvmlReader()
whole = Part.MEMORY | Part.STATE | Part.COUNTERS
readings = [reader.read(Part.NONE), reader.read(whole | Part.PCIE), reader.read(whole | Part.PCIE, {1})]
json.dump([[list(gpu) for gpu in reading] for reading in readings], sys.stdout)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return build_stub(need_program("gcc", "gcc"), tmp_path_factory.mktemp("stub"))


def read(library: dict[str, str], **variables: str) -> list[list[list[Any]]]:
    done = subprocess.run(
        [sys.executable, "-c", READING], env={**library, **variables}, capture_output=True, text=True, check=True
    )
    readings: list[list[list[Any]]] = json.loads(done.stdout)
    return readings


def test_expensive_values_are_read_at_their_own_rates_when_ticks_are_fast() -> None:
    schedule = ReadingSchedule(0.1)
    due = [schedule.due(1_000_000 + tick * 100_000 - (tick % 2) * 900) for tick in range(41)]  # some a little early
    counts = {part: sum(part in parts for parts in due) for part in (Part.MEMORY, Part.STATE, Part.PCIE, Part.COUNTERS)}
    assert counts == {Part.MEMORY: 9, Part.STATE: 5, Part.PCIE: 5, Part.COUNTERS: 3}
    assert due[0] == Part.MEMORY | Part.STATE | Part.PCIE | Part.COUNTERS
    later = [schedule.due(1_000_000 + tick * 100_000) for tick in range(41, 701)]
    assert sum(Part.COUNTERS in parts for parts in later) == 8 + 10  # until 20 s, and from then on every 5 s
    assert sum(Part.STATE in parts for parts in later) == 66


def test_a_value_is_due_once_when_ticks_were_left_out_or_are_slow() -> None:
    schedule = ReadingSchedule(0.1)
    assert [Part.COUNTERS in schedule.due(at) for at in (0, 5_000_000, 5_100_000, 6_000_000)] == [
        True,
        True,
        False,
        True,
    ]
    assert all(Part.COUNTERS in parts for parts in map(ReadingSchedule(5.0).due, (0, 5_000_000, 10_000_000)))
    assert Part.PCIE not in ReadingSchedule(0.01).due(0)  # its wait would cost ticks


def test_a_reading_holds_what_was_due_when_the_driver_offers_it(library: dict[str, str]) -> None:
    quick, whole, second = read(library, STUB_NVML_GPUS="2")
    assert [sorted(values) for _, values, _, _ in quick] == [
        ["gpu_util_ratio", "memory_copy_util_ratio", "power_watts"]
    ] * 2
    assert [processes for _, _, processes, _ in quick] == [None, None]
    (_, values, processes, instances), (_, others, _, _) = whole
    assert processes == []
    assert instances == []
    assert values["sm_clock_hertz"] == values["memory_clock_hertz"] == 1.5e9
    assert values["memory_used_bytes"] == 2**30
    assert values["pcie_rx_bytes_per_second"] == 200_000  # one direction of one GPU at a time
    assert not any(name.startswith(("pcie", "nvlink")) for name in others)
    ((gpu, later, _, _),) = second
    assert gpu == 1
    assert later["pcie_tx_bytes_per_second"] == 100_000
    assert later["nvlink_rx_bytes_per_second"] >= 0
    assert later["energy_joules"] >= others["energy_joules"]


def test_instances_report_memory_and_activity_when_mig_is_on(library: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "instances").write_text("0 4 3\n0 5 3\n")
    quick, whole, again = read(library, STUB_NVML_GPUS="2", STUB_NVML_MIG=str(tmp_path / "instances"))
    assert quick[0][3] == []
    assert whole[0][3] == [[4, {"memory_used_bytes": 2**20}], [5, {"memory_used_bytes": 2**20}]]
    assert again[0][3] == []  # GPU 1 has none


def test_run_gets_the_values_of_its_own_instance_when_it_has_one(
    command: Command, library: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "instances").write_text("")
    command.variables = {**library, "STUB_NVML_GPUS": "1", "STUB_NVML_MIG": str(tmp_path / "instances")}
    command.script("model.py", "import time\ntime.sleep(3)\n")
    command.script(
        "plan.csv",
        "Experiment,Workload,Devices,Collocation,File,Listeners,Params\n"
        "1,1,0,3g.40gb,model.py,nvml=10,\n1,1,0,3g.40gb,model.py,nvml=10,\n",
    )
    done = command("plan", "plan.csv", "--allow-mig")
    assert done.returncode == 0, done.stderr
    for number, run in enumerate(command.runs(), start=1):
        by_name = {metric.name: metric for metric in run.metrics if metric.scope == "mig"}
        assert {metric.unit for metric in by_name.values()} == {f"{run.about['host']}:0/{number}"}
        assert by_name["memory_used_bytes"].last == 2**20
        assert by_name["sm_active_ratio"].last == 0.25
        assert run.listeners["nvml"]["ticks"]


def test_each_rate_is_kept_when_the_existing_sampler_is_slower(command: Command, library: dict[str, str]) -> None:
    command.variables = {**library, "STUB_NVML_GPUS": "1"}
    wait = "import sys, time; time.sleep(float(sys.argv[1]))"
    with command.started("run", "-d", "0", "-l", "nvml=2", "--", "python3", "-c", wait, "60") as leader:
        time.sleep(1.0)
        assert command("run", "-d", "0", "-l", "nvml=20", "--", "python3", "-c", wait, "6").returncode == 0
        assert leader.poll() is None
    quick = command.runs()[1]
    (power,) = [metric for metric in quick.metrics if metric.name == "power_watts"]
    assert power.samples > 16  # twice a second would be twelve
