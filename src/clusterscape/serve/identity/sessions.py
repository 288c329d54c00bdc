"""Sessions of browsers: a random id in a cookie that scripts cannot read, its digest in the store. Nothing is kept in memory."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from http.cookies import SimpleCookie

from clusterscape.model import UnixMs
from clusterscape.model.access import Account, Session, Way
from clusterscape.serve.identity.addresses import Whence
from clusterscape.settings import AuthSettings
from clusterscape.store.access import AccessStore

COOKIE = "clusterscape_session"
HOUR_MS = 3_600_000
ID_BYTES = 32
LONGEST_AGENT = 120
STATIC_USERS = 100
TOUCHED_EVERY = 1 / 60
"""Of the idle time: how exactly the last use is kept. A request writes no more often than that."""


def cookie_name(name: str, *, is_https: bool) -> str:
    """Over https the browser itself then holds the cookie to this host, to https and to the whole path."""
    return f"__Host-{name}" if is_https else name


def write_cookie(name: str, value: str, *, is_https: bool, max_age_s: int) -> str:
    """A Set-Cookie header; an age of 0 forgets the cookie."""
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
    """SHA-256: enough for 256 random bits, which nobody can try through."""
    return hashlib.sha256(secret.encode()).hexdigest()


def seal_of(static_token: str, session_id: str) -> str:
    """The static token as a session keeps it: not to be guessed from the store, which has no session's id."""
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

    def open(self, way: Way, login: str | None, whence: Whence, agent: str) -> str:
        """A new session, never one that the browser brought along; returns its id, which only the cookie may hold."""
        session_id = secrets.token_urlsafe(ID_BYTES)
        now = self._clock()
        self._make_room(way, login)
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
                address=whence.address,
                agent=agent[:LONGEST_AGENT],
            )
        )
        return session_id

    def _make_room(self, way: Way, login: str | None) -> None:
        """End what has been unused for longest. Many people may share the static token."""
        most = self._most_per_user * (STATIC_USERS if way is Way.STATIC else 1)
        known = sorted(self._store.sessions(way, login), key=lambda session: session.seen_at)
        for session in known[: max(0, len(known) - most + 1)]:
            self._store.end_session(session.digest)

    def find(self, session_id: str) -> tuple[Session, Account | None] | None:
        """The session with its account, where it still holds; notes that it was used."""
        found = self._store.session(digest_of(session_id))
        if found is None:
            return None
        session, account = found
        now = self._clock()
        if now >= session.expires_at or now - session.seen_at >= self._idle_ms:
            self._store.end_session(session.digest)
            return None
        if session.way is Way.STATIC:
            if not self._is_sealed(session, session_id):
                return None
        elif account is None or account.is_disabled:
            return None
        if now - session.seen_at >= self._idle_ms * TOUCHED_EVERY:
            self._store.touch_session(session.digest, now)
        return session, account

    def _is_sealed(self, session: Session, session_id: str) -> bool:
        if self._static_token is None or session.seal is None:
            return False
        return hmac.compare_digest(session.seal, seal_of(self._static_token, session_id))

    def idle_before(self, now: UnixMs) -> UnixMs:
        """Sessions that were last used before this are over."""
        return UnixMs(int(now - self._idle_ms))
