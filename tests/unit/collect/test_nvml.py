"""Readings were recorded on an H200 (driver 580): idle, a bf16 matrix product, copies to the GPU, two clients of MPS."""

import json
import os
import pwd
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from clusterscape.collect.nvml import (
    NvmlCollector,
    Process,
    find_problem,
    inventory_of,
    labels_of,
    queue_of,
    read_process,
    samples_of,
)
from clusterscape.collect.nvml_device import MachineReading, NvmlDevices, UnitReading
from clusterscape.errors import SourceError
from clusterscape.model import (
    ALIASES,
    AllocationSource,
    InventoryObserved,
    NodeId,
    NodeState,
    Observation,
    QueueObserved,
    ScrapeObserved,
    UnitKind,
    UnixMs,
    WorkloadKind,
)
from clusterscape.settings import NvmlSettings

NODE = NodeId("ws1")
NOW = UnixMs(1_794_734_900_000)
RECORDED = json.loads(Path(__file__).with_name("nvml_h200.json").read_text())


def recorded(name: str) -> MachineReading:
    reading = RECORDED[name]
    units = tuple(UnitReading(**{**unit, "pids": tuple(unit["pids"])}) for unit in reading["units"])
    return MachineReading(monotonic_s=reading["monotonic_s"], driver_version=reading["driver_version"], units=units)


def canonical(values: dict[str, float]) -> dict[str, float]:
    return {ALIASES[name].metric.name: value * ALIASES[name].scale for name, value in values.items()}


class RecordedDevices(NvmlDevices):
    """Returns recorded readings in turn."""

    def __init__(self, *readings: MachineReading | SourceError) -> None:
        super().__init__()
        self._readings = list(readings)

    def read(self) -> MachineReading:
        reading = self._readings.pop(0)
        if isinstance(reading, SourceError):
            raise reading
        return reading


def process(pid: int) -> Process:
    return Process(pid=pid, command=f"python3 train_{pid}.py", user="ann", started_at=UnixMs(NOW - pid))


def collector(*readings: MachineReading | SourceError) -> NvmlCollector:
    return NvmlCollector(NvmlSettings(), lambda: NOW, NODE, devices=RecordedDevices(*readings), process_of=process)


async def poll(collecting: NvmlCollector) -> Sequence[Observation]:
    return [observation async for observation in collecting.poll(NOW)]


def test_values_are_canonical_when_the_gpu_computes() -> None:
    result = canonical(samples_of(recorded("matmul").units[0], None, 0.0))
    assert result["gpu_util_ratio"] == 1.0
    assert result["power_watts"] == pytest.approx(682.9, abs=0.1)
    assert result["power_limit_watts"] == 700.0
    assert result["energy_joules"] == pytest.approx(8_434.37)
    assert result["memory_total_bytes"] == 143_771 * 2**20
    assert result["memory_used_bytes"] + result["memory_free_bytes"] + result["memory_reserved_bytes"] == pytest.approx(
        result["memory_total_bytes"], rel=1e-6
    )
    assert result["sm_clock_hertz"] == 1455e6
    assert result["gpu_temperature_celsius"] == 59
    assert result["memory_temperature_celsius"] == 46
    assert result["tensor_active_ratio"] == pytest.approx(0.9357, abs=1e-4)
    assert result["sm_active_ratio"] == pytest.approx(0.9641, abs=1e-4)
    assert result["power_throttle_seconds"] == pytest.approx(7.749, abs=1e-3)
    assert result["ecc_dbe_volatile_count"] == 0


def test_every_value_is_known_and_possible_when_recorded() -> None:
    for name in RECORDED:
        for source, value in samples_of(recorded(name).units[0], None, 0.0).items():
            metric, scale = ALIASES[source].metric, ALIASES[source].scale
            assert metric.lower <= value * scale <= (metric.upper or float("inf")), source


def test_pcie_traffic_is_in_bytes_when_data_is_copied_to_the_gpu() -> None:
    result = canonical(samples_of(recorded("copy").units[0], None, 0.0))
    # The program measured 55.4 GB/s; link headers are added.
    assert 55.4e9 < result["pcie_rx_bytes_per_second"] < 60e9


def test_power_falls_back_when_the_instant_value_is_not_offered() -> None:
    gpu = UnitReading(index=0, numbers={"power_average_mw": 90_000.0, "power_usage_mw": 80_000.0})
    assert samples_of(gpu, None, 0.0) == {"nvml_power_watts": 80.0}
    assert samples_of(replace(gpu, numbers={"power_average_mw": 90_000.0}), None, 0.0) == {"nvml_power_watts": 90.0}
    assert samples_of(replace(gpu, numbers={}), None, 0.0) == {}


