"""Email over SMTP: text and HTML, one mail per message; to fixed addresses, or to the workload's user."""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from functools import partial

from clusterscape import executors
from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.channels.message_text import (
    MessageText,
    build_text,
    describe,
    describe_tally,
    write_plain,
)
from clusterscape.watch.alerts.channels.site_info import SiteInfo
from clusterscape.watch.alerts.channels.smtp import SmtpServer
from clusterscape.watch.alerts.channels.user_mail import MailText, build_user_mail
from clusterscape.watch.alerts.contract import DeliveryResult, Firing, Message, MessageKind, SendingPolicy
from clusterscape.watch.alerts.turns import AlertTurn

_LISTED_TURNS = 200
_PLAIN_USER = re.compile(r"[A-Za-z0-9._+-]{1,64}")
PERSONAL = "{user}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailChannel:
    """Email. ``to`` may contain ``{user}``, the workload's user: then every user has a separate lane."""

    name: str
    policy: SendingPolicy
    site: SiteInfo
    clock: Callable[[], UnixMs]
    server: SmtpServer
    sender: str
    to: tuple[str, ...]
    kind: str = "email"
    refresh_every_ms: int | None = None

    def can_reach(self, turn: AlertTurn) -> bool:
        """Whether the turn has a recipient."""
        return bool(self._recipients(turn.user))

    def _recipients(self, user: str | None) -> list[str]:
        # Other characters could form another address, or a header.
        is_plain = user is not None and _PLAIN_USER.fullmatch(user) is not None
        return [address.replace(PERSONAL, user or "") for address in self.to if PERSONAL not in address or is_plain]

    async def send(self, message: Message) -> DeliveryResult:
        """Send one mail, in a thread, because smtplib blocks."""
        # The test message goes to fixed addresses, or to the user in its lane.
        recipients = self._recipients(message.lane or None)
        if not recipients:
            return DeliveryResult(
                is_accepted=False,
                is_lasting=True,
                text="no recipient: `to` contains only `{user}`, and the message has no user",
            )
        is_personal = any(PERSONAL in address for address in self.to)
        mail = compose(message, self.site, sender=self.sender, recipients=recipients, is_personal=is_personal)
        submit = partial(self.server.submit, mail, sender=self.sender, recipients=recipients)
        return await executors.UPKEEP.run(submit)

    async def refresh(self, firing: Sequence[Firing]) -> DeliveryResult:
        """Do nothing: mails only report changes."""
        del firing
        return DeliveryResult(is_accepted=True, text="")


def personal_address(to: Sequence[str], user: str) -> str | None:
    """The address of a user by the first pattern with ``{user}``; None if there is none, or the login is no plain name."""
    pattern = next((address for address in to if PERSONAL in address), None)
    is_plain = _PLAIN_USER.fullmatch(user) is not None
    return pattern.replace(PERSONAL, user) if pattern is not None and is_plain else None


def compose(
    message: Message, site: SiteInfo, *, sender: str, recipients: Sequence[str], is_personal: bool = False
) -> EmailMessage:
    """Build the mail. Its Message-ID is the message's key, the same at every attempt. ``is_personal``: a mail to the user."""
    text = build_text(message, site.cluster, most=_LISTED_TURNS)
    if is_personal and message.kind is not MessageKind.TEST:
        return _build_mail(build_user_mail(message, site), message, sender, recipients)
    plain, page = write_plain(text, site, message.key), _html(text, site, message.key)
    return _build_mail(MailText(text.subject, f"{text.subject}\n\n{plain}", page), message, sender, recipients)


def _build_mail(content: MailText, message: Message, sender: str, recipients: Sequence[str]) -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Subject"] = " ".join(content.subject.split())
    mail["Date"] = formatdate(message.created_at / 1000)
    domain = re.sub(r"[^A-Za-z0-9.-]", "", sender.rpartition("@")[2]) or "clusterscape.invalid"
    mail["Message-ID"] = f"<{message.key}@{domain}>"
    # Prevents automatic replies (RFC 3834).
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(content.plain)
    mail.add_alternative(content.html, subtype="html")
    return mail


def _html(text: MessageText, site: SiteInfo, key: str) -> str:
    """HTML that all mail clients support: a heading, a list, inline styles."""
    items = [f"<li>{html.escape(describe_tally(tally))}</li>" for tally in text.tallies]
    items += [_item(turn, site) for turn in text.turns]
    if text.unlisted:
        items.append(f"<li>… and {text.unlisted:,} more; the page shows them all.</li>")
    reasons = [f"<p><b>{html.escape(name)}</b>: {html.escape(reason)}</p>" for name, reason in text.reasons]
    page = site.page_url
    link = f'<a href="{html.escape(page)}">Open the page</a> · ' if page else ""
    return (
        '<div style="font-family: sans-serif; font-size: 14px; line-height: 1.5">'
        f'<h2 style="font-size: 16px">{html.escape(text.subject)}</h2>'
        f"<ul>{''.join(items)}</ul>{''.join(reasons)}"
        f'<p style="color: #777; font-size: 12px">{link}ClusterScape, message {key}</p></div>'
    )


def _item(turn: AlertTurn, site: SiteInfo) -> str:
    url = site.workload_url(turn.workload)
    text = html.escape(describe(turn))
    linked = f'<a href="{html.escape(url)}">{text}</a>' if url else text
    small = f'<br><span style="color: #777">{html.escape(turn.readings)}</span>' if turn.readings else ""
    return f"<li>{linked}{small}</li>"
