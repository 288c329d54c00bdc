"""Browser sessions: a random id in an HTTP-only cookie, its digest in the store. Nothing is kept in memory."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from http.cookies import SimpleCookie

from clusterscape.model import UnixMs
from clusterscape.model.access import Account, Session, Way
from clusterscape.model.durations import HOUR_MS
from clusterscape.serve.identity.addresses import ClientInfo
from clusterscape.settings import AuthSettings
from clusterscape.store.access import AccessStore

COOKIE = "clusterscape_session"
ID_BYTES = 32
LONGEST_AGENT = 120
STATIC_USERS = 100
TOUCH_INTERVAL = 1 / 60
"""Share of the idle time after which a request writes the last use again."""


def cookie_name(name: str, *, is_https: bool) -> str:
    """The name of a cookie; the prefix ``__Host-`` makes browsers bind it to this host and to https."""
    return f"__Host-{name}" if is_https else name


def write_cookie(name: str, value: str, *, is_https: bool, max_age_s: int) -> str:
    """A Set-Cookie header; an age of 0 deletes the cookie."""
    cookie: SimpleCookie = SimpleCookie()
    key = cookie_name(name, is_https=is_https)
    cookie[key] = value
    morsel = cookie[key]
    morsel["path"], morsel["httponly"], morsel["samesite"] = "/", True, "Lax"
    morsel["max-age"] = str(max_age_s)
    if is_https:
        morsel["secure"] = True
    return morsel.OutputString()


def digest_of(secret: str) -> str:
    """The SHA-256 digest of a secret: a fast hash is enough for 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def seal_of(static_token: str, session_id: str) -> str:
    """An HMAC of the static token that ties a session to it; it cannot be guessed from the store, which has no session ids."""
    return hmac.new(session_id.encode(), static_token.encode(), hashlib.sha256).hexdigest()


class Sessions:
    """Opens, finds and ends sessions."""

    def __init__(
        self,
        store: AccessStore,
        auth: AuthSettings,
        *,
        clock: Callable[[], UnixMs],
        static_token: str | None,
        most_per_user: int = 50,
    ) -> None:
        self._store = store
        self._most_per_user = most_per_user
        self._clock = clock
        self._static_token = static_token
        self._idle_ms = auth.session_idle_hours * HOUR_MS
        self.max_ms = int(auth.session_max_hours * HOUR_MS)

    def open(self, way: Way, login: str | None, client: ClientInfo, agent: str) -> str:
        """Create a session; returns its id, which only the cookie may hold. Ids sent by the browser are never reused."""
        session_id = secrets.token_urlsafe(ID_BYTES)
        now = self._clock()
        self._end_oldest(way, login)
        seal = None if way is not Way.STATIC else seal_of(self._static_token or "", session_id)
        self._store.add_session(
            Session(
                digest=digest_of(session_id),
                way=way,
                login=login,
                seal=seal,
                created_at=now,
                seen_at=now,
                expires_at=UnixMs(now + self.max_ms),
                address=client.address,
                agent=agent[:LONGEST_AGENT],
            )
        )
        return session_id

    def _end_oldest(self, way: Way, login: str | None) -> None:
        """End the least recently used sessions above the limit. Many people may share the static token."""
        most = self._most_per_user * (STATIC_USERS if way is Way.STATIC else 1)
        sessions = sorted(self._store.sessions(way, login), key=lambda session: session.seen_at)
        for session in sessions[: max(0, len(sessions) - most + 1)]:
            self._store.end_session(session.digest)

    def find(self, session_id: str) -> tuple[Session, Account | None] | None:
        """The session and its account, if the session is still valid; records its use."""
        session_and_account = self._store.session(digest_of(session_id))
        if session_and_account is None:
            return None
        session, account = session_and_account
        now = self._clock()
        if now >= session.expires_at or now - session.seen_at >= self._idle_ms:
            self._store.end_session(session.digest)
            return None
        if session.way is Way.STATIC:
            if not self._has_valid_seal(session, session_id):
                return None
        elif account is None or account.is_disabled:
            return None
        if now - session.seen_at >= self._idle_ms * TOUCH_INTERVAL:
            self._store.touch_session(session.digest, now)
        return session, account

    def _has_valid_seal(self, session: Session, session_id: str) -> bool:
        if self._static_token is None or session.seal is None:
            return False
        return hmac.compare_digest(session.seal, seal_of(self._static_token, session_id))

    def idle_before(self, now: UnixMs) -> UnixMs:
        """The time before which an unused session has expired."""
        return UnixMs(int(now - self._idle_ms))
