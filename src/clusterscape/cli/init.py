"""``clusterscape init``: asks what there is, writes a commented configuration and has it checked."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clusterscape.cli.options import given
from clusterscape.cli.output import errors
from clusterscape.errors import ConfigError

if TYPE_CHECKING:
    from clusterscape.cli.first_config import Answers


def init(
    config: Annotated[Path, typer.Option("--config", "-c", help="File to write.")] = Path("clusterscape.toml"),
    cluster: Annotated[str | None, typer.Option(help="Name of the cluster.", show_default="asked")] = None,
    slurm: Annotated[
        str | None, typer.Option(help="cli, off, or the address of slurmrestd.", show_default="asked")
    ] = None,
    kubernetes: Annotated[str | None, typer.Option(help="in_cluster, kubeconfig or off.", show_default="asked")] = None,
    exporters: Annotated[
        str | None, typer.Option(help="dcgm-exporters, such as gpu-[001-128]:9400, with commas.", show_default="asked")
    ] = None,
    prometheus: Annotated[
        str | None, typer.Option(help="Address of a Prometheus that scrapes them.", show_default="asked")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Where the site keeps its data.", show_default="~/.local/share/clusterscape"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take what is given or found here.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    check: Annotated[bool, typer.Option(help="Check every connection afterwards, as `doctor` does.")] = True,
) -> None:
    """Write a first configuration: asks for Slurm, Kubernetes, exporters or Prometheus, then checks that they answer."""
    from clusterscape.cli.first_config import config_text, look_around
    from clusterscape.settings import StorageSettings

    if config.exists() and not force:
        raise ConfigError(f"{config} is already there", hint="Give another --config, or --force to overwrite it.")
    errors.print("Looking at what this machine offers …", style="dim")
    found = look_around(os.environ)
    told = replace(found, **given(cluster=cluster, prometheus=prometheus or None))
    if slurm is not None:
        told = _with_slurm(told, slurm)
    if kubernetes is not None:
        told = _with_kubernetes(told, kubernetes)
    if exporters is not None:
        told = replace(told, exporters=parse_exporters(exporters))
    if not yes:
        answers = {"cluster": cluster, "slurm": slurm, "kubernetes": kubernetes, "exporters": exporters}
        told = _ask(told, {*(name for name, given in {**answers, "prometheus": prometheus}.items() if given is None)})
    if not told.has_source:
        errors.print("Nothing is collected yet: name a source in the file.", style="yellow")
    folder = StorageSettings(**given(data_dir=data_dir and data_dir.expanduser().absolute())).data_dir
    _write_private(config, config_text(replace(told, data_dir=folder)))
    errors.print(f"Wrote {config}.", soft_wrap=True)
    if check and told.has_source:
        from clusterscape.cli.doctor import doctor

        doctor(config)
    errors.print(f"Next: clusterscape serve --config {config}", soft_wrap=True)


def _write_private(path: Path, text: str) -> None:
    """Secrets may be added to it: for its owner alone, unless the file exists with other permissions."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


def _ask(told: "Answers", asked: set[str]) -> "Answers":
    """Question by question; what is found is the default, a dash means none."""
    if "cluster" in asked:
        told = replace(told, cluster=typer.prompt("Name of the cluster", default=told.cluster, err=True))
    if "slurm" in asked:
        question = "Slurm: `cli` (its commands work here), the address of slurmrestd, or `off`"
        told = _with_slurm(told, typer.prompt(question, default=told.slurm_url or told.slurm, err=True))
    if "kubernetes" in asked:
        question = "Kubernetes: `in_cluster`, `kubeconfig` (~/.kube/config), or `off`"
        told = _with_kubernetes(told, typer.prompt(question, default=told.kubernetes, err=True))
    if "exporters" in asked:
        told = replace(told, exporters=_ask_exporters(told))
    if "prometheus" in asked and not told.exporters:
        question = "Address of a Prometheus that scrapes them (- for none)"
        answer = typer.prompt(question, default=told.prometheus or "-", err=True)
        told = replace(told, prometheus=None if answer == "-" else answer)
    if told.nvml and not told.exporters and told.prometheus is None:
        told = replace(told, nvml=typer.confirm("Read this machine's own GPUs", default=True, err=True))
    return told


def _ask_exporters(told: "Answers") -> tuple[str, ...]:
    question = "dcgm-exporters, such as gpu-[001-128]:9400, with commas (- for none)"
    while True:
        answer = typer.prompt(question, default=", ".join(told.exporters) or "-", err=True)
        try:
            return () if answer == "-" else parse_exporters(answer)
        except ConfigError as error:
            errors.print(f"{error.message}. {error.hint or ''}", style="red")


def parse_exporters(text: str) -> tuple[str, ...]:
    """Targets between commas, but not those inside a range's brackets; raises ConfigError where one makes no sense."""
    from clusterscape.collect.targets import parse_target

    targets, depth = [""], 0
    for sign in text:
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            targets.append("")
        else:
            targets[-1] += sign
    named = tuple(target.strip() for target in targets if target.strip())
    for target in named:
        parse_target(target, "--exporters")
    return named


def _with_slurm(told: "Answers", answer: str) -> "Answers":
    if answer == "off":
        return replace(told, slurm="off", slurm_url=None)
    if answer == "cli":
        return replace(told, slurm="cli", slurm_url=None)
    if answer.startswith(("http://", "https://", "unix:/")):
        return replace(told, slurm="rest", slurm_url=answer)
    raise ConfigError(
        f"Slurm cannot be reached by `{answer}`",
        hint="Say `cli`, `off`, or the address of slurmrestd: http://host:6820 or unix:/path/to/socket.",
    )


def _with_kubernetes(told: "Answers", answer: str) -> "Answers":
    match answer:
        case "off" | "in_cluster" | "kubeconfig":
            return replace(told, kubernetes=answer)
    raise ConfigError(
        f"Kubernetes cannot be reached by `{answer}`",
        hint="Say `in_cluster`, `kubeconfig` or `off`; for an address and a token edit the file.",
    )
