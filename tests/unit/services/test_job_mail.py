"""Mails on ended jobs: from the MailProg's call to a real SMTP server; each once, or in a digest."""

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path

import pytest
from alerting.endpoints import SmtpEndpoint
from clusters.small import NOW, SmallCluster
from unit.query.test_job_card_query import START, store_cgroups, store_gpus, write_job

from clusterscape.cli import mailprog
from clusterscape.model import UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.model.access import Account, Role, Way
from clusterscape.model.job_summaries import SummarySource, summarize
from clusterscape.query.ownership import OWNER
from clusterscape.services.job_mail import JobMailer
from clusterscape.services.job_mail.mailer import CHOICE, MailPolicy
from clusterscape.services.job_mail.outbox import Outbox
from clusterscape.services.job_mail.picture import draw_curve
from clusterscape.services.job_mail.requests import parse_request
from clusterscape.watch.alerts.channels.smtp import SmtpServer

MINUTE_MS = 60_000


@dataclass
class MailSite:
    """A small cluster with a mailer and an SMTP server."""

    cluster: SmallCluster
    folder: Path
    endpoint: SmtpEndpoint = field(default_factory=SmtpEndpoint)
    accounts: list[Account] = field(default_factory=list)
    standard: str = "all"

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    def mailer(self) -> JobMailer:
        queries = self.cluster.queries
        policy = MailPolicy(
            folders=(self.spool,),
            sender="clusterscape@site.test",
            address_of=lambda login: f"{login}@site.test",
            page_url="https://gpus.site.test",
            standard=self.standard,
        )
        server = SmtpServer(host="127.0.0.1", port=self.endpoint.port, security="plain", timeout_s=10)
        outbox = Outbox(self.folder / "job-mail.db")
        return JobMailer(queries.context, queries.jobs, outbox, server, policy, accounts=lambda: self.accounts)

    async def update(self, times: int = 1) -> None:
        """A fresh process each time: what it knows is on disk."""
        for _ in range(times):
            await asyncio.to_thread(self.mailer().update)

    def request(
        self, subject: str, *, at: int = NOW, key: str | None = None, user: str = "ada", address: str = "ada"
    ) -> None:
        self.spool.mkdir(exist_ok=True)
        variables = {"SLURM_JOB_USER": user}
        document = {"at": at, "address": address, "subject": subject, "variables": variables}
        name = key or f"{len(list(self.spool.iterdir())):08d}"
        (self.spool / f"{name}.json").write_text(json.dumps(document) + "\n")

    @property
    def mails(self) -> list[EmailMessage]:
        return [mail for _, mail in self.endpoint.mails]

    def pass_minutes(self, minutes: float) -> None:
        self.cluster.now = UnixMs(int(self.cluster.now + minutes * MINUTE_MS))


@pytest.fixture
def site(small_cluster: SmallCluster, tmp_path: Path) -> MailSite:
    return MailSite(small_cluster, tmp_path)


def end_job(cluster: SmallCluster, **fields: object) -> Workload:
    return write_job(cluster, state=WorkloadState.COMPLETED, ended_at=NOW, name="train-7", **fields)


def ended(number: int | str, name: str = "train") -> str:
    return f"Slurm Job_id={number} Name={name} Ended, Run time 01:00:00, COMPLETED, ExitCode 0"


