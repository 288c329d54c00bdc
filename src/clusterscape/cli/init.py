"""``clusterscape init``: detects sources on this machine, asks for the rest, writes a commented settings file and checks it."""

import ctypes.util
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from clusterscape.cli.options import drop_unset
from clusterscape.cli.output import stderr
from clusterscape.errors import ConfigError

DETECT_TIMEOUT_S = 3.0
LOCAL_EXPORTER = "127.0.0.1:9400"
LOCAL_PROMETHEUS = "http://127.0.0.1:9090"

SlurmMode = Literal["off", "cli", "rest"]
KubernetesMode = Literal["off", "in_cluster", "kubeconfig"]
KUBECONFIG = Path("~/.kube/config")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteChoices:
    """The choices for a first settings file. None or empty: not used."""

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


def detect_sources(environ: Mapping[str, str]) -> SiteChoices:
    """What this machine offers: a scheduler, an exporter, a Prometheus, a GPU driver."""
    slurm_name = _slurm_cluster_name()
    has_exporter = _responds_with(f"http://{LOCAL_EXPORTER}/metrics", "DCGM_")
    return SiteChoices(
        cluster=slurm_name or "cluster",
        slurm="cli" if slurm_name else "off",
        kubernetes=_kubernetes_mode(environ),
        exporters=(LOCAL_EXPORTER,) if has_exporter else (),
        prometheus=LOCAL_PROMETHEUS
        if _responds_with(f"{LOCAL_PROMETHEUS}/api/v1/status/buildinfo", "success")
        else None,
        # An exporter already covers the GPUs of this machine.
        nvml=not has_exporter and ctypes.util.find_library("nvidia-ml") is not None,
    )


def _slurm_cluster_name() -> str | None:
    if not (shutil.which("squeue") and shutil.which("scontrol")):
        return None
    try:
        output = subprocess.run(
            ["scontrol", "show", "config"], capture_output=True, text=True, timeout=DETECT_TIMEOUT_S, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"^ClusterName\s*=\s*(\S+)", output, re.MULTILINE)
    return match[1] if match else None


def _kubernetes_mode(environ: Mapping[str, str]) -> KubernetesMode:
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "in_cluster"
    return "kubeconfig" if KUBECONFIG.expanduser().is_file() else "off"


def _responds_with(url: str, expected: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=DETECT_TIMEOUT_S) as response:  # noqa: S310 – a constant of this file
            return expected in response.read(65_536).decode("utf-8", "replace")
    except (OSError, ValueError, urllib.error.URLError):
        return False


def config_text(choices: SiteChoices) -> str:
    """The settings file: the choices, and other settings as comments."""
    schedulers = (_slurm(choices), _kubernetes(choices))
    parts = (_HEAD, _cluster(choices), *schedulers, _dcgm(choices), _prometheus(choices), _nvml(choices), _REST)
    return "\n".join(part.strip("\n") + "\n" for part in parts)


_HEAD = """
# Settings of ClusterScape. Check them with `clusterscape doctor --config THIS_FILE`.
# All settings and their defaults: docs/reference/settings.md. Each can also be set in the environment, such as
# CLUSTERSCAPE_SERVER__PORT=8400; this is the best way for secrets.
"""


def _cluster(choices: SiteChoices) -> str:
    data_dir = (
        '# data_dir = "/var/lib/clusterscape"  # default: ~/.local/share/clusterscape'
        if choices.data_dir is None
        else f"data_dir = {_quoted(str(choices.data_dir))}  # one folder for the service and every command"
    )
    return f"""
cluster = {_quoted(choices.cluster)}  # display name

[server]
host = "127.0.0.1"  # other addresses need authentication: see [auth]
port = {choices.port}

[storage]
{data_dir}
# metrics = "http://victoria-metrics:8428"        # default: files under data_dir
# records = "postgresql://clusterscape@db/clusterscape"  # default: SQLite under data_dir
"""


