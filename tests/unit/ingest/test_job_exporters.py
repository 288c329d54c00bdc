"""Samples of jobs and whole nodes, as the exporters of HPC sites write them."""

import pytest

from clusterscape.collect.exposition import ExpositionParser
from clusterscape.ingest.drops import DropReason, Drops
from clusterscape.ingest.exporter_labels import find_job_part, find_place
from clusterscape.ingest.normalize import Normalized, Normalizer
from clusterscape.model import NodeId, UnixMs
from clusterscape.settings.limits import SourceLimits

NOW = UnixMs(1_700_000_000_000)

# The exporters of jobstats (one label set per job, step and task) and of the Ohio Supercomputer Center (one cgroup path).
PLAZONIC = """
cgroup_cpu_total_seconds{jobid="4711",step="",task=""} 120.5
cgroup_cpu_user_seconds{jobid="4711",step="",task=""} 100.25
cgroup_cpus{jobid="4711",step="",task=""} 4
cgroup_memory_rss_bytes{jobid="4711",step="",task=""} 1.073741824e+09
cgroup_memory_shmem_bytes{jobid="4711",step="",task=""} 4096
cgroup_memory_total_bytes{jobid="4711",step="",task=""} 4.294967296e+09
cgroup_memory_fail_count{jobid="4711",step="",task=""} 2
cgroup_cpu_total_seconds{jobid="4711",step="0",task="1"} 60
cgroup_cpu_total_seconds{jobid="s0123456789ABC",step="",task=""} 7
"""
TREYDOCK = """
cgroup_cpu_total_seconds{cgroup="/slurm/uid_20821/job_12"} 3.5
cgroup_cpus{cgroup="/slurm/uid_20821/job_12"} 2
cgroup_memory_rss_bytes{cgroup="/system.slice/slurmstepd.scope/job_13"} 311296
cgroup_cpu_total_seconds{cgroup="/system.slice/slurmstepd.scope/job_13/step_0"} 1
cgroup_cpu_total_seconds{cgroup="/user.slice/user-20821.slice"} 9
cgroup_memory_total_bytes{cgroup="/slurm/uid_20821/job_12"} 9.223371968135295e+18
"""
NODE = """
node_memory_MemTotal_bytes 8.589934592e+09
node_cpu_seconds_total{cpu="0",mode="user"} 10
node_cpu_seconds_total{cpu="0",mode="idle"} 100
node_cpu_seconds_total{cpu="1",mode="user"} 20
node_cpu_seconds_total{cpu="1",mode="system"} 5
node_cpu_seconds_total{cpu="1",mode="iowait"} 1
node_network_receive_bytes_total{device="eth0"} 1000
node_network_receive_bytes_total{device="ib0"} 500
node_network_receive_bytes_total{device="lo"} 77
node_disk_read_bytes_total{device="nvme0n1"} 40
node_disk_read_bytes_total{device="dm-0"} 40
node_infiniband_port_data_received_bytes_total{device="mlx5_0",port="1"} 3
node_infiniband_port_data_received_bytes_total{device="mlx5_1",port="1"} 4
"""
CARD = 'minor_number="0",ordinal="0",name="NVIDIA A100-SXM4-80GB",uuid="GPU-1"'
NVIDIA = f"""
nvidia_gpu_duty_cycle{{{CARD}}} 97
nvidia_gpu_memory_used_bytes{{{CARD}}} 1024
nvidia_gpu_memory_total_bytes{{{CARD}}} 2048
nvidia_gpu_power_usage_milliwatts{{{CARD}}} 300500
nvidia_gpu_sm_util_percent{{{CARD}}} 0.5
nvidia_gpu_ecc_errors{{{CARD},error="uncorrected",counter="volatile"}} 3
nvidia_gpu_ecc_errors{{{CARD},error="corrected",counter="aggregate"}} 8
"""


def new_parser() -> ExpositionParser:
    return ExpositionParser("http://gpu-001:9306/metrics", NodeId("gpu-001"))