def test_nvlink_traffic_is_a_rate_when_only_counters_are_offered() -> None:
    def gpu(kib: float) -> UnitReading:
        return UnitReading(index=0, numbers={"nvlink_tx_kib_total": kib})

    assert samples_of(gpu(3_000), gpu(1_000), 2.0) == {"nvml_nvlink_tx": 1_024_000.0}
    assert samples_of(gpu(10), gpu(1_000), 2.0) == {}  # the counter was reset
    assert samples_of(gpu(10), None, 0.0) == {}


MIG = MachineReading(
    monotonic_s=1.0,
    driver_version="580.1",
    units=(
        UnitReading(index=0, uuid="GPU-a", model_name="NVIDIA H200", numbers={"power_limit_mw": 700_000.0}),
        UnitReading(
            index=0,
            instance=3,
            uuid="MIG-b",
            model_name="NVIDIA H200 MIG 1g.18gb",
            mig_profile="1g.18gb",
            pci_bus_id="00000000:00:06.0",
            numbers={"memory_total_bytes": 18 * 2.0**30},
            pids=(11,),
        ),
        UnitReading(index=1, uuid="GPU-c", model_name="NVIDIA H200", pids=()),
    ),
)


def test_mig_instances_are_units_of_their_gpu_when_mig_is_on() -> None:
    observed = inventory_of(MIG, NODE, NOW)
    gpu, instance, _ = observed.units
    assert (gpu.id, gpu.kind, gpu.power_limit_watts) == ("ws1:0", UnitKind.GPU, 700.0)
    assert (instance.id, instance.kind, instance.parent) == ("ws1:0/3", UnitKind.MIG, "ws1:0")
    assert (instance.mig_profile, instance.memory_bytes) == ("1g.18gb", 18 * 2**30)
    assert observed.nodes[0].gpu_count == 2
    assert observed.nodes[0].state is NodeState.MIXED
    assert queue_of(MIG, {11: process(11)}, NODE, NOW).allocations[0].unit == "ws1:0/3"
    labels = labels_of(MIG.units[1], NODE, "580.1")
    assert (labels["gpu"], labels["GPU_I_ID"], labels["GPU_I_PROFILE"], labels["UUID"]) == (
        "0",
        "3",
        "1g.18gb",
        "MIG-b",
    )


async def test_samples_inventory_and_processes_are_yielded_in_turn_when_polled() -> None:
    collecting = collector(recorded("matmul_before"), recorded("matmul"), recorded("idle"))
    scraped, inventory, queue = await poll(collecting)
    assert isinstance(scraped, ScrapeObserved)
    assert isinstance(inventory, InventoryObserved)
    assert isinstance(queue, QueueObserved)
    (scrape,) = scraped.scrapes
    assert scraped.statuses[0].is_ok
    assert scrape.node == NODE
    labels = scrape.table.series[0].labels
    assert (labels["gpu"], labels["modelName"], labels["Hostname"]) == ("0", "NVIDIA H200", "ws1")
    assert (labels["pci_bus_id"], labels["driver_version"]) == ("00000000:00:06.0", "580.159.04")
    assert inventory.nodes[0].state is NodeState.ALLOCATED
    assert inventory.nodes[0].driver_version == "580.159.04"
    assert inventory.units[0].memory_bytes == 143_771 * 2**20
    (workload,) = queue.workloads
    assert (workload.id, workload.user, workload.name) == ("local:420", "ann", "python3 train_420.py")
    assert (workload.kind, workload.gpus_requested, workload.nodes) == (WorkloadKind.SESSION, 1, ("ws1",))
    (held,) = queue.allocations
    assert (held.unit, held.from_at, held.source) == ("ws1:0", NOW - 420, AllocationSource.PROCESS)
    again = (await poll(collecting))[0]
    assert isinstance(again, ScrapeObserved)
    assert again.scrapes[0].table is scrape.table
    assert list(again.scrapes[0].series) == list(scrape.series)
    _, idle, empty = await poll(collecting)
    assert isinstance(idle, InventoryObserved)
    assert isinstance(empty, QueueObserved)
    assert idle.nodes[0].state is NodeState.IDLE
    assert not empty.workloads
    assert empty.is_complete
    await collecting.close()


