"""Every setting once: name, default, unit, help. Read at the start, then passed down; nothing else reads the environment.

Sources, later ones win: defaults, a TOML file, environment variables ``CLUSTERSCAPE_<SECTION>__<KEY>`` (two underscores per
level), and what the command line overrides.
"""

import difflib
import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from clusterscape.errors import ConfigError
from clusterscape.model.rules import Severity
from clusterscape.model.viewers import Role

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

_LISTS = frozenset(
    {
        "targets",
        "severities",
        "rules",
        "group_by",
        "to",
        "samples",
        "modes",
        "trusted_proxies",
        "scopes",
        "gpu_resources",
        "device_drivers",
        "user_labels",
        "project_labels",
        "experiment_labels",
        "queue_labels",
        "device_annotations",
    }
)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSettings(_Section):
    """Where the page and the API are served."""

    host: str = Field(
        "127.0.0.1", description="Address to listen on; another than loopback needs a token or `auth.modes`."
    )
    port: int = Field(8321, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    token: str | None = Field(
        None, min_length=16, repr=False, description="Static token that every request must carry."
    )
    role: Literal["all", "web", "collector"] = Field(
        "all",
        description="`web` only serves, `collector` only collects; of all that may collect over one PostgreSQL, one does.",
    )


class MetricsServerSettings(_Section):
    """How the server that `storage.metrics` names is reached; the embedded store needs none of it."""

    layout: Literal["single", "cluster"] = Field(
        "single",
        description="`cluster`: VictoriaMetrics cluster; `select/TENANT/prometheus` and `insert/TENANT/prometheus` are appended.",
    )
    tenant: str = Field(
        "0",
        pattern=r"^\d+(:\d+)?$",
        description="Tenant of a VictoriaMetrics cluster: accountID or accountID:projectID.",
    )
    write_url: str | None = Field(
        None,
        pattern=r"^https?://",
        description="Where samples are sent, where that is not `storage.metrics`: vminsert, or a whole remote-write address.",
    )
    writes: Literal["import", "remote_write", "off"] = Field(
        "import",
        description="`import`: VictoriaMetrics' own; `remote_write`: Prometheus, Mimir, Thanos; `off`: the server is only read.",
    )
    token: str | None = Field(None, repr=False, description="Bearer token; a user and password go into the address.")
    org_id: str | None = Field(None, description="X-Scope-OrgID: the tenant of Mimir and Cortex.")
    headers: dict[str, str] = Field(
        {}, repr=False, description="More headers, by name, such as AccountID and ProjectID."
    )
    query_parameters: dict[str, str] = Field(
        {}, description="Sent with every query, such as `dedup` and `partial_response` of Thanos."
    )
    timeout_s: float = Field(30.0, gt=0, description="Seconds after which an answer counts as missing.")
    spool_bytes: int = Field(
        2 * 2**30,
        ge=0,
        description="While the server is away samples wait in `data_dir`, so much at most (the oldest go); 0: none wait.",
    )


class PostgresSettings(_Section):
    """Connections to the PostgreSQL that `storage.records` names."""

    pool_size: int = Field(5, ge=1, le=500, description="Connections that stay open.")
    max_overflow: int = Field(10, ge=0, le=500, description="Further connections at busy times.")
    pool_timeout_s: float = Field(10.0, gt=0, description="Seconds a request waits for a connection.")
    connect_timeout_s: int = Field(10, ge=1, description="Seconds after which a server counts as away.")
    statement_timeout_s: float = Field(60.0, ge=0, description="Seconds after which a statement is ended; 0: never.")
    recycle_s: float = Field(1800.0, gt=0, description="Seconds after which a connection is opened anew.")


class S3Settings(_Section):
    """The S3-compatible store that `storage.artifacts` names; what is not set comes from AWS' own variables and roles."""

    endpoint: str | None = Field(
        None, pattern=r"^https?://", description="Address, where it is not Amazon's: http://127.0.0.1:8333."
    )
    region: str = Field("us-east-1", description="Region; most other stores take any.")
    access_key: str | None = Field(None, description="Access key.")
    secret_key: str | None = Field(None, repr=False, description="Secret key.")
    part_bytes: int = Field(
        8 * 2**20,
        ge=5 * 2**20,
        description="Larger files are sent in parts of this size; S3 takes 10,000 parts at most.",
    )
    cache_bytes: int = Field(
        10 * 2**30, ge=0, description="Local copies of files that are being read, under `data_dir`; the oldest go."
    )


class StorageSettings(_Section):
    """Where data is kept."""

    data_dir: Path = Field(
        Path("~/.local/share/clusterscape"), description="Folder of the embedded metric store and of SQLite."
    )
    metrics: str = Field(
        "embedded", description="`embedded`, or the address of VictoriaMetrics such as http://127.0.0.1:8428."
    )
    metrics_server: MetricsServerSettings = MetricsServerSettings()
    records: str = Field("sqlite", description="`sqlite`, or a PostgreSQL address such as postgresql://user@host/db.")
    postgres: PostgresSettings = PostgresSettings()
    artifacts: str = Field("folder", description="`folder` (under `data_dir`), or s3://BUCKET or s3://BUCKET/PREFIX.")
    s3: S3Settings = S3Settings()
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

    @field_validator("artifacts")
    @classmethod
    def _known_artifacts(cls, value: str) -> str:
        if value == "folder" or re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.=@+-]+)*/?", value):
            return value
        raise ValueError("allowed: 'folder' or s3://BUCKET/PREFIX")


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


