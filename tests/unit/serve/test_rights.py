"""Rights: every route has a minimum role, refusals have a hint, and only owners change their items."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters.opened import open_services
from clusters.small import SmallCluster
from clusters.told_viewers import believe_names
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from clusterscape.model.access import Role, Viewer
from clusterscape.serve.admission import MINIMUM_ROLES
from clusterscape.serve.app import ROUTES, create_app

VIEW = {"version": 1, "title": "GPUs"}
WRITING = {"POST", "PUT", "PATCH", "DELETE"}
QUESTIONS = {
    "get_chosen_units", "read_rule", "complete_rule", "ask_what_if", "simulate_what_if", "start_what_if", "stop_what_if",
    "sign_out_everywhere", "change_password", "create_token", "revoke_token", "set_mail_choice",
}  # fmt: skip
"""Changing nothing but the asker's own: what viewers may POST."""


def viewers() -> dict[str, Viewer]:
    named = {role.value: Viewer(login=f"the-{role.value}", role=role) for role in Role}
    return named | {name: Viewer(login=name, role=Role.RESEARCHER) for name in ("ada", "eve")}


@pytest.fixture
def client(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[TestClient]:
    queries = small_cluster.queries
    app = create_app(queries, services=open_services(queries), static=tmp_path)
    believe_names(app, viewers())
    with TestClient(app) as client:
        yield client


def routes() -> dict[str, APIRoute]:
    return {route.name: route for router in ROUTES for route in router.routes if isinstance(route, APIRoute)}


def test_every_route_has_a_minimum_role_when_routes_are_read() -> None:
    assert set(routes()) == set(MINIMUM_ROLES), "name the route in serve/admission.py"


def test_viewers_change_nothing_when_routes_are_read() -> None:
    for name, route in routes().items():
        minimum = MINIMUM_ROLES[name]
        if (route.methods or set()) & WRITING and name not in QUESTIONS and minimum is not None:
            assert minimum.is_at_least(Role.RESEARCHER), name


def test_refusal_says_what_to_do_when_the_role_is_too_low(client: TestClient) -> None:
    rule = {"text": "gpu_util p95 < 5%", "name": "Idle"}
    refused = client.put("/api/v1/rules/idle", json=rule, headers={"x-as": "lead"})
    assert refused.status_code == 403
    error = refused.json()["error"]
    assert (error["code"], error["message"]) == ("forbidden", "this requires the role operator, and yours is lead")
    assert error["hint"]
    assert client.put("/api/v1/rules/idle", json=rule, headers={"x-as": "operator"}).status_code == 200


def test_only_owners_and_operators_change_views_when_they_have_an_owner(client: TestClient) -> None:
    def put(login: str) -> int:
        return client.put("/api/v1/views/mine", json=VIEW, headers={"x-as": login}).status_code

    assert [put(login) for login in ("viewer", "ada", "eve", "ada", "operator", "eve")] == [
        403,
        200,
        403,
        200,
        200,
        403,
    ]
    statuses = [
        client.delete("/api/v1/views/mine", headers={"x-as": login}).status_code
        for login in ("eve", "ada", "ada", "eve")
    ]
    assert statuses == [403, 204, 404, 404]
    listed = client.put("/api/v1/views/all", json=VIEW | {"owned_by": "ada"}, headers={"x-as": "operator"}).json()
    assert listed["document"] == VIEW
    assert client.delete("/api/v1/views/all", headers={"x-as": "ada"}).status_code == 403


def test_comment_has_the_signed_in_author_when_it_names_another(client: TestClient) -> None:
    comment = {"workload": "slurm:1", "author": "somebody else", "text": "mine"}
    stored = client.post("/api/v1/comments", json=comment, headers={"x-as": "ada"}).json()
    assert stored["author"] == "ada"
    address = f"/api/v1/comments/{stored['key']}"
    taken_back = [client.delete(address, headers={"x-as": login}).status_code for login in ("eve", "ada", "ada")]
    assert taken_back == [403, 204, 404]