class Exporter:
    """One exporter on gpu-001, scraped several times by one normalizer."""

    def __init__(self, normalizer: Normalizer | None = None) -> None:
        self.normalizer = normalizer or Normalizer(Drops())
        self.parser = new_parser()
        self.now = NOW

    def scrape(self, text: str) -> Normalized:
        self.now = UnixMs(self.now + 15_000)
        parsed = self.parser.parse(text.lstrip().encode(), fetched_at=self.now)
        return self.normalizer.normalize([parsed], now_ms=self.now)


def values(normalized: Normalized) -> dict[tuple[str, str], float]:
    batch = normalized.batch
    return {
        (batch.units.values[unit], batch.metrics.values[metric]): value
        for unit, metric, value in zip(batch.unit, batch.metric, batch.value.tolist(), strict=True)
    }


def holders(normalized: Normalized) -> dict[str, tuple[str, ...]]:
    labels = {} if normalized.facts is None else normalized.facts.labels
    return {str(unit): tuple(map(str, names)) for unit, names in labels.items()}


def test_samples_are_of_the_job_on_its_node_when_the_labels_name_the_job() -> None:
    normalized = Exporter().scrape(PLAZONIC)

    assert values(normalized) == {
        ("slurm:4711@gpu-001", "job_cpu_seconds"): 120.5,
        ("slurm:4711@gpu-001", "job_cpu_user_seconds"): 100.25,
        ("slurm:4711@gpu-001", "job_cores_count"): 4,
        ("slurm:4711@gpu-001", "job_memory_rss_bytes"): 2.0**30,
        ("slurm:4711@gpu-001", "job_memory_shared_bytes"): 4096,
        ("slurm:4711@gpu-001", "job_memory_limit_bytes"): 2.0**32,
        ("slurm:4711@gpu-001", "job_memory_failures_count"): 2,
        ("slurm:s0123456789ABC@gpu-001", "job_cpu_seconds"): 7,
    }
    assert normalized.dropped == {DropReason.PART_OF_JOB: 1}
    assert not holders(normalized)


def test_samples_are_of_the_job_when_the_path_of_the_cgroup_names_it() -> None:
    normalized = Exporter().scrape(TREYDOCK)

    assert values(normalized) == {
        ("slurm:12@gpu-001", "job_cpu_seconds"): 3.5,
        ("slurm:12@gpu-001", "job_cores_count"): 2,
        ("slurm:13@gpu-001", "job_memory_rss_bytes"): 311296,
    }
    assert normalized.dropped == {DropReason.PART_OF_JOB: 1, DropReason.NO_JOB: 1, DropReason.BLANK: 1}


def test_devices_and_processors_are_summed_when_a_number_is_of_the_whole_node() -> None:
    normalized = Exporter().scrape(NODE)

    assert values(normalized) == {
        ("gpu-001", "node_memory_total_bytes"): 2.0**33,
        ("gpu-001", "node_cpu_busy_seconds"): 35,
        ("gpu-001", "node_cpu_idle_seconds"): 101,
        ("gpu-001", "node_network_received_bytes"): 1500,
        ("gpu-001", "node_disk_read_bytes"): 40,
        ("gpu-001", "node_infiniband_received_bytes"): 7,
    }
    assert normalized.dropped == {DropReason.UNCOUNTED_DEVICE: 2, DropReason.MERGED: 5}


def test_values_of_gpus_are_canonical_when_the_exporter_of_jobstats_reports_them() -> None:
    normalized = Exporter().scrape(NVIDIA)

    assert values(normalized) == {
        ("gpu-001:0", "gpu_util_ratio"): pytest.approx(0.97),
        ("gpu-001:0", "memory_used_bytes"): 1024,
        ("gpu-001:0", "memory_total_bytes"): 2048,
        ("gpu-001:0", "power_watts"): pytest.approx(300.5),
        ("gpu-001:0", "sm_active_ratio"): 0.5,
        ("gpu-001:0", "ecc_dbe_volatile_count"): 3,
        ("gpu-001:0", "ecc_sbe_aggregate_count"): 8,
    }
    assert normalized.facts is not None
    assert [unit.id for unit in normalized.facts.units] == ["gpu-001:0"]


