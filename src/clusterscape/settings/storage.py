"""Settings of the stores (metrics, records, artifacts) and of retention."""

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from clusterscape.settings.section import Section


class MetricsServerSettings(Section):
    """Connection to the metrics server that `storage.metrics` names; not used by the embedded store."""

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
        description="URL for writes, if it differs from `storage.metrics`: vminsert, or a complete remote-write URL.",
    )
    write_protocol: Literal["import", "remote_write", "off"] = Field(
        "import",
        description="`import`: VictoriaMetrics; `remote_write`: Prometheus, Mimir, Thanos; `off`: read only.",
    )
    token: str | None = Field(None, repr=False, description="Bearer token; a user name and password go into the URL.")
    org_id: str | None = Field(None, description="`X-Scope-OrgID`: tenant of Mimir and Cortex.")
    headers: dict[str, str] = Field(
        {}, repr=False, description="Additional headers, by name, such as AccountID and ProjectID."
    )
    query_parameters: dict[str, str] = Field(
        {}, description="Parameters of every query, such as `dedup` and `partial_response` of Thanos."
    )
    timeout_s: float = Field(30.0, gt=0, description="Request timeout, seconds.")
    spool_bytes: int = Field(
        2 * 2**30,
        ge=0,
        description="Spool size in `data_dir`, for samples that wait while the server is unreachable "
        "(the oldest are dropped); 0: no spool.",
    )


class PostgresSettings(Section):
    """Connection pool of the PostgreSQL server that `storage.records` names."""

    pool_size: int = Field(5, ge=1, le=500, description="Connections kept open.")
    max_overflow: int = Field(10, ge=0, le=500, description="Additional connections under load.")
    pool_timeout_s: float = Field(10.0, gt=0, description="Seconds that a request waits for a connection.")
    connect_timeout_s: int = Field(10, ge=1, description="Connect timeout, seconds.")
    statement_timeout_s: float = Field(60.0, ge=0, description="Statement timeout, seconds; 0: none.")
    recycle_s: float = Field(1800.0, gt=0, description="Maximum age of a connection, seconds.")


class S3Settings(Section):
    """The S3-compatible store that `storage.artifacts` names; defaults come from the AWS environment variables and roles."""

    endpoint: str | None = Field(
        None, pattern=r"^https?://", description="Endpoint URL, if not Amazon's: http://127.0.0.1:8333."
    )
    region: str = Field("us-east-1", description="Region; most S3-compatible stores accept any.")
    access_key: str | None = Field(None, description="Access key.")
    secret_key: str | None = Field(None, repr=False, description="Secret key.")
    part_bytes: int = Field(
        8 * 2**20,
        ge=5 * 2**20,
        description="Part size of multipart uploads; S3 accepts at most 10,000 parts.",
    )
    cache_bytes: int = Field(
        10 * 2**30, ge=0, description="Size of the local file cache under `data_dir`; the oldest files are evicted."
    )


class StorageSettings(Section):
    """Where data is kept."""

    data_dir: Path = Field(
        Path("~/.local/share/clusterscape"),
        validate_default=True,
        description="Folder for all local data: an absolute path, or one that begins with `~`.",
    )
    metrics: str = Field(
        "embedded", description="`embedded`, or the URL of VictoriaMetrics, such as http://127.0.0.1:8428."
    )
    metrics_server: MetricsServerSettings = MetricsServerSettings()
    records: str = Field("sqlite", description="`sqlite`, or a PostgreSQL URL, such as postgresql://user@host/db.")
    postgres: PostgresSettings = PostgresSettings()
    artifacts: str = Field("folder", description="`folder` (under `data_dir`), or s3://BUCKET or s3://BUCKET/PREFIX.")
    s3: S3Settings = S3Settings()
    max_upload_bytes: int = Field(
        20 * 2**30, ge=1, description="Maximum size of an uploaded file, such as the trace of one rank."
    )
    min_free_bytes: int = Field(
        200 * 2**20, ge=0, description="Ingest pauses while the disk of `data_dir` has less free space than this."
    )

    @field_validator("data_dir")
    @classmethod
    def _expand_data_dir(cls, value: Path) -> Path:
        try:
            expanded = value.expanduser()
        except RuntimeError as error:  # ~user, but no such user exists
            raise ValueError(str(error)) from None
        if not expanded.is_absolute():
            raise ValueError("a relative path depends on the working directory; write an absolute path")
        return expanded

    @field_validator("metrics")
    @classmethod
    def _check_metrics(cls, value: str) -> str:
        if value == "embedded" or value.startswith(("http://", "https://")):
            return value
        raise ValueError("allowed: 'embedded' or an http(s) address of VictoriaMetrics")

    @field_validator("records")
    @classmethod
    def _check_records(cls, value: str) -> str:
        if value == "sqlite" or value.startswith(("postgresql://", "postgresql+psycopg://", "sqlite:///")):
            return value
        raise ValueError("allowed: 'sqlite', sqlite:///PATH or postgresql://USER@HOST/DATABASE")

    @field_validator("artifacts")
    @classmethod
    def _check_artifacts(cls, value: str) -> str:
        if value == "folder" or re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.=@+-]+)*/?", value):
            return value
        raise ValueError("allowed: 'folder' or s3://BUCKET/PREFIX")


class RetentionSettings(Section):
    """Retention and downsampling of samples."""

    raw_days: float = Field(14.0, gt=0, description="Retention of raw samples, days.")
    coarse_days: float = Field(365.0, gt=0, description="Retention of downsampled values, days.")
    coarse_step_s: int = Field(300, ge=60, description="Step of downsampled values, seconds.")
    summaries_days: float = Field(
        1826.0, gt=0, description="Retention of the summaries of ended jobs (2 kB each), days."
    )
