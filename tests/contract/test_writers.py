"""Permissions to create, change and delete: every writing operation, as every role, on objects of all owners.

The stores are compared before and after each call. Whatever a call says, it may change only what its caller owns; a refused one
changes nothing. A new writing operation fails until it has a case.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from clusters.private_site import (
    ADA,
    BOB,
    CLEO,
    NUMBERS,
    PEOPLE,
    VIEWERS,
    PrivateSite,
    job,
    private_site,
    run,
    run_spool,
    units_of,
    upload_of,
)
from clusters.site_contents import Thing, read_contents
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from httpx2 import Response
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tracking.site import spooled

from clusterscape.ingest import runs
from clusterscape.model.access import Role
from clusterscape.model.run_frames import NO_STEP, encode_event, encode_samples
from clusterscape.serve.app import ROUTES
from clusterscape.store.metrics.contract import ListedMetricStore

ACTORS = ("viewer", "nobody", "researcher", "lead", "operator", "admin")
OWNERS = {run(person): person for person in PEOPLE} | {f"new-{person}": person for person in PEOPLE}
ABOUT_ACCESS = {
    "sign_in", "sign_out", "sign_out_everywhere", "change_password", "create_token", "revoke_token",
    "add_account", "change_account", "remove_account",
}  # fmt: skip
"""Accounts, sessions and tokens: test_visibility_accounts.py and test_api_tokens.py."""
OWN_SETTINGS = {"set_mail_choice"}
"""Writes without a name in them: each changes a setting of its caller."""
QUESTIONS = {
    "get_chosen_units", "read_rule", "complete_rule", "try_rule", "ask_what_if", "simulate_what_if", "start_what_if",
    "stop_what_if",
}  # fmt: skip
"""POSTed because they are long, or kept in memory for their asker."""
OTHERS_NEED = {"delete_run": Role.ADMIN}
"""The least role for objects of others, where it is not operator."""
LEADS_MAY = {"write_comment", "create_trace", "send_trace_file", "import_trace", "delete_trace"}
"""Operations of leads on workloads of their projects."""


@dataclass(frozen=True)
class Write:
    """One call. ``owner``: of the objects it would change (None: the site). ``is_own``: it creates an object of the caller."""

    operation: str
    method: str
    path: str
    owner: str | None = None
    is_own: bool = False
    json: Any = None
    content: bytes | None = None

    def __str__(self) -> str:
        return f"{self.operation} {self.path}"


@dataclass
class WatchedSite:
    """A private site whose stores are compared around every call."""

    site: PrivateSite
    folder: Path
    client: TestClient

    def contents(self) -> dict[Thing, str]:
        return read_contents(self.folder, cast(ListedMetricStore, self.site.context.metrics), OWNERS)

    def call(self, write: Write, actor: str) -> Response:
        body = {"json": write.json} if write.json is not None else {"content": write.content}
        answer = self.client.request(write.method, f"/api/v1{write.path}", headers={"x-as": actor}, **body)
        if write.operation == "simulate_job_trace" and answer.status_code == 200:
            self._wait_for(answer.json()["simulation"])
        return answer

    def _wait_for(self, simulation: str) -> None:
        end = time.monotonic() + 120
        while (
            self.client.get(f"/api/v1/simulations/{simulation}", headers={"x-as": "admin"}).json()["state"] == "running"
        ):
            assert time.monotonic() < end, "the simulation takes too long"
            time.sleep(0.05)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[WatchedSite]:
    with private_site(tmp_path) as site, site.client(is_private=True) as client:
        yield WatchedSite(site, tmp_path, client)


def writes(site: PrivateSite, actor: str) -> list[Write]:
    """Every writing operation on the things of everybody; what removes comes last, and one's own after others'."""
    people = sorted(PEOPLE, key=lambda person: person == VIEWERS[actor].login)
    view = {"version": 1, "title": "changed"}
    login = VIEWERS[actor].login or "nobody"
    calls: list[Write] = []
    for person in people:
        number = NUMBERS[person]
        trace, upload = site.traces[person], site.uploads[person]
        comment = {"workload": job(person), "author": person, "text": "changed"}
        simulation = {"policies": ["fcfs"], "backfills": ["easy"], "processors": 64, "trace": upload}
        calls += [
            Write("save_view", "PUT", f"/views/view-{number}", person, json=view),
            Write("save_insight", "PUT", f"/insights/insight-{number}", person, json=view),
            Write("write_comment", "POST", "/comments", person, json=comment),
            *run_writes(person, login),
            Write("create_trace", "POST", "/traces", person, json={"name": "t", "workload_id": job(person)}),
            Write("send_trace_file", "PUT", f"/traces/{trace}/files/a", person, content=b"x"),
            Write("import_trace", "POST", f"/traces/{trace}/import", person),
            Write("simulate_job_trace", "POST", "/simulations", person, json=simulation),
        ]
    calls += [
        Write("save_view", "PUT", "/views/of-my-own", is_own=True, json=view),
        Write("save_insight", "PUT", "/insights/of-my-own", is_own=True, json=view),
        Write("upload_job_trace", "POST", "/job-traces?name=mine.txt", is_own=True, content=upload_of(ADA)),
        *site_writes(),
    ]
    for person in people:
        calls += [
            Write("remove_view", "DELETE", f"/views/view-{NUMBERS[person]}", person),
            Write("remove_insight", "DELETE", f"/insights/insight-{NUMBERS[person]}", person),
            Write("remove_comment", "DELETE", f"/comments/{site.comments[person]}", person),
            Write("remove_job_trace", "DELETE", f"/job-traces/{site.uploads[person]}", person),
            Write("delete_trace", "DELETE", f"/traces/{site.traces[person]}", person),
            Write("delete_run", "DELETE", f"/runs/{run(person)}", person),
        ]
    return calls


def run_writes(person: str, login: str) -> list[Write]:
    """Pieces of a person's run: the same again, and those of a takeover."""
    mine = {"user": login, "host": f"n{NUMBERS[person]}"}
    spool = spooled(run(person), series={("loss", None, "run"): [9.0, 9.0]}, about=mine)
    path = f"/runs/{run(person)}/files"
    return [
        Write("send_run_file", "POST", f"{path}/tracker.spool", person, content=run_spool(person)),
        Write("send_run_file", "POST", f"{path}/zz.spool", person, content=spool),
        Write("send_run_file", "POST", f"{path}/more.spool", person, content=_loss(person)),
    ]


