"""E-mail over SMTP: text and HTML, one mail per message; to fixed addresses, or to the workload's user."""

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
from clusterscape.watch.alerts.channels.letterhead import Letterhead
from clusterscape.watch.alerts.channels.user_words import Letter, word_for_user
from clusterscape.watch.alerts.channels.words import (
    Wording,
    describe,
    describe_tally,
    put_into_words,
)
from clusterscape.watch.alerts.contract import Answer, Firing, Message, MessageKind, Policy
from clusterscape.watch.alerts.turns import AlertTurn

_LISTED_TURNS = 200
_PLAIN_USER = re.compile(r"[A-Za-z0-9._+-]{1,64}")
PERSONAL = "{user}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailChannel:
    """``to`` may hold ``{user}``, the workload's user: then every user is a lane of his own."""

    name: str
    policy: Policy
    letterhead: Letterhead
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
        """Whether the turn has a recipient: one to users only needs a user."""
        return bool(self._recipients(turn.user))

    def _recipients(self, user: str | None) -> list[str]:
        # A name that is no plain word could be another address, or a header.
        is_plain = user is not None and _PLAIN_USER.fullmatch(user) is not None
        return [each.replace(PERSONAL, user or "") for each in self.to if PERSONAL not in each or is_plain]

    async def send(self, message: Message) -> Answer:
        """One mail, in a thread: smtplib waits."""
        # The test message goes to fixed addresses, or to who is named by its lane.
        recipients = self._recipients(message.lane or None)
        if not recipients:
            return Answer(is_accepted=False, is_lasting=True, text="no recipient: `to` names only the workload's user")
        is_personal = any(PERSONAL in address for address in self.to)
        mail = compose(message, self.letterhead, sender=self.sender, recipients=recipients, is_personal=is_personal)
        return await executors.UPKEEP.run(self._submit, mail, recipients)

    async def refresh(self, firing: Sequence[Firing]) -> Answer:
        """Nothing: a mail is told changes."""
        del firing
        return Answer(is_accepted=True, text="")

    def _submit(self, mail: EmailMessage, recipients: Sequence[str]) -> Answer:
        try:
            with self._connect() as server:
                if self.security == "starttls":
                    server.starttls(context=self._trust())
                if self.user is not None:
                    server.login(self.user, self.password or "")
                refused = server.send_message(mail, from_addr=self.sender, to_addrs=recipients)
        except smtplib.SMTPRecipientsRefused as error:
            return _judge_recipients(error.recipients)
        except smtplib.SMTPResponseException as error:
            text = f"{error.smtp_code} {_text(error.smtp_error)}"
            return Answer(is_accepted=False, text=f"{self.host}: {text}", is_lasting=error.smtp_code >= 500)
        except smtplib.SMTPNotSupportedError as error:
            return Answer(is_accepted=False, text=f"{self.host}: {error}", is_lasting=True)
        except ssl.SSLCertVerificationError as error:
            text = f"{self.host}: its certificate is not trusted: {error.verify_message}"
            return Answer(is_accepted=False, text=text, is_lasting=True)
        except (OSError, smtplib.SMTPException) as error:
            return Answer(is_accepted=False, text=f"cannot reach {self.host}:{self.port}: {error}")
        if refused:
            # To send again would tell the others twice.
            return Answer(is_accepted=True, is_lasting=True, text=_judge_recipients(refused).text)
        return Answer(is_accepted=True, text=f"accepted for {', '.join(recipients)}")

    def _connect(self) -> smtplib.SMTP:
        if self.security == "tls":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout_s, context=self._trust())
        return smtplib.SMTP(self.host, self.port, timeout=self.timeout_s)

    def _trust(self) -> ssl.SSLContext:
        return self.trust or ssl.create_default_context()


def _judge_recipients(refused: dict[str, tuple[int, bytes]]) -> Answer:
    text = "; ".join(f"{who} refused: {code} {_text(said)}" for who, (code, said) in refused.items())
    return Answer(is_accepted=False, text=text, is_lasting=all(code >= 500 for code, _ in refused.values()))


def _text(said: bytes | str) -> str:
    return said.decode("utf-8", errors="replace") if isinstance(said, bytes) else said


def compose(
    message: Message, letterhead: Letterhead, *, sender: str, recipients: Sequence[str], is_personal: bool = False
) -> EmailMessage:
    """The mail; its Message-ID is the message's key, and the same at every attempt. ``is_personal``: in users' words."""
    words = put_into_words(message, letterhead.cluster, most=_LISTED_TURNS)
    if is_personal and message.kind is not MessageKind.TEST:
        return _address(word_for_user(message, letterhead), message, sender, recipients)
    plain, page = _plain(words, letterhead, message.key), _html(words, letterhead, message.key)
    return _address(Letter(words.subject, plain, page), message, sender, recipients)


def _address(letter: Letter, message: Message, sender: str, recipients: Sequence[str]) -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Subject"] = " ".join(letter.subject.split())
    mail["Date"] = formatdate(message.created_at / 1000)
    domain = re.sub(r"[^A-Za-z0-9.-]", "", sender.rpartition("@")[2]) or "clusterscape.invalid"
    mail["Message-ID"] = f"<{message.key}@{domain}>"
    # Keeps holiday replies away (RFC 3834).
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(letter.plain)
    mail.add_alternative(letter.html, subtype="html")
    return mail


def _plain(words: Wording, letterhead: Letterhead, key: str) -> str:
    lines = [words.subject, ""]
    lines += [f"- {describe_tally(each)}" for each in words.tallies]
    for turn in words.turns:
        lines.append(f"- {describe(turn)}")
        lines += [f"  {part}" for part in (turn.readings, letterhead.workload_url(turn.workload)) if part]
    if words.unlisted:
        lines.append(f"… and {words.unlisted:,} more; the page shows them all.")
    for name, reason in words.reasons:
        lines += ["", f"{name}: {reason}"]
    lines += ["", *([letterhead.page_url] if letterhead.page_url else []), f"ClusterScape, message {key}"]
    return "\n".join(lines)


def _html(words: Wording, letterhead: Letterhead, key: str) -> str:
    """Only what mail programs agree on: a heading, a list, inline styles."""
    items = [f"<li>{html.escape(describe_tally(each))}</li>" for each in words.tallies]
    items += [_item(turn, letterhead) for turn in words.turns]
    if words.unlisted:
        items.append(f"<li>… and {words.unlisted:,} more; the page shows them all.</li>")
    reasons = [f"<p><b>{html.escape(name)}</b>: {html.escape(reason)}</p>" for name, reason in words.reasons]
    page = letterhead.page_url
    link = f'<a href="{html.escape(page)}">Open the page</a> · ' if page else ""
    return (
        '<div style="font-family: sans-serif; font-size: 14px; line-height: 1.5">'
        f'<h2 style="font-size: 16px">{html.escape(words.subject)}</h2>'
        f"<ul>{''.join(items)}</ul>{''.join(reasons)}"
        f'<p style="color: #777; font-size: 12px">{link}ClusterScape, message {key}</p></div>'
    )


def _item(turn: AlertTurn, letterhead: Letterhead) -> str:
    url = letterhead.workload_url(turn.workload)
    text = html.escape(describe(turn))
    linked = f'<a href="{html.escape(url)}">{text}</a>' if url else text
    small = f'<br><span style="color: #777">{html.escape(turn.readings)}</span>' if turn.readings else ""
    return f"<li>{linked}{small}</li>"
