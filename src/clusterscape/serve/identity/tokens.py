"""API tokens for scripts: made once, shown once, kept as a digest; and what each scope opens."""

import re
import secrets
from collections.abc import Callable, Collection

from clusterscape.errors import NotFoundError, QueryError, TooLargeError
from clusterscape.model import UnixMs
from clusterscape.model.access import Account, ApiToken, Scope, Way
from clusterscape.model.viewers import Role, Viewer
from clusterscape.serve.identity.sessions import digest_of
from clusterscape.settings import AuthSettings
from clusterscape.settings.limits import ItemLimits
from clusterscape.store.access import AccessStore

PREFIX = "cst_"
"""Tells a leaked token for what it is, to people and to scanners."""
SECRET_BYTES = 32
SHOWN = len(PREFIX) + 4
DAY_MS = 86_400_000
TOUCHED_EVERY_MS = 60_000
"""How exactly the last use is kept."""

_RUN_ROUTES = ("/api/v1/runs", "/api/v1/traces")
_ADMIN_ROUTES = ("/api/v1/accounts", "/api/v1/tokens", "/api/v1/audit", "/api/v1/session", "/api/v1/sessions")
_WHO_AM_I = "/api/v1/session"
# How much of a run has arrived, and whether a trace is read: who sends must be able to ask.
_ASKED_BY_SENDERS = re.compile(r"/api/v1/(runs/[^/]+/files|traces/(?!diff$)[^/]+)")
_READERS = frozenset({Scope.READ})
_WRITERS = frozenset({Scope.WRITE})
_SENDERS = frozenset({Scope.RUNS, Scope.WRITE})
_SENDERS_TOO = _READERS | _SENDERS


class ApiTokens:
    """Makes, finds and revokes API tokens."""

    def __init__(
        self, store: AccessStore, auth: AuthSettings, *, clock: Callable[[], UnixMs], limits: ItemLimits | None = None
    ) -> None:
        """``limits``: None for commands of who runs the server."""
        self._limits = limits
        self._store = store
        self._clock = clock
        self._max_days = auth.token_max_days

    def create(
        self, owner: Account, *, title: str, scopes: Collection[Scope], days: float | None = None
    ) -> tuple[ApiToken, str]:
        """A new token and its secret, which nobody can find out again."""
        if not scopes:
            raise QueryError("a token needs a scope", hint=f"One or more of: {', '.join(Scope)}.")
        if Scope.ADMIN in scopes and not owner.role.reaches(Role.ADMIN):
            raise QueryError(f"{owner.login} is no administrator, so the scope `admin` would open nothing")
        life_days = self._max_days if days is None else days
        if not 0 < life_days <= self._max_days:
            raise QueryError(
                f"a token may live for {self._max_days:g} days at most", hint="The setting auth.token_max_days says so."
            )
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        now = self._clock()
        self._check_number(owner, now)
        token = ApiToken(
            key=secrets.token_hex(6),
            start=secret[:SHOWN],
            title=title,
            way=owner.way,
            login=owner.login,
            scopes=frozenset(scopes),
            created_at=now,
            expires_at=UnixMs(int(now + life_days * DAY_MS)),
        )
        self._store.add_token(token, digest=digest_of(secret))
        return token, secret

    def _check_number(self, owner: Account, now: UnixMs) -> None:
        """Those that hold are few; and nobody fills the store by making and revoking."""
        limits = self._limits
        if limits is None:
            return
        known = self._store.tokens(owner.way, owner.login)
        live = sum(token.is_live(now) for token in known)
        if live >= limits.tokens_per_user:
            raise TooLargeError(
                f"{owner.login} has {live:,} tokens already",
                setting="limits.items.tokens_per_user",
                hint="Revoke one that is no longer used.",
            )
        if sum(now - token.created_at < DAY_MS for token in known) >= limits.new_tokens_per_day:
            raise TooLargeError(
                f"{owner.login} has made {limits.new_tokens_per_day:,} tokens within a day",
                setting="limits.items.new_tokens_per_day",
                hint="Use one token for many requests.",
            )

    def find(self, secret: str) -> tuple[ApiToken, Account] | None:
        """The token with its owner, where both still hold; notes that it was used."""
        if not secret.startswith(PREFIX):
            return None
        found = self._store.find_token(digest_of(secret))
        if found is None:
            return None
        token, owner = found
        now = self._clock()
        if owner is None or owner.is_disabled or not token.is_live(now):
            return None
        if token.used_at is None or now - token.used_at >= TOUCHED_EVERY_MS:
            self._store.touch_token(token.key, now)
        return token, owner

    def revoke(self, key: str, *, owner: tuple[Way, str] | None) -> ApiToken:
        """End a token; with ``owner`` only one of theirs. Raises NotFoundError where there is none."""
        token = self._store.token(key)
        is_theirs = token is not None and (owner is None or (token.way, token.login) == owner)
        if token is None or not is_theirs or not self._store.revoke_token(key, self._clock()):
            raise NotFoundError(f"there is no token {key} to revoke")
        return token


def limit_viewer(viewer: Viewer, scopes: Collection[Scope]) -> Viewer:
    """The owner as the token may act for them: an administrator's script is one only where it says so."""
    if Scope.ADMIN in scopes or not viewer.role.reaches(Role.ADMIN):
        return viewer
    return Viewer(login=viewer.login, role=Role.OPERATOR, projects=viewer.projects, title=viewer.title)


def find_scopes(path: str, *, is_change: bool) -> frozenset[Scope]:
    """Those of which a token must have one for a request."""
    if path == _WHO_AM_I and not is_change:
        return frozenset(Scope)
    if _is_below(path, _ADMIN_ROUTES):
        return frozenset({Scope.ADMIN})
    if not is_change:
        return _SENDERS_TOO if _ASKED_BY_SENDERS.fullmatch(path) else _READERS
    return _SENDERS if _is_below(path, _RUN_ROUTES) else _WRITERS


def _is_below(path: str, routes: Collection[str]) -> bool:
    return any(path == route or path.startswith(f"{route}/") for route in routes)