def _loss(person: str, unit: str | None = None) -> bytes:
    event = {"event": "series", "code": 1, "name": "loss", "unit": unit, "scope": "run", "method": "measured"}
    return encode_event(event) + encode_samples([1], [1_794_800_000_000_000], [NO_STEP], [float(len(person))])


def site_writes() -> list[Write]:
    """Writes to objects of the site: rules, mutes, shared views, the start view."""
    view = {"version": 1, "title": "changed"}
    mute = {"rule": "low-utilization", "workload": job(BOB), "reason": "r", "author": "a", "hours": 1}
    return [
        Write("save_view", "PUT", "/views/shared", json=view),
        Write("set_start_view", "PUT", "/start-view", json={"name": "shared"}),
        Write("save_rule", "PUT", "/rules/another", json={"text": "gpu_util p95 < 5%", "name": "Try"}),
        Write("order_rules", "PUT", "/rule-order", json={"keys": ["low-utilization"]}),
        Write("mute_rule", "POST", "/mutes", json=mute),
        Write("unmute_rule", "DELETE", "/mutes/none"),
        Write("stop_simulation", "DELETE", "/simulations/none"),
        Write("remove_simulation", "DELETE", "/simulations/none/result"),
        Write("remove_rule", "DELETE", "/rules/another"),
        Write("remove_view", "DELETE", "/views/shared"),
    ]


def check_call(watched: WatchedSite, write: Write, actor: str) -> list[str]:
    """Makes a call and describes its forbidden changes."""
    before = watched.contents()
    answer = watched.call(write, actor)
    after = watched.contents()
    changed = {thing for thing in before.keys() | after.keys() if before.get(thing) != after.get(thing)}
    wrong = [] if answer.status_code < 500 else [f"{write}: {answer.status_code}"]
    if answer.status_code >= 400:
        return wrong + [f"{write}: refused with {answer.status_code}, and yet changed {thing}" for thing in changed]
    return wrong + [f"{write}: {actor} changed {thing}" for thing in changed if not may_change(actor, thing)]