def _slurm(choices: SiteChoices) -> str:
    url = choices.slurm_url or "http://slurmrestd:6820"
    is_rest = choices.slurm == "rest"
    lines = (
        "# Slurm: jobs and nodes.",
        "[collect.slurm]",
        f'mode = "{choices.slurm}"  # "cli": squeue, sinfo and sacct on this machine; "rest": slurmrestd; "off"',
        f'{"" if is_rest else "# "}url = {_quoted(url)}  # slurmrestd, for mode "rest"; also unix:/path',
        '# user = "clusterscape"  # set the token in CLUSTERSCAPE_COLLECT__SLURM__TOKEN',
    )
    return "\n".join(lines)


def _kubernetes(choices: SiteChoices) -> str:
    return f"""
# Kubernetes, alone or together with Slurm: pods by owner, Kueue and Volcano queues, device claims.
[collect.kubernetes]
mode = "{choices.kubernetes}"  # "in_cluster": this pod's service account; "kubeconfig": ~/.kube/config; "url"; "off"
"""


def _dcgm(choices: SiteChoices) -> str:
    targets = json.dumps(list(choices.exporters) or ["gpu-[001-128]:9400"])
    prefix = "" if choices.exporters else "# "
    return f"""
# dcgm-exporter: GPU metrics.
{prefix}[collect.dcgm]
{prefix}targets = {targets}  # hosts, ranges or URLs; see also targets_file and dns
# interval_s = 15
"""


def _prometheus(choices: SiteChoices) -> str:
    prefix = "" if choices.prometheus else "# "
    return f"""
# Instead of dcgm-exporter: a Prometheus, VictoriaMetrics, Mimir or Thanos that already scrapes it.
{prefix}[collect.prometheus]
{prefix}url = {_quoted(choices.prometheus or "http://prometheus:9090")}
"""


def _nvml(choices: SiteChoices) -> str:
    prefix = "" if choices.nvml else "# "
    return f"""
# NVML: only the GPUs of this machine.
{prefix}[collect.nvml]
{prefix}enabled = true
"""


_REST = """
# Alert channels; kinds: webhook, slack, email, alertmanager, apprise.
# [alerts.channels.operators]
# kind = "slack"
# url = "https://hooks.slack.com/services/…"
"""


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a JSON string is also a TOML basic string


