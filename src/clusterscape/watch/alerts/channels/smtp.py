"""Submits mails to an SMTP server: of the alert channel, and on ended jobs."""

import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage

from clusterscape.watch.alerts.contract import DeliveryResult


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    """A server and how to sign in. ``security``: ``plain``, ``starttls`` or ``tls``. ``trust`` None: the system's."""

    host: str
    port: int
    security: str
    user: str | None = None
    password: str | None = None
    timeout_s: float = 30.0
    trust: ssl.SSLContext | None = None

    def submit(self, mail: EmailMessage, *, sender: str, recipients: Sequence[str]) -> DeliveryResult:
        """Hand over one mail; never raises for errors of the server."""
        try:
            with self._connect() as server:
                if self.security == "starttls":
                    server.starttls(context=self._trust())
                if self.user is not None:
                    server.login(self.user, self.password or "")
                refused = server.send_message(mail, from_addr=sender, to_addrs=recipients)
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