class KubernetesSettings(_Section):
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


class CollectSettings(_Section):
    """What is collected, from where."""

    shard: str = Field(
        "1/1",
        pattern=r"^[1-9]\d*/[1-9]\d*$",
        description="`2/3`: this is the second of three collectors; each scrapes the nodes that a hash gives it.",
    )

    dcgm: DcgmSettings = DcgmSettings()
    slurm: SlurmSettings = SlurmSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
    nvml: NvmlSettings = NvmlSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()


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


class RemoteWriteSettings(_Section):
    """Sends what ClusterScape finds out to a Prometheus-compatible server: violations, runs, the state of the cluster."""

    url: str | None = Field(
        None, pattern=r"^https?://", description="Remote-write address, such as http://127.0.0.1:9090/api/v1/write."
    )
    token: str | None = Field(None, repr=False, description="Bearer token; a user and password go into the address.")
    org_id: str | None = Field(None, description="X-Scope-OrgID: the tenant of Mimir and Cortex.")
    headers: dict[str, str] = Field({}, repr=False, description="More headers, by name.")
    labels: dict[str, str] = Field({}, description="More labels for every series; `cluster` is always there.")
    every_s: float = Field(30.0, ge=1, description="Seconds between two looks.")
    samples: tuple[str, ...] = Field((), description="Stored metrics to pass on as well; `*` and `?` are globs.")
    timeout_s: float = Field(30.0, gt=0, description="Seconds after which an answer counts as missing.")
    spool_bytes: int = Field(
        256 * 2**20, ge=2**20, description="While the server is away samples wait in `data_dir`, so much at most."
    )


class OidcSettings(_Section):
    """A provider that speaks OpenID Connect: Keycloak, Entra, Okta, Google, GitLab, Dex and others."""

    issuer: str = Field(
        "", description="Its address, exactly as it names itself; `/.well-known/openid-configuration` follows it."
    )
    client_id: str = Field("", description="Name that ClusterScape has at the provider.")
    client_secret: str | None = Field(
        None, repr=False, description="Its secret there; without one it is a public client (PKCE is always used)."
    )
    title: str = Field("single sign-on", description="The button says: Sign in with …")
    scopes: tuple[str, ...] = Field(("openid", "profile"), description="What is asked for; `openid` is always.")
    login_claim: str = Field("preferred_username", description="Claim that holds the user name the scheduler knows.")
    title_claim: str = Field("name", description="Claim that holds the name to show.")
    groups_claim: str = Field(
        "groups", description="Claim that holds the groups; dots lead into objects: `realm_access.roles`."
    )
    timeout_s: float = Field(10.0, gt=0, description="Seconds after which an answer counts as missing.")


