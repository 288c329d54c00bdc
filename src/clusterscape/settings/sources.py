"""Settings of collectors: dcgm-exporter, Slurm, Kubernetes, Prometheus, NVML."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from clusterscape.settings.section import Section


class DcgmSettings(Section):
    """Exporters to scrape: of GPUs, jobs (cgroups) and nodes, recognized by the names of their metrics."""

    targets: tuple[str, ...] = Field(
        (), description="Exporters as host, host:port, URL, or a range such as gpu-[001-128]:9400."
    )
    targets_file: Path | None = Field(None, description="File with one target per line; reloaded when it changes.")
    dns: str | None = Field(None, description="DNS name that resolves to all exporters (headless service), with port.")
    interval_s: float = Field(15.0, gt=0, description="Seconds between scrapes.")
    timeout_s: float = Field(5.0, gt=0, description="Scrape timeout, seconds.")
    concurrency: int = Field(256, ge=1, description="Concurrent scrapes.")
    jitter_s: float = Field(
        1.0, ge=0, description="Scrapes are spread over this many seconds, each target at a fixed offset."
    )


class SlurmSettings(Section):
    """Slurm: nodes, jobs and accounting."""

    mode: Literal["off", "cli", "rest"] = Field(
        "off", description="`cli` runs squeue, sinfo and sacct; `rest` calls slurmrestd."
    )
    url: str | None = Field(None, description="slurmrestd: http://host:port or unix:/path/to/socket.")
    user: str | None = Field(None, description="slurmrestd: X-SLURM-USER-NAME.")
    token: str | None = Field(None, repr=False, description="slurmrestd: X-SLURM-USER-TOKEN (JWT).")
    conf: Path | None = Field(None, description="`SLURM_CONF` of the commands; by default Slurm's own.")
    interval_s: float = Field(
        15.0, gt=0, description="Seconds between polls of the queue; choose less than the shortest job."
    )
    timeout_s: float = Field(20.0, gt=0, description="Request timeout, seconds.")
    history_days: float = Field(7.0, ge=0, description="Days of accounting data to read at startup.")


class PrometheusSettings(Section):
    """A Prometheus-compatible server that already scrapes the site's exporters."""

    url: str | None = Field(None, description="URL, such as http://127.0.0.1:9090.")
    token: str | None = Field(None, repr=False, description="Bearer token.")
    matcher: str = Field(
        '{__name__=~"DCGM_.*|nvidia_gpu_.*|cgroup_(cpus|cpu_.*_seconds|mem.*)|gpfs_.*'
        "|node_(memory_(Mem|Swap).*|disk_(read|written)_bytes_total|network_(receive|transmit)_bytes_total"
        '|network_receive_errs_total|infiniband_.*_total|nfs_requests_total)"}',
        description="Series selector; add a job or cluster label to narrow it. The default reads dcgm-exporter, jobstats' "
        "NVIDIA exporter, both cgroup exporters, GPFS, and node_exporter except its series per processor.",
    )
    interval_s: float = Field(15.0, gt=0, description="Seconds between polls.")
    timeout_s: float = Field(10.0, gt=0, description="Request timeout, seconds.")


class NvmlSettings(Section):
    """The GPUs of this machine."""

    enabled: bool = Field(False, description="Read the GPUs of this machine through NVML.")
    interval_s: float = Field(5.0, gt=0, description="Seconds between polls.")


class KubernetesSettings(Section):
    """Kubernetes: nodes, pods and queues."""

    mode: Literal["off", "in_cluster", "kubeconfig", "url"] = Field(
        "off", description="`in_cluster`: service account of this pod; `kubeconfig`: a file; `url`: URL and token."
    )
    kubeconfig: Path = Field(Path("~/.kube/config"), description="Mode `kubeconfig`: path of the file.")
    context: str | None = Field(None, description="Mode `kubeconfig`: context; by default the current one.")
    url: str | None = Field(None, description="Mode `url`: URL of the API server, such as https://10.0.0.1:6443.")
    token: str | None = Field(None, repr=False, description="Mode `url`: bearer token.")
    ca_file: Path | None = Field(
        None, description="Mode `url`: CA certificates to trust (PEM); by default the system's."
    )
    interval_s: float = Field(15.0, gt=0, description="Seconds between observations of the watched objects.")
    timeout_s: float = Field(20.0, gt=0, description="Request timeout, seconds.")
    gpu_resources: tuple[str, ...] = Field(
        ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*", "amd.com/gpu", "gpu.intel.com/i915"),
        description="Extended resources that are GPUs or GPU slices; `*` is a glob.",
    )
    device_drivers: tuple[str, ...] = Field(
        ("gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"),
        description="Drivers of dynamic resource allocation (DRA) whose devices are GPUs.",
    )
    user_labels: tuple[str, ...] = Field(
        ("clusterscape/user", "user", "owner", "hub.jupyter.org/username"),
        description="Labels or annotations of a workload or its pods with the user; the first that is set.",
    )
    project_labels: tuple[str, ...] = Field(
        ("clusterscape/project",), description="Labels or annotations with the project; by default the namespace."
    )
    experiment_labels: tuple[str, ...] = Field(
        ("clusterscape/experiment", "experiment"), description="Labels or annotations with the experiment."
    )
    queue_labels: tuple[str, ...] = Field(
        ("kueue.x-k8s.io/queue-name", "volcano.sh/queue-name", "scheduling.volcano.sh/queue-name"),
        description="Labels or annotations with the queue.",
    )
    device_annotations: tuple[str, ...] = Field(
        ("volcano.sh/gpu-index", "hami.io/vgpu-devices-allocated", "ALIYUN_COM_GPU_MEM_IDX"),
        description="Pod annotations with the assigned GPUs: indices (`0,1`), or UUIDs anywhere in the text.",
    )
    queue_prefix: str = Field(
        "k8s/", description="Prefix of queue names, to tell them from Slurm partitions of the same name."
    )


class CollectSettings(Section):
    """Collectors."""

    shard: str = Field(
        "1/1",
        pattern=r"^[1-9]\d*/[1-9]\d*$",
        description="`2/3`: the second of three collectors; nodes are assigned to collectors by hash.",
    )

    node_names: dict[str, str] = Field(
        {},
        description="Node names of exporters, by `host:port` or by the host name in their metrics, where they cannot be matched "
        "automatically; `doctor` proposes entries.",
    )

    dcgm: DcgmSettings = DcgmSettings()
    slurm: SlurmSettings = SlurmSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
    nvml: NvmlSettings = NvmlSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
