"""Records of authentication and authorization: viewers, roles, accounts, sessions, API tokens and audit entries.

No record holds a password or a token: the store keeps digests, and only the server (``serve/identity``) verifies them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from clusterscape.model.ids import UnixMs


class Role(StrEnum):
    """What an account may do; each role includes the rights of the roles before it."""

    VIEWER = "viewer"
    """Sees the overview; sees names of users and projects only on an open site."""
    RESEARCHER = "researcher"
    """Sees own workloads in detail; stores own views, runs and traces."""
    LEAD = "lead"
    """Also sees the workloads of own projects in detail."""
    OPERATOR = "operator"
    """Sees everything; edits rules, alerts and shared views."""
    ADMIN = "admin"
    """Also manages accounts and tokens, and reads the audit log."""

    @property
    def rank(self) -> int:
        """Position in the order of roles, from 0."""
        return _ORDER[self]

    def is_at_least(self, least: "Role") -> bool:
        """Whether this role includes the rights of ``least``."""
        return self.rank >= least.rank


_ORDER = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """The user behind a request. ``login`` is the user name in the scheduler; None: not a specific person.

    ``projects`` are those that a lead is responsible for.
    """

    login: str | None
    role: Role
    projects: frozenset[str] = frozenset()
    title: str | None = None
    """Display name, such as "Ada Lovelace"."""

    def may_see(self, user: str | None, project: str | None) -> bool:
        """Whether this viewer may see a workload of this user and project unredacted on a private site."""
        if self.role.is_at_least(Role.OPERATOR):
            return True
        if self.role.is_at_least(Role.RESEARCHER) and user is not None and user == self.login:
            return True
        return self.role.is_at_least(Role.LEAD) and project is not None and project in self.projects


LOCAL_ADMIN = Viewer(login=None, role=Role.ADMIN)
"""The viewer of a server that listens only on this machine and requires no login."""


class Way(StrEnum):
    """Authentication method. The same login may belong to different people under different methods."""

    STATIC = "static"
    """The shared token of the settings; not a specific person."""
    LOCAL = "local"
    """A password stored by ClusterScape."""
    OIDC = "oidc"
    """An OpenID Connect provider."""
    PROXY = "proxy"
    """Headers of a trusted reverse proxy."""


class Scope(StrEnum):
    """What an API token may be used for; never more than its owner's role allows."""

    READ = "read"
    """Read everything that the owner may see."""
    RUNS = "runs"
    """Send runs and traces."""
    WRITE = "write"
    """Change rules, mutes, views and other stored objects; includes ``runs``."""
    ADMIN = "admin"
    """Accounts, tokens and the audit log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account that may sign in. Role and projects of OIDC and proxy accounts are those of the last sign-in."""

    way: Way
    login: str
    role: Role
    projects: frozenset[str] = frozenset()
    title: str | None = None
    subject: str | None = None
    """The provider's permanent id of a person; a login may be given to another person later."""
    is_disabled: bool = False
    created_at: UnixMs
    signed_in_at: UnixMs | None = None

    def viewer(self) -> Viewer:
        """The viewer that requests of this account have."""
        return Viewer(login=self.login, role=self.role, projects=self.projects, title=self.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A signed-in browser. ``digest`` is the digest of the session id in its cookie."""

    digest: str
    way: Way
    login: str | None
    seal: str | None = None
    """For sessions of the static token: a keyed hash of that token, so that the session ends when the token changes."""
    created_at: UnixMs
    seen_at: UnixMs
    expires_at: UnixMs
    address: str
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """A token for scripts. ``key`` identifies it in lists; ``start`` are its first characters, for recognition."""

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
        """Whether it is neither revoked nor expired."""
        return self.revoked_at is None and now < self.expires_at


class Outcome(StrEnum):
    """Whether an audited action was carried out."""

    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """An action that somebody carried out or attempted: who, when, from where, what. Append-only."""

    at: UnixMs
    action: str
    """Such as ``sign_in``, ``rule.save``, ``token.create``."""
    outcome: Outcome
    actor: str | None
    """The login; None: not a specific person."""
    way: str | None
    """A ``Way``, ``token:KEY`` of an API token, ``here`` where no sign-in is required, or ``command``."""
    address: str | None
    target: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    """Assigned by the store; increases with time."""
