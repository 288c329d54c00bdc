"""Accounts, tokens, sessions and the audit log: nobody but an administrator learns who else comes in, and nobody any secret.

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

from clusterscape.model.access import Account, Scope
from clusterscape.model.viewers import Role
from clusterscape.serve.app import ROUTES, describe_api

__all__ = ["small_cluster"]

BOB = "zqbob"
STRANGER = "stranger"
LOGINS = {role: f"zq{role.value}" for role in Role}
NAMES = (BOB, *LOGINS.values())


@dataclass
class Guarded:
    """``secrets``: what opens something, or is the digest of it; ``bobs`` is the key of somebody else's token."""

    site: GuardedSite
    clients: dict[str, TestClient] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    bobs: str = ""

    def hashes(self) -> list[str]:
        store = self.site.identity.store
        found = [store.password_hash(login) for login in NAMES]
        return [each for each in found if each]


@pytest.fixture
def guarded(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[Guarded]:
    with guarded_site(small_cluster, tmp_path, modes=("local",)) as site:
        made = Guarded(site)
        accounts = {BOB: site.add_account(BOB, Role.RESEARCHER, projects=(f"{BOB}-project",))}
        accounts |= {login: site.add_account(login, role) for role, login in LOGINS.items()}
        for login, account in accounts.items():
            made.secrets.add(_make_token(site, account))
            made.clients[login] = _signed_in(site, login)
            made.secrets.update(made.clients[login].cookies.values())
        made.bobs = site.identity.store.tokens(accounts[BOB].way, BOB)[0].key
        made.clients[STRANGER] = site.client()
        made.clients[STRANGER].headers.update(FROM_PAGE)
        made.secrets.update(made.hashes())
        yield made


def _make_token(site: GuardedSite, account: Account) -> str:
    return site.identity.tokens.create(account, title=f"{account.login}-script", scopes=[Scope.READ], days=1)[1]


def _signed_in(site: GuardedSite, login: str) -> TestClient:
    client = site.client()
    sign_in(client, login)
    client.headers.update(FROM_PAGE)
    return client


Call = tuple[str, str, Any]


def calls(bobs_token: str) -> dict[str, list[Call]]:
    """What may be asked and tried, by operation: of one's own, of Bob's, and of somebody whom nobody knows."""
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
"""Tags of the operations that are about who comes in."""
ENDING = ("sign_out", "sign_out_everywhere")
"""After these nobody is signed in any more."""
SENT_BY_ADMIN = ("get_session", "list_accounts", "list_tokens", "list_audit")


def ask(client: TestClient, call: Call) -> Response:
    method, path, body = call
    return client.request(method, f"/api/v1{path}", **({} if body is None else {"json": body}))


def texts_of(answer: Response) -> str:
    return f"{sorted(answer.headers.items())} {answer.text}".lower()


def test_every_operation_of_access_is_tried_when_the_api_is_read(guarded: Guarded) -> None:
    app = describe_api()
    for area in ROUTES:
        app.include_router(area.router)
    paths = app.openapi()["paths"].values()
    operations = {each["operationId"] for path in paths for each in path.values() if each.get("tags") in AREAS}
    assert operations == set(calls(guarded.bobs)), "say in this file how the operation is asked"


@pytest.mark.parametrize("who", [STRANGER, *(LOGINS[role] for role in Role if role is not Role.ADMIN)])
def test_nobody_else_and_no_secret_is_told_when_one_is_no_administrator(guarded: Guarded, who: str) -> None:
    client = guarded.clients[who]
    mine = {secret for secret in guarded.secrets if secret in client.cookies.values()}
    everything = calls(guarded.bobs)
    for operation, tried in sorted(everything.items(), key=lambda item: item[0] in ENDING):
        for call in tried:
            answer = ask(client, call)
            told = texts_of(answer)
            asked = f"{call[1]} {call[2]}"
            foreign = {name for name in NAMES if name != who and name in told and name not in asked}
            assert not foreign, (operation, call, told)
            assert not [each for each in (*guarded.secrets - mine, PASSWORD) if each.lower() in told], (operation, call)
            assert answer.status_code < 500, (operation, call, told)
    # Nothing of all that was done.
    kept = {account.login: account.role for account in guarded.site.identity.store.accounts()}
    assert kept == {BOB: Role.RESEARCHER, **{login: role for role, login in LOGINS.items()}}
    assert ask(guarded.clients[BOB], ("GET", "/tokens", None)).json()[0]["is_live"]


@pytest.mark.parametrize("who", [LOGINS[Role.VIEWER], LOGINS[Role.OPERATOR]])
def test_refusals_do_not_tell_who_is_there_when_names_are_guessed(guarded: Guarded, who: str) -> None:
    guesses = ("add_account", "change_account", "create_token", "remove_account", "revoke_token", "sign_in")
    for operation in guesses:
        there, nowhere = (ask(guarded.clients[who], call) for call in calls(guarded.bobs)[operation])
        assert there.status_code == nowhere.status_code, operation
        assert _without_guess(there, guarded.bobs) == _without_guess(nowhere, guarded.bobs), operation


def _without_guess(answer: Response, bobs_token: str) -> str:
    text = answer.text
    for guess in (BOB, "zqnobody", bobs_token, "zqnone"):
        text = text.replace(guess, "·")
    return text


def test_everybody_and_still_no_secret_is_told_when_an_administrator_asks(guarded: Guarded) -> None:
    client = guarded.clients[LOGINS[Role.ADMIN]]
    told = "".join(
        texts_of(ask(client, call)) for operation in SENT_BY_ADMIN for call in calls(guarded.bobs)[operation]
    )
    assert {name for name in NAMES if name in told} == set(NAMES)
    assert not [each for each in (*guarded.secrets, PASSWORD) if each.lower() in told]