def may_change(actor: str, thing: Thing) -> bool:
    """Owners change what is theirs, operators everything; leads also the traces of their projects' workloads."""
    viewer = VIEWERS[actor]
    if viewer.role.is_at_least(Role.OPERATOR):
        return True
    if not viewer.role.is_at_least(Role.RESEARCHER) or viewer.login is None:
        return False
    is_lead_of = viewer.role is Role.LEAD and thing.place == "artifacts" and thing.owner == CLEO
    return thing.owner == viewer.login or is_lead_of


def test_every_writing_operation_has_a_case_when_routes_are_read(watched: WatchedSite) -> None:
    routes = [route for router in ROUTES for route in router.routes if isinstance(route, APIRoute)]
    writing = {route.name for route in routes if (route.methods or set()) & {"POST", "PUT", "PATCH", "DELETE"}}
    cases = {write.operation for write in writes(watched.site, "admin")}
    assert writing - ABOUT_ACCESS - OWN_SETTINGS - QUESTIONS == cases, "say in this file what the operation writes"


@pytest.mark.parametrize("actor", ACTORS)
def test_only_the_callers_own_things_change_when_any_write_is_called(watched: WatchedSite, actor: str) -> None:
    wrong = [text for write in writes(watched.site, actor) for text in check_call(watched, write, actor)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("actor", ACTORS)
def test_own_things_can_be_changed_and_others_cannot_when_roles_write(watched: WatchedSite, actor: str) -> None:
    viewer, unexpected = VIEWERS[actor], []
    for write in writes(watched.site, actor):
        if write.path.endswith(("/none", "/none/result", "/import", "/files/a", "/zz.spool")):
            continue  # these are not there, or have been read already, or claim what is not so
        is_own = write.is_own or (write.owner is not None and write.owner == viewer.login)
        is_lead_of = viewer.role is Role.LEAD and write.owner == CLEO and write.operation in LEADS_MAY
        needs = Role.RESEARCHER if is_own or is_lead_of else OTHERS_NEED.get(write.operation, Role.OPERATOR)
        may = viewer.role.is_at_least(needs) and (viewer.login is not None or viewer.role.is_at_least(Role.OPERATOR))
        answer = watched.call(write, actor)
        if (answer.status_code < 400) != may:
            unexpected.append(f"{write}: {answer.status_code}, {answer.text[:200]}")
    assert not unexpected, "\n".join(unexpected)


UNITS = (
    None,
    *(f"run:{run(person)}" for person in PEOPLE),
    *(f"run:{run(person)}/rank1" for person in PEOPLE),
    *(units_of(person)[0] for person in PEOPLE),
    "n5:0",
    "run:new-zqada",
    "host",
)
PERSON = st.sampled_from(PEOPLE)
EVENTS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries(
        {"event": st.just("run"), "user": PERSON, "host": st.sampled_from([f"n{number}" for number in range(1, 6)])},
        optional={"run": st.sampled_from(list(OWNERS)), "devices": st.lists(st.sampled_from("0123"), max_size=4)},
    ),
    st.fixed_dictionaries(
        {
            "event": st.just("series"),
            "code": st.integers(0, 3),
            "name": st.sampled_from(["loss", "gpu_util_ratio", "power_watts", "step"]),
            "unit": st.sampled_from(UNITS),
            "scope": st.sampled_from(["run", "device", "process", "host"]),
            "method": st.just("measured"),
        }
    ),
    st.fixed_dictionaries({"event": st.just("params"), "params": st.just({"lr": "1"})}),
    st.fixed_dictionaries({"event": st.just("process"), "rank": st.integers(0, 2)}),
    st.fixed_dictionaries({"event": st.just("moment"), "moment": st.just("running"), "at": st.just(1_794_799_999_000)}),
    st.fixed_dictionaries({"event": st.just("end"), "state": st.just("failed"), "at": st.just(1_794_800_000_000)}),
    st.fixed_dictionaries(
        {
            "event": st.just("ranks"),
            "job": st.sampled_from([f"{person}-host:29500" for person in PEOPLE]),
            "ranks": st.lists(st.integers(0, 3), max_size=4),
            "slurm_job": st.sampled_from([None, *(job(person).removeprefix("slurm:") for person in PEOPLE)]),
        }
    ),
    st.fixed_dictionaries(
        {
            "event": st.just("hang_look"),
            "at": st.just(1_794_799_999_500),
            "number": st.integers(1, 2),
            "look": st.just({"ranks": {"0": {"rank": 0}}, "world_size": 2}),
        }
    ),
    st.fixed_dictionaries(
        {"event": st.just("hang"), "at": st.just(1_794_799_999_600), "kind": st.just("absent"), "title": st.just("t")}
    ),
    st.fixed_dictionaries({"event": st.just("hang_end"), "at": st.just(1_794_799_999_700)}),
)


