"""On a private site no byte of any answer names a person whom the viewer may not see.

Every operation of the API is called as every role with parameters that lead somewhere; a new one fails until it has a case.
"""

import asyncio
import gzip
import io
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, make_dataclass
from typing import Any

import polars as pl
import pytest
import zstandard
from clusters.private_site import (
    ADA,
    BOB,
    CLEO,
    OMAR,
    PEOPLE,
    VISIBLE_NAMES,
    PrivateSite,
    job,
    pods_of,
    private_site,
    project_of,
    run,
    run_spool,
    units_of,
    upload_of,
    waiting_job,
)
from fastapi import APIRouter
from fastapi.testclient import TestClient
from httpx2 import Response

from clusterscape.query.answers import WorkloadAnswer
from clusterscape.query.redaction import ScopeRedactor, UnmarkedTextError
from clusterscape.serve.app import ROUTES, describe_api
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import AppState, State

ROLES = tuple(VISIBLE_NAMES)
NAMES = (*PEOPLE, OMAR)
OWN_FIRST = (ADA, BOB, CLEO)


@dataclass(frozen=True)
class Call:
    """One request below ``/api/v1`` (or to a path of its own)."""

    method: str
    path: str
    json: Any = None
    content: bytes | None = None
    changes: bool = False


def get(path: str) -> Call:
    return Call("GET", path)


def each_workload(path: str) -> list[Call]:
    return [get(path.replace("{}", job(person))) for person in OWN_FIRST]


def each_trace(site: PrivateSite, path: str) -> list[Call]:
    return [get(f"/traces/{site.traces[person]}{path}") for person in OWN_FIRST]