async def test_the_mps_server_is_not_a_user_when_its_clients_are_listed() -> None:
    reading = recorded("mps")
    server, *clients = sorted(reading.units[0].pids, key=lambda pid: pid != 497)
    processes = {pid: process(pid) for pid in clients} | {server: Process(pid=server, command="nvidia-cuda-mps-server")}
    observed = queue_of(reading, processes, NODE, NOW)
    assert {workload.id for workload in observed.workloads} == {f"local:{pid}" for pid in clients}
    assert len(clients) == 2


async def test_first_observation_is_the_start_when_the_start_is_unknown() -> None:
    devices = RecordedDevices(recorded("matmul_before"), recorded("matmul"))
    collecting = NvmlCollector(
        NvmlSettings(), lambda: NOW, NODE, devices=devices, process_of=lambda pid: Process(pid=pid)
    )
    starts = []
    for now in (NOW, UnixMs(NOW + 5_000)):
        *_, queue = [observation async for observation in collecting.poll(now)]
        assert isinstance(queue, QueueObserved)
        assert queue.workloads[0].name is None
        starts.append(queue.allocations[0].from_at)
    assert starts == [NOW, NOW]


async def test_a_lost_gpu_is_named_and_the_others_go_on_when_it_fails() -> None:
    reading = recorded("matmul")
    lost = UnitReading(index=1, uuid="GPU-lost", model_name="NVIDIA H200", problem="GPU is lost")
    collecting = collector(replace(reading, units=(*reading.units, lost)))
    scraped, inventory, _ = await poll(collecting)
    assert isinstance(scraped, ScrapeObserved)
    assert isinstance(inventory, InventoryObserved)
    assert not scraped.statuses[0].is_ok
    assert scraped.statuses[0].message == "GPU 1 cannot be read: GPU is lost"
    assert len(scraped.scrapes[0].series) > 20
    assert [unit.id for unit in inventory.units] == ["ws1:0", "ws1:1"]
    assert find_problem(reading) is None


async def test_a_status_with_a_hint_is_yielded_when_there_is_no_driver() -> None:
    collecting = collector(SourceError("the NVIDIA driver is not loaded", hint="Load it."), recorded("idle"))
    (observed,) = await poll(collecting)
    assert isinstance(observed, ScrapeObserved)
    assert not observed.scrapes
    assert (observed.statuses[0].is_ok, observed.statuses[0].hint) == (False, "Load it.")
    (status,) = await collecting.check()
    assert status.message == "1 × NVIDIA H200, driver 580.159.04"


async def test_this_machine_is_read_or_reports_why_not_when_probed() -> None:
    collecting = NvmlCollector(NvmlSettings(), lambda: NOW, NODE)
    (status,) = await collecting.check()
    observed = await poll(collecting)
    await collecting.close()
    assert isinstance(observed[0], ScrapeObserved)
    assert observed[0].statuses[0].is_ok == status.is_ok == (len(observed) == 3)
    assert status.is_ok or status.hint


def test_user_command_and_start_are_reported_when_a_process_runs() -> None:
    before_ms = time.time_ns() // 1_000_000
    command = ["/bin/sh", "-c", "echo up; read answer"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        result = read_process(child.pid)
    assert result.command == "sh -c echo up; read answer"
    assert result.user == pwd.getpwuid(os.geteuid()).pw_name
    assert result.started_at is not None
    assert abs(result.started_at - before_ms) < 10_000  # the kernel knows its boot time to the second


def test_only_the_pid_is_reported_when_the_process_has_ended() -> None:
    assert read_process(2**22 + 1) == Process(pid=2**22 + 1)


def test_process_name_replaces_the_command_when_there_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"")
    (folder / "comm").write_text("kworker\n")
    (folder / "stat").write_text("7 (odd) name) S damaged")
    result = read_process(7, tmp_path)
    assert result.command == "[kworker]"
    assert result.started_at is None


def test_the_start_is_counted_from_boot_when_the_name_has_brackets(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"/usr/bin/python3\0train.py\0--name\0caf\xe9\0")
    (folder / "stat").write_text(f"7 (a) (b c) S {'0 ' * 18}{250 * os.sysconf('SC_CLK_TCK')} 0")
    (tmp_path / "stat").write_text("cpu 1 2 3\nbtime 1700000000\n")
    result = read_process(7, tmp_path)
    assert result.started_at == 1_700_000_250_000
    assert result.command == "python3 train.py --name caf\ufffd"