def test_holder_follows_the_job_number_when_only_its_value_changes() -> None:
    exporter = Exporter()

    first = exporter.scrape(f"nvidia_gpu_jobId{{{CARD}}} 4711\n")
    same = exporter.scrape(f"nvidia_gpu_jobId{{{CARD}}} 4711\n")
    second = exporter.scrape(f"nvidia_gpu_jobId{{{CARD}}} 4712\n")
    free = exporter.scrape(f"nvidia_gpu_jobId{{{CARD}}} 0\n")

    assert holders(first) == {"gpu-001:0": ("slurm:4711",)}
    assert not holders(same)
    assert holders(second) == {"gpu-001:0": ("slurm:4712",)}
    assert holders(free) == {"gpu-001:0": ()}


def test_holder_is_that_of_the_label_when_newer_exporters_name_the_job() -> None:
    exporter = Exporter()

    held = exporter.scrape(f'nvidia_gpu_duty_cycle{{{CARD},jobid="4711",userid="1000"}} 5\n')
    free = exporter.scrape(f'nvidia_gpu_duty_cycle{{{CARD},jobid="0",userid="0"}} 0\n')

    assert holders(held) == {"gpu-001:0": ("slurm:4711",)}
    assert holders(free) == {"gpu-001:0": ()}


def test_mig_instance_is_not_taken_for_its_gpu_when_its_number_is_not_reported() -> None:
    labels = {"minor_number": "0", "uuid": "MIG-1"}

    assert find_place(labels, NodeId("n1")) is DropReason.NO_GPU
    assert find_place({**labels, "GPU_I_ID": "7"}, NodeId("n1")) != DropReason.NO_GPU


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"jobid": "5", "instance": "n7.site.example:9306"}, ("n7", "slurm:5@n7")),
        ({"cgroup": "/slurm_n7/uid_0/job_5", "instance": "n7:9306"}, ("n7", "slurm:5@n7")),
        (
            {"cgroup": "/system.slice/slurmstepd.scope/sABCDEFGH01234", "instance": "n7"},
            ("n7", "slurm:sABCDEFGH01234@n7"),
        ),
        ({"jobid": "5"}, DropReason.NO_NODE),
        ({"jobid": "x@y", "instance": "n7"}, DropReason.NO_JOB),
        ({"cgroup": "/slurm/uid_0/job_5/step_batch", "instance": "n7"}, DropReason.PART_OF_JOB),
    ],
)
def test_part_of_a_job_is_found_when_labels_name_it(labels: dict[str, str], expected: object) -> None:
    assert find_job_part(labels, None) == expected


def test_new_jobs_are_refused_when_a_node_reports_more_than_the_limit() -> None:
    limits = SourceLimits(new_holders_per_unit_per_day=2)
    exporter = Exporter(Normalizer(Drops(), limits=limits))

    normalized = exporter.scrape("".join(f'cgroup_cpus{{jobid="{number}"}} 1\n' for number in range(1, 5)))

    assert len(normalized.batch) == 2
    assert normalized.dropped == {DropReason.TOO_MANY_UNITS: 2}


def test_codes_of_ended_jobs_are_discarded_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterscape.ingest.normalize.MOST_JOB_CODES", 10)
    exporter = Exporter()
    for number in range(1, 12):
        exporter.now = UnixMs(exporter.now + 1_800_000)
        exporter.parser = new_parser()  # as after many stale series
        exporter.scrape(f'cgroup_cpus{{jobid="{number}"}} 1\n')

    normalized = exporter.scrape('cgroup_cpus{jobid="99"} 8\n')

    assert values(normalized) == {("slurm:99@gpu-001", "job_cores_count"): 8}
    assert normalized.batch.units.values == ["slurm:11@gpu-001", "slurm:99@gpu-001"]
