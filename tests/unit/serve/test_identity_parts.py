"""Parts of authentication that need no server: addresses, throttling, groups, scopes; and reverse proxies."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters.guarded import FROM_PAGE, GuardedSite, guarded_site
from clusters.opened import open_services
from clusters.small import SmallCluster
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.errors import ConfigError, QueryError, ThrottledError
from clusterscape.model import UnixMs
from clusterscape.model.access import Role, Scope, Way
from clusterscape.serve.app import create_app
from clusterscape.serve.identity.addresses import Addresses, rate_limit_network
from clusterscape.serve.identity.groups import resolve_groups
from clusterscape.serve.identity.oidc import OidcProvider, decode_pending, find_claim
from clusterscape.serve.identity.passwords import check_new_password
from clusterscape.serve.identity.throttle import SignInThrottle, Throttle
from clusterscape.serve.identity.tokens import find_scopes
from clusterscape.settings import AuthSettings, OidcSettings, read_settings

PROXY = "10.0.0.5"
VIEW = {"version": 1, "title": "By project"}


def read_client(
    client: str, headers: dict[str, str], *, trusted: tuple[str, ...] = (PROXY,), public: str | None = None
) -> tuple[str, str]:
    raw = [(name.lower().encode(), value.encode()) for name, value in {"Host": "inner:8321", **headers}.items()]
    scope = {"type": "http", "client": (client, 1), "scheme": "http", "headers": raw}
    client_info = Addresses(trusted, public).read_client(scope)
    return client_info.address, client_info.origin


@pytest.mark.parametrize(
    ("client", "headers", "expected"),
    [
        ("203.0.113.9", {}, ("203.0.113.9", "http://inner:8321")),
        (
            "203.0.113.9",
            {"X-Forwarded-For": "1.1.1.1", "X-Forwarded-Proto": "https"},
            ("203.0.113.9", "http://inner:8321"),
        ),
        (PROXY, {"X-Forwarded-For": "198.51.100.7"}, ("198.51.100.7", "http://inner:8321")),
        (PROXY, {"X-Forwarded-For": "6.6.6.6, 198.51.100.7"}, ("198.51.100.7", "http://inner:8321")),
        (PROXY, {"X-Forwarded-For": f"198.51.100.7, {PROXY}"}, ("198.51.100.7", "http://inner:8321")),
        (f"::ffff:{PROXY}", {"X-Forwarded-For": "2001:db8::1"}, ("2001:db8::1", "http://inner:8321")),
        (
            PROXY,
            {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "gpus.example.org"},
            (PROXY, "https://gpus.example.org"),
        ),
    ],
)
def test_forwarded_headers_count_only_when_a_trusted_proxy_sent_them(
    client: str, headers: dict[str, str], expected: tuple[str, str]
) -> None:
    assert read_client(client, headers) == expected


def test_last_forwarded_header_counts_when_a_proxy_let_one_of_the_client_through() -> None:
    forwarded = [(b"x-forwarded-host", b"evil.example"), (b"x-forwarded-host", b"gpus.example.org")]
    scope = {"type": "http", "client": (PROXY, 1), "scheme": "http", "headers": [(b"host", b"inner"), *forwarded]}
    assert Addresses((PROXY,), None).read_client(scope).origin == "http://gpus.example.org"


def test_public_address_is_the_origin_when_it_is_set() -> None:
    assert read_client("203.0.113.9", {}, public="https://gpus.example.org")[1] == "https://gpus.example.org"


def test_neighbors_are_one_place_when_they_share_an_ipv6_network() -> None:
    assert rate_limit_network("2001:db8:1:2::1") == rate_limit_network("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert rate_limit_network("::ffff:192.0.2.1") == "192.0.2.1"
    assert rate_limit_network("192.0.2.1") != rate_limit_network("192.0.2.2")


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(1, 4))
def test_throttle_never_lets_more_than_its_limit_through_when_tried_at_any_times(gaps: list[int], limit: int) -> None:
    now = 0.0
    throttle = Throttle(limit=limit, window_s=10, now_s=lambda: now)
    passed: list[float] = []
    for gap in gaps:
        now += gap
        if throttle.wait_s("key") <= 0:
            throttle.note("key")
            passed.append(now)
    for start in passed:
        assert sum(start <= time < start + 10 for time in passed) <= limit


def test_memory_is_bounded_when_every_guess_is_of_another_name() -> None:
    throttle = Throttle(limit=3, window_s=10, now_s=lambda: 0.0, most_keys=100)
    for number in range(1000):
        throttle.note(str(number))
    assert len(throttle) == 100
    throttle.undo("999")
    assert len(throttle) == 99


def test_one_address_and_one_account_are_limited_in_all_when_the_other_changes() -> None:
    throttle = SignInThrottle(attempts=2, window_s=60, now_s=lambda: 0.0)
    names = itertools.count()
    for _ in range(10):
        throttle.begin("192.0.2.1", f"name-{next(names)}")
    with pytest.raises(ThrottledError) as refused:
        throttle.begin("192.0.2.1", f"name-{next(names)}")
    assert refused.value.retry_after_s == 60
    for number in range(10):
        throttle.begin(f"198.51.100.{number}", "Ada")
    with pytest.raises(ThrottledError):
        throttle.begin("198.51.100.200", "ada")
    throttle.begin("198.51.100.200", "bob")


def test_highest_role_and_all_projects_count_when_a_user_is_in_several_groups() -> None:
    auth = AuthSettings(
        roles={"staff": Role.RESEARCHER, "ops": Role.OPERATOR},
        projects={"pi": ("vision", "speech")},
        projects_pattern="^proj_(.+)$",
    )
    rights = resolve_groups(["staff", "ops", "pi", "proj_nlp", "other"], auth)
    assert rights.role is Role.OPERATOR
    assert rights.projects == frozenset({"vision", "speech", "nlp"})
    assert resolve_groups([], auth).role is Role.RESEARCHER
    assert resolve_groups(["other"], AuthSettings(default_role=None)).role is None


@pytest.mark.parametrize(
    ("path", "is_change", "enough"),
    [
        ("/api/v1/cluster", False, {Scope.READ}),
        ("/metrics", False, {Scope.READ}),
        ("/api/v1/runs", False, {Scope.READ}),
        ("/api/v1/runs/r1/files", False, {Scope.READ, Scope.RUNS, Scope.WRITE}),
        ("/api/v1/runs/r1/files/f", True, {Scope.RUNS, Scope.WRITE}),
        ("/api/v1/traces", True, {Scope.RUNS, Scope.WRITE}),
        ("/api/v1/traces/t1", False, {Scope.READ, Scope.RUNS, Scope.WRITE}),
        ("/api/v1/traces/t1/marey", False, {Scope.READ}),
        ("/api/v1/traces/diff", False, {Scope.READ}),
        ("/api/v1/rules/x", True, {Scope.WRITE}),
        ("/api/v1/session", False, set(Scope)),
        ("/api/v1/sessions", True, {Scope.ADMIN}),
        ("/api/v1/accounts", False, {Scope.ADMIN}),
        ("/api/v1/tokens/x", True, {Scope.ADMIN}),
        ("/api/v1/audit", False, {Scope.ADMIN}),
    ],
)
def test_scopes_follow_the_path_when_a_token_is_sent(path: str, is_change: bool, enough: set[Scope]) -> None:
    assert find_scopes(path, is_change=is_change) == frozenset(enough)


@pytest.mark.parametrize("password", ["short", "x" * 2000, "aaaaaaaaaaaaaaaaaaaa", "ada-lovelace1"])
def test_password_is_refused_when_it_is_easy_to_guess_or_too_long(password: str) -> None:
    with pytest.raises(QueryError):
        check_new_password(password, login="ada-lovelace", min_length=12)


@given(st.text())
def test_sign_in_cookie_is_rejected_when_its_content_is_arbitrary(text: str) -> None:
    assert decode_pending(text) is None


def test_claims_are_found_by_path_when_they_are_nested() -> None:
    claims = {"realm_access": {"roles": ["a"]}, "https://x.example/groups": ["b"], "name": "n"}
    assert find_claim(claims, "realm_access.roles") == ["a"]
    assert find_claim(claims, "https://x.example/groups") == ["b"]
    assert find_claim(claims, "name.first") is None


def test_plain_http_provider_is_refused_when_it_is_not_on_loopback() -> None:
    with pytest.raises(ConfigError, match="https"):
        OidcProvider(OidcSettings(issuer="http://id.example.org", client_id="x"), clock=lambda: UnixMs(0))


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ({"modes": ["oidc"]}, "auth.oidc.issuer"),
        ({"modes": ["proxy"]}, "auth.trusted_proxies"),
        ({"trusted_proxies": ["proxy.example"]}, "trusted_proxies"),
        ({"projects_pattern": "x"}, "exactly one capture group"),
        ({"public_url": "https://x.example/path"}, "public_url"),
    ],
)
def test_settings_are_refused_when_they_admit_everybody_or_nobody(auth: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_settings(environ={}, overrides={"auth": auth})


@pytest.fixture
def proxied(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[GuardedSite]:
    with guarded_site(
        small_cluster,
        tmp_path,
        modes=("proxy",),
        trusted_proxies=(PROXY,),
        roles={"ops": "operator"},
        default_role=None,
    ) as site:
        yield site


def test_proxy_names_the_user_when_it_is_trusted(proxied: GuardedSite) -> None:
    site = proxied
    ada = {"X-Remote-User": "ada", "X-Remote-Groups": "staff, ops", "X-Remote-Name": "Ada"}
    behind, outside = site.client(address=PROXY), site.client(address="203.0.113.9")
    signed_in = behind.get("/api/v1/session", headers=ada).json()["who"]
    assert (signed_in["login"], signed_in["role"], signed_in["title"], signed_in["way"]) == (
        "ada",
        "operator",
        "Ada",
        "proxy",
    )
    assert behind.get("/api/v1/cluster", headers=ada).status_code == 200
    assert behind.get("/api/v1/cluster").status_code == 401
    assert outside.get("/api/v1/cluster", headers=ada).status_code == 401, "anybody can write headers"
    assert behind.get("/api/v1/cluster", headers={"X-Remote-User": "eve"}).status_code == 403
    twice = [("X-Remote-User", "root"), *ada.items()]
    assert behind.get("/api/v1/cluster", headers=twice).status_code == 401, "the proxy let one through"
    for name in ("X-Remote-Groups", "X-Remote-Name"):
        for headers in ([(name, "ops"), *ada.items()], [*ada.items(), (name, "")]):
            refusal = behind.get("/api/v1/cluster", headers=headers)
            assert refusal.status_code == 401
            assert name in refusal.json()["error"]["hint"]
    assert behind.put("/api/v1/views/v", json=VIEW, headers=ada).status_code == 403, "a browser may have been made to"
    assert behind.put("/api/v1/views/v", json=VIEW, headers={**ada, **FROM_PAGE}).status_code == 200
    account = site.identity.store.account(Way.PROXY, "ada")
    assert account is not None
    assert account.role is Role.OPERATOR
    secret = site.make_token(account, Scope.READ)
    assert outside.get("/api/v1/cluster", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    two = [("Authorization", f"Bearer {secret}"), ("Authorization", "Bearer other")]
    assert outside.get("/api/v1/cluster", headers=two).status_code == 401


def test_other_names_for_this_machine_are_refused_when_it_is_for_this_machine_only(small_cluster: SmallCluster) -> None:
    app = create_app(small_cluster.queries, loopback_only=True)
    for host in ("127.0.0.1:8321", "localhost", "[::1]:8321", "gpus.localhost:80"):
        assert TestClient(app).get("/api/v1/cluster", headers={"Host": host}).status_code == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "192.0.2.1"):
        assert TestClient(app).get("/api/v1/cluster", headers={"Host": host}).status_code == 403


def test_other_sites_change_nothing_when_nobody_has_to_sign_in(small_cluster: SmallCluster) -> None:
    queries = small_cluster.queries
    client = TestClient(create_app(queries, services=open_services(queries)))
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    assert client.put("/api/v1/views/v", json=VIEW, headers=foreign).status_code == 403
    assert client.put("/api/v1/views/v", json=VIEW).status_code == 200
    assert client.get("/api/v1/session").json()["is_open"] is True
    assert client.get("/api/v1/accounts").status_code == 404
