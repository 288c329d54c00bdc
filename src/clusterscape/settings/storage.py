"""Settings of the stores: metrics, records, artifacts, and how long samples are kept."""

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from clusterscape.settings.section import Section


class MetricsServerSettings(Section):
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


class PostgresSettings(Section):
    """Connections to the PostgreSQL that `storage.records` names."""

    pool_size: int = Field(5, ge=1, le=500, description="Connections that stay open.")
    max_overflow: int = Field(10, ge=0, le=500, description="Further connections at busy times.")
    pool_timeout_s: float = Field(10.0, gt=0, description="Seconds a request waits for a connection.")
    connect_timeout_s: int = Field(10, ge=1, description="Seconds after which a server counts as away.")
    statement_timeout_s: float = Field(60.0, ge=0, description="Seconds after which a statement is ended; 0: never.")
    recycle_s: float = Field(1800.0, gt=0, description="Seconds after which a connection is opened anew.")


class S3Settings(Section):
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


class StorageSettings(Section):
    """Where data is kept."""

    data_dir: Path = Field(
        Path("~/.local/share/clusterscape"),
        validate_default=True,
        description="Folder of everything that the site keeps here: an absolute path, or one that begins with `~`.",
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
        try:
            expanded = value.expanduser()
        except RuntimeError as error:  # ~user, and there is no such user
            raise ValueError(str(error)) from None
        if not expanded.is_absolute():
            raise ValueError("a relative path would depend on where the command is called; write an absolute one")
        return expanded

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


class RetentionSettings(Section):
    """How long samples are kept, and how coarse."""

    raw_days: float = Field(14.0, gt=0, description="Days for which every sample is kept.")
    coarse_days: float = Field(365.0, gt=0, description="Days for which downsampled values are kept.")
    coarse_step_s: int = Field(300, ge=60, description="Step of downsampled values, seconds.")
