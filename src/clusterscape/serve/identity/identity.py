"""Finds out who asks, and lets people in: the one object that the gate and the routes of this area share."""

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
from clusterscape.model.access import Account, Outcome, Way
from clusterscape.model.viewers import ANYONE_HERE, Role, Viewer
from clusterscape.serve.identity.addresses import Addresses, Whence
from clusterscape.serve.identity.audit import AuditLog
from clusterscape.serve.identity.caller import Caller
from clusterscape.serve.identity.groups import find_standing
from clusterscape.serve.identity.passwords import LOGIN, hash_password, is_outdated, verify_password
from clusterscape.serve.identity.sessions import COOKIE, Sessions, cookie_name
from clusterscape.serve.identity.throttle import SignInThrottle
from clusterscape.serve.identity.tokens import ApiTokens, limit_viewer
from clusterscape.settings import AuthSettings
from clusterscape.settings.limits import ItemLimits
from clusterscape.store.access import AccessStore

if TYPE_CHECKING:
    from clusterscape.serve.identity.oidc import OidcProvider, Person

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")

STATIC_VIEWER = Viewer(login=None, role=Role.ADMIN)
WRONG_TOKEN = "that token is not right"  # noqa: S105 – what is said, no token
WRONG_PASSWORD = "user name or password is wrong"  # noqa: S105 – said for either, on purpose
MOST_PROXY_USERS = 10_000
DAY_MS = 86_400_000


