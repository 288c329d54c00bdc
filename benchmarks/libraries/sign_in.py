"""Signing in over OpenID Connect: our provider code on joserfc against Authlib's Starlette client.

``python -m benchmarks.libraries.sign_in`` prints ID tokens verified per second, and for every fault of a provider whether each
side lets somebody in. The provider is a small one made here, because a real one cannot be made to misbehave.
"""

import asyncio
import base64
import hmac
import json
import resource
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, unquote_plus, urlsplit

from aiohttp import BasicAuth, web
from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey
from starlette.requests import Request

from clusterscape.errors import ClusterScapeError
from clusterscape.model import UnixMs
from clusterscape.serve.identity.oidc import OidcProvider
from clusterscape.settings import OidcSettings

CLIENT = "clusterscape"
CALLBACK = "http://127.0.0.1:1/callback"
HUGE_BYTES = 200 * 2**20


class Provider:
    """A scripted provider. Fields are changed by a fault before somebody signs in."""

    def __init__(self) -> None:
        self.secret = "plain-secret"
        self.url = ""
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self.described: dict[str, object] = {}
        self.claims: dict[str, object] = {}
        self.sign: Callable[[dict[str, object]], str] = self.sign_rsa
        self.nonce = ""
        self.is_huge = False
        self.is_moved = False

    def sign_rsa(self, claims: dict[str, object]) -> str:
        """As it should be."""
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key, algorithms=["RS256"])

    def id_token(self) -> str:
        """An ID token issued now for our client."""
        now = int(time.time())
        claims = {"iss": self.url, "sub": "1", "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": self.nonce}
        return self.sign({**claims, "preferred_username": "ada", "groups": [], "name": "Ada", **self.claims})

    async def describe(self, request: web.Request) -> web.StreamResponse:
        """The discovery document."""
        if self.is_moved and "moved" not in request.query:
            raise web.HTTPFound(f"{self.url}/.well-known/openid-configuration?moved=1")
        if self.is_huge:
            answer = web.StreamResponse()
            await answer.prepare(request)
            for _ in range(HUGE_BYTES // 2**20):
                await answer.write(b" " * 2**20)
            return answer
        document = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        return web.json_response({**document, **self.described})

    async def keys(self, request: web.Request) -> web.Response:
        """The public keys."""
        del request
        return web.json_response(KeySet([self.key]).as_dict(private=False))

    async def token(self, request: web.Request) -> web.Response:
        """An ID token for any code, where the client proves itself as RFC 6749 (2.3.1) says."""
        credentials = BasicAuth.decode(request.headers["Authorization"])
        if (unquote_plus(credentials.login), unquote_plus(credentials.password)) != (CLIENT, self.secret):
            return web.json_response({"error": "invalid_client"}, status=401)
        return web.json_response({"access_token": "a", "token_type": "Bearer", "id_token": self.id_token()})

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Provider"]:
        """Serves on loopback."""
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self.describe)
        app.router.add_get("/keys", self.keys)
        app.router.add_post("/token", self.token)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()


