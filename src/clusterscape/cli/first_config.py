"""A first configuration: what this machine offers, and the commented file made of the answers. Asks nobody."""

import ctypes.util
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LOOK_TIMEOUT_S = 3.0
LOCAL_EXPORTER = "127.0.0.1:9400"
LOCAL_PROMETHEUS = "http://127.0.0.1:9090"

SlurmMode = Literal["off", "cli", "rest"]
KubernetesMode = Literal["off", "in_cluster", "kubeconfig"]
KUBECONFIG = Path("~/.kube/config")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a first configuration says. None or empty: this is not used."""

    cluster: str = "cluster"
    slurm: SlurmMode = "off"
    slurm_url: str | None = None
    kubernetes: KubernetesMode = "off"
    exporters: tuple[str, ...] = ()
    prometheus: str | None = None
    nvml: bool = False
    port: int = 8321
    data_dir: Path | None = None

    @property
    def has_source(self) -> bool:
        """Whether anything would be collected."""
        schedulers = self.slurm != "off" or self.kubernetes != "off"
        return schedulers or bool(self.exporters) or self.prometheus is not None or self.nvml


def look_around(environ: Mapping[str, str]) -> Answers:
    """What can be found on this machine without being told: schedulers, an exporter, a Prometheus, a driver."""
    slurm_name = _slurm_cluster_name()
    has_exporter = _answers(f"http://{LOCAL_EXPORTER}/metrics", "DCGM_")
    return Answers(
        cluster=slurm_name or "cluster",
        slurm="cli" if slurm_name else "off",
        kubernetes=_kubernetes_mode(environ),
        exporters=(LOCAL_EXPORTER,) if has_exporter else (),
        prometheus=LOCAL_PROMETHEUS if _answers(f"{LOCAL_PROMETHEUS}/api/v1/status/buildinfo", "success") else None,
        # An exporter already reads the GPUs of this machine.
        nvml=not has_exporter and ctypes.util.find_library("nvidia-ml") is not None,
    )


def _slurm_cluster_name() -> str | None:
    if not (shutil.which("squeue") and shutil.which("scontrol")):
        return None
    try:
        told = subprocess.run(
            ["scontrol", "show", "config"], capture_output=True, text=True, timeout=LOOK_TIMEOUT_S, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"^ClusterName\s*=\s*(\S+)", told, re.MULTILINE)
    return found[1] if found else None


def _kubernetes_mode(environ: Mapping[str, str]) -> KubernetesMode:
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "in_cluster"
    return "kubeconfig" if KUBECONFIG.expanduser().is_file() else "off"


def _answers(url: str, expected: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=LOOK_TIMEOUT_S) as answer:  # noqa: S310 – a constant of this file
            return expected in answer.read(65_536).decode("utf-8", "replace")
    except (OSError, ValueError, urllib.error.URLError):
        return False


def config_text(answers: Answers) -> str:
    """The whole file: what was answered, and beside it what else could be said, as comments."""
    schedulers = (_slurm(answers), _kubernetes(answers))
    parts = (_HEAD, _cluster(answers), *schedulers, _dcgm(answers), _prometheus(answers), _nvml(answers), _REST)
    return "\n".join(part.strip("\n") + "\n" for part in parts)


_HEAD = """
# Settings of ClusterScape. `clusterscape doctor --config THIS_FILE` checks every line against the real thing.
# All settings with their defaults: docs/reference/settings.md. Each can also be given in the environment, such as
# CLUSTERSCAPE_SERVER__PORT=8400; secrets are best given that way.
"""


def _cluster(answers: Answers) -> str:
    data_dir = (
        '# data_dir = "/var/lib/clusterscape"  # default: ~/.local/share/clusterscape'
        if answers.data_dir is None
        else f"data_dir = {_quoted(str(answers.data_dir))}  # one folder for the service and every command"
    )
    return f"""
cluster = {_quoted(answers.cluster)}  # its name, as the page shows it

[server]
host = "127.0.0.1"  # another address needs a way to sign in first
port = {answers.port}

[storage]
{data_dir}
# metrics = "http://victoria-metrics:8428"        # default: files under data_dir
# records = "postgresql://clusterscape@db/clusterscape"  # default: SQLite under data_dir
"""


def _slurm(answers: Answers) -> str:
    url = answers.slurm_url or "http://slurmrestd:6820"
    is_rest = answers.slurm == "rest"
    lines = (
        "# Whose jobs, on which nodes: Slurm.",
        "[collect.slurm]",
        f'mode = "{answers.slurm}"  # "cli": squeue, sinfo and sacct on this machine; "rest": slurmrestd; "off"',
        f'{"" if is_rest else "# "}url = {_quoted(url)}  # of slurmrestd, where mode is "rest"; unix:/path works, too',
        '# user = "clusterscape"  # and the token in CLUSTERSCAPE_COLLECT__SLURM__TOKEN',
    )
    return "\n".join(lines)


def _kubernetes(answers: Answers) -> str:
    return f"""
# Kubernetes, alone or beside Slurm: pods by their owner, Kueue and Volcano queues, device claims.
[collect.kubernetes]
mode = "{answers.kubernetes}"  # "in_cluster": this pod's service account; "kubeconfig": ~/.kube/config; "url"; "off"
"""


def _dcgm(answers: Answers) -> str:
    targets = json.dumps(list(answers.exporters) or ["gpu-[001-128]:9400"])
    mark = "" if answers.exporters else "# "
    return f"""
# How well each GPU works: dcgm-exporters.
{mark}[collect.dcgm]
{mark}targets = {targets}  # ranges, URLs; or targets_file, or a DNS name
# interval_s = 15
"""


def _prometheus(answers: Answers) -> str:
    mark = "" if answers.prometheus else "# "
    return f"""
# Instead of asking the exporters: a Prometheus, VictoriaMetrics, Mimir or Thanos that already scrapes them.
{mark}[collect.prometheus]
{mark}url = {_quoted(answers.prometheus or "http://prometheus:9090")}
"""


def _nvml(answers: Answers) -> str:
    mark = "" if answers.nvml else "# "
    return f"""
# Only this machine's own GPUs, through the driver.
{mark}[collect.nvml]
{mark}enabled = true
"""


_REST = """
# Who is told of violations; kinds: webhook, slack, email, alertmanager.
# [alerts.channels.operators]
# kind = "slack"
# url = "https://hooks.slack.com/services/…"
"""


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a JSON string is a TOML basic string
