"""The whole configuration."""

from pydantic import Field

from clusterscape.settings.access import AuthSettings, SiteSettings
from clusterscape.settings.limits import LimitsSettings
from clusterscape.settings.section import Section
from clusterscape.settings.serving import LogSettings, ServerSettings
from clusterscape.settings.sources import CollectSettings
from clusterscape.settings.storage import RetentionSettings, StorageSettings
from clusterscape.settings.telling import AlertsSettings, RemoteWriteSettings, RulesSettings


class Settings(Section):
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
    limits: LimitsSettings = LimitsSettings()
    log: LogSettings = LogSettings()