def reads(site: PrivateSite) -> dict[str, list[Call]]:
    """Reading calls, by operation."""
    runs = "&".join(f"run={run(person)}" for person in PEOPLE)
    changed = {"change": {"kind": "compute", "factor": 2}}
    past = 1_794_800_000_000 - 600_000
    return {
        "get_health": [get("/healthz")],
        "get_cluster": [get("/cluster"), get(f"/cluster?at={past}")],
        "get_timeline": [get("/timeline")],
        "get_waste": [get("/waste")],
        "get_usage": [get("/usage?by=user&by=project&period=2020..2035&step=year"), get("/usage?by=qos")],
        "get_usage_report": [
            get("/usage/report?period=2026"),
            get(f"/usage/report?period=2026&project={project_of(ADA)}"),
        ],
        "list_budgets": [get("/budgets")],
        "get_waste_by_unit": [get("/waste/units")],
        "list_nodes": [get("/nodes"), get(f"/nodes?at={past}")],
        "get_node": [get(f"/nodes/n{number}") for number in range(1, 6)] + [get(f"/nodes/n2?at={past}")],
        "search": [get(f"/search?q={text}") for text in ("zq", "zqbo", "train", "slurm", "n1", "user", "project")],
        "get_snapshot": [get("/snapshot"), get(f"/snapshot?at={past}")],
        "get_tick": [
            get("/tick?metrics=gpu_util_ratio,gpu_util_ratio:p50"),
            get(f"/tick?metrics=power_watts&at={past}"),
        ],
        "get_units": [get("/units.parquet"), get(f"/units.parquet?at={past}")],
        "get_chosen_units": [Call("POST", "/units.parquet", {"units": [*units_of(ADA), *units_of(BOB)]})],
        "get_series": [get(f"/series?metric=gpu_util_ratio&workload={job(person)}") for person in PEOPLE],
        "get_sources": [get("/sources")],
        "list_metrics": [get("/metrics")],
        "list_workloads": [
            get("/workloads"),
            get(f"/workloads?at={past}"),
            *(get(f"/workloads?user={person}&text=zq") for person in PEOPLE),
            *(get(f"/workloads?project={project_of(person)}") for person in PEOPLE),
        ],
        "get_workload": [*each_workload("/workloads/{}"), *(get(f"/workloads/run:{run(person)}") for person in PEOPLE)],
        "get_job_card": each_workload("/jobs/{}"),
        "get_diagnosis": each_workload("/workloads/{}/diagnosis"),
        "get_workload_histograms": each_workload("/workloads/{}/histograms?metric=gpu_util_ratio"),
        "get_workload_lines": each_workload("/workloads/{}/lines?metrics=gpu_util_ratio"),
        "get_workload_scatter": each_workload("/workloads/{}/scatter?x=gpu_util_ratio&y=power_watts"),
        "list_workload_events": each_workload("/workloads/{}/events"),
        "get_workload_verdicts": each_workload("/workloads/{}/rules"),
        "list_violations": [get("/violations"), *(get(f"/violations?user={person}") for person in PEOPLE)],
        "list_violating_units": [get("/violations/units"), get(f"/violations/units?at={past}")],
        "get_violation_timeline": [get("/violations/timeline")],
        "get_mail_choice": [get("/mail-choice")],
        "list_mutes": [get("/mutes")],
        "list_comments": [get("/comments"), *each_workload("/comments?workload={}")],
        "get_alert_state": [get("/alerts")],
        "list_rules": [get("/rules")],
        "read_rule": [Call("POST", "/rules/read", {"text": "gpu_util p95 < 5%"})],
        "complete_rule": [Call("POST", "/rules/complete", {"text": "gpu_util p95 < 5% for user z"})],
        "try_rule": [Call("POST", "/rules/try", {"text": "gpu_util p95 < 99%", "hours": 2})],
        "describe_rule_language": [get("/rule-language")],
        "list_views": [get("/views")],
        "list_insights": [get("/insights")],
        "list_runs": [get("/runs")],
        "read_run_tree": [get("/runs/tree")],
        "read_run_workload": [get(f"/runs/workloads/{run(person)}") for person in PEOPLE],
        "list_run_metrics": [get(f"/runs/metrics?{runs}"), get(f"/runs/metrics?run={run(ADA)}")],
        "read_run_series": [get(f"/runs/series?run={run(person)}&metric=loss") for person in PEOPLE],
        "read_run_bands": [get(f"/runs/bands?group={run(person)}&metric=loss") for person in PEOPLE],
        "read_run": [get(f"/runs/{run(person)}") for person in PEOPLE],
        "read_run_hang": [get(f"/runs/{run(person)}/hang") for person in PEOPLE],
        "list_hangs": [get("/hangs"), *(get(f"/hangs?workload=run:{run(person)}") for person in PEOPLE)],
        "list_run_files": [get(f"/runs/{run(person)}/files") for person in PEOPLE],
        "list_traces": [get("/traces"), *each_workload("/traces?workload={}")],
        "diff_traces": [get(f"/traces/diff?a={site.traces[person]}&b={site.traces[ADA]}") for person in PEOPLE],
        "read_trace": each_trace(site, ""),
        "get_trace_steps": each_trace(site, "/steps"),
        "get_trace_marey": each_trace(site, "/marey?pixels=100"),
        "read_trace_span": each_trace(site, "/spans/0"),
        "read_trace_flow": each_trace(site, "/flow"),
        "read_trace_flow_activity": each_trace(site, "/flow/activity"),
        "get_trace_highlights": each_trace(site, "/highlights?nodes=0"),
        "get_trace_overview": each_trace(site, "/overview?pixels=50"),
        "get_trace_operators": each_trace(site, "/operators"),
        "get_trace_communication": each_trace(site, "/communication"),
        "get_trace_curves": each_trace(site, "/curves"),
        "ask_what_if": [Call("POST", f"/traces/{site.traces[person]}/whatif", changed) for person in PEOPLE],
        "list_job_traces": [get("/job-traces")],
        "describe_job_trace": [
            get("/job-traces/cluster/description"),
            *(get(f"/job-traces/{site.uploads[person]}/description") for person in PEOPLE),
        ],
        "compare_job_trace_predictors": [
            get("/job-traces/cluster/predictions"),
            *(get(f"/job-traces/{site.uploads[person]}/predictions") for person in PEOPLE),
        ],
        "forecast_wait": [get(f"/scheduling/wait?gpus=4&hours=1&user={person}") for person in PEOPLE],
        "forecast_waiting": [get("/scheduling/waiting")],
        "list_models": [get("/scheduling/models")],
        "report_reliability": [get("/scheduling/reliability")],
        "list_queue": [get("/scheduling/queue")],
        "explain_waiting": [get(f"/scheduling/queue/{waiting_job(person)}") for person in PEOPLE],
        "simulate_what_if": [Call("POST", "/scheduling/whatif", {"futures": 2, "first": [waiting_job(BOB)]})],
        "start_what_if": [Call("POST", "/scheduling/whatif/runs", {"futures": 2})],
        "read_what_if": [get("/scheduling/whatif/runs/0")],
        "stop_what_if": [Call("DELETE", "/scheduling/whatif/runs/0")],
        "get_session": [get("/session")],
        "list_accounts": [get("/accounts")],
        "list_tokens": [get("/tokens"), get("/tokens?all=true")],
        "list_audit": [get("/audit")],
        "list_simulator_options": [get("/simulations/options")],
        "list_simulations": [get("/simulations")],
        "read_simulation": [get("/simulations/0")],
    }


