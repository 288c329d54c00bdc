"""Accounts, tokens, sessions and the audit log: only administrators see other users, and nobody sees a secret.

With a real identity behind a real gate, as every role and as a stranger; ``test_visibility`` asks all that is about the cluster.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from clusters.guarded import FROM_PAGE, PASSWORD, GuardedSite, guarded_site, sign_in
from clusters.small import SmallCluster, small_cluster
from fastapi.testclient import TestClient
from httpx2 import Response

from clusterscape.model.access import Account, Role, Scope
from clusterscape.serve.app import ROUTES, describe_api

__all__ = ["small_cluster"]

BOB = "zqbob"
STRANGER = "stranger"
LOGINS = {role: f"zq{role.value}" for role in Role}
NAMES = (BOB, *LOGINS.values())


@dataclass
class Guarded:
    """``secrets``: credentials and their digests; ``bobs``: the key of another user's token."""

    site: GuardedSite
    clients: dict[str, TestClient] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    bobs: str = ""

    def hashes(self) -> list[str]:
        store = self.site.identity.store
        hashes = [store.password_hash(login) for login in NAMES]
        return [password_hash for password_hash in hashes if password_hash]


@pytest.fixture
def guarded(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[Guarded]:
    with guarded_site(small_cluster, tmp_path, modes=("local",)) as site:
        site_guard = Guarded(site)
        accounts = {BOB: site.add_account(BOB, Role.RESEARCHER, projects=(f"{BOB}-project",))}
        accounts |= {login: site.add_account(login, role) for role, login in LOGINS.items()}
        for login, account in accounts.items():
            site_guard.secrets.add(_make_token(site, account))
            site_guard.clients[login] = _signed_in(site, login)
            site_guard.secrets.update(site_guard.clients[login].cookies.values())
        site_guard.bobs = site.identity.store.tokens(accounts[BOB].way, BOB)[0].key
        site_guard.clients[STRANGER] = site.client()
        site_guard.clients[STRANGER].headers.update(FROM_PAGE)
        site_guard.secrets.update(site_guard.hashes())
        yield site_guard


def _make_token(site: GuardedSite, account: Account) -> str:
    return site.identity.tokens.create(account, title=f"{account.login}-script", scopes=[Scope.READ], days=1)[1]


def _signed_in(site: GuardedSite, login: str) -> TestClient:
    client = site.client()
    sign_in(client, login)
    client.headers.update(FROM_PAGE)
    return client


Call = tuple[str, str, Any]


def calls(bobs_token: str) -> dict[str, list[Call]]:
    """Calls by operation: on the caller's own account, on Bob's, and on one that does not exist."""
    owner = {"way": "local", "login": BOB}
    token = {"title": "t", "scopes": ["read"], "days": 1}
    people = (BOB, "zqnobody")
    return {
        "get_session": [("GET", "/session", None)],
        "list_accounts": [("GET", "/accounts", None)],
        "list_tokens": [("GET", "/tokens", None), ("GET", "/tokens?everybody=true", None)],
        "list_audit": [("GET", "/audit", None), ("GET", f"/audit?actor={BOB}", None)],
        "add_account": [
            ("POST", "/accounts", {"login": login, "password": "y" * 20, "role": "viewer"}) for login in people
        ],
        "change_account": [("PUT", f"/accounts/local/{login}", {"role": "admin"}) for login in people],
        "create_token": [("POST", "/tokens", token | {"owner": {**owner, "login": login}}) for login in people],
        "revoke_token": [("DELETE", f"/tokens/{key}", None) for key in (bobs_token, "zqnone")],
        "remove_account": [("DELETE", f"/accounts/local/{login}", None) for login in people],
        "change_password": [("PUT", "/session/password", {"old": "a wrong one, surely", "new": "b" * 20})],
        "sign_in": [
            ("POST", "/session", {"login": login, "password": "wrong, wrong, wrong"}) for login in (BOB, "zqnobody")
        ],
        "begin_sign_in": [("GET", "/session/oidc", None)],
        "finish_sign_in": [("GET", "/session/oidc/callback", None)],
        "sign_out": [("DELETE", "/session", None)],
        "sign_out_everywhere": [("DELETE", "/sessions", None)],
    }


AREAS = (["access"], ["session"])
"""Tags of the operations on accounts and sessions."""
ENDING = ("sign_out", "sign_out_everywhere")
"""Operations that end the session."""
SENT_BY_ADMIN = ("get_session", "list_accounts", "list_tokens", "list_audit")


def ask(client: TestClient, call: Call) -> Response:
    method, path, body = call
    return client.request(method, f"/api/v1{path}", **({} if body is None else {"json": body}))


def texts_of(answer: Response) -> str:
    return f"{sorted(answer.headers.items())} {answer.text}".lower()


def test_every_operation_of_access_is_tried_when_the_api_is_read(guarded: Guarded) -> None:
    app = describe_api()
    for router in ROUTES:
        app.include_router(router)
    paths = app.openapi()["paths"].values()
    operations = {
        operation["operationId"] for path in paths for operation in path.values() if operation.get("tags") in AREAS
    }
    assert operations == set(calls(guarded.bobs)), "say in this file how the operation is asked"


@pytest.mark.parametrize("login", [STRANGER, *(LOGINS[role] for role in Role if role is not Role.ADMIN)])
def test_other_users_and_secrets_are_hidden_when_the_caller_is_no_administrator(guarded: Guarded, login: str) -> None:
    client = guarded.clients[login]
    mine = {secret for secret in guarded.secrets if secret in client.cookies.values()}
    everything = calls(guarded.bobs)
    for operation, tried in sorted(everything.items(), key=lambda item: item[0] in ENDING):
        for call in tried:
            answer = ask(client, call)
            text = texts_of(answer)
            request = f"{call[1]} {call[2]}"
            foreign = {name for name in NAMES if name != login and name in text and name not in request}
            assert not foreign, (operation, call, text)
            assert not [secret for secret in (*guarded.secrets - mine, PASSWORD) if secret.lower() in text], (
                operation,
                call,
            )
            assert answer.status_code < 500, (operation, call, text)
    # None of the calls had an effect.
    kept = {account.login: account.role for account in guarded.site.identity.store.accounts()}
    assert kept == {BOB: Role.RESEARCHER, **{user: role for role, user in LOGINS.items()}}
    assert ask(guarded.clients[BOB], ("GET", "/tokens", None)).json()[0]["is_live"]


@pytest.mark.parametrize("login", [LOGINS[Role.VIEWER], LOGINS[Role.OPERATOR]])
def test_refusals_do_not_reveal_accounts_when_names_are_guessed(guarded: Guarded, login: str) -> None:
    guesses = ("add_account", "change_account", "create_token", "remove_account", "revoke_token", "sign_in")
    for operation in guesses:
        there, nowhere = (ask(guarded.clients[login], call) for call in calls(guarded.bobs)[operation])
        assert there.status_code == nowhere.status_code, operation
        assert _without_guess(there, guarded.bobs) == _without_guess(nowhere, guarded.bobs), operation


def _without_guess(answer: Response, bobs_token: str) -> str:
    text = answer.text
    for guess in (BOB, "zqnobody", bobs_token, "zqnone"):
        text = text.replace(guess, "·")
    return text


def test_all_users_but_no_secret_are_shown_when_an_administrator_asks(guarded: Guarded) -> None:
    client = guarded.clients[LOGINS[Role.ADMIN]]
    text = "".join(
        texts_of(ask(client, call)) for operation in SENT_BY_ADMIN for call in calls(guarded.bobs)[operation]
    )
    assert {name for name in NAMES if name in text} == set(NAMES)
    assert not [secret for secret in (*guarded.secrets, PASSWORD) if secret.lower() in text]