class Ours:
    """Our code."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        settings = OidcSettings(issuer=provider.url, client_id=CLIENT, client_secret=provider.secret)
        self._client = OidcProvider(settings, clock=lambda: UnixMs(time.time_ns() // 1_000_000))

    async def sign_in(self) -> None:
        """Once more, with the same client: what it cached is used again."""
        address, pending = await self._client.begin(CALLBACK, "/")
        query = _query(address)
        self._provider.nonce = query["nonce"]
        await self._client.finish(pending, {"state": query["state"], "code": "c"}, CALLBACK)

    async def verify(self, token: str) -> None:
        """Signature and claims."""
        await self._client._read_id_token(token, self._provider.nonce)


class Authlib:
    """The library as its documentation shows it for Starlette."""

    def __init__(self, provider: Provider) -> None:
        from authlib.integrations.starlette_client import OAuth

        self._provider = provider
        self._client = OAuth().register(
            "example",
            client_id=CLIENT,
            client_secret=provider.secret,
            server_metadata_url=f"{provider.url}/.well-known/openid-configuration",
            client_kwargs={"scope": "openid profile groups", "code_challenge_method": "S256"},
        )

    async def sign_in(self) -> None:
        """As above."""
        session: dict[str, object] = {}
        begun = await self._client.authorize_redirect(_request(session, b""), CALLBACK)
        query = _query(begun.headers["location"])
        self._provider.nonce = query["nonce"]
        answer = _request(session, f"state={query['state']}&code=c".encode())
        await self._client.authorize_access_token(answer, **self._strictness())

    def _strictness(self) -> dict[str, object]:
        return {}

    async def verify(self, token: str) -> None:
        """As above."""
        await self._client.parse_id_token({"id_token": token, "access_token": "a"}, self._provider.nonce)


class StrictAuthlib(Authlib):
    """The library with every check that it can be given: issuer, audience, and the leeway that we allow."""

    def _strictness(self) -> dict[str, object]:
        options = {"iss": {"essential": True, "value": self._provider.url}, "aud": {"essential": True, "value": CLIENT}}
        return {"claims_options": options, "leeway": 60}


def _request(session: Mapping[str, object], query: bytes) -> Request:
    return Request({"type": "http", "method": "GET", "session": session, "query_string": query, "headers": []})


def _query(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


SIDES: dict[str, type[Ours] | type[Authlib]] = {"ours": Ours, "Authlib": Authlib, "Authlib, strict": StrictAuthlib}


def _use_secret_of_signs(provider: Provider) -> None:
    provider.secret = "100%+safe:&=/secret"


def _name_another_issuer(provider: Provider) -> None:
    provider.described = {"issuer": "https://evil.example"}
    provider.claims = {"iss": "https://evil.example"}


def _name_no_issuer(provider: Provider) -> None:
    provider.described = {"issuer": None}
    provider.claims = {"iss": "https://evil.example"}


def _move(provider: Provider) -> None:
    provider.is_moved = True


def _mean_another_audience(provider: Provider) -> None:
    provider.claims = {"aud": "another-client", "azp": CLIENT}


def _expire(provider: Provider) -> None:
    provider.claims = {"exp": int(time.time()) - 90}


def _hash_another_access_token(provider: Provider) -> None:
    provider.claims = {"at_hash": "another"}


def _sign_not_at_all(provider: Provider) -> None:
    provider.described = {"id_token_signing_alg_values_supported": ["RS256", "none"]}
    provider.sign = lambda claims: jwt.encode({"alg": "none"}, claims, OctKey.generate_key(), algorithms=["none"])


def _sign_with_the_public_key(provider: Provider) -> None:
    provider.described = {"id_token_signing_alg_values_supported": ["RS256", "HS256"]}
    public = provider.key.as_pem(private=False)

    def sign(claims: dict[str, object]) -> str:
        # By hand: joserfc refuses to do this.
        signed = b".".join(_base64(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": "one"}, claims))
        return b".".join((signed, _base64(hmac.digest(public, signed, "sha256")))).decode()

    provider.sign = sign


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _name_plain_keys(provider: Provider) -> None:
    provider.described = {"jwks_uri": "http://keys.example.org/keys"}


def _answer_endlessly(provider: Provider) -> None:
    provider.is_huge = True


def _nothing(provider: Provider) -> None:
    del provider


def _turn_keys(provider: Provider) -> None:
    """New keys between two sign-ins, under another name."""
    provider.key = RSAKey.generate_key(2048, {"kid": "two", "use": "sig", "alg": "RS256"})
    provider.sign = lambda claims: jwt.encode({"alg": "RS256", "kid": "two"}, claims, provider.key)


def _turn_keys_under_the_same_name(provider: Provider) -> None:
    provider.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})


FAULTS: dict[str, tuple[Callable[[Provider], None], Callable[[Provider], None] | None]] = {
    "all is well": (_nothing, None),
    "client secret with signs that are form-encoded": (_use_secret_of_signs, None),
    "discovery names another issuer": (_name_another_issuer, None),
    "discovery names no issuer": (_name_no_issuer, None),
    "discovery redirects": (_move, None),
    "discovery of 200 MiB": (_answer_endlessly, None),
    "keys over plain http of another machine": (_name_plain_keys, None),
    "token for another audience": (_mean_another_audience, None),
    "token expired 90 s ago": (_expire, None),
    "hash of another access token": (_hash_another_access_token, None),
    "unsigned token, `none` in discovery": (_sign_not_at_all, None),
    "token signed with the public key as secret": (_sign_with_the_public_key, None),
    "keys turned since the last sign-in": (_nothing, _turn_keys),
    "keys turned, the same key id": (_nothing, _turn_keys_under_the_same_name),
}


async def judge(side: str, fault: str) -> str:
    """The outcome of a sign-in under a fault."""
    before, after = FAULTS[fault]
    async with Provider().running() as provider:
        before(provider)
        client = SIDES[side](provider)
        begun = time.perf_counter()
        try:
            await client.sign_in()
            if after is not None:
                after(provider)
                await client.sign_in()
        except ClusterScapeError as error:
            verdict = f"refused ({error.message})"
        except Exception as error:
            verdict = f"refused ({type(error).__name__}: {error})"
        else:
            verdict = "let in"
        return f"{verdict[:120]} after {time.perf_counter() - begun:.2f} s, peak {_peak_mb():.0f} MB"


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


async def measure(side: str, tokens: int) -> float:
    """ID tokens verified per second, with claims; signatures are RS256."""
    async with Provider().running() as provider:
        client = SIDES[side](provider)
        await client.sign_in()
        text = provider.id_token()
        begun = time.perf_counter()
        for _ in range(tokens):
            await client.verify(text)
        return tokens / (time.perf_counter() - begun)


def main() -> None:
    """Measure and print."""
    # In turns, so that other load on the machine affects both sides alike.
    rounds = [{side: asyncio.run(measure(side, 2000)) for side in ("ours", "Authlib")} for _ in range(7)]
    for side in rounds[0]:
        print(side, f"{max(rates[side] for rates in rounds):,.0f} tokens/s", flush=True)
    for fault in FAULTS:
        for side in SIDES:
            print(json.dumps({"fault": fault, side: asyncio.run(judge(side, fault))}), flush=True)


if __name__ == "__main__":
    main()
