"""Settings of what is collected: exporters, schedulers, a Prometheus, own GPUs."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from clusterscape.settings.section import Section


class DcgmSettings(Section):
    """dcgm-exporters to scrape."""

    targets: tuple[str, ...] = Field(
        (), description="Exporters as host, host:port, URL, or a range such as gpu-[001-128]:9400."
    )
    targets_file: Path | None = Field(None, description="File with one target a line; read again when it changes.")
    dns: str | None = Field(
        None, description="DNS name whose addresses are all exporters (headless service), with port."
    )
    interval_s: float = Field(15.0, gt=0, description="Seconds between scrapes.")
    timeout_s: float = Field(5.0, gt=0, description="Seconds after which a target counts as dead.")
    concurrency: int = Field(256, ge=1, description="Targets asked at the same time.")
    jitter_s: float = Field(1.0, ge=0, description="Each target starts at its own fixed offset within so many seconds.")


class SlurmSettings(Section):
    """The Slurm whose nodes and jobs are shown."""

    mode: Literal["off", "cli", "rest"] = Field(
        "off", description="`cli` runs squeue, sinfo, sacct; `rest` asks slurmrestd."
    )
    url: str | None = Field(None, description="slurmrestd: http://host:port or unix:/path/to/socket.")
    user: str | None = Field(None, description="slurmrestd: X-SLURM-USER-NAME.")
    token: str | None = Field(None, repr=False, description="slurmrestd: X-SLURM-USER-TOKEN (JWT).")
    conf: Path | None = Field(None, description="SLURM_CONF for the commands; default: theirs.")
    interval_s: float = Field(
        15.0, gt=0, description="Seconds between looks at the queue; shorter than the shortest job."
    )
    timeout_s: float = Field(20.0, gt=0, description="Seconds after which an answer counts as missing.")
    history_days: float = Field(7.0, ge=0, description="Days of accounting read at the start.")


class PrometheusSettings(Section):
    """A Prometheus-compatible server that already scrapes dcgm-exporter."""

    url: str | None = Field(None, description="Address, such as http://127.0.0.1:9090.")
    token: str | None = Field(None, repr=False, description="Bearer token.")
    matcher: str = Field(
        '{__name__=~"DCGM_.*"}',
        description="Selector of the exporter's series; narrow it to a job or a cluster label.",
    )
    interval_s: float = Field(15.0, gt=0, description="Seconds between reads.")
    timeout_s: float = Field(10.0, gt=0, description="Seconds after which an answer counts as missing.")


class NvmlSettings(Section):
    """This machine's own GPUs."""

    enabled: bool = Field(False, description="Read this machine's GPUs through NVML.")
    interval_s: float = Field(5.0, gt=0, description="Seconds between reads.")


class KubernetesSettings(Section):
    """The Kubernetes cluster whose nodes, pods and queues are shown."""

    mode: Literal["off", "in_cluster", "kubeconfig", "url"] = Field(
        "off", description="`in_cluster`: this pod's service account; `kubeconfig`: a file; `url`: address and token."
    )
    kubeconfig: Path = Field(Path("~/.kube/config"), description="File of mode `kubeconfig`.")
    context: str | None = Field(None, description="Context of that file; by default its current one.")
    url: str | None = Field(None, description="Mode `url`: address of the API server, such as https://10.0.0.1:6443.")
    token: str | None = Field(None, repr=False, description="Mode `url`: bearer token.")
    ca_file: Path | None = Field(None, description="Mode `url`: certificates to trust (PEM); by default the system's.")
    interval_s: float = Field(15.0, gt=0, description="Seconds between looks at what the watches have told.")
    timeout_s: float = Field(20.0, gt=0, description="Seconds after which an answer counts as missing.")
    gpu_resources: tuple[str, ...] = Field(
        ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*", "amd.com/gpu", "gpu.intel.com/i915"),
        description="Extended resources that are GPUs or parts of them; `*` is a glob.",
    )
    device_drivers: tuple[str, ...] = Field(
        ("gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"),
        description="Drivers of dynamic resource allocation (DRA) whose devices are GPUs.",
    )
    user_labels: tuple[str, ...] = Field(
        ("clusterscape/user", "user", "owner", "hub.jupyter.org/username"),
        description="Labels or annotations of a workload or its pods that name its user; the first that is there.",
    )
    project_labels: tuple[str, ...] = Field(
        ("clusterscape/project",), description="Those that name its project; without one it is the namespace."
    )
    experiment_labels: tuple[str, ...] = Field(
        ("clusterscape/experiment", "experiment"), description="Those that name its experiment."
    )
    queue_labels: tuple[str, ...] = Field(
        ("kueue.x-k8s.io/queue-name", "volcano.sh/queue-name", "scheduling.volcano.sh/queue-name"),
        description="Those that name its queue.",
    )
    device_annotations: tuple[str, ...] = Field(
        ("volcano.sh/gpu-index", "hami.io/vgpu-devices-allocated", "ALIYUN_COM_GPU_MEM_IDX"),
        description="Annotations of pods that name their GPUs, by index (`0,1`) or by UUID anywhere in the text.",
    )
    queue_prefix: str = Field(
        "k8s/", description="Before a queue's name, so that it is not taken for a Slurm partition of the same name."
    )


class CollectSettings(Section):
    """What is collected, from where."""

    shard: str = Field(
        "1/1",
        pattern=r"^[1-9]\d*/[1-9]\d*$",
        description="`2/3`: this is the second of three collectors; each scrapes the nodes that a hash gives it.",
    )

    node_names: dict[str, str] = Field(
        {},
        description="Nodes of exporters that cannot be told by name, by `host:port` or by the host name they give; "
        "`doctor` proposes lines.",
    )

    dcgm: DcgmSettings = DcgmSettings()
    slurm: SlurmSettings = SlurmSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
    nvml: NvmlSettings = NvmlSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
