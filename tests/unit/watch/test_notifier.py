"""Turns that alerts receive: ends of removed rules, writes that a full disk refused, and violations after their mute."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from alerting.channels import PaperChannel
from unit.watch.site import WatchedSite

from clusterscape.analyze.rules.reading import parse_rule
from clusterscape.errors import StoreError
from clusterscape.model import UnixMs
from clusterscape.model.rules import Mute, Rule, Severity, Violation, ViolationTurn
from clusterscape.watch.alerts import Alerts
from clusterscape.watch.rulebook import MUTE, write_mute

IDLE = {"gpu_util_ratio": [lambda _: 0.0] * 8}


class Desk:
    """A site whose alerts go to an in-memory channel after a minute."""

    def __init__(self, folder: Path) -> None:
        self.paper = PaperChannel()
        self.now = UnixMs(0)
        self.alerts = Alerts([self.paper], folder / "alerts.db", clock=lambda: self.site.now)
        self.site = WatchedSite(folder, alerts=self.alerts)
        for rule in self.site.watch.book.rules():
            self.site.watch.book.save(replace(rule, is_enabled=False))

    def save(self, text: str = "gpu_util p95 < 50%") -> Rule:
        return self.site.watch.save_rule(parse_rule(text, key="mine", name="mine", severity=Severity.WARNING))

    async def delivered(self) -> list[tuple[str, str]]:
        await self.alerts.deliver_due()
        self.site.now = UnixMs(self.site.now + 600_000)
        await self.alerts.deliver_due()
        return self.paper.delivered()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.site.close()


async def test_stop_is_sent_and_nothing_is_left_when_a_rule_is_removed(desk: Desk) -> None:
    desk.save()
    desk.site.start_job("idles", [0, 1])
    desk.site.run_until(15, IDLE)
    assert await desk.delivered() == [("started", "slurm:idles")]
    desk.site.watch.remove_rule("mine")
    desk.site.watch.judge()
    assert await desk.delivered() == [("started", "slurm:idles"), ("stopped", "slurm:idles")]
    assert desk.site.records.violations() == []
    assert desk.site.watch.open_violations == ()


async def test_stop_is_sent_when_a_rule_vanishes_from_the_book(desk: Desk) -> None:
    desk.save()
    desk.site.start_job("idles", [0])
    desk.site.run_until(15, IDLE)
    assert await desk.delivered() == [("started", "slurm:idles")]
    desk.site.watch.book.remove("mine")
    desk.site.watch.judge()
    assert await desk.delivered() == [("started", "slurm:idles"), ("stopped", "slurm:idles")]


async def test_turns_are_posted_later_when_the_disk_of_the_alerts_was_full(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Sequence[ViolationTurn]) -> None:
        raise StoreError("the disk is full")

    desk.save()
    desk.site.start_job("idles", [0])
    with monkeypatch.context() as full:
        full.setattr(desk.alerts, "post", refuse)
        desk.site.run_until(15, IDLE)
        assert desk.site.watch.unposted == 1
        assert len(desk.site.records.open_violations()) == 1
        assert await desk.delivered() == []
    desk.site.watch.judge()
    assert desk.site.watch.unposted == 0
    assert await desk.delivered() == [("started", "slurm:idles")]


async def test_violation_is_written_and_sent_later_when_the_record_store_was_full(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Sequence[Violation]) -> None:
        raise StoreError("the disk is full")

    desk.save()
    desk.site.start_job("idles", [0])
    desk.site.run_until(9, IDLE)
    with monkeypatch.context() as full:
        full.setattr(desk.site.records, "write_violations", refuse)
        with pytest.raises(StoreError):
            desk.site.run_until(12, IDLE)
        assert await desk.delivered() == []
    desk.site.watch.judge()
    (violation,) = desk.site.records.open_violations()
    assert violation.unit == "n1:0"
    assert await desk.delivered() == [("started", "slurm:idles")]


async def test_violation_is_sent_when_its_mute_ends_and_it_continues(desk: Desk) -> None:
    desk.save()
    expires_at = UnixMs(desk.site.now + 20 * 60_000)
    mute = Mute(
        rule="mine", workload=None, reason="known", author="ann", created_at=desk.site.now, expires_at=expires_at
    )
    desk.site.records.write_document(MUTE, "m1", write_mute(mute), at_ms=desk.site.now)
    short = desk.site.start_job("short", [0])
    desk.site.start_job("long", [1])
    desk.site.run_until(14, IDLE)
    desk.site.end_job(short)
    desk.site.run_until(19, IDLE)
    assert len(desk.site.records.violations()) == 2
    assert await desk.delivered() == []
    desk.site.run_until(22, IDLE)
    desk.site.watch.judge()
    assert await desk.delivered() == [("started", "slurm:long")]
