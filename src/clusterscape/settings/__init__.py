"""All settings: name, default, unit, help. Read at startup, then passed down; nothing else reads the environment.

Sources, in increasing priority: defaults, a TOML file, environment variables ``CLUSTERSCAPE_<SECTION>__<KEY>``
(two underscores per level), options of the command line.

``access``: authentication, roles, visibility.
``accounting``: time zone, prices and budgets of usage.
``alerting``: rules, alert channels, remote write.
``limits``: limits per client, user and source.
``reading``: reads the configuration; ``find_config`` chooses the file.
``renamed``: old names of settings, which are still read.
``section``: the base class of sections.
``serving``: listen address, role, logging.
``sources``: collectors.
``storage``: the stores.
"""

from clusterscape.settings.access import AuthSettings, OidcSettings, ProxySettings, SiteSettings
from clusterscape.settings.accounting import AccountingSettings, BudgetSettings, PriceSettings
from clusterscape.settings.alerting import (
    CHANNEL_KINDS,
    AlertmanagerSettings,
    AlertsSettings,
    AnyChannelSettings,
    AppriseSettings,
    ChannelSettings,
    EmailSettings,
    JobMailSettings,
    RemoteWriteSettings,
    RulesSettings,
    SlackSettings,
    WebhookSettings,
)
from clusterscape.settings.limits import (
    HttpLimits,
    LimitsSettings,
    RunLimits,
    SourceLimits,
    UploadLimits,
    WorkLimits,
)
from clusterscape.settings.reading import Settings, find_config, read_settings
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

__all__ = [
    "CHANNEL_KINDS",
    "AccountingSettings",
    "AlertmanagerSettings",
    "AlertsSettings",
    "AnyChannelSettings",
    "AppriseSettings",
    "AuthSettings",
    "BudgetSettings",
    "ChannelSettings",
    "CollectSettings",
    "DcgmSettings",
    "EmailSettings",
    "HttpLimits",
    "JobMailSettings",
    "KubernetesSettings",
    "LimitsSettings",
    "LogSettings",
    "MetricsServerSettings",
    "NvmlSettings",
    "OidcSettings",
    "PostgresSettings",
    "PriceSettings",
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
