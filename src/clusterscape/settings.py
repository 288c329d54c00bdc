"""Every setting once: name, default, unit, help. Read at the start, then passed down; nothing else reads the environment.

Sources, later ones win: defaults, a TOML file, environment variables ``CLUSTERSCAPE_<SECTION>__<KEY>`` (two underscores per
level), and what the command line overrides.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from clusterscape.errors import ConfigError
from clusterscape.model.rules import Severity

ENV_PREFIX = "CLUSTERSCAPE_"
ENV_NOT_SETTINGS = frozenset(
    {
        "CLUSTERSCAPE_REFERENCE_DATA",
        "CLUSTERSCAPE_REFERENCE_DATA_REQUIRED",
        "CLUSTERSCAPE_RUN",
        "CLUSTERSCAPE_SCREENSHOTS",
        "CLUSTERSCAPE_URL",
    }
)
"""Variables of the tests and of tracked runs, not settings."""

_LISTS = frozenset({"targets", "severities", "rules", "group_by", "to"})


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
    max_upload_bytes: int = Field(
        20 * 2**30, ge=1, description="Largest file that may be sent to the server, such as a trace of one rank."
    )
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


class ChannelSettings(_Section):
    """What every channel of alerts can be told."""

    severities: tuple[Severity, ...] = Field(
        (Severity.WARNING, Severity.CRITICAL), description="Rules of these severities: `info`, `warning`, `critical`."
    )
    rules: tuple[str, ...] = Field(("*",), min_length=1, description="Rules with these keys; `*` and `?` are globs.")
    tell_stops: bool = Field(True, description="Tell also when a violation stops.")
    group_by: tuple[Literal["rule", "workload", "user", "project", "partition"], ...] = Field(
        ("rule",), description="What has these in common is told in one message; empty: everything together."
    )
    group_wait_s: float = Field(30.0, ge=0, description="Seconds to wait for more of the same group.")
    group_interval_s: float = Field(300.0, ge=0, description="Seconds between two messages of the same group.")
    hold_s: float = Field(120.0, ge=0, description="A violation that is over within so many seconds is not told.")
    max_per_hour: int | None = Field(
        60,
        ge=1,
        description="Most messages an hour (to one user, where it goes to users); the last one sums up the rest.",
    )
    max_waiting: int = Field(
        10_000, ge=100, description="Most starts and stops that wait; beyond, of the oldest only their number is kept."
    )
    timeout_s: float = Field(10.0, gt=0, description="Seconds after which an answer counts as missing.")


class WebhookSettings(ChannelSettings):
    """Any HTTP endpoint; what it gets is in the [guide](../guide/alerts.md)."""

    kind: Literal["webhook"]
    url: str = Field(pattern=r"^https?://", description="Address that JSON is posted to.")
    token: str | None = Field(None, repr=False, description="Bearer token.")
    headers: dict[str, str] = Field({}, repr=False, description="More headers, by name.")
    secret: str | None = Field(
        None, repr=False, description="Key of the signature (HMAC-SHA256); without it none is sent."
    )
    proxy: str | None = Field(None, description="HTTP proxy.")


class SlackSettings(ChannelSettings):
    """A Slack incoming webhook, or what speaks its format."""

    kind: Literal["slack"]
    url: str = Field(pattern=r"^https?://", repr=False, description="The webhook's address, which is its secret.")
    proxy: str | None = Field(None, description="HTTP proxy.")


class EmailSettings(ChannelSettings):
    """E-mail over SMTP."""

    kind: Literal["email"]
    host: str = Field(min_length=1, description="SMTP server.")
    port: int | None = Field(None, ge=1, le=65535, description="Its port; by default 25, 587 (starttls) or 465 (tls).")
    security: Literal["plain", "starttls", "tls"] = Field("starttls", description="How the connection is protected.")
    user: str | None = Field(None, description="Name to log in with; without it nobody logs in.")
    password: str | None = Field(None, repr=False, description="Its password.")
    ca_file: Path | None = Field(None, description="Certificates to trust (PEM); by default the system's.")
    sender: str = Field(pattern=r"^[^\s<>]+@[^\s<>]+$", description="Address the mails come from.")
    to: tuple[str, ...] = Field(
        min_length=1, description="Addresses; `{user}@example.org` goes to the workload's user."
    )
    max_per_hour: int | None = Field(20, ge=1, description="Most mails an hour to the same addresses.")


class AlertmanagerSettings(ChannelSettings):
    """An Alertmanager (API v2); of several that form a cluster, each is a channel. It groups and holds by itself."""

    kind: Literal["alertmanager"]
    url: str = Field(pattern=r"^https?://", description="Address, such as http://127.0.0.1:9093.")
    token: str | None = Field(None, repr=False, description="Bearer token.")
    labels: dict[str, str] = Field({}, description="More labels for every alert.")
    resolve_timeout_s: float = Field(
        300.0, ge=3, description="An alert that is not repeated for so long ends by itself."
    )
    proxy: str | None = Field(None, description="HTTP proxy.")
    tell_stops: Literal[True] = Field(True, description="Always: an alert that is not ended would fire for ever.")
    group_by: tuple[Literal["rule", "workload", "user", "project", "partition"], ...] = Field(
        (), description="What has these in common is told in one request; empty: everything together."
    )
    group_wait_s: float = Field(0.0, ge=0, description="Seconds to wait for more of the same group.")
    group_interval_s: float = Field(0.0, ge=0, description="Seconds between two requests of the same group.")
    max_per_hour: int | None = Field(None, ge=1, description="Most requests an hour; repetitions do not count.")


AnyChannelSettings = WebhookSettings | SlackSettings | EmailSettings | AlertmanagerSettings
CHANNEL_KINDS: Mapping[str, type[ChannelSettings]] = {
    "webhook": WebhookSettings,
    "slack": SlackSettings,
    "email": EmailSettings,
    "alertmanager": AlertmanagerSettings,
}


class AlertsSettings(_Section):
    """Who is told when a violation starts or stops."""

    page_url: str | None = Field(None, description="Where people reach the page; messages then link to it.")
    channels: dict[
        Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")],
        Annotated[AnyChannelSettings, Field(discriminator="kind")],
    ] = Field({}, description="Channels by name: `[alerts.channels.NAME]` with a `kind`.")


class RulesSettings(_Section):
    """How violation rules are judged."""

    judge_every_s: float = Field(15.0, ge=1, description="Seconds between two judgements of all workloads.")


class LogSettings(_Section):
    """What the server writes to standard error."""

    format: Literal["text", "json"] = Field(
        "text", description="`text` for people; `json` for collectors of logs: one object a line."
    )
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least that is written.")


class Settings(_Section):
    """The whole configuration."""

    cluster: str = Field("cluster", min_length=1, description="Name of the cluster, as the page shows it.")
    server: ServerSettings = ServerSettings()
    storage: StorageSettings = StorageSettings()
    retention: RetentionSettings = RetentionSettings()
    collect: CollectSettings = CollectSettings()
    rules: RulesSettings = RulesSettings()
    alerts: AlertsSettings = AlertsSettings()
    log: LogSettings = LogSettings()


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
        level[leaf] = value.split(",") if leaf in _LISTS else value
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
    # Behind a channel's name stands its kind, which is no part of the key.
    key = ".".join(path[:3] + path[4:] if path[:2] == ["alerts", "channels"] else path)
    source = where.get(key, "the settings")
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        allowed = _fields_at(path[:-1])
        close = difflib.get_close_matches(path[-1], allowed, n=1)
        hint = f"Did you mean `{close[0]}`? " if close else ""
        section = f"[{key.rpartition('.')[0]}]" if len(path) > 1 else "the top level"
        return ConfigError(
            f"unknown setting `{key}` in {source}{more}", hint=f"{hint}{section} takes: {', '.join(allowed)}."
        )
    # A whole section may hold secrets.
    is_hidden = _is_secret(path) or isinstance(first["input"], Mapping)
    value = "" if first["type"] == "missing" else f" = {'(hidden)' if is_hidden else repr(first['input'])}"
    return ConfigError(f"setting `{key}`{value} in {source} is wrong: {first['msg']}{more}", hint=_describe(path))


def _is_secret(path: list[str]) -> bool:
    """Whether the field or one that it is part of is kept out of what is printed."""
    for length in range(1, len(path) + 1):
        section = _section_at(path[: length - 1])
        field = section.model_fields.get(path[length - 1]) if section else None
        if field is not None and not field.repr:
            return True
    return False


def _section_at(path: list[str]) -> type[BaseModel] | None:
    section: type[BaseModel] = Settings
    if path[:2] == ["alerts", "channels"] and len(path) > 3 and path[3] in CHANNEL_KINDS:
        section, path = CHANNEL_KINDS[path[3]], path[4:]
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
            default = "" if field.is_required() else f" Default: {field.default!r}."
            return f"`{'.'.join(path)}`: {field.description}{default}" if field.description else None
        path = path[:-1]
    return None
