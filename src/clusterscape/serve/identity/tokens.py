"""API tokens for scripts: shown once, stored as a digest; and which requests each scope allows."""

import re
import secrets
from collections.abc import Callable, Collection

from clusterscape.errors import NotFoundError, QueryError, TooLargeError
from clusterscape.model import UnixMs
from clusterscape.model.access import Account, ApiToken, Role, Scope, Viewer, Way
from clusterscape.model.durations import DAY_MS
from clusterscape.serve.identity.sessions import digest_of
from clusterscape.settings import AuthSettings
from clusterscape.settings.limits import ItemLimits
from clusterscape.store.access import AccessStore

PREFIX = "cst_"
"""Makes a leaked token recognizable to people and to secret scanners."""
SECRET_BYTES = 32
SHOWN_CHARACTERS = len(PREFIX) + 4
TOUCH_INTERVAL_MS = 60_000
"""The last use is written at most this often."""

_RUN_ROUTES = ("/api/v1/runs", "/api/v1/traces")
_ADMIN_ROUTES = ("/api/v1/accounts", "/api/v1/tokens", "/api/v1/audit", "/api/v1/session", "/api/v1/sessions")
_WHO_AM_I = "/api/v1/session"
# Progress of an upload or import: clients that send must be able to read it.
_PROGRESS_ROUTES = re.compile(r"/api/v1/(runs/[^/]+/files|traces/(?!diff$)[^/]+)")
_READERS = frozenset({Scope.READ})
_WRITERS = frozenset({Scope.WRITE})
_SENDERS = frozenset({Scope.RUNS, Scope.WRITE})
_READERS_AND_SENDERS = _READERS | _SENDERS


class ApiTokens:
    """Creates, finds and revokes API tokens."""

    def __init__(
        self, store: AccessStore, auth: AuthSettings, *, clock: Callable[[], UnixMs], limits: ItemLimits | None = None
    ) -> None:
        """``limits``: None for commands, which the operator of the server runs."""
        self._limits = limits
        self._store = store
        self._clock = clock
        self._max_days = auth.token_max_days

    def create(
        self, owner: Account, *, title: str, scopes: Collection[Scope], days: float | None = None
    ) -> tuple[ApiToken, str]:
        """Create a token; returns it with its secret, which cannot be read again."""
        if not scopes:
            raise QueryError("a token needs a scope", hint=f"One or more of: {', '.join(Scope)}.")
        if Scope.ADMIN in scopes and not owner.role.is_at_least(Role.ADMIN):
            raise QueryError(f"the scope `admin` requires the role admin, and {owner.login} has {owner.role.value}")
        valid_days = self._max_days if days is None else days
        if not 0 < valid_days <= self._max_days:
            raise QueryError(
                f"a token may be valid for at most {self._max_days:g} days",
                hint="The setting auth.token_max_days sets this limit.",
            )
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        now = self._clock()
        self._check_count(owner, now)
        token = ApiToken(
            key=secrets.token_hex(6),
            start=secret[:SHOWN_CHARACTERS],
            title=title,
            way=owner.way,
            login=owner.login,
            scopes=frozenset(scopes),
            created_at=now,
            expires_at=UnixMs(int(now + valid_days * DAY_MS)),
        )
        self._store.add_token(token, digest=digest_of(secret))
        return token, secret

    def _check_count(self, owner: Account, now: UnixMs) -> None:
        """Limit the valid tokens of a user, and new ones per day, so that nobody fills the store by creating and revoking."""
        limits = self._limits
        if limits is None:
            return
        tokens = self._store.tokens(owner.way, owner.login)
        live = sum(token.is_live(now) for token in tokens)
        if live >= limits.tokens_per_user:
            raise TooLargeError(
                f"{owner.login} has {live:,} tokens already",
                setting="limits.items.tokens_per_user",
                hint="Revoke one that is no longer used.",
            )
        if sum(now - token.created_at < DAY_MS for token in tokens) >= limits.new_tokens_per_day:
            raise TooLargeError(
                f"{owner.login} has created {limits.new_tokens_per_day:,} tokens within a day",
                setting="limits.items.new_tokens_per_day",
                hint="Use one token for many requests.",
            )

    def find(self, secret: str) -> tuple[ApiToken, Account] | None:
        """The token and its owner, if both are still valid; records its use."""
        if not secret.startswith(PREFIX):
            return None
        token_and_owner = self._store.find_token(digest_of(secret))
        if token_and_owner is None:
            return None
        token, owner = token_and_owner
        now = self._clock()
        if owner is None or owner.is_disabled or not token.is_live(now):
            return None
        if token.used_at is None or now - token.used_at >= TOUCH_INTERVAL_MS:
            self._store.touch_token(token.key, now)
        return token, owner

    def revoke(self, key: str, *, owner: tuple[Way, str] | None) -> ApiToken:
        """Revoke a token; with ``owner`` only one of theirs. Raises NotFoundError if there is none."""
        token = self._store.token(key)
        is_theirs = token is not None and (owner is None or (token.way, token.login) == owner)
        if token is None or not is_theirs or not self._store.revoke_token(key, self._clock()):
            raise NotFoundError(f"no valid token {key}")
        return token


def limit_viewer(viewer: Viewer, scopes: Collection[Scope]) -> Viewer:
    """The owner with the rights of the token: an administrator's token has the role admin only with the scope ``admin``."""
    if Scope.ADMIN in scopes or not viewer.role.is_at_least(Role.ADMIN):
        return viewer
    return Viewer(login=viewer.login, role=Role.OPERATOR, projects=viewer.projects, title=viewer.title)


def find_scopes(path: str, *, is_change: bool) -> frozenset[Scope]:
    """The scopes that allow a request; a token needs one of them."""
    if path == _WHO_AM_I and not is_change:
        return frozenset(Scope)
    if _is_below(path, _ADMIN_ROUTES):
        return frozenset({Scope.ADMIN})
    if not is_change:
        return _READERS_AND_SENDERS if _PROGRESS_ROUTES.fullmatch(path) else _READERS
    return _SENDERS if _is_below(path, _RUN_ROUTES) else _WRITERS


def _is_below(path: str, routes: Collection[str]) -> bool:
    return any(path == route or path.startswith(f"{route}/") for route in routes)
