"""What the commands about access share: the store of the configured site, opened for one command, and its audit log."""

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from clusterscape.cli.output import errors
from clusterscape.cli.site_settings import read_site_settings
from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model.access import Account, AuditEntry, Outcome, Way
from clusterscape.runtime.site import system_clock
from clusterscape.serve.identity.passwords import check_new_password, hash_password
from clusterscape.settings import Settings
from clusterscape.store.access import AccessStore, open_access_store


@dataclass(frozen=True, slots=True)
class Access:
    """A site's accounts, tokens and audit log, while a command works on them. The server may be running."""

    settings: Settings
    store: AccessStore

    def account(self, way: Way, login: str) -> Account:
        """One account; raises NotFoundError."""
        found = self.store.account(way, login)
        if found is None:
            raise NotFoundError(f"there is no account {login} ({way})", hint="`clusterscape user list` shows them.")
        return found

    def note(self, action: str, target: str, **details: str) -> None:
        """Write to the audit log that the command did it."""
        self.store.append_audit(
            AuditEntry(
                at=system_clock(),
                action=action,
                outcome=Outcome.DONE,
                actor=getpass.getuser(),
                way="command",
                address=None,
                target=target,
                details=details,
            )
        )

    def ask_password_hash(self, login: str, *, from_input: bool) -> str:
        """Ask for a new password twice, or read one line; raises QueryError where it is not good enough."""
        if from_input:
            password = sys.stdin.readline().rstrip("\r\n")
        elif not sys.stdin.isatty():
            raise QueryError("there is nobody to ask for a password", hint="Give it as a line with --password-stdin.")
        else:
            password = typer.prompt(f"Password of {login}", hide_input=True, confirmation_prompt=True, err=True)
        return hash_password(
            check_new_password(password, login=login, min_length=self.settings.auth.password_min_length)
        )


@contextmanager
def open_access(config: Path | None) -> Iterator[Access]:
    """The access of the configured site."""
    settings = read_site_settings(config)
    store = open_access_store(settings.storage)
    try:
        yield Access(settings, store)
    finally:
        store.close()


def warn_if_unused(settings: Settings) -> None:
    """A password that nobody is asked for is worth a word."""
    if "local" not in settings.auth.modes:
        errors.print('Local accounts cannot sign in yet: set auth.modes = ["local"].', style="yellow", highlight=False)
