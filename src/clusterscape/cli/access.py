"""Opens the account store of the configured site for one command, and writes its audit log."""

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from clusterscape.cli.output import stderr
from clusterscape.cli.site_settings import read_site_settings
from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model.access import Account, AuditEntry, Outcome, Way
from clusterscape.runtime.site import system_clock
from clusterscape.serve.identity.passwords import check_new_password, hash_password
from clusterscape.settings import Settings
from clusterscape.store.access import AccessStore, open_access_store


@dataclass(frozen=True, slots=True)
class SiteAccess:
    """Accounts, tokens and audit log of a site. The server may be running."""

    settings: Settings
    store: AccessStore

    def account(self, way: Way, login: str) -> Account:
        """One account; raises NotFoundError."""
        account = self.store.account(way, login)
        if account is None:
            raise NotFoundError(f"no account {login} ({way})", hint="`clusterscape user list` lists accounts.")
        return account

    def note(self, action: str, target: str, **details: str) -> None:
        """Write an action of the command to the audit log."""
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
        """Prompt for a new password twice, or read one line; raises QueryError if the password is too weak."""
        if from_input:
            password = sys.stdin.readline().rstrip("\r\n")
        elif not sys.stdin.isatty():
            raise QueryError(
                "cannot prompt for a password: standard input is not a terminal", hint="Use --password-stdin."
            )
        else:
            password = typer.prompt(f"Password of {login}", hide_input=True, confirmation_prompt=True, err=True)
        return hash_password(
            check_new_password(password, login=login, min_length=self.settings.auth.password_min_length)
        )


@contextmanager
def open_access(config: Path | None) -> Iterator[SiteAccess]:
    """Open the account store of the configured site."""
    settings = read_site_settings(config)
    store = open_access_store(settings.storage)
    try:
        yield SiteAccess(settings, store)
    finally:
        store.close()


def warn_if_unused(settings: Settings) -> None:
    """Warn if local accounts cannot sign in."""
    if "local" not in settings.auth.modes:
        stderr.print('Local accounts cannot sign in yet: set auth.modes = ["local"].', style="yellow", highlight=False)
