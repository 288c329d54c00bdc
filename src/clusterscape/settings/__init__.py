"""Every setting once: name, default, unit, help. Read at the start, then passed down; nothing else reads the environment.

Sources, later ones win: defaults, a TOML file, environment variables ``CLUSTERSCAPE_<SECTION>__<KEY>`` (two underscores per
level), and what the command line overrides.
"""

from clusterscape.settings.access import AuthSettings, OidcSettings, ProxySettings, SiteSettings
from clusterscape.settings.limits import (
    HttpLimits,
    LimitsSettings,
    RunLimits,
    SourceLimits,
    UploadLimits,
    WorkLimits,
)
from clusterscape.settings.reading import find_config, read_settings
from clusterscape.settings.section import Section
from clusterscape.settings.serving import LogSettings, ServerSettings
from clusterscape.settings.sources import (
    CollectSettings,
    DcgmSettings,
    KubernetesSettings,
    NvmlSettings,
    PrometheusSettings,
    SlurmSettings,
)
from clusterscape.settings.storage import (
    MetricsServerSettings,
    PostgresSettings,
    RetentionSettings,
    S3Settings,
    StorageSettings,
)
from clusterscape.settings.telling import (
    CHANNEL_KINDS,
    AlertmanagerSettings,
    AlertsSettings,
    AnyChannelSettings,
    ChannelSettings,
    EmailSettings,
    RemoteWriteSettings,
    RulesSettings,
    SlackSettings,
    WebhookSettings,
)
from clusterscape.settings.whole import Settings

__all__ = [
    "CHANNEL_KINDS",
    "AlertmanagerSettings",
    "AlertsSettings",
    "AnyChannelSettings",
    "AuthSettings",
    "ChannelSettings",
    "CollectSettings",
    "DcgmSettings",
    "EmailSettings",
    "HttpLimits",
    "KubernetesSettings",
    "LimitsSettings",
    "LogSettings",
    "MetricsServerSettings",
    "NvmlSettings",
    "OidcSettings",
    "PostgresSettings",
    "PrometheusSettings",
    "ProxySettings",
    "RemoteWriteSettings",
    "RetentionSettings",
    "RulesSettings",
    "RunLimits",
    "S3Settings",
    "Section",
    "ServerSettings",
    "Settings",
    "SiteSettings",
    "SlackSettings",
    "SlurmSettings",
    "SourceLimits",
    "StorageSettings",
    "UploadLimits",
    "WebhookSettings",
    "WorkLimits",
    "find_config",
    "read_settings",
]