def writes(site: PrivateSite) -> dict[str, list[Call]]:
    """Writing calls on own and foreign objects, by operation; removals come last."""
    view = {"version": 1, "title": "mine"}
    rule = {"text": "gpu_util p95 < 5%", "name": "Try"}
    mute = {"rule": "low-utilization", "workload": job(BOB), "reason": "r", "author": "a", "hours": 1}
    simulation = {"policies": ["fcfs"], "backfills": ["easy"], "processors": 64}
    return {
        "save_view": [Call("PUT", f"/views/{name}", view) for name in ("view-2", "shared", "new")],
        "save_insight": [Call("PUT", f"/insights/{name}", view) for name in ("insight-2", "new")],
        "set_start_view": [Call("PUT", "/start-view", {"name": "shared"})],
        "set_mail_choice": [Call("PUT", "/mail-choice", {"choice": "none"})],
        "save_rule": [Call("PUT", "/rules/another", rule)],
        "order_rules": [Call("PUT", "/rule-order", {"keys": ["low-utilization"]})],
        "mute_rule": [Call("POST", "/mutes", mute)],
        "unmute_rule": [Call("DELETE", "/mutes/none")],
        "write_comment": [
            Call("POST", "/comments", {"workload": job(person), "author": "a", "text": "t"}) for person in PEOPLE
        ],
        "send_run_file": [
            Call("POST", f"/runs/{run(person)}/files/tracker.spool", content=run_spool(person)) for person in PEOPLE
        ],
        "create_trace": [Call("POST", "/traces", {"name": "t", "workload_id": job(person)}) for person in PEOPLE],
        "send_trace_file": [Call("PUT", f"/traces/{site.traces[person]}/files/a", content=b"x") for person in PEOPLE],
        "import_trace": [Call("POST", f"/traces/{site.traces[person]}/import") for person in PEOPLE],
        "upload_job_trace": [Call("POST", "/job-traces?name=mine.txt", content=upload_of("zqsomebody"))],
        "simulate_job_trace": [
            Call("POST", "/simulations", simulation | {"trace": trace}) for trace in ("cluster", *site.uploads.values())
        ],
        "stop_simulation": [Call("DELETE", "/simulations/0")],
        "remove_simulation": [Call("DELETE", "/simulations/0/result")],
        "sign_in": [Call("POST", "/session", {"token": "no"})],
        "sign_out": [Call("DELETE", "/session")],
        "sign_out_everywhere": [Call("DELETE", "/sessions")],
        "change_password": [Call("PUT", "/session/password", {"old": "a" * 12, "new": "b" * 12})],
        "begin_sign_in": [get("/session/oidc")],
        "finish_sign_in": [get("/session/oidc/callback")],
        "add_account": [Call("POST", "/accounts", {"login": "x", "password": "y" * 12, "role": "viewer"})],
        "change_account": [Call("PUT", "/accounts/local/x", {"role": "admin"})],
        "remove_account": [Call("DELETE", "/accounts/local/x")],
        "create_token": [Call("POST", "/tokens", {"title": "t", "scopes": ["read"], "days": 1})],
        "revoke_token": [Call("DELETE", "/tokens/x")],
        "remove_rule": [Call("DELETE", "/rules/another")],
        "remove_view": [Call("DELETE", "/views/view-2")],
        "remove_insight": [Call("DELETE", "/insights/insight-2")],
        "remove_comment": [Call("DELETE", f"/comments/{site.comments[person]}") for person in (BOB, CLEO)],
        "remove_job_trace": [Call("DELETE", f"/job-traces/{site.uploads[person]}") for person in (BOB, CLEO)],
        "delete_trace": [Call("DELETE", f"/traces/{site.traces[person]}") for person in (BOB, CLEO)],
        "delete_run": [Call("DELETE", f"/runs/{run(person)}") for person in (BOB, CLEO)],
    }