class ProxySettings(_Section):
    """Headers that a trusted reverse proxy sets after it has found out who asks."""

    user_header: str = Field("X-Remote-User", min_length=1, description="Holds the user name.")
    groups_header: str = Field("X-Remote-Groups", min_length=1, description="Holds the groups, with commas between.")
    title_header: str = Field("X-Remote-Name", min_length=1, description="Holds the name to show.")


class AuthSettings(_Section):
    """Who may come in, and how they prove who they are; see the [guide](../guide/access.md)."""

    modes: tuple[Literal["local", "oidc", "proxy"], ...] = Field(
        (),
        description="Ways to sign in beside `server.token`: `local` accounts, `oidc`, headers of a `proxy`. Empty and without a "
        "token: nobody has to, on loopback only.",
    )
    public_url: str | None = Field(
        None,
        pattern=r"^https?://[^/]+$",
        description="Where people reach the page, such as https://gpus.example.org; with https cookies are for https only.",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (), description="Addresses or networks of reverse proxies whose forwarded headers are believed."
    )
    roles: dict[str, Role] = Field(
        {}, description="Role by group (OIDC, proxy): viewer, researcher, lead, operator, admin; the greatest counts."
    )
    projects: dict[str, tuple[str, ...]] = Field({}, description="Projects by group, for leads.")
    projects_pattern: str | None = Field(
        None, description="Groups that match this regular expression name a project: its first part in parentheses."
    )
    default_role: Role | None = Field(
        Role.RESEARCHER, description="Role of whoever is in none of those groups; `none`: they may not come in."
    )
    password_min_length: int = Field(12, ge=8, le=128, description="Fewest characters of a local account's password.")
    session_idle_hours: float = Field(12.0, gt=0, description="A session that is not used for so long ends.")
    session_max_hours: float = Field(7 * 24.0, gt=0, description="A session ends after so long, used or not.")
    token_max_days: float = Field(365.0, gt=0, description="Longest life of an API token.")
    login_attempts: int = Field(
        10,
        ge=1,
        description="Wrong passwords for one account from one address within `login_window_s`; five times as many for an account "
        "or an address in all.",
    )
    login_window_s: float = Field(300.0, gt=0, description="Seconds after which a wrong password is forgotten.")
    audit_days: float = Field(365.0, gt=0, description="Days for which the audit log is kept.")
    oidc: OidcSettings = OidcSettings()
    proxy: ProxySettings = ProxySettings()

    @field_validator("default_role", mode="before")
    @classmethod
    def _no_role(cls, value: object) -> object:
        return None if value == "none" else value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            ipaddress.ip_network(each, strict=False)
        return value

    @field_validator("projects_pattern")
    @classmethod
    def _has_a_part(cls, value: str | None) -> str | None:
        if value is not None and re.compile(value).groups != 1:
            raise ValueError("needs exactly one part in parentheses, such as ^project-(.+)$")
        return value

    @model_validator(mode="after")
    def _is_whole(self) -> "AuthSettings":
        if "oidc" in self.modes and not (self.oidc.issuer and self.oidc.client_id):
            raise ValueError("mode oidc needs auth.oidc.issuer and auth.oidc.client_id")
        if "proxy" in self.modes and not self.trusted_proxies:
            raise ValueError("mode proxy needs auth.trusted_proxies: without it anybody could set the headers")
        return self


class SiteSettings(_Section):
    """What people of this site see of one another; see the [guide](../guide/access.md#visibility)."""

    visibility: Literal["open", "private"] = Field(
        "open",
        description="`open`: everybody sees whose each workload is; `private`: others' names are replaced by pseudonyms, but for "
        "operators, and for leads within their projects.",
    )


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
    remote_write: RemoteWriteSettings = RemoteWriteSettings()
    auth: AuthSettings = AuthSettings()
    site: SiteSettings = SiteSettings()
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
