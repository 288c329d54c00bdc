"""Sign-in through a real OpenID provider: valid ones succeed, others are refused with a reason."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import pytest
from clusters.guarded import GuardedSite, guarded_site
from clusters.small import SmallCluster, small_cluster
from fastapi.testclient import TestClient
from servers.oidc import CLIENT_ID, CLIENT_SECRET, OidcServer, oidc_server
from servers.programs import free_port

from clusterscape.model import UnixMs
from clusterscape.model.access import Outcome, Way

pytestmark = pytest.mark.server
__all__ = ["small_cluster"]

CALLBACK = "http://testserver/api/v1/session/oidc/callback"
GROUPS = {"ada": ["gpu-admins", "project-vision"], "bob": ["project-speech"], "eve": ["strangers"]}
AUTH: dict[str, Any] = {
    "modes": ("oidc",),
    "roles": {"gpu-admins": "admin", "project-speech": "lead"},
    "projects_pattern": "project-(.+)",
    "default_role": None,
}


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcServer]:
    with oidc_server(redirect_uris=[CALLBACK], groups=GROUPS) as server:
        yield server


def oidc_settings(issuer: str) -> dict[str, object]:
    return {
        "issuer": issuer,
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "scopes": ("openid", "profile", "groups"),
        "provider_name": "Example",
    }


@pytest.fixture
def site(provider: OidcServer, small_cluster: SmallCluster, tmp_path: Path) -> Iterator[GuardedSite]:
    with guarded_site(small_cluster, tmp_path, **AUTH, oidc=oidc_settings(provider.url)) as site:
        small_cluster.now = UnixMs(time.time_ns() // 1_000_000)  # the provider's tokens are of today
        yield site


@pytest.fixture
def client(site: GuardedSite) -> TestClient:
    return site.client()


def begin(client: TestClient, next_path: str = "/") -> str:
    """The provider's address that the browser is sent to."""
    answer = client.get("/api/v1/session/oidc", params={"next": next_path})
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def come_back(client: TestClient, address: str) -> str:
    """Where our server sends the browser that the provider sent to ``address``."""
    answer = client.get(address)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def sign_in(client: TestClient, provider: OidcServer, login: str, next_path: str = "/") -> str:
    return come_back(client, provider.sign_in(begin(client, next_path), login, callback=CALLBACK))


def with_query(address: str, **changes: str) -> str:
    parts = urlsplit(address)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | changes
    return urlunsplit(parts._replace(query=urlencode(query)))


def signed_in(client: TestClient) -> dict[str, object] | None:
    account: dict[str, object] | None = client.get("/api/v1/session").json()["who"]
    return account


def test_groups_become_role_and_projects_when_somebody_signs_in(client: TestClient, provider: OidcServer) -> None:
    assert client.get("/api/v1/session").json()["provider"] == "Example"
    assert sign_in(client, provider, "ada", "/rules?q=x") == "/rules?q=x"
    assert signed_in(client) == {
        "login": "ada",
        "title": "ada by name",
        "role": "admin",
        "projects": ["vision"],
        "way": "oidc",
    }
    assert client.get("/api/v1/cluster").status_code == 200
    assert sign_in(client, provider, "bob") == "/"
    account = signed_in(client)
    assert account is not None
    assert (account["login"], account["role"], account["projects"]) == ("bob", "lead", ["speech"])


def test_sign_in_request_is_bound_to_the_browser_when_started(client: TestClient) -> None:
    address = begin(client)
    parameters = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert (parameters["response_type"], parameters["code_challenge_method"]) == ("code", "S256")
    assert len(parameters["state"]) >= 43
    assert len(parameters["nonce"]) >= 43
    assert CLIENT_SECRET not in address


def test_cookies_are_kept_from_scripts_when_the_provider_let_somebody_in(
    client: TestClient, provider: OidcServer
) -> None:
    answer = client.get(provider.sign_in(begin(client), "ada", callback=CALLBACK))
    cookies = answer.headers.get_list("set-cookie")
    assert [cookie.partition("=")[0] for cookie in cookies] == ["clusterscape_session", "clusterscape_sign_in"]
    for cookie in cookies:
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
    assert "Max-Age=0" in cookies[1]


def test_sign_in_is_refused_when_another_browser_began_it(
    site: GuardedSite, client: TestClient, provider: OidcServer
) -> None:
    address = provider.sign_in(begin(client), "ada", callback=CALLBACK)
    victim = site.client()
    assert come_back(victim, address) == "/?sign_in=state"
    assert signed_in(victim) is None
    assert come_back(client, with_query(address, state="x" * 43)) == "/?sign_in=state"
    assert signed_in(client) is None


