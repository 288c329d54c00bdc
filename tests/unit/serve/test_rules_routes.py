"""Rules, violations, mutes, comments and alerts over HTTP."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from alerting.channels import FORBIDDEN, PaperChannel
from clusters.opened import open_queries, open_services
from fastapi.testclient import TestClient
from unit.watch.site import Curve, WatchedSite

from clusterscape.model import UnixMs
from clusterscape.query import QueryContext
from clusterscape.serve.app import create_app
from clusterscape.watch.alerts import Alerts

IDLE = "gpu_util p95 < 50%"
HOUR_MS = 3_600_000


class Page:
    """A watched site with an idle job, behind the app."""

    def __init__(self, folder: Path) -> None:
        self.paper = PaperChannel()
        self.alerts = Alerts([self.paper], folder / "alerts.db", clock=lambda: self.site.now)
        self.site = WatchedSite(folder, alerts=self.alerts)
        for rule in self.site.watch.book.rules():
            self.site.watch.book.save(replace(rule, is_enabled=False))
        self.changes = self.site.changes
        context = QueryContext(
            metrics=self.site.metrics,
            records=self.site.records,
            changes=self.changes,
            clock=lambda: self.site.now,
            cluster="test",
        )
        queries = open_queries(context, watch=self.site.watch)
        self.client = TestClient(create_app(queries, services=open_services(queries)))

    def idle(self) -> str:
        assert self.client.put("/api/v1/rules/idle", json={"text": IDLE, "name": "Idle"}).status_code == 200
        job = self.site.start_job("idles", [0])
        idle: Curve = lambda _: 0.1  # noqa: E731
        self.site.run_until(20, {"gpu_util_ratio": [idle] * 8})
        return job


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    page = Page(tmp_path)
    with page.client:
        yield page
    page.site.close()


def test_rule_is_listed_in_all_forms_when_saved(page: Page) -> None:
    page.idle()
    listed = page.client.get("/api/v1/rules").json()
    mine = next(rule for rule in listed["rules"] if rule["key"] == "idle")
    assert (mine["text"], mine["name"], mine["severity"], mine["is_shipped"]) == (IDLE, "Idle", "warning", False)
    assert mine["form"][0]["metric"] == "gpu_util_ratio"
    assert mine["counts"] == {"workloads": 1, "units": 1, "unjudged": 0}
    assert listed["judged_at"] == page.site.now
    assert listed["unreadable"] == {}


def test_unreadable_rule_is_reported_with_its_reason_when_a_newer_version_wrote_it(page: Page) -> None:
    page.site.records.write_document("rule", "newer", {"key": "newer", "expression": {"magic": 1}}, at_ms=UnixMs(0))
    page.site.watch.book.order([])
    page.changes.bump_rules()
    assert "newer" in page.client.get("/api/v1/rules").json()["unreadable"]
    assert page.client.delete("/api/v1/rules/newer").status_code == 204
    assert page.client.get("/api/v1/rules").json()["unreadable"] == {}


def test_rule_changes_only_in_what_is_given_when_put_again(page: Page) -> None:
    page.idle()
    saved = page.client.put("/api/v1/rules/idle", json={"is_enabled": False, "color": "#ff8800"}).json()
    assert (saved["text"], saved["is_enabled"], saved["color"]) == (IDLE, False, "#ff8800")
    shipped = page.client.put("/api/v1/rules/idle-corner", json={"is_enabled": True}).json()
    assert (shipped["is_shipped"], shipped["is_changed"]) == (True, False)
    shipped = page.client.put("/api/v1/rules/idle-corner", json={"severity": "critical"}).json()
    assert shipped["is_changed"]
    assert page.client.delete("/api/v1/rules/idle-corner").status_code == 204
    listed = {rule["key"]: rule for rule in page.client.get("/api/v1/rules").json()["rules"]}
    assert not listed["idle-corner"]["is_changed"]


def test_rules_are_listed_in_order_when_ordered(page: Page) -> None:
    page.idle()
    assert page.client.put("/api/v1/rule-order", json={"keys": ["idle"]}).status_code == 204
    assert page.client.get("/api/v1/rules").json()["rules"][0]["key"] == "idle"


def test_violations_are_served_in_all_views_when_a_rule_is_broken(page: Page) -> None:
    job = page.idle()
    (violation,) = page.client.get("/api/v1/violations?hours=2").json()["violations"]
    assert (violation["workload"], violation["units"], violation["readings"]) == (job, ["n1:0"], "gpu_util p95 10%")
    narrowed = page.client.get(f"/api/v1/violations?start={page.site.now - 60_000}&end={page.site.now}").json()
    assert narrowed["gpu_hours"] == pytest.approx(1 / 60)
    units = page.client.get("/api/v1/violations/units").json()["rules"]
    assert {rule["rule"]: rule["units"] for rule in units}["idle"] == ["n1:0"]
    line = page.client.get("/api/v1/violations/timeline?hours=1&steps=4").json()["gpus"]["idle"]
    assert line[-1] == 1
    verdicts = page.client.get(f"/api/v1/workloads/{job}/rules").json()
    assert verdicts["verdicts"][0]["readings"][0]["value_words"] == "10%"


def test_rule_and_its_violations_are_gone_when_deleted(page: Page) -> None:
    page.idle()
    assert page.client.delete("/api/v1/rules/idle").status_code == 204
    assert page.client.get("/api/v1/violations").json()["violations"] == []
    page.site.watch.judge()
    assert page.client.get("/api/v1/violations").json()["violations"] == []
    assert page.client.delete("/api/v1/rules/idle").status_code == 404


def test_mute_and_comment_live_and_end_when_posted_and_deleted(page: Page) -> None:
    job = page.idle()
    wanted = {"rule": "idle", "workload": job, "reason": "debugging", "author": "ann", "hours": 24}
    mute = page.client.post("/api/v1/mutes", json=wanted).json()
    assert mute["expires_at"] - mute["created_at"] == 24 * HOUR_MS
    assert page.client.get("/api/v1/mutes").json() == [mute]
    assert page.client.get("/api/v1/violations").json()["violations"][0]["mute"] == mute
    assert page.client.delete(f"/api/v1/mutes/{mute['key']}").status_code == 204
    comment = page.client.post("/api/v1/comments", json={"workload": job, "author": "bob", "text": "hm"}).json()
    assert page.client.get(f"/api/v1/comments?workload={job}").json() == [comment]
    assert page.client.delete(f"/api/v1/comments/{comment['key']}").status_code == 204
    assert page.client.get("/api/v1/comments").json() == []


def test_page_is_notified_when_notes_change(page: Page) -> None:
    job = page.idle()
    before = page.changes.versions.rules
    page.client.post("/api/v1/comments", json={"workload": job, "author": "bob", "text": "hm"})
    assert page.changes.versions.rules > before


async def test_alert_channels_report_their_state_when_one_fails(page: Page) -> None:
    page.idle()
    page.paper.answers = [FORBIDDEN]
    page.site.now = UnixMs(page.site.now + 600_000)
    await page.alerts.deliver_due()
    alerts = page.client.get("/api/v1/alerts").json()
    (channel,) = alerts["channels"]
    assert alerts["unposted"] == 0
    assert (channel["name"], channel["is_configured"], channel["last_error"]) == ("paper", True, "403 Forbidden")
    assert (channel["is_lasting"], channel["delivered"], channel["attempts"]) == (True, 0, 1)
    assert channel["waiting"] == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("PUT", "/rules/Not%20a%20key", {"text": IDLE}, 422, "not a valid rule key"),
        ("PUT", "/rules/new", {}, 422, "needs its conditions"),
        ("PUT", "/rules/new", {"text": "gpu_utl p95 < 5%"}, 422, "gpu_utl"),
        ("PUT", "/rules/new", {"text": IDLE, "color": "red"}, 422, "is not a color"),
        ("PUT", "/rules/new", {"text": IDLE, "name": "x" * 101}, 422, "101 characters"),
        ("PUT", "/rules/new", {"text": IDLE, "severity": "huge"}, 422, "severity"),
        ("PUT", "/rules/new", {"text": IDLE, "tint": "#ffffff"}, 422, "tint"),
        ("PUT", "/rules/new", {"text": "x" * 4001}, 422, "4000"),
        ("DELETE", "/rules/nothing", None, 404, "no rule"),
        ("DELETE", "/rules/memory-leak-of-mine", None, 404, "no rule"),
        ("PUT", "/rule-order", {"keys": ["nothing"]}, 404, "no rule"),
        ("GET", "/violations?hours=0", None, 422, "hours"),
        ("GET", "/violations?hours=nan", None, 422, "hours"),
        ("GET", "/violations?start=5&end=1", None, 422, "must be after the start"),
        ("GET", "/violations?start=-1", None, 422, "start"),
        ("GET", "/violations/timeline?steps=0", None, 422, "steps"),
        ("GET", "/violations/timeline?steps=2001", None, 422, "steps"),
        ("GET", "/workloads/slurm:nobody/rules", None, 404, "no workload"),
        ("POST", "/mutes", {"rule": "nothing", "reason": "r", "author": "a", "hours": 1}, 404, "no rule"),
        ("POST", "/mutes", {"rule": "idle-corner", "reason": " ", "author": "a", "hours": 1}, 422, "reason"),
        ("POST", "/mutes", {"rule": "idle-corner", "reason": "r", "author": "a", "hours": 0}, 422, "hours"),
        ("POST", "/mutes", {"rule": "idle-corner", "author": "a", "hours": 1}, 422, "reason"),
        (
            "POST",
            "/mutes",
            {"rule": "idle-corner", "workload": "slurm:no", "reason": "r", "author": "a", "hours": 1},
            404,
            "no workload",
        ),
        ("DELETE", "/mutes/nothing", None, 404, "no mute"),
        ("POST", "/comments", {"workload": "slurm:nobody", "author": "a", "text": "t"}, 404, "no workload"),
        ("DELETE", "/comments/nothing", None, 404, "no comment"),
    ],
)
def test_error_says_what_was_wrong_when_the_input_is_bad(
    page: Page, method: str, path: str, body: object, status: int, message: str
) -> None:
    answer = page.client.request(method, f"/api/v1{path}", json=body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert message in error["message"] + (error["hint"] or "")


def test_shipped_rule_cannot_be_removed_when_nobody_changed_it(page: Page) -> None:
    page.site.watch.book.remove("idle-corner")
    answer = page.client.delete("/api/v1/rules/idle-corner")
    assert (answer.status_code, answer.json()["error"]["hint"]) == (422, "Disable it instead.")


def test_trial_reports_progress_when_it_is_streamed(page: Page) -> None:
    page.idle()
    trial = {"text": IDLE, "hours": 1}
    plain = page.client.post("/api/v1/rules/try", json=trial).json()
    answer = page.client.post("/api/v1/rules/try", json=trial, headers={"Accept": "application/x-ndjson"})
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    *progress, last = [json.loads(line) for line in answer.text.splitlines()]
    shares = [line["share"] for line in progress]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert len(shares) > 3
    assert last == {"answer": plain}
    assert plain["times"] == 1
    wrong = page.client.post(
        "/api/v1/rules/try", json={"text": "gpu_utl < 5%"}, headers={"Accept": "application/x-ndjson"}
    )
    assert wrong.status_code == 422
    assert "message" in wrong.json()["error"]
