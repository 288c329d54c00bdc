"""Authenticates requests and signs users in: the object that the gate and the session routes share."""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from clusterscape.errors import AccessError, ForbiddenError, SignInError
from clusterscape.executors import ThreadPool
from clusterscape.model import UnixMs
from clusterscape.model.access import LOCAL_ADMIN, Account, Outcome, Role, Viewer, Way
from clusterscape.model.durations import DAY_MS
from clusterscape.serve.identity.addresses import Addresses, ClientInfo
from clusterscape.serve.identity.audit import AuditLog
from clusterscape.serve.identity.caller import Caller
from clusterscape.serve.identity.groups import resolve_groups
from clusterscape.serve.identity.passwords import LOGIN, hash_password, is_outdated, verify_password
from clusterscape.serve.identity.sessions import COOKIE, Sessions, cookie_name
from clusterscape.serve.identity.throttle import SignInThrottle
from clusterscape.serve.identity.tokens import ApiTokens, limit_viewer
from clusterscape.settings import AuthSettings
from clusterscape.settings.limits import ItemLimits
from clusterscape.store.access import AccessStore

if TYPE_CHECKING:
    from clusterscape.serve.identity.oidc import OidcProvider, Person

Params = ParamSpec("Params")
Result = TypeVar("Result")

STATIC_VIEWER = Viewer(login=None, role=Role.ADMIN)
WRONG_TOKEN = "invalid token"  # noqa: S105 – a message, not a token
WRONG_PASSWORD = "user name or password is wrong"  # noqa: S105 – does not reveal which
MOST_PROXY_USERS = 10_000