def text_of(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


@pytest.mark.asyncio
async def test_one_mail_has_card_picture_advice_and_link_when_a_job_ended(site: MailSite) -> None:
    end_job(site.cluster, time_limit_s=86_400)
    store_cgroups(site.cluster)
    store_gpus(site.cluster)
    site.request(ended("70_3"))
    async with site.endpoint.up():
        await site.update()
        assert site.mails == []  # samples of its end may still arrive
        site.pass_minutes(1.1)
        await site.update(3)
    [mail] = site.mails
    assert (mail["To"], mail["Subject"]) == ("ada@site.test", "[small] Job 70_3 train-7: COMPLETED after 01:00:00")
    text = text_of(mail)
    assert "  CPU utilization  [||||||||||||||||||||||||                       49%]" in text
    assert "https://gpus.site.test/job/small/70_3" in text
    assert 1 <= text.count("\n- --") <= 3
    assert "--time=01:30:00" in text
    pictures = [part for part in mail.walk() if part.get_content_type() == "image/png"]
    assert len(pictures) == 1
    assert base64.b64decode(str(pictures[0].get_payload())).startswith(b"\x89PNG")
    page = mail.get_body(("html",))
    assert page is not None
    assert "cid:curve" in page.get_content()
    assert "<script" not in page.get_content()


@pytest.mark.asyncio
async def test_names_of_jobs_cannot_add_html_or_headers(site: MailSite) -> None:
    end_job(site.cluster)
    site.cluster.records.write_workloads(
        [
            Workload(
                id=WorkloadId("slurm:80"),
                state=WorkloadState.COMPLETED,
                name="<img src=x>\r\nBcc: all@site.test",
                user="ada",
                started_at=START,
                ended_at=NOW,
                nodes=("n3",),
            )
        ],
        at_ms=NOW,
    )
    site.request(ended(80, "<b>x</b>\nBcc: eve@site.test"))
    site.pass_minutes(2)
    async with site.endpoint.up():
        await site.update()
    [mail] = site.mails
    assert mail["Bcc"] is None
    page = mail.get_body(("html",))
    assert page is not None
    assert "<img src=x" not in page.get_content()


@pytest.mark.asyncio
async def test_mails_wait_and_are_sent_once_when_the_server_was_away(site: MailSite) -> None:
    end_job(site.cluster)
    site.request(ended("70_3"))
    site.pass_minutes(2)
    await site.update(2)
    assert list(site.spool.iterdir()) == []
    site.pass_minutes(10)
    async with site.endpoint.up():
        await site.update(3)
    assert len(site.mails) == 1


@pytest.mark.asyncio
async def test_a_file_that_was_left_behind_is_not_mailed_again(site: MailSite) -> None:
    end_job(site.cluster)
    site.request(ended("70_3"), key="a")
    data = (site.spool / "a.json").read_bytes()
    site.pass_minutes(2)
    async with site.endpoint.up():
        await site.update()
        (site.spool / "a.json").write_bytes(data)  # the process was killed before it removed the file
        await site.update(2)
    assert len(site.mails) == 1


@pytest.mark.asyncio
async def test_many_ends_are_one_digest_when_they_come_at_once(site: MailSite) -> None:
    tasks = [
        Workload(
            id=WorkloadId(f"slurm:90_{task}"),
            state=WorkloadState.FAILED if task % 100 == 0 else WorkloadState.COMPLETED,
            name="sweep",
            user="ada",
            submitted_at=START,
            started_at=START,
            ended_at=NOW,
            time_limit_s=86_400,
            nodes=("n3",),
        )
        for task in range(1000)
    ]
    site.cluster.records.write_workloads(tasks, at_ms=NOW)
    for task in range(1000):
        site.request(
            f"Slurm Array Task Job_id=90_{task} (9{task}) Name=sweep Ended, Run time 01:00:00, COMPLETED, ExitCode 0",
            key=f"{task:05d}",
        )
    async with site.endpoint.up():
        site.pass_minutes(1.1)
        await site.update(2)
        assert len(site.mails) == 1
        site.request(ended("70_3"), at=site.cluster.now)
        end_job(site.cluster)
        site.pass_minutes(2)
        await site.update(2)
    digest, single = site.mails
    assert digest["Subject"] == "[small] 1,000 of your jobs ended: 990 COMPLETED, 10 FAILED"
    assert "… and 950 more." in text_of(digest)
    assert "--time=" in text_of(digest)
    assert "70_3" in single["Subject"]


@pytest.mark.asyncio
async def test_later_ends_are_collected_when_a_user_got_many_mails(site: MailSite) -> None:
    end_job(site.cluster)
    async with site.endpoint.up():
        for round_ in range(12):
            site.request(ended("70_3"), at=site.cluster.now, key=f"r{round_:02d}")
            site.pass_minutes(2)
            await site.update()
        assert len(site.mails) == 5
        site.pass_minutes(60)
        await site.update()
    assert len(site.mails) == 6
    assert site.mails[-1]["Subject"].startswith("[small] 7 of your jobs ended")


@pytest.mark.parametrize(
    ("choice", "limit_s", "count"), [("none", 86_400, 0), ("waste", 86_400, 1), ("waste", 3700, 0), ("all", 3700, 1)]
)
@pytest.mark.asyncio
async def test_users_get_the_mails_that_they_chose(site: MailSite, choice: str, limit_s: int, count: int) -> None:
    end_job(site.cluster, time_limit_s=limit_s)
    site.cluster.records.write_document(CHOICE, "ada", {"choice": choice, OWNER: "ada"}, at_ms=NOW)
    site.request(ended("70_3"))
    site.pass_minutes(2)
    async with site.endpoint.up():
        await site.update(2)
    assert len(site.mails) == count


@pytest.mark.asyncio
async def test_mail_without_a_card_is_sent_when_the_job_stays_unknown(site: MailSite) -> None:
    site.request(ended(4711))
    site.request("Slurm Job_id=4711 Name=x Began, Queued time 00:00:01")
    async with site.endpoint.up():
        site.pass_minutes(2)
        await site.update()
        assert [mail["Subject"] for mail in site.mails] == [
            "[small] Slurm Job_id=4711 Name=x Began, Queued time 00:00:01"
        ]
        site.pass_minutes(10)
        await site.update()
    assert "Ended" in site.mails[1]["Subject"]


@pytest.mark.asyncio
async def test_refused_mail_does_not_stop_the_others(site: MailSite) -> None:
    end_job(site.cluster)
    site.endpoint.refuse["gone@elsewhere.test"] = "550 no such user"
    site.request(ended("70_3"), address="gone@elsewhere.test")
    site.request(ended("70_3"), address="bob@elsewhere.test")
    site.pass_minutes(2)
    async with site.endpoint.up():
        await site.update(2)
    assert [mail["To"] for mail in site.mails] == ["bob@elsewhere.test"]


@pytest.mark.asyncio
async def test_leads_get_one_digest_of_last_week(site: MailSite) -> None:
    site.accounts = [
        Account(way=Way.LOCAL, login="lea", role=Role.LEAD, projects=frozenset({"ml"}), created_at=NOW),
        Account(way=Way.LOCAL, login="rob", role=Role.RESEARCHER, projects=frozenset({"ml"}), created_at=NOW),
    ]
    job = end_job(site.cluster, gpus_requested=4)
    days_ago = 4 * 86_400_000
    past = Workload(
        **{
            **{name: getattr(job, name) for name in job.__dataclass_fields__},
            "ended_at": UnixMs(NOW - days_ago),
            "started_at": UnixMs(START - days_ago),
        }
    )
    summary = summarize(past, None, source=SummarySource.SAMPLES)
    assert summary is not None
    site.cluster.records.write_summaries([summary])
    async with site.endpoint.up():
        await site.update(3)
    [mail] = site.mails
    assert mail["To"] == "lea@site.test"
    assert mail["Subject"] == "[small] ml last week: 4.0 GPU-hours, 0 of them idle"
    assert "ada" in text_of(mail)


def call(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        mailprog.SPOOL: str(folder / "spool"),
        mailprog.MEMORY: str(folder),
        **variables,
    }
    command = [sys.executable, "-S", mailprog.__file__, *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def read_spool(folder: Path) -> list[str]:
    requests = [parse_request(path.stem, path.read_bytes()) for path in sorted(folder.glob("*.json"))]
    return [f"{request.kind} {request.job} {request.user} {request.address}" for request in requests if request]


def test_mailprog_spools_what_slurm_calls_it_with(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    result = call(tmp_path, "-s", ended("70_3", "Began"), "ada@site.test", SLURM_JOB_USER="ada", SECRET="x")
    assert (result.returncode, result.stderr) == (0, "")
    assert read_spool(tmp_path / "spool") == ["Ended 70_3 ada ada@site.test"]
    assert "SECRET" not in next((tmp_path / "spool").iterdir()).read_text()


def test_mailprog_keeps_a_mail_in_memory_until_the_spool_can_be_written(tmp_path: Path) -> None:
    assert call(tmp_path, "-s", ended(1), "ada").returncode == 0
    (tmp_path / "spool").mkdir()
    assert call(tmp_path, "-s", ended(2), "ada").returncode == 0
    assert sorted(read_spool(tmp_path / "spool")) == ["Ended 1 None ada", "Ended 2 None ada"]
    (tmp_path / "spool").rename(tmp_path / "other")
    memory = tmp_path / f"clusterscape-mail-{os.geteuid()}"
    memory.rmdir()
    memory.symlink_to(tmp_path)  # somebody else's
    result = call(tmp_path, "-s", ended(3), "ada")
    assert result.returncode == 1
    assert "cannot write" in result.stderr


@pytest.mark.parametrize("damage", [lambda data: data, lambda data: data[: len(data) // 2]])
def test_what_a_killed_mailprog_left_is_read_if_it_is_whole(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / "spool").mkdir()
    call(tmp_path, "-s", ended(1), "ada")
    [path] = (tmp_path / "spool").iterdir()
    path.with_suffix(".part").write_bytes(data := damage(path.read_bytes()))
    path.unlink()
    outbox = Outbox(tmp_path / "job-mail.db")
    modified_ms = path.with_suffix(".part").stat().st_mtime_ns // 1_000_000
    assert outbox.take_in(tmp_path / "spool", UnixMs(modified_ms)) == (0, 0)
    count, damaged = outbox.take_in(tmp_path / "spool", UnixMs(modified_ms + 61_000))
    assert (count, damaged) == ((1, 0) if data.endswith(b"\n") else (0, 1))
    outbox.close()


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (ended(4711), ("4711", None, "Ended")),
        (ended("4711_3"), ("4711_3", None, "Ended")),
        ("Slurm Job_id=5+1 Name=het Failed, Run time 00:00:01, FAILED, ExitCode 1", ("5+1", None, "Failed")),
        ("Slurm Array Summary Job_id=7_* (7) Name=a Ended, Mixed, ExitCode [0-1]", ("7", "7", "Ended")),
        ("Slurm Job_id=8 Name=x Ended, y Began, Queued time 00:00:01", ("8", None, "Began")),
        (
            "Slurm Job_id=9 Name=x Reached 80% of time limit, Run time 00:48:00",
            ("9", None, "Reached 80% of time limit"),
        ),
        ("nonsense", (None, None, "")),
    ],
)
def test_subjects_of_slurm_are_parsed(subject: str, expected: tuple[str | None, str | None, str]) -> None:
    document = {"at": 1, "address": "ada", "subject": subject, "variables": {}}
    request = parse_request("k", json.dumps(document).encode() + b"\n")
    assert request is not None
    assert (request.job, request.array, request.kind) == expected


@pytest.mark.parametrize("address", ["a b@x", "a@x,b@y", "a@x\r\nBcc: b@y", "", "<a@x>"])
def test_addresses_that_could_be_several_are_refused(address: str) -> None:
    document = {"at": 1, "address": address, "subject": "s", "variables": {}}
    assert parse_request("k", json.dumps(document).encode() + b"\n") is None


def test_picture_is_a_png_with_gaps_where_nothing_was_measured() -> None:
    assert draw_curve([None, None], 1.0) is None
    picture = draw_curve([0.5, None, 1.0], 1.0)
    assert picture is not None
    assert picture.startswith(b"\x89PNG")
