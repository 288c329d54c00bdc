"""Every setting once: name, default, unit, help. Read at the start, then passed down; nothing else reads the environment.

Sources, later ones win: defaults, a TOML file, environment variables ``CLUSTERSCAPE_<SECTION>__<KEY>`` (two underscores per
level), and what the command line overrides.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from clusterscape.errors import ConfigError

ENV_PREFIX = "CLUSTERSCAPE_"
ENV_NOT_SETTINGS = frozenset(
    {"CLUSTERSCAPE_REFERENCE_DATA", "CLUSTERSCAPE_REFERENCE_DATA_REQUIRED", "CLUSTERSCAPE_SCREENSHOTS"}
)
"""Variables of the tests, not settings."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSettings(_Section):
    """Where the page and the API are served."""

    host: str = Field("127.0.0.1", description="Address to listen on; another than loopback needs a token.")
    port: int = Field(8321, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    token: str | None = Field(
        None, min_length=16, repr=False, description="Static token that every request must carry."
    )


class StorageSettings(_Section):
    """Where data is kept."""

    data_dir: Path = Field(
        Path("~/.local/share/clusterscape"), description="Folder of the embedded metric store and of SQLite."
    )
    metrics: str = Field(
        "embedded", description="`embedded`, or the address of VictoriaMetrics such as http://127.0.0.1:8428."
    )
    records: str = Field("sqlite", description="`sqlite`, or a PostgreSQL address such as postgresql://user@host/db.")
    min_free_bytes: int = Field(
        200 * 2**20, ge=0, description="Ingest pauses while the device of `data_dir` has less than this free."
    )

    @field_validator("data_dir")
    @classmethod
    def _expand(cls, value: Path) -> Path:
        return value.expanduser()

    @field_validator("metrics")
    @classmethod
    def _known_metrics(cls, value: str) -> str:
        if value == "embedded" or value.startswith(("http://", "https://")):
            return value
        raise ValueError("allowed: 'embedded' or an http(s) address of VictoriaMetrics")

    @field_validator("records")
    @classmethod
    def _known_records(cls, value: str) -> str:
        if value == "sqlite" or value.startswith(("postgresql://", "postgresql+psycopg://", "sqlite:///")):
            return value
        raise ValueError("allowed: 'sqlite', sqlite:///PATH or postgresql://USER@HOST/DATABASE")


class RetentionSettings(_Section):
    """How long samples are kept, and how coarse."""

    raw_days: float = Field(14.0, gt=0, description="Days for which every sample is kept.")
    coarse_days: float = Field(365.0, gt=0, description="Days for which downsampled values are kept.")
    coarse_step_s: int = Field(300, ge=60, description="Step of downsampled values, seconds.")


class DcgmSettings(_Section):
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


class SlurmSettings(_Section):
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


class PrometheusSettings(_Section):
    """A Prometheus-compatible server that already scrapes dcgm-exporter."""

    url: str | None = Field(None, description="Address, such as http://127.0.0.1:9090.")
    token: str | None = Field(None, repr=False, description="Bearer token.")
    matcher: str = Field(
        '{__name__=~"DCGM_.*"}',
        description="Selector of the exporter's series; narrow it to a job or a cluster label.",
    )
    interval_s: float = Field(15.0, gt=0, description="Seconds between reads.")
    timeout_s: float = Field(10.0, gt=0, description="Seconds after which an answer counts as missing.")


class NvmlSettings(_Section):
    """This machine's own GPUs."""

    enabled: bool = Field(False, description="Read this machine's GPUs through NVML.")
    interval_s: float = Field(5.0, gt=0, description="Seconds between reads.")


class CollectSettings(_Section):
    """What is collected, from where."""

    dcgm: DcgmSettings = DcgmSettings()
    slurm: SlurmSettings = SlurmSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
    nvml: NvmlSettings = NvmlSettings()


class Settings(_Section):
    """The whole configuration."""

    cluster: str = Field("cluster", min_length=1, description="Name of the cluster, as the page shows it.")
    server: ServerSettings = ServerSettings()
    storage: StorageSettings = StorageSettings()
    retention: RetentionSettings = RetentionSettings()
    collect: CollectSettings = CollectSettings()


def read_settings(
    path: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings from file, environment and overrides (nested mappings); raises ConfigError naming the key."""
    merged: dict[str, Any] = {}
    where: dict[str, str] = {}
    if path is not None:
        _merge(merged, _read_toml(path), where, str(path))
    _merge(merged, _from_environment(os.environ if environ is None else environ), where, "the environment")
    _merge(merged, overrides or {}, where, "the command line")
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise _explain(error, where) from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", hint="Give an existing file to --config.") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", hint="Mend the line that is named.") from None


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in environ.items():
        if not key.startswith(ENV_PREFIX) or key in ENV_NOT_SETTINGS:
            continue
        *parents, leaf = key.removeprefix(ENV_PREFIX).lower().split("__")
        level = tree
        for parent in parents:
            level = level.setdefault(parent, {})
        level[leaf] = value.split(",") if leaf == "targets" else value
    return tree


def _merge(
    into: dict[str, Any], update: Mapping[str, Any], where: dict[str, str], source: str, prefix: str = ""
) -> None:
    for key, value in update.items():
        dotted = f"{prefix}{key}"
        where[dotted] = source
        if isinstance(value, Mapping):
            level = into.setdefault(key, {})
            if isinstance(level, dict):
                _merge(level, value, where, source, f"{dotted}.")
                continue
        into[key] = value


def _explain(error: ValidationError, where: Mapping[str, str]) -> ConfigError:
    """The first problem in plain words: which key, from where, what is allowed."""
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    key = ".".join(path)
    source = where.get(key, "the settings")
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        allowed = _fields_at(path[:-1])
        close = difflib.get_close_matches(path[-1], allowed, n=1)
        hint = f"Did you mean `{close[0]}`? " if close else ""
        section = f"[{'.'.join(path[:-1])}]" if len(path) > 1 else "the top level"
        return ConfigError(
            f"unknown setting `{key}` in {source}{more}", hint=f"{hint}{section} takes: {', '.join(allowed)}."
        )
    value = "(hidden)" if path[-1] == "token" else repr(first["input"])
    return ConfigError(f"setting `{key}` = {value} in {source} is wrong: {first['msg']}{more}", hint=_describe(path))


def _section_at(path: list[str]) -> type[BaseModel] | None:
    section: type[BaseModel] = Settings
    for part in path:
        field = section.model_fields.get(part)
        kind = field.annotation if field else None
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return None
        section = kind
    return section


def _fields_at(path: list[str]) -> list[str]:
    section = _section_at(path)
    return list(section.model_fields) if section else []


def _describe(path: list[str]) -> str | None:
    while path:
        section = _section_at(path[:-1])
        field = section.model_fields.get(path[-1]) if section else None
        if field is not None:
            return f"`{'.'.join(path)}`: {field.description} Default: {field.default!r}." if field.description else None
        path = path[:-1]
    return None
