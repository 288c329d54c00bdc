"""Builds the mailer of ended jobs from the settings: its server, sender and addresses are those of an e-mail channel."""

from collections.abc import Callable

from clusterscape.errors import ConfigError
from clusterscape.runtime.site import Site
from clusterscape.services.job_mail.mailer import JobMailer, MailPolicy
from clusterscape.services.job_mail.outbox import Outbox
from clusterscape.settings import EmailSettings
from clusterscape.store.access import open_access_store
from clusterscape.watch.alerts.channels.build import open_smtp
from clusterscape.watch.alerts.channels.mail import personal_address

OUTBOX_FILE = "job-mail.db"
"""Below ``storage.data_dir``."""


def open_job_mailer(site: Site, decides: Callable[[], bool]) -> JobMailer | None:
    """The mailer; None if ``job_mail.channel`` is not set."""
    settings = site.settings.job_mail
    if settings.channel is None:
        return None
    channel = site.settings.alerts.channels.get(settings.channel)
    if not isinstance(channel, EmailSettings):
        raise ConfigError(
            f"job_mail.channel names {settings.channel!r}, which is no e-mail channel",
            hint='Add [alerts.channels.NAME] with kind = "email", and name it in job_mail.channel.',
        )
    accounts = open_access_store(site.settings.storage)
    return JobMailer(
        site.queries.context,
        site.queries.jobs,
        Outbox(site.settings.storage.data_dir / OUTBOX_FILE),
        open_smtp(channel),
        MailPolicy(
            folders=(settings.spool,),
            sender=channel.sender,
            address_of=lambda login: personal_address(channel.to, login),
            page_url=site.settings.alerts.page_url,
            standard=settings.mails,
            digest_above=settings.digest_above,
            digest_interval_ms=int(settings.digest_interval_s * 1000),
            weekly=settings.weekly_to_leads,
        ),
        accounts=accounts.accounts,
        decides=decides,
    )