LIVE = {"get_live"}
"""Endless streams, which have their own tests."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateSite]:
    with private_site(tmp_path_factory.mktemp("private")) as site:
        yield site


@pytest.fixture(scope="module")
def private(site: PrivateSite) -> Iterator[TestClient]:
    with site.client(is_private=True) as client:
        yield client


def ask(client: TestClient, call: Call, role: str, **headers: str) -> Response:
    path = call.path if call.path == "/healthz" else f"/api/v1{call.path}"
    content = {"json": call.json} if call.json is not None else {"content": call.content}
    return client.request(call.method, path, headers={"x-as": role, **headers}, **content)


def texts_of(answer: Response) -> bytes:
    """All text of an answer: headers, the raw body, and decoded Arrow and Parquet."""
    parts = [repr(sorted(answer.headers.items())).encode(), answer.content]
    kind = answer.headers.get("content-type", "")
    if answer.status_code == 200 and ("arrow" in kind or "parquet" in kind):
        for table in tables_of(answer):
            parts += [str(row).encode() for row in table.rows()]
            parts += [repr(table.schema).encode()]
    return b"\n".join(parts).lower()


def tables_of(answer: Response) -> list[pl.DataFrame]:
    if "parquet" in answer.headers["content-type"]:
        return [pl.read_parquet(io.BytesIO(answer.content))]
    lengths = [int(part) for part in answer.headers.get("x-tables", str(len(answer.content))).split(",")]
    tables, at = [], 0
    for length in lengths:
        tables.append(pl.read_ipc_stream(io.BytesIO(answer.content[at : at + length])))
        at += length
    return tables


def named_in(answer: Response, call: Call) -> set[str]:
    """Names in an answer. A refusal may repeat names of the request."""
    text = texts_of(answer)
    request = f"{call.path} {call.json}".encode() if answer.status_code >= 400 else b""
    return {name for name in NAMES if name.encode() in text and name.encode() not in request}


def all_calls(site: PrivateSite) -> Mapping[str, list[Call]]:
    return reads(site) | writes(site)


def test_every_operation_has_a_case_when_the_api_is_read(site: PrivateSite) -> None:
    app = describe_api()
    for router in ROUTES:
        app.include_router(router)
    operations = {operation["operationId"] for path in app.openapi()["paths"].values() for operation in path.values()}
    assert operations - LIVE == set(all_calls(site)), "say in this file how the operation is asked"


def test_no_hidden_name_is_in_any_answer_when_any_role_asks(site: PrivateSite, private: TestClient) -> None:
    # Viewers with full scope ask first: their cached answers must not reach others.
    for calls in reads(site).values():
        for call in calls:
            ask(private, call, "admin")
    wrong = []
    for role in ("viewer", "nobody", "researcher", "lead"):
        for operation, calls in all_calls(site).items():
            for call in calls:
                answer = ask(private, call, role)
                foreign = named_in(answer, call) - set(VISIBLE_NAMES[role])
                if foreign or answer.status_code >= 500:
                    wrong.append((role, operation, call.path, answer.status_code, foreign))
    assert not wrong


def test_server_is_refused_when_an_answer_gains_a_name_without_a_marker() -> None:
    field = ("submitted_by", str)
    Grown = make_dataclass("Grown", [field], bases=(WorkloadAnswer,), frozen=True, kw_only=True)

    def get_grown(state: State) -> list[Grown]:  # type: ignore[valid-type]
        raise AssertionError

    router = APIRouter(route_class=RedactedRoute)
    with pytest.raises(UnmarkedTextError, match=r"Grown\.submitted_by"):
        router.get("/grown")(get_grown)


@pytest.mark.parametrize("marker", ["user", "project", "free_text", "owner_text"])
def test_leaked_names_are_detected_when_a_kind_of_text_is_not_redacted(
    site: PrivateSite, monkeypatch: pytest.MonkeyPatch, marker: str
) -> None:
    """The test above can fail: the same calls, without one of the redaction rules."""
    monkeypatch.setattr(ScopeRedactor, marker, lambda _, value, *__: value)
    calls = [get("/scheduling/queue"), get("/nodes/n4"), get("/mutes")]
    with site.client(is_private=True) as client:
        assert any(named_in(ask(client, call, "viewer"), call) for call in calls)


def test_codes_lead_to_workloads_when_their_ids_are_names(private: TestClient) -> None:
    listed = ask(private, get("/workloads?limit=100"), "viewer").json()["workloads"]
    codes = [row["workload"] for row in listed if row["workload"].startswith("kubernetes:")]
    assert len(codes) == 2 * len(PEOPLE)
    for code in codes:
        workload = ask(private, get(f"/workloads/{code}"), "viewer").json()["workload"]
        assert workload["workload"] == code
        response = ask(private, get(f"/traces?workload={code.replace(':', '%3A')}"), "viewer")
        assert response.status_code == 200, response.text
    for text in (BOB, "train-zqbo", "team"):
        assert not ask(private, get(f"/workloads?text={text}"), "viewer").json()["workloads"]
    rows = ask(private, get("/workloads?limit=100"), "operator").json()["workloads"]
    assert pods_of(BOB) in {row["workload"] for row in rows}


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_compressed_pictures_name_nobody_when_somebody_else_asked_first(private: TestClient, encoding: str) -> None:
    for role in ("admin", "viewer", "researcher", "lead", "admin"):
        with private.stream("GET", "/api/v1/snapshot", headers={"x-as": role, "accept-encoding": encoding}) as answer:
            raw = b"".join(answer.iter_raw())
        assert answer.headers["content-encoding"] == encoding
        body = gzip.decompress(raw) if encoding == "gzip" else zstandard.ZstdDecompressor().decompress(raw)
        text = str(pl.read_ipc_stream(io.BytesIO(body)).rows()).lower()
        assert {name for name in PEOPLE if name in text} == set(VISIBLE_NAMES[role]) & set(PEOPLE)


def test_another_picture_is_sent_when_the_next_viewer_holds_the_last_ones(private: TestClient) -> None:
    held = ask(private, get("/snapshot"), "admin")
    again = ask(private, get("/snapshot"), "admin", **{"if-none-match": held.headers["etag"]})
    other = ask(private, get("/snapshot"), "viewer", **{"if-none-match": held.headers["etag"]})
    assert (again.status_code, other.status_code) == (304, 200)


def test_live_events_name_nobody_when_they_are_sent(site: PrivateSite) -> None:
    state: AppState = site.app(is_private=True).state.clusterscape
    event = asyncio.run(_first(state))
    assert event.startswith(b"event: version")
    assert not any(name.encode() in event for name in NAMES)


async def _first(state: AppState) -> bytes:
    stream = state.live.stream()
    try:
        return await anext(stream)
    finally:
        await stream.aclose()  # type: ignore[attr-defined]  # a generator, though the type says only iterator


OWN = {
    "search": "q=zq",
    "get_snapshot": "/snapshot",
    "get_units": "/units.parquet",
    "list_workloads": "/workloads",
    "get_workload": f"/workloads/{job(ADA)}",
    "get_diagnosis": f"/workloads/{job(ADA)}",
    "list_workload_events": f"/workloads/{job(ADA)}",
    "list_violations": "/violations",
    "list_comments": "/comments",
    "list_views": "/views",
    "list_insights": "/insights",
    "list_runs": "/runs",
    "read_run": f"/runs/{run(ADA)}",
    "list_traces": "/traces",
    "list_job_traces": "/job-traces",
    "list_queue": "/queue",
    "forecast_waiting": "/waiting",
}


@pytest.mark.parametrize("operation", OWN)
def test_own_names_are_shown_when_their_owner_asks(site: PrivateSite, private: TestClient, operation: str) -> None:
    call = next(read for read in reads(site)[operation] if OWN[operation] in read.path)
    answer = ask(private, call, "researcher")
    assert answer.status_code == 200
    assert ADA.encode() in texts_of(answer)


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_everybody_is_named_when_the_site_is_open(site: PrivateSite, role: str) -> None:
    with site.client(is_private=role == "operator") as client:
        for operation, where in OWN.items():
            call = next(read for read in reads(site)[operation] if where in read.path)
            text = texts_of(ask(client, call, role))
            assert ADA.encode() in text, operation
            if job(ADA) not in call.path and run(ADA) not in call.path:
                assert BOB.encode() in text, operation


def test_results_are_visible_to_viewers_of_the_trace_when_it_was_simulated(
    site: PrivateSite, private: TestClient
) -> None:
    statuses = {}
    for trace in ("cluster", site.uploads[ADA]):
        request = {"trace": trace, "policies": ["fcfs"], "backfills": ["easy"], "processors": 64}
        simulation = wait_for(private, Call("POST", "/simulations", request), "/simulations/{}", "simulation")
        assert simulation["state"] == "done", simulation
        for role in ("researcher", "viewer"):
            statuses[trace, role] = ask(private, get(f"/simulations/{simulation['simulation']}"), role).status_code
    assert list(statuses.values()) == [200, 200, 200, 404]
    assert len(ask(private, get("/simulations"), "researcher").json()["simulations"]) >= 2
    kept = ask(private, get("/simulations"), "viewer").json()["simulations"]
    assert {row["asked"]["trace"] for row in kept} == {"cluster"}


def test_results_are_removed_by_their_requester_only_when_deleted(site: PrivateSite, private: TestClient) -> None:
    request = {"trace": site.uploads[ADA], "policies": ["sjf"], "backfills": ["none"], "processors": 64, "jitter": 0}
    simulation = wait_for(private, Call("POST", "/simulations", request), "/simulations/{}", "simulation")
    remove = Call("DELETE", f"/simulations/{simulation['simulation']}/result")
    assert [ask(private, remove, role).status_code for role in ("viewer", "researcher", "researcher")] == [
        403,
        204,
        404,
    ]
    everybodys = wait_for(
        private,
        Call("POST", "/simulations", request | {"trace": "cluster"}),
        "/simulations/{}",
        "simulation",
        "operator",
    )
    remove = Call("DELETE", f"/simulations/{everybodys['simulation']}/result")
    assert [ask(private, remove, role).status_code for role in ("researcher", "operator")] == [403, 204]


def test_what_ifs_are_visible_to_their_creator_and_operators_when_scopes_differ(private: TestClient) -> None:
    """The lead is the same person as the researcher with a larger scope: their answers are not shared."""
    begun = Call("POST", "/scheduling/whatif/runs", {"futures": 2})
    whatif = wait_for(private, begun, "/scheduling/whatif/runs/{}", "run")
    assert whatif["state"] == "done", whatif
    read = get(f"/scheduling/whatif/runs/{whatif['run']}")
    assert named_in(ask(private, read, "researcher"), read) == {ADA}
    assert [ask(private, read, role).status_code for role in ("viewer", "lead", "admin")] == [404, 404, 200]


def wait_for(client: TestClient, begun: Call, path: str, key: str, role: str = "researcher") -> dict[str, Any]:
    """Starts work in a role and polls until it ends."""
    body: dict[str, Any] = ask(client, begun, role).json()
    for _ in range(1200):
        if body["state"] != "running":
            break
        time.sleep(0.1)
        body = ask(client, get(path.replace("{}", body[key])), role).json()
    return body
