"""Accounts, sessions, API tokens and what was done: who may come in, as records. How they are proved is the server's matter.

No record holds a password or a token; the store keeps digests of them, and only the server compares.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from clusterscape.model.ids import UnixMs
from clusterscape.model.viewers import Role, Viewer


class Way(StrEnum):
    """How somebody came in. A login is one person's within one way only."""

    STATIC = "static"
    """By the one token of the settings; nobody in particular."""
    LOCAL = "local"
    """With a password kept here."""
    OIDC = "oidc"
    """Through a provider that speaks OpenID Connect."""
    PROXY = "proxy"
    """By the headers of a reverse proxy that is trusted."""


class Scope(StrEnum):
    """What an API token may be used for; never more than its owner's role allows."""

    READ = "read"
    """Every question."""
    RUNS = "runs"
    """Send runs and traces."""
    WRITE = "write"
    """Change rules, mutes, views and whatever else is kept; includes ``runs``."""
    ADMIN = "admin"
    """Accounts, tokens and the audit log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Somebody who came in, or may. Role and projects of OIDC and proxy accounts are those of the last sign-in."""

    way: Way
    login: str
    role: Role
    projects: frozenset[str] = frozenset()
    title: str | None = None
    subject: str | None = None
    """The provider's own id of a person, which never goes to another; a login may."""
    is_disabled: bool = False
    created_at: UnixMs
    signed_in_at: UnixMs | None = None

    def viewer(self) -> Viewer:
        """Who they are to the rest of the program."""
        return Viewer(login=self.login, role=self.role, projects=self.projects, title=self.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A browser that somebody signed in with. ``digest`` is of the id in its cookie."""

    digest: str
    way: Way
    login: str | None
    seal: str | None = None
    """Of a session by the static token: that token, keyed by the session's id, so that it ends when the token changes."""
    created_at: UnixMs
    seen_at: UnixMs
    expires_at: UnixMs
    address: str
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """A token for scripts. ``key`` names it in lists; ``start`` are its first characters, to know it again by."""

    key: str
    start: str
    title: str
    way: Way
    login: str
    scopes: frozenset[Scope]
    created_at: UnixMs
    expires_at: UnixMs
    used_at: UnixMs | None = None
    revoked_at: UnixMs | None = None

    def is_live(self, now: UnixMs) -> bool:
        """Whether it still opens anything."""
        return self.revoked_at is None and now < self.expires_at


class Outcome(StrEnum):
    """How it ended."""

    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One thing that somebody did or tried: who, when, from where, what. Written once, never changed."""

    at: UnixMs
    action: str
    """Such as ``sign_in``, ``rule.save``, ``token.create``."""
    outcome: Outcome
    actor: str | None
    """The login; None: nobody in particular."""
    way: str | None
    """A Way, ``token:KEY`` of an API token, ``here`` where nobody has to sign in, or ``command``."""
    address: str | None
    target: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    """Given by the store; greater for later entries."""