class Identity:
    """Who asks, by whichever ways the settings open."""

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
        # Apart from the threads that answer questions: a slow one must not keep people out. Each password takes 64 MiB
        # for a moment, so few at once.
        self._lookups = ThreadPool("access", 4)
        self._hashing = ThreadPool("passwords", 2)

    @property
    def is_open(self) -> bool:
        """Nobody has to say who they are."""
        return self._static_token is None and not self.auth.modes

    @property
    def takes_token(self) -> bool:
        """The one token of the settings opens the page."""
        return self._static_token is not None

    @property
    def takes_password(self) -> bool:
        """Local accounts open the page."""
        return "local" in self.auth.modes

    def now(self) -> UnixMs:
        """The time that sessions and tokens are judged by."""
        return self._clock()

    async def look_up(self, work: Callable[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
        """Ask the store without holding up the event loop."""
        return await self._lookups.run(work, *args, **kwargs)

    async def find_caller(self, headers: Headers, whence: Whence) -> Caller | None:
        """Who asks; None: nobody said. Raises AccessError where a token was sent that is not right."""
        given = _bearer(headers)
        if given is not None and not self.is_open:
            return await self._find_bearer(given)
        if "proxy" in self.auth.modes and whence.is_proxied:
            caller = await self._find_proxied(headers)
            if caller is not None:
                return caller
        session_id = cookie_parser(headers.get("cookie", "")).get(cookie_name(COOKIE, is_https=whence.is_https))
        if session_id and not self.is_open:
            found = await self.look_up(self.sessions.find, session_id)
            if found is not None:
                session, account = found
                viewer = STATIC_VIEWER if account is None else account.viewer()
                return Caller(viewer=viewer, way=session.way, session=session.digest)
        return Caller(viewer=ANYONE_HERE, way=None) if self.is_open else None

    def is_static_token(self, given: str) -> bool:
        """Compared in constant time."""
        return self._static_token is not None and hmac.compare_digest(self._static_token.encode(), given.encode())

    async def sign_in_with_token(self, given: str, whence: Whence, agent: str) -> str:
        """The id of a new session; raises AccessError or ThrottledError."""
        return await self._try_sign_in(
            None, whence, agent, Way.STATIC, lambda: self.is_static_token(given), WRONG_TOKEN
        )

    async def sign_in_with_password(self, login: str, password: str, whence: Whence, agent: str) -> str:
        """The id of a new session; raises AccessError or ThrottledError, the same for a wrong name and a wrong password."""
        return await self._try_sign_in(
            login, whence, agent, Way.LOCAL, lambda: self.is_password(login, password), WRONG_PASSWORD
        )

    async def sign_in_person(self, person: "Person", whence: Whence, agent: str) -> str:
        """The id of a new session of whom the provider named; raises SignInError where they may not come in."""
        account = await self.look_up(self._account_of, person)
        await self.look_up(self._note_sign_in, Outcome.DONE, account.login, Way.OIDC, whence)
        return await self.look_up(self.sessions.open, Way.OIDC, account.login, whence, agent)

    def is_password(self, login: str, password: str) -> bool:
        """Whether it opens the account; takes as long where there is none. A weaker hash of it is made anew."""
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

    async def hash(self, work: Callable[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
        """Do what takes a whole core and much memory, few at once."""
        return await self._hashing.run(work, *args, **kwargs)

    def maintain(self) -> None:
        """Forget what is over."""
        now = self._clock()
        self.store.maintain(
            now_ms=now,
            idle_before=self.sessions.idle_before(now),
            audit_before=UnixMs(int(now - self.auth.audit_days * DAY_MS)),
        )

    def close(self) -> None:
        """Finish what is under way and release the store."""
        self._lookups.close()
        self._hashing.close()
        self.store.close()

    async def _try_sign_in(
        self,
        login: str | None,
        whence: Whence,
        agent: str,
        way: Way,
        is_right: Callable[[], bool],
        wrong: str,
    ) -> str:
        account = login or f"({way.value})"
        self.throttle.begin(whence.address, account)
        if not await self.hash(is_right):
            await self.look_up(self._note_sign_in, Outcome.REFUSED, login, way, whence)
            raise AccessError(wrong, hint="Ask an administrator if you have lost it.")
        self.throttle.succeed(whence.address, account)
        await self.look_up(self._note_sign_in, Outcome.DONE, login, way, whence)
        return await self.look_up(self.sessions.open, way, login, whence, agent)

    def _note_sign_in(self, outcome: Outcome, login: str | None, way: Way, whence: Whence) -> None:
        # What was typed as a name may have been a password: only names that could be meant are kept.
        actor = login if login is None or LOGIN.fullmatch(login) else "(no user name)"
        self.audit.write("sign_in", outcome, actor=actor, way=way.value, whence=whence)

    async def _find_bearer(self, given: str) -> Caller:
        if self.is_static_token(given):
            return Caller(viewer=STATIC_VIEWER, way=Way.STATIC)
        found = await self.look_up(self.tokens.find, given)
        if found is None:
            raise AccessError(WRONG_TOKEN, hint="It may have expired or been revoked; make another on the page.")
        token, owner = found
        viewer = limit_viewer(owner.viewer(), token.scopes)
        return Caller(viewer=viewer, way=token.way, token=token.key, scopes=token.scopes)

    async def _find_proxied(self, headers: Headers) -> Caller | None:
        names = self.auth.proxy
        logins = headers.getlist(names.user_header)
        if not logins or not logins[0]:
            return None
        if len(logins) > 1 or LOGIN.fullmatch(logins[0]) is None:
            raise AccessError(
                "the proxy did not name one user", hint=f"It must set {names.user_header} and drop it from requests."
            )
        for name in (names.groups_header, names.title_header):
            if len(headers.getlist(name)) > 1:  # one of them may be the client's own
                raise AccessError(
                    f"there are two headers {name}", hint=f"The proxy must set {name} once and drop it from requests."
                )
        groups = [each.strip() for each in headers.get(names.groups_header, "").split(",")]
        standing = find_standing(groups, self.auth)
        if standing.role is None:
            raise ForbiddenError(f"{logins[0]} is in no group that may come in", hint="Ask an administrator.")
        known = self._proxy_users.get(logins[0])
        account = Account(
            way=Way.PROXY,
            login=logins[0],
            role=standing.role,
            projects=standing.projects,
            title=headers.get(names.title_header) or None,
            created_at=self._clock() if known is None else known.created_at,
        )
        if account != known:  # so that tokens of theirs follow their groups
            await self.look_up(self.store.write_account, account)
            self._proxy_users[account.login] = account
            while len(self._proxy_users) > MOST_PROXY_USERS:
                self._proxy_users.popitem(last=False)
        return Caller(viewer=account.viewer(), way=Way.PROXY)

    def _account_of(self, person: "Person") -> Account:
        """The account of a person, as their groups make it now; raises SignInError where they may not come in."""
        if LOGIN.fullmatch(person.login) is None:
            raise SignInError("the provider's user name is none here", reason="claims")
        standing = find_standing(person.groups, self.auth)
        known = self.store.account(Way.OIDC, person.login)
        if known is not None and known.subject != person.subject:
            raise SignInError(
                f"the user name {person.login} belongs to another person of the provider",
                reason="other_person",
                hint="An administrator can remove the old account: `clusterscape user remove`.",
            )
        if standing.role is None or (known is not None and known.is_disabled):
            raise SignInError(f"{person.login} may not come in", reason="no_role", hint="Ask an administrator.")
        now = self._clock()
        account = Account(
            way=Way.OIDC,
            login=person.login,
            role=standing.role,
            projects=standing.projects,
            title=person.title,
            subject=person.subject,
            created_at=now if known is None else known.created_at,
            signed_in_at=now,
        )
        self.store.write_account(account)
        return account


def _bearer(headers: Headers) -> str | None:
    if len(headers.getlist("authorization")) > 1:
        raise AccessError("there are two headers Authorization", hint="Send one.")
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


def _build_provider(auth: AuthSettings, clock: Callable[[], UnixMs]) -> "OidcProvider | None":
    if "oidc" not in auth.modes:
        return None
    from clusterscape.serve.identity.oidc import OidcProvider  # the start stays quick where nobody needs it

    return OidcProvider(auth.oidc, clock=clock)
