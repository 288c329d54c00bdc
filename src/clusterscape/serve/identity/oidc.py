"""Sign-in with OpenID Connect: authorization code flow with PKCE, state and nonce.

Independent of roles. The state of a sign-in in progress is kept in a cookie of the browser, so any replica of the server can
finish a sign-in that another replica started.
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
"""Public-key signatures only: with a shared secret, either side could forge the signature of the other."""
KEY_TYPES = ("RSA", "EC", "OKP")
LEEWAY_S = 60
DISCOVERY_TTL_MS = 3_600_000
MOST_BYTES = 2**20
PENDING_S = 600
"""How long a sign-in at the provider may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A sign-in in progress, stored in a cookie of the browser."""

    state: str
    nonce: str
    verifier: str
    next: str
    """Path of the page to show afterwards."""
    begun_at: int

    def encode(self) -> str:
        """The value of the cookie."""
        return base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode().rstrip("=")


def decode_pending(text: str) -> Pending | None:
    """Decode the value of the cookie; None if it is not valid."""
    try:
        document = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return Pending(**{name: document[name] for name in Pending.__slots__})
    except (ValueError, TypeError, KeyError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user as the provider identifies them."""

    subject: str
    login: str
    title: str | None
    groups: tuple[str, ...]


class OidcProvider:
    """One provider. Its metadata and keys are fetched when first needed, and again when they expire or no longer match."""

    def __init__(self, settings: OidcSettings, *, clock: Callable[[], UnixMs]) -> None:
        _require_https(settings.issuer, "auth.oidc.issuer")
        self._settings = settings
        self._clock = clock
        self._metadata: Mapping[str, object] | None = None
        self._metadata_at = 0
        self._keys: KeySet | None = None

    async def begin(self, redirect_uri: str, next_path: str) -> tuple[str, Pending]:
        """The URL to redirect the browser to, and the state to keep in its cookie."""
        metadata = await self._fetch_metadata()
        pending = Pending(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(64),
            next=next_path,
            begun_at=self._clock(),
        )
        challenge = base64.urlsafe_b64encode(hashlib.sha256(pending.verifier.encode()).digest()).decode().rstrip("=")
        parameters = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(dict.fromkeys(("openid", *self._settings.scopes))),
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = _text(metadata, "authorization_endpoint")
        return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}", pending

    async def finish(self, pending: Pending | None, response: Mapping[str, str], redirect_uri: str) -> Person:
        """The user whom the provider identified; raises SignInError if the response is invalid or for another browser."""
        state = response.get("state", "")
        if pending is None or not hmac.compare_digest(pending.state.encode(), state.encode()):
            raise SignInError(
                "this sign-in was started in another browser", reason="state", hint="Start again on the page."
            )
        if self._clock() - pending.begun_at > PENDING_S * 1000:
            raise SignInError("the sign-in took too long", reason="expired", hint="Start again on the page.")
        if "error" in response:
            raise SignInError(f"the provider refused: {_short(response['error'])}", reason="refused")
        if response.get("iss", self._settings.issuer) != self._settings.issuer or "code" not in response:
            raise SignInError("the response is not the provider's", reason="state", hint="Start again on the page.")
        tokens = await self._exchange_code(response["code"], pending.verifier, redirect_uri)
        claims = await self._read_id_token(_text(tokens, "id_token"), pending.nonce)
        return await self._identify_person(claims, tokens.get("access_token"))

    async def check(self) -> str:
        """The provider's issuer, for ``doctor``; raises SignInError if the provider does not respond."""
        return _text(await self._fetch_metadata(), "issuer")

    async def _fetch_metadata(self) -> Mapping[str, object]:
        if self._metadata is not None and self._clock() - self._metadata_at < DISCOVERY_TTL_MS:
            return self._metadata
        issuer = self._settings.issuer
        metadata = await self._fetch("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if metadata.get("issuer") != issuer:
            raise SignInError(
                f"the issuer of the provider is {_short(metadata.get('issuer'))}, not {issuer}",
                reason="provider",
                hint="Set auth.oidc.issuer to exactly the issuer of the provider.",
            )
        for endpoint in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            _require_https(_text(metadata, endpoint), endpoint)
        self._metadata, self._metadata_at = metadata, self._clock()
        return metadata

    async def _exchange_code(self, code: str, verifier: str, redirect_uri: str) -> Mapping[str, object]:
        metadata = await self._fetch_metadata()
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
            methods = metadata.get("token_endpoint_auth_methods_supported")
            if isinstance(methods, list) and "client_secret_basic" not in methods:
                form["client_secret"] = secret
            else:
                name = f"{_form_quoted(self._settings.client_id)}:{_form_quoted(secret)}"
                authorization = f"Basic {base64.b64encode(name.encode()).decode()}"
        return await self._fetch("POST", _text(metadata, "token_endpoint"), form=form, authorization=authorization)

    async def _read_id_token(self, text: str, nonce: str) -> Mapping[str, object]:
        claims = await self._verify(text)
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise SignInError(
                "the nonce of the provider's response does not match", reason="nonce", hint="Start again."
            )
        return claims

    async def _verify(self, text: str) -> Mapping[str, object]:
        is_fresh = self._keys is None
        keys = self._keys or await self._fetch_keys()
        try:
            token = jwt.decode(text, keys, algorithms=list(ALGORITHMS))
        except (JoseError, ValueError) as error:
            if is_fresh:
                raise _invalid_token_error(error) from None
            keys = await self._fetch_keys()  # the provider may have rotated its keys
            try:
                token = jwt.decode(text, keys, algorithms=list(ALGORITHMS))
            except (JoseError, ValueError) as second_error:
                raise _invalid_token_error(second_error) from None
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
            raise _invalid_token_error(error) from None
        audience = claims.get("aud")
        is_shared = isinstance(audience, list) and len(audience) > 1
        if claims.get("azp", None if is_shared else client) != client:
            raise SignInError("the ID token is for another client", reason="proof")

    async def _fetch_keys(self) -> KeySet:
        response = await self._fetch("GET", _text(await self._fetch_metadata(), "jwks_uri"))
        listed = response.get("keys")
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

    async def _identify_person(self, claims: Mapping[str, object], access_token: object) -> Person:
        needed_claims = (self._settings.username_claim, self._settings.groups_claim)
        endpoint = (await self._fetch_metadata()).get("userinfo_endpoint")
        if (
            isinstance(endpoint, str)
            and isinstance(access_token, str)
            and any(find_claim(claims, name) is None for name in needed_claims)
        ):
            user_info = await self._fetch("GET", endpoint, authorization=f"Bearer {access_token}")
            if user_info.get("sub") != claims.get("sub"):
                raise SignInError("the user info is of another person", reason="proof")
            claims = {**user_info, **claims}
        login = find_claim(claims, self._settings.username_claim)
        if not isinstance(login, str) or not login:
            raise SignInError(
                f"the provider sent no claim {self._settings.username_claim}",
                reason="claims",
                hint="Set auth.oidc.username_claim and auth.oidc.scopes to match the provider.",
            )
        title = find_claim(claims, self._settings.name_claim)
        groups = find_claim(claims, self._settings.groups_claim)
        listed = groups if isinstance(groups, list) else [groups] if isinstance(groups, str) else []
        return Person(
            subject=str(claims["sub"]),
            login=login,
            title=title if isinstance(title, str) else None,
            groups=tuple(group for group in listed if isinstance(group, str)),
        )

    async def _fetch(
        self,
        method: str,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        authorization: str | None = None,
    ) -> Mapping[str, object]:
        """Fetch a JSON object; raises SignInError with a message that contains nothing of the request."""
        headers = {"Accept": "application/json"} | ({"Authorization": authorization} if authorization else {})
        try:
            timeout = aiohttp.ClientTimeout(total=self._settings.timeout_s)
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as client,
                client.request(method, url, data=form, headers=headers, allow_redirects=False) as response,
            ):
                body = await _read_whole(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise SignInError(
                f"the provider does not respond: {type(error).__name__}",
                reason="provider",
                hint="Try again later; `clusterscape doctor` shows details.",
            ) from None
        document = _parse_object(body)
        if response.status >= 400 or document is None:
            reason = _short((document or {}).get("error", f"HTTP {response.status}"))
            raise SignInError(f"the provider refused: {reason}", reason="refused" if form else "provider")
        return document


async def _read_whole(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_chunked(2**16):
        body += piece
        if len(body) > MOST_BYTES:
            raise aiohttp.ClientPayloadError("the response is too large")
    return bytes(body)


def find_claim(claims: Mapping[str, object], path: str) -> object:
    """A claim by name, or by a dotted path into objects; None if there is none."""
    if path in claims:
        return claims[path]
    value: object = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _parse_object(body: bytes) -> dict[str, object] | None:
    try:
        document = json.loads(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _text(document: Mapping[str, object], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise SignInError(f"the provider sent no {name}", reason="provider")
    return value


def _short(value: object) -> str:
    return "".join(character for character in str(value) if character.isprintable())[:120]


def _invalid_token_error(error: Exception) -> SignInError:
    return SignInError(f"the ID token is not valid: {type(error).__name__}", reason="proof")


def _form_quoted(text: str) -> str:
    """Form-encode a client id or secret for HTTP basic authentication (RFC 6749, 2.3.1)."""
    return urlencode({"": text})[1:]


def _require_https(url: str, name: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return
    raise ConfigError(f"{name} is not an https URL: {_short(url)}", hint="Plain http is accepted on loopback only.")
