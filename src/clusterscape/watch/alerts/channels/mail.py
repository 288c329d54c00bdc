"""Email over SMTP: text and HTML, one mail per message; to fixed addresses, or to the workload's user."""

import html
import re
import smtplib
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate

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
    host: str
    port: int
    security: str  # "plain", "starttls", "tls"
    user: str | None = None
    password: str | None = None
    sender: str
    to: tuple[str, ...]
    timeout_s: float = 30.0
    trust: ssl.SSLContext | None = None  # None: the system's
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
        return await executors.UPKEEP.run(self._submit, mail, recipients)

    async def refresh(self, firing: Sequence[Firing]) -> DeliveryResult:
        """Do nothing: mails only report changes."""
        del firing
        return DeliveryResult(is_accepted=True, text="")

    def _submit(self, mail: EmailMessage, recipients: Sequence[str]) -> DeliveryResult:
        try:
            with self._connect() as server:
                if self.security == "starttls":
                    server.starttls(context=self._trust())
                if self.user is not None:
                    server.login(self.user, self.password or "")
                refused = server.send_message(mail, from_addr=self.sender, to_addrs=recipients)
        except smtplib.SMTPRecipientsRefused as error:
            return _to_result(error.recipients)
        except smtplib.SMTPResponseException as error:
            text = f"{error.smtp_code} {_text(error.smtp_error)}"
            return DeliveryResult(is_accepted=False, text=f"{self.host}: {text}", is_lasting=error.smtp_code >= 500)
        except smtplib.SMTPNotSupportedError as error:
            return DeliveryResult(is_accepted=False, text=f"{self.host}: {error}", is_lasting=True)
        except ssl.SSLCertVerificationError as error:
            text = f"{self.host}: the certificate is not trusted: {error.verify_message}"
            return DeliveryResult(is_accepted=False, text=text, is_lasting=True)
        except (OSError, smtplib.SMTPException) as error:
            return DeliveryResult(is_accepted=False, text=f"cannot reach {self.host}:{self.port}: {error}")
        if refused:
            # A retry would send the mail twice to the other recipients.
            return DeliveryResult(is_accepted=True, is_lasting=True, text=_to_result(refused).text)
        return DeliveryResult(is_accepted=True, text=f"accepted for {', '.join(recipients)}")

    def _connect(self) -> smtplib.SMTP:
        if self.security == "tls":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout_s, context=self._trust())
        return smtplib.SMTP(self.host, self.port, timeout=self.timeout_s)

    def _trust(self) -> ssl.SSLContext:
        return self.trust or ssl.create_default_context()


def _to_result(refused: dict[str, tuple[int, bytes]]) -> DeliveryResult:
    text = "; ".join(f"{address} refused: {code} {_text(reply)}" for address, (code, reply) in refused.items())
    return DeliveryResult(is_accepted=False, text=text, is_lasting=all(code >= 500 for code, _ in refused.values()))


def _text(reply: bytes | str) -> str:
    return reply.decode("utf-8", errors="replace") if isinstance(reply, bytes) else reply


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