def test_sign_in_is_refused_when_the_nonce_differs(client: TestClient, provider: OidcServer) -> None:
    address = with_query(begin(client), nonce="of-somebody-else")
    assert come_back(client, provider.sign_in(address, "ada", callback=CALLBACK)) == "/?sign_in=nonce"
    assert signed_in(client) is None


def test_sign_in_is_refused_when_the_proof_key_differs(client: TestClient, provider: OidcServer) -> None:
    address = with_query(begin(client), code_challenge="E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    assert come_back(client, provider.sign_in(address, "ada", callback=CALLBACK)) == "/?sign_in=refused"


def test_sign_in_is_refused_when_the_code_has_expired_or_was_used(client: TestClient, provider: OidcServer) -> None:
    first = begin(client)
    address = provider.sign_in(first, "ada", callback=CALLBACK)
    cookie = client.cookies["clusterscape_sign_in"]
    assert come_back(client, address) == "/"
    client.cookies.clear()
    client.cookies.set("clusterscape_sign_in", cookie)
    assert come_back(client, address) == "/?sign_in=refused"
    client.cookies.clear()
    provider.control(code_ttl_s=1)
    try:
        address = provider.sign_in(begin(client), "ada", callback=CALLBACK)
        time.sleep(2.5)  # the provider's own clock, which nobody can turn
        assert come_back(client, address) == "/?sign_in=refused"
    finally:
        provider.control(code_ttl_s=60)


def test_sign_in_is_refused_when_it_took_too_long(site: GuardedSite, client: TestClient, provider: OidcServer) -> None:
    address = provider.sign_in(begin(client), "ada", callback=CALLBACK)
    site.pass_time(0.2)
    assert come_back(client, address) == "/?sign_in=expired"


def test_sign_in_works_when_the_provider_has_rotated_its_keys(client: TestClient, provider: OidcServer) -> None:
    assert sign_in(client, provider, "ada") == "/"
    provider.control(keys="new")
    client.cookies.clear()
    assert sign_in(client, provider, "bob") == "/"
    account = signed_in(client)
    assert account is not None
    assert account["login"] == "bob"


def test_sign_in_is_refused_when_no_group_has_a_role(
    site: GuardedSite, client: TestClient, provider: OidcServer
) -> None:
    assert sign_in(client, provider, "eve") == "/?sign_in=no_role"
    assert signed_in(client) is None
    assert site.identity.store.account(Way.OIDC, "eve") is None


def test_sign_in_is_refused_when_a_user_name_went_to_another_person(client: TestClient, provider: OidcServer) -> None:
    assert sign_in(client, provider, "ada") == "/"
    client.cookies.clear()
    assert sign_in(client, provider, "ada:2") == "/?sign_in=other_person"
    assert signed_in(client) is None


def test_sign_in_is_refused_when_the_provider_returns_an_error(client: TestClient) -> None:
    address = begin(client)
    state = parse_qs(urlsplit(address).query)["state"][0]
    assert come_back(client, f"{CALLBACK}?error=access_denied&state={state}") == "/?sign_in=refused"
    begin(client)
    assert come_back(client, f"{CALLBACK}?code=x&state=y") == "/?sign_in=state"


def test_page_reports_the_error_when_the_provider_is_down(small_cluster: SmallCluster, tmp_path: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    with guarded_site(small_cluster, tmp_path, **AUTH, oidc=oidc_settings(nowhere)) as site:
        answer = site.client().get("/api/v1/session/oidc")
        assert (answer.status_code, answer.headers["location"]) == (303, "/?sign_in=provider")
        (noted,) = site.audited(action="sign_in")
        assert noted.outcome is Outcome.REFUSED
        assert noted.details["reason"] == "provider"


def test_only_own_paths_are_shown_afterwards_when_a_link_names_another_site(
    client: TestClient, provider: OidcServer
) -> None:
    for path in ("//evil.example/x", "https://evil.example", "/\\evil.example", "javascript:alert(1)"):
        client.cookies.clear()
        assert sign_in(client, provider, "ada", path) == "/"


def test_nothing_secret_is_kept_or_logged_when_people_sign_in(
    site: GuardedSite, client: TestClient, provider: OidcServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    address = provider.sign_in(begin(client), "ada", callback=CALLBACK)
    code = parse_qs(urlsplit(address).query)["code"][0]
    assert come_back(client, address) == "/"
    session_id = client.cookies["clusterscape_session"]
    kept = b"".join(path.read_bytes() for path in (site.static.parent / "access").iterdir())
    for secret in (CLIENT_SECRET, code, session_id):
        assert secret.encode() not in kept
    assert CLIENT_SECRET not in caplog.text
    assert session_id not in caplog.text
    assert CLIENT_SECRET not in repr(site.identity.auth)