class Identity:
    """Authentication by the methods that the settings enable."""

    def __init__(
        self,
        store: AccessStore,
        auth: AuthSettings,
        *,
        static_token: str | None,
        clock: Callable[[], UnixMs],
        limits: ItemLimits | None = None,
    ) -> None:
        limits = limits or ItemLimits()
        self.store = store
        self.auth = auth
        self.audit = AuditLog(store, clock)
        self.sessions = Sessions(
            store, auth, clock=clock, static_token=static_token, most_per_user=limits.sessions_per_user
        )
        self.tokens = ApiTokens(store, auth, clock=clock, limits=limits)
        self.addresses = Addresses(auth.trusted_proxies, auth.public_url)
        self.throttle = SignInThrottle(
            attempts=auth.login_attempts, window_s=auth.login_window_s, now_s=lambda: clock() / 1000
        )
        self.provider = _build_provider(auth, clock)
        self._clock = clock
        self._static_token = static_token
        self._proxy_users: OrderedDict[str, Account] = OrderedDict()
        # Separate from the threads that run queries, so that slow queries do not block sign-ins. Hashing a password
        # takes 64 MiB for a moment, so few run at once.
        self._lookups = ThreadPool("access", 4)
        self._hashing = ThreadPool("passwords", 2)

    @property
    def is_open(self) -> bool:
        """Whether the server requires no authentication."""
        return self._static_token is None and not self.auth.modes

    @property
    def takes_token(self) -> bool:
        """Whether users can sign in with the token of the settings."""
        return self._static_token is not None

    @property
    def takes_password(self) -> bool:
        """Whether users can sign in with a local account."""
        return "local" in self.auth.modes

    def now(self) -> UnixMs:
        """The time that the expiry of sessions and tokens is compared with."""
        return self._clock()

    async def look_up(self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Call a function of the store in a thread, so that the event loop is not blocked."""
        return await self._lookups.run(work, *args, **kwargs)

    async def find_caller(self, headers: Headers, client: ClientInfo) -> Caller | None:
        """The caller of a request; None: not signed in. Raises AccessError if the request has an invalid token."""
        secret = _bearer(headers)
        if secret is not None and not self.is_open:
            return await self._find_bearer(secret)
        if "proxy" in self.auth.modes and client.is_proxied:
            caller = await self._find_proxied(headers)
            if caller is not None:
                return caller
        session_id = cookie_parser(headers.get("cookie", "")).get(cookie_name(COOKIE, is_https=client.is_https))
        if session_id and not self.is_open:
            session_and_account = await self.look_up(self.sessions.find, session_id)
            if session_and_account is not None:
                session, account = session_and_account
                viewer = STATIC_VIEWER if account is None else account.viewer()
                return Caller(viewer=viewer, way=session.way, session=session.digest)
        return Caller(viewer=LOCAL_ADMIN, way=None) if self.is_open else None

    def is_static_token(self, secret: str) -> bool:
        """Whether it is the token of the settings; compared in constant time."""
        return self._static_token is not None and hmac.compare_digest(self._static_token.encode(), secret.encode())

    async def sign_in_with_token(self, secret: str, client: ClientInfo, agent: str) -> str:
        """The id of a new session; raises AccessError or ThrottledError."""
        return await self._try_sign_in(
            None, client, agent, Way.STATIC, lambda: self.is_static_token(secret), WRONG_TOKEN
        )

    async def sign_in_with_password(self, login: str, password: str, client: ClientInfo, agent: str) -> str:
        """The id of a new session; raises AccessError (the same for a wrong name and a wrong password) or ThrottledError."""
        return await self._try_sign_in(
            login, client, agent, Way.LOCAL, lambda: self.is_password(login, password), WRONG_PASSWORD
        )

    async def sign_in_person(self, person: "Person", client: ClientInfo, agent: str) -> str:
        """The id of a new session for a person that the provider has identified; raises SignInError if they may not sign in."""
        account = await self.look_up(self._account_of, person)
        await self.look_up(self._note_sign_in, Outcome.DONE, account.login, Way.OIDC, client)
        return await self.look_up(self.sessions.open, Way.OIDC, account.login, client, agent)

    def is_password(self, login: str, password: str) -> bool:
        """Whether the password is right; takes the same time if there is no such account. Rehashes outdated hashes."""
        stored = self.store.password_hash(login)
        if not verify_password(stored, password) or stored is None:
            return False
        account = self.store.account(Way.LOCAL, login)
        if account is None or account.is_disabled:
            return False
        if is_outdated(stored):
            self.store.set_password(login, hash_password(password))
        self.store.change_account(replace(account, signed_in_at=self._clock()))
        return True

    async def hash(self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Run a password hash in a small thread pool: it takes a whole core and much memory."""
        return await self._hashing.run(work, *args, **kwargs)

    def maintain(self) -> None:
        """Delete expired sessions and old audit entries."""
        now = self._clock()
        self.store.maintain(
            now_ms=now,
            idle_before=self.sessions.idle_before(now),
            audit_before=UnixMs(int(now - self.auth.audit_days * DAY_MS)),
        )

    def close(self) -> None:
        """Finish pending work and close the store."""
        self._lookups.close()
        self._hashing.close()
        self.store.close()

    async def _try_sign_in(
        self,
        login: str | None,
        client: ClientInfo,
        agent: str,
        way: Way,
        is_right: Callable[[], bool],
        message: str,
    ) -> str:
        account = login or f"({way.value})"
        self.throttle.begin(client.address, account)
        if not await self.hash(is_right):
            await self.look_up(self._note_sign_in, Outcome.REFUSED, login, way, client)
            raise AccessError(message, hint="Ask an administrator if you have lost it.")
        self.throttle.succeed(client.address, account)
        await self.look_up(self._note_sign_in, Outcome.DONE, login, way, client)
        return await self.look_up(self.sessions.open, way, login, client, agent)

    def _note_sign_in(self, outcome: Outcome, login: str | None, way: Way, client: ClientInfo) -> None:
        # A password may have been typed as the user name: only valid user names are recorded.
        actor = login if login is None or LOGIN.fullmatch(login) else "(no user name)"
        self.audit.write("sign_in", outcome, actor=actor, way=way.value, client=client)

    async def _find_bearer(self, secret: str) -> Caller:
        if self.is_static_token(secret):
            return Caller(viewer=STATIC_VIEWER, way=Way.STATIC)
        token_and_owner = await self.look_up(self.tokens.find, secret)
        if token_and_owner is None:
            raise AccessError(WRONG_TOKEN, hint="It may have expired or been revoked; create another on the page.")
        token, owner = token_and_owner
        viewer = limit_viewer(owner.viewer(), token.scopes)
        return Caller(viewer=viewer, way=token.way, token=token.key, scopes=token.scopes)

    async def _find_proxied(self, headers: Headers) -> Caller | None:
        names = self.auth.proxy
        logins = headers.getlist(names.user_header)
        if not logins or not logins[0]:
            return None
        if len(logins) > 1 or LOGIN.fullmatch(logins[0]) is None:
            raise AccessError(
                f"the proxy sent no valid {names.user_header}",
                hint=f"The proxy must set {names.user_header} once and drop it from client requests.",
            )
        for name in (names.groups_header, names.name_header):
            if len(headers.getlist(name)) > 1:  # one of them may come from the client
                raise AccessError(
                    f"duplicate header {name}", hint=f"The proxy must set {name} once and drop it from client requests."
                )
        groups = [group.strip() for group in headers.get(names.groups_header, "").split(",")]
        rights = resolve_groups(groups, self.auth)
        if rights.role is None:
            raise ForbiddenError(f"{logins[0]} is in no group with access", hint="Ask an administrator.")
        cached = self._proxy_users.get(logins[0])
        account = Account(
            way=Way.PROXY,
            login=logins[0],
            role=rights.role,
            projects=rights.projects,
            title=headers.get(names.name_header) or None,
            created_at=self._clock() if cached is None else cached.created_at,
        )
        if account != cached:  # so that their tokens follow changes of their groups
            await self.look_up(self.store.write_account, account)
            self._proxy_users[account.login] = account
            while len(self._proxy_users) > MOST_PROXY_USERS:
                self._proxy_users.popitem(last=False)
        return Caller(viewer=account.viewer(), way=Way.PROXY)

    def _account_of(self, person: "Person") -> Account:
        """Write the account of a person with the rights of their current groups; raises SignInError if they may not sign in."""
        if LOGIN.fullmatch(person.login) is None:
            raise SignInError("the provider's user name is not valid here", reason="claims")
        rights = resolve_groups(person.groups, self.auth)
        stored_account = self.store.account(Way.OIDC, person.login)
        if stored_account is not None and stored_account.subject != person.subject:
            raise SignInError(
                f"the user name {person.login} belongs to another person of the provider",
                reason="other_person",
                hint="An administrator can remove the old account: `clusterscape user remove`.",
            )
        if rights.role is None or (stored_account is not None and stored_account.is_disabled):
            raise SignInError(f"{person.login} may not sign in", reason="no_role", hint="Ask an administrator.")
        now = self._clock()
        account = Account(
            way=Way.OIDC,
            login=person.login,
            role=rights.role,
            projects=rights.projects,
            title=person.title,
            subject=person.subject,
            created_at=now if stored_account is None else stored_account.created_at,
            signed_in_at=now,
        )
        self.store.write_account(account)
        return account


def _bearer(headers: Headers) -> str | None:
    if len(headers.getlist("authorization")) > 1:
        raise AccessError("duplicate header Authorization", hint="Send it once.")
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


def _build_provider(auth: AuthSettings, clock: Callable[[], UnixMs]) -> "OidcProvider | None":
    if "oidc" not in auth.modes:
        return None
    from clusterscape.serve.identity.oidc import OidcProvider  # not imported unless needed, for a fast start

    return OidcProvider(auth.oidc, clock=clock)
