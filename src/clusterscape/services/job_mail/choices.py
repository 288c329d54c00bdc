"""Which mails on ended jobs a user gets: all, only on jobs that wasted something, or none."""

from enum import StrEnum

from clusterscape.errors import QueryError
from clusterscape.model.access import Viewer
from clusterscape.query.ownership import OWNER
from clusterscape.services.context import ServiceContext
from clusterscape.services.job_mail.mailer import CHOICE


class MailKind(StrEnum):
    """Which ended jobs a user gets mails on."""

    ALL = "all"
    WASTE = "waste"
    NONE = "none"


class MailChoices:
    """Reads and writes the choice of the signed-in user."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    def read(self, by: Viewer) -> MailKind | None:
        """The choice; None if there is none."""
        document = self._context.reads.records.document(CHOICE, _login(by))
        return None if document is None else MailKind(str(document.body["choice"]))

    def write(self, choice: MailKind, by: Viewer) -> None:
        """Keep the choice."""
        login = _login(by)
        body = {"choice": choice.value, OWNER: login}
        self._context.write_document(CHOICE, login, body, at_ms=self._context.reads.clock())


def _login(by: Viewer) -> str:
    if by.login is None:
        raise QueryError("nobody is signed in, so there is no choice of mails", hint="Sign in, or use your token.")
    return by.login
