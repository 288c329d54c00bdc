"""Signing in through a provider that speaks OpenID Connect: authorization code with PKCE, state and nonce.

Knows no roles. What must outlive the way to the provider and back travels in a cookie of the same browser, so any replica of the
server can finish what another began.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from urllib.parse import urlencode, urlsplit

import aiohttp
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from clusterscape.errors import ConfigError, SignInError
from clusterscape.model import UnixMs
from clusterscape.serve.identity.addresses import is_loopback
from clusterscape.settings import OidcSettings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key only: a secret that both sides know would let one of them forge the other's."""
KEY_TYPES = ("RSA", "EC", "OKP")
LEEWAY_S = 60
DISCOVERY_KEPT_MS = 3_600_000
MOST_BYTES = 2**20
PENDING_S = 600
"""How long signing in at the provider may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A sign-in that is under way, as the browser's cookie holds it."""

    state: str
    nonce: str
    verifier: str
    next: str
    """Path of the page to show afterwards."""
    begun_at: int

    def encode(self) -> str:
        """As a cookie holds it."""
        return base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode().rstrip("=")


def decode_pending(text: str) -> Pending | None:
    """What ``encode`` wrote; None for anything else."""
    try:
        told = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return Pending(**{name: told[name] for name in Pending.__slots__})
    except (ValueError, TypeError, KeyError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Whom the provider says it is."""

    subject: str
    login: str
    title: str | None
    groups: tuple[str, ...]


class OidcProvider:
    """One provider. Its description and keys are fetched when they are first needed, and again when they no longer fit."""

    def __init__(self, settings: OidcSettings, *, clock: Callable[[], UnixMs]) -> None:
        _refuse_plain(settings.issuer, "auth.oidc.issuer")
        self._settings = settings
        self._clock = clock
        self._described: Mapping[str, object] | None = None
        self._described_at = 0
        self._keys: KeySet | None = None

    async def begin(self, redirect_uri: str, next_path: str) -> tuple[str, Pending]:
        """Where to send the browser, and what it must bring back."""
        described = await self._describe()
        pending = Pending(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(64),
            next=next_path,
            begun_at=self._clock(),
        )
        challenge = base64.urlsafe_b64encode(hashlib.sha256(pending.verifier.encode()).digest()).decode().rstrip("=")
        question = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(dict.fromkeys(("openid", *self._settings.scopes))),
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = _text(described, "authorization_endpoint")
        return f"{address}{'&' if '?' in address else '?'}{urlencode(question)}", pending

    async def finish(self, pending: Pending | None, answer: Mapping[str, str], redirect_uri: str) -> Person:
        """Whom the provider's answer names; raises SignInError where it does not, or another browser began this."""
        given_state = answer.get("state", "")
        if pending is None or not hmac.compare_digest(pending.state.encode(), given_state.encode()):
            raise SignInError("this sign-in was not begun here", reason="state", hint="Begin again on the page.")
        if self._clock() - pending.begun_at > PENDING_S * 1000:
            raise SignInError("signing in took too long", reason="expired", hint="Begin again on the page.")
        if "error" in answer:
            raise SignInError(f"the provider refused: {_short(answer['error'])}", reason="refused")
        if answer.get("iss", self._settings.issuer) != self._settings.issuer or "code" not in answer:
            raise SignInError("the answer is not the provider's", reason="state", hint="Begin again on the page.")
        granted = await self._redeem(answer["code"], pending.verifier, redirect_uri)
        claims = await self._read_id_token(_text(granted, "id_token"), pending.nonce)
        return await self._name_person(claims, granted.get("access_token"))

    async def check(self) -> str:
        """The provider's own name for itself, as ``doctor`` tells it; raises SignInError where it does not answer."""
        return _text(await self._describe(), "issuer")

    async def _describe(self) -> Mapping[str, object]:
        if self._described is not None and self._clock() - self._described_at < DISCOVERY_KEPT_MS:
            return self._described
        issuer = self._settings.issuer
        described = await self._fetch("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if described.get("issuer") != issuer:
            raise SignInError(
                f"the provider names itself {_short(described.get('issuer'))}, not {issuer}",
                reason="provider",
                hint="Set auth.oidc.issuer to exactly the name that the provider has for itself.",
            )
        for endpoint in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            _refuse_plain(_text(described, endpoint), endpoint)
        self._described, self._described_at = described, self._clock()
        return described

    async def _redeem(self, code: str, verifier: str, redirect_uri: str) -> Mapping[str, object]:
        described = await self._describe()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
            "client_id": self._settings.client_id,
        }
        secret = self._settings.client_secret
        authorization = None
        if secret is not None:
            methods = described.get("token_endpoint_auth_methods_supported")
            if isinstance(methods, list) and "client_secret_basic" not in methods:
                form["client_secret"] = secret
            else:
                name = f"{_form_quoted(self._settings.client_id)}:{_form_quoted(secret)}"
                authorization = f"Basic {base64.b64encode(name.encode()).decode()}"
        return await self._fetch("POST", _text(described, "token_endpoint"), form=form, authorization=authorization)

    async def _read_id_token(self, text: str, nonce: str) -> Mapping[str, object]:
        claims = await self._verify(text)
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise SignInError("the provider's answer is to another question", reason="nonce", hint="Begin again.")
        return claims

    async def _verify(self, text: str) -> Mapping[str, object]:
        is_fresh = self._keys is None
        keys = self._keys or await self._fetch_keys()
        try:
            token = jwt.decode(text, keys, algorithms=list(ALGORITHMS))
        except (JoseError, ValueError) as error:
            if is_fresh:
                raise _unproven(error) from None
            keys = await self._fetch_keys()  # the provider may have turned its keys since
            try:
                token = jwt.decode(text, keys, algorithms=list(ALGORITHMS))
            except (JoseError, ValueError) as again:
                raise _unproven(again) from None
        self._check_claims(token.claims)
        return token.claims

    def _check_claims(self, claims: dict[str, object]) -> None:
        client = self._settings.client_id
        registry = jwt.JWTClaimsRegistry(
            now=self._clock() // 1000,
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": client},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        )
        try:
            registry.validate(claims)
        except JoseError as error:
            raise _unproven(error) from None
        audience = claims.get("aud")
        is_shared = isinstance(audience, list) and len(audience) > 1
        if claims.get("azp", None if is_shared else client) != client:
            raise SignInError("the provider's answer is meant for another client", reason="proof")

    async def _fetch_keys(self) -> KeySet:
        answer = await self._fetch("GET", _text(await self._describe(), "jwks_uri"))
        listed = answer.get("keys")
        usable = [
            key
            for key in (listed if isinstance(listed, list) else [])
            if isinstance(key, dict) and key.get("kty") in KEY_TYPES and key.get("use", "sig") == "sig"
        ]
        try:
            self._keys = KeySet.import_key_set({"keys": usable})
        except (JoseError, ValueError) as error:
            raise SignInError(f"the provider's keys cannot be read: {_short(error)}", reason="provider") from None
        return self._keys

    async def _name_person(self, claims: Mapping[str, object], access_token: object) -> Person:
        wanted = (self._settings.login_claim, self._settings.groups_claim)
        endpoint = (await self._describe()).get("userinfo_endpoint")
        if (
            isinstance(endpoint, str)
            and isinstance(access_token, str)
            and any(find_claim(claims, name) is None for name in wanted)
        ):
            told = await self._fetch("GET", endpoint, authorization=f"Bearer {access_token}")
            if told.get("sub") != claims.get("sub"):
                raise SignInError("the provider told of another person", reason="proof")
            claims = {**told, **claims}
        login = find_claim(claims, self._settings.login_claim)
        if not isinstance(login, str) or not login:
            raise SignInError(
                f"the provider told no {self._settings.login_claim}",
                reason="claims",
                hint="Set auth.oidc.login_claim and auth.oidc.scopes to what the provider tells.",
            )
        title = find_claim(claims, self._settings.title_claim)
        groups = find_claim(claims, self._settings.groups_claim)
        listed = groups if isinstance(groups, list) else [groups] if isinstance(groups, str) else []
        return Person(
            subject=str(claims["sub"]),
            login=login,
            title=title if isinstance(title, str) else None,
            groups=tuple(each for each in listed if isinstance(each, str)),
        )

    async def _fetch(
        self,
        method: str,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        authorization: str | None = None,
    ) -> Mapping[str, object]:
        """A JSON object; raises SignInError in words that hold nothing of what was sent."""
        headers = {"Accept": "application/json"} | ({"Authorization": authorization} if authorization else {})
        try:
            timeout = aiohttp.ClientTimeout(total=self._settings.timeout_s)
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as client,
                client.request(method, url, data=form, headers=headers, allow_redirects=False) as answer,
            ):
                body = await _read_whole(answer)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise SignInError(
                f"the provider does not answer: {type(error).__name__}",
                reason="provider",
                hint="Try again later; `clusterscape doctor` tells more.",
            ) from None
        told = _parse_object(body)
        if answer.status >= 400 or told is None:
            what = _short((told or {}).get("error", f"HTTP {answer.status}"))
            raise SignInError(f"the provider refused: {what}", reason="refused" if form else "provider")
        return told


async def _read_whole(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_chunked(2**16):
        body += piece
        if len(body) > MOST_BYTES:
            raise aiohttp.ClientPayloadError("longer than any answer of a provider")
    return bytes(body)


def find_claim(claims: Mapping[str, object], path: str) -> object:
    """A claim by name, or by a path with dots into objects; None where there is none."""
    if path in claims:
        return claims[path]
    value: object = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _parse_object(body: bytes) -> dict[str, object] | None:
    try:
        told = json.loads(body)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _text(told: Mapping[str, object], name: str) -> str:
    value = told.get(name)
    if not isinstance(value, str) or not value:
        raise SignInError(f"the provider told no {name}", reason="provider")
    return value


def _short(value: object) -> str:
    return "".join(sign for sign in str(value) if sign.isprintable())[:120]


def _unproven(error: Exception) -> SignInError:
    return SignInError(f"the provider's answer is not proven: {type(error).__name__}", reason="proof")


def _form_quoted(text: str) -> str:
    """RFC 6749, 2.3.1: name and secret are form-encoded before they become a basic login."""
    return urlencode({"": text})[1:]


def _refuse_plain(url: str, what: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return
    raise ConfigError(f"{what} is not an https address: {_short(url)}", hint="Plain http is taken on loopback only.")