def init(
    config: Annotated[Path, typer.Option("--config", "-c", help="Settings file to write.")] = Path("clusterscape.toml"),
    cluster: Annotated[str | None, typer.Option(help="Name of the cluster.", show_default="prompt")] = None,
    slurm: Annotated[
        str | None, typer.Option(help="Slurm: cli, off, or the URL of slurmrestd.", show_default="prompt")
    ] = None,
    kubernetes: Annotated[
        str | None, typer.Option(help="Kubernetes: in_cluster, kubeconfig or off.", show_default="prompt")
    ] = None,
    exporters: Annotated[
        str | None,
        typer.Option(help="dcgm-exporter targets, comma-separated, such as gpu-[001-128]:9400.", show_default="prompt"),
    ] = None,
    prometheus: Annotated[
        str | None, typer.Option(help="URL of a Prometheus that scrapes dcgm-exporter.", show_default="prompt")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Data folder of the server.", show_default="~/.local/share/clusterscape"),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not prompt; use the options and what is detected.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    check: Annotated[bool, typer.Option(help="Check the settings afterwards, as `doctor` does.")] = True,
) -> None:
    """Write a first settings file: detects Slurm, Kubernetes, exporters and Prometheus, prompts, then checks."""
    from clusterscape.settings import StorageSettings

    if config.exists() and not force:
        raise ConfigError(
            f"{config} already exists", hint="Choose another file with --config, or overwrite it with --force."
        )
    stderr.print("Detecting sources on this machine …", style="dim")
    detected = detect_sources(os.environ)
    choices = replace(detected, **drop_unset(cluster=cluster, prometheus=prometheus or None))
    if slurm is not None:
        choices = _with_slurm(choices, slurm)
    if kubernetes is not None:
        choices = _with_kubernetes(choices, kubernetes)
    if exporters is not None:
        choices = replace(choices, exporters=parse_exporters(exporters))
    if not yes:
        prompted = {"cluster": cluster, "slurm": slurm, "kubernetes": kubernetes, "exporters": exporters}
        choices = _prompt(
            choices, {*(name for name, given in {**prompted, "prometheus": prometheus}.items() if given is None)}
        )
    if not choices.has_source:
        stderr.print("No source is configured yet: add one to the file.", style="yellow")
    folder = StorageSettings(**drop_unset(data_dir=data_dir and data_dir.expanduser().absolute())).data_dir
    _write_private(config, config_text(replace(choices, data_dir=folder)))
    stderr.print(f"Wrote {config}.", soft_wrap=True)
    if check and choices.has_source:
        from clusterscape.cli.doctor import doctor

        doctor(config)
    stderr.print(f"Next: clusterscape serve --config {config}", soft_wrap=True)


def _write_private(path: Path, text: str) -> None:
    """Write with mode 0600, as secrets may be added; an existing file keeps its permissions."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


def _prompt(choices: SiteChoices, names: set[str]) -> SiteChoices:
    """Prompt for the choices in ``names``; defaults are what was detected, a dash means none."""
    if "cluster" in names:
        choices = replace(choices, cluster=typer.prompt("Name of the cluster", default=choices.cluster, err=True))
    if "slurm" in names:
        question = "Slurm: `cli` (squeue works here), the URL of slurmrestd, or `off`"
        choices = _with_slurm(choices, typer.prompt(question, default=choices.slurm_url or choices.slurm, err=True))
    if "kubernetes" in names:
        question = "Kubernetes: `in_cluster`, `kubeconfig` (~/.kube/config), or `off`"
        choices = _with_kubernetes(choices, typer.prompt(question, default=choices.kubernetes, err=True))
    if "exporters" in names:
        choices = replace(choices, exporters=_prompt_exporters(choices))
    if "prometheus" in names and not choices.exporters:
        question = "URL of a Prometheus that scrapes dcgm-exporter (- for none)"
        answer = typer.prompt(question, default=choices.prometheus or "-", err=True)
        choices = replace(choices, prometheus=None if answer == "-" else answer)
    if choices.nvml and not choices.exporters and choices.prometheus is None:
        choices = replace(choices, nvml=typer.confirm("Read the GPUs of this machine", default=True, err=True))
    return choices


def _prompt_exporters(choices: SiteChoices) -> tuple[str, ...]:
    question = "dcgm-exporter targets, comma-separated, such as gpu-[001-128]:9400 (- for none)"
    while True:
        answer = typer.prompt(question, default=", ".join(choices.exporters) or "-", err=True)
        try:
            return () if answer == "-" else parse_exporters(answer)
        except ConfigError as error:
            stderr.print(f"{error.message}. {error.hint or ''}", style="red")


def parse_exporters(text: str) -> tuple[str, ...]:
    """Split at commas, but not inside the brackets of a range; raises ConfigError if a target is invalid."""
    from clusterscape.collect.targets import parse_target

    targets, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            targets.append("")
        else:
            targets[-1] += character
    parsed = tuple(target.strip() for target in targets if target.strip())
    for target in parsed:
        parse_target(target, "--exporters")
    return parsed


def _with_slurm(choices: SiteChoices, answer: str) -> SiteChoices:
    if answer == "off":
        return replace(choices, slurm="off", slurm_url=None)
    if answer == "cli":
        return replace(choices, slurm="cli", slurm_url=None)
    if answer.startswith(("http://", "https://", "unix:/")):
        return replace(choices, slurm="rest", slurm_url=answer)
    raise ConfigError(
        f"invalid choice for Slurm: `{answer}`",
        hint="Use `cli`, `off`, or the URL of slurmrestd: http://host:6820 or unix:/path/to/socket.",
    )


def _with_kubernetes(choices: SiteChoices, answer: str) -> SiteChoices:
    match answer:
        case "off" | "in_cluster" | "kubeconfig":
            return replace(choices, kubernetes=answer)
    raise ConfigError(
        f"invalid choice for Kubernetes: `{answer}`",
        hint="Use `in_cluster`, `kubeconfig` or `off`; to set a URL and a token, edit the file.",
    )