@st.composite
def pieces(draw: st.DrawFn) -> bytes:
    """What a hostile tracker may send: events in any order that name anybody and anything, then samples of all codes."""
    events = draw(st.lists(EVENTS, min_size=1, max_size=6))
    value = draw(st.floats(0, 1))
    samples = encode_samples(range(4), [1_794_800_000_000_000] * 4, [draw(st.integers(0, 9))] * 4, [value] * 4)
    return b"".join(map(encode_event, events)) + samples


def hostile(check: Callable[[WatchedSite, Write, str], list[str]], watched: WatchedSite, examples: int) -> None:
    """Pieces by any researcher to any run; ``check`` says what they changed and may not."""
    sent = dict.fromkeys(OWNERS, 0)
    stored = watched.site.context.records

    # A piece that was taken in changes the site: to shrink an example would not repeat it.
    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(actor=st.sampled_from([*PEOPLE, "lead"]), target=st.sampled_from(list(OWNERS)), piece=pieces())
    def send(actor: str, target: str, piece: bytes) -> None:
        if stored.run_record(target) is None and VIEWERS[actor].login != OWNERS[target]:
            return  # the user who creates a run owns it
        sent[target] += 1
        path = f"/runs/{target}/files/hostile{sent[target]}.spool"
        assert not check(watched, Write("send_run_file", "POST", path, OWNERS[target], content=piece), actor)

    send()


def test_runs_samples_and_hangs_of_others_stay_when_hostile_pieces_are_sent(watched: WatchedSite) -> None:
    before = hangs_of_jobs(watched)
    hostile(check_call, watched, 200)
    assert hangs_of_jobs(watched) == before
    assert read_hangs(watched, ""), "some looks were taken in"


def hangs_of_jobs(watched: WatchedSite) -> list[tuple[str, set[str]]]:
    """By the Slurm job and by the run of each person, users of the runs that are shown as its hang; own ones aside."""
    names = [(person, name) for person in PEOPLE for name in (job(person), f"run:{run(person)}")]
    return [(name, read_hangs(watched, f"?workload={name}") - {person}) for person, name in names]


def read_hangs(watched: WatchedSite, query: str) -> set[str]:
    """Users of the runs of an answer to the operator."""
    answer = watched.client.get(f"/api/v1/hangs{query}", headers={"x-as": "operator"})
    assert answer.status_code == 200, answer.text
    return {row["user"] for row in answer.json()["rows"]}


def gather(watched: WatchedSite, examples: int) -> list[str]:
    """Forbidden changes by hostile pieces."""
    wrong: list[str] = []

    def note(watched: WatchedSite, write: Write, actor: str) -> list[str]:
        wrong.extend(check_call(watched, write, actor))
        return []

    hostile(note, watched, examples)
    return wrong


def test_takeover_is_detected_when_ownership_is_not_checked(
    watched: WatchedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A former hole: anyone who sends a `run` event to another user's run changes it."""
    monkeypatch.setattr(runs, "check_owner_of_piece", lambda *_: None)
    assert any("changed runs " in text for text in gather(watched, 60))
    takeover = next(write for write in run_writes(BOB, ADA) if write.path.endswith("/zz.spool"))
    assert any("changed runs " in text for text in check_call(watched, takeover, ADA))


def test_writes_to_other_units_are_detected_when_units_are_not_checked(
    watched: WatchedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A former hole: samples are stored under any unit that a `series` event names."""
    checked = runs.own_unit
    monkeypatch.setattr(runs, "own_unit", lambda run, unit, rank: unit or checked(run, unit, rank))
    assert any("changed samples" in text for text in gather(watched, 300))
    for unit in (f"run:{run(BOB)}", units_of(BOB)[0]):
        path = f"/runs/{run(ADA)}/files/{unit.replace(':', '-').replace('/', '-')}.spool"
        wrong = check_call(watched, Write("send_run_file", "POST", path, ADA, content=_loss(ADA, unit)), ADA)
        assert any(f"changed samples {unit} of" in text for text in wrong), wrong
