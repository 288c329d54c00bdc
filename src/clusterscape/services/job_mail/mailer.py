"""Decides which mails on ended jobs are sent when, and sends them. One per site; ``run`` in a thread of its own."""

import hashlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from clusterscape.errors import ClusterScapeError
from clusterscape.model import UnixMs, Workload, WorkloadId
from clusterscape.model.access import Account
from clusterscape.model.durations import HOUR_MS, MINUTE_MS
from clusterscape.query.context import QueryContext
from clusterscape.query.jobs import JobQuery
from clusterscape.query.search import find_workload, qualify
from clusterscape.services.job_mail.composing import (
    Card,
    EndedJob,
    JobMailText,
    build_message,
    has_waste,
    write_digest,
    write_job,
    write_week,
    write_without_card,
)
from clusterscape.services.job_mail.leads import find_leads, sum_users, week_before
from clusterscape.services.job_mail.outbox import Outbox
from clusterscape.services.job_mail.requests import MailRequest
from clusterscape.store.records.contract import WorkloadFilter
from clusterscape.watch.alerts.channels.smtp import SmtpServer

log = logging.getLogger(__name__)

EVERY_S = 5.0
SETTLED_MS = MINUTE_MS
"""By then the last samples of an ended job have arrived, and a burst of ends is over."""
PATIENCE_MS = 10 * MINUTE_MS
"""After this a mail is sent without a card, if the job is still unknown or running here."""
MAX_CARDS = 20
"""Of a digest: reading a card takes a tenth of a second."""
MAX_TASKS = 10_000
CHOICE = "mail-choice"
"""Document kind: which mails a user gets, by login: ``all``, ``waste`` or ``none``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailPolicy:
    """How mails are sent. ``folders``: where the MailProg spools. ``address_of``: of a bare login, if there is one."""

    folders: Sequence[Path]
    sender: str
    address_of: Callable[[str], str | None]
    page_url: str | None = None
    standard: str = "all"
    digest_above: int = 5
    digest_interval_ms: int = HOUR_MS
    weekly: bool = True


class JobMailer:
    """Turns calls of the MailProg into mails. ``decides``: whether this process sends."""

    def __init__(
        self,
        context: QueryContext,
        jobs: JobQuery,
        outbox: Outbox,
        server: SmtpServer,
        policy: MailPolicy,
        *,
        accounts: Callable[[], Sequence[Account]] = list,
        decides: Callable[[], bool] = lambda: True,
    ) -> None:
        self._context = context
        self._jobs = jobs
        self._outbox = outbox
        self._server = server
        self._policy = policy
        self._accounts = accounts
        self._decides = decides
        self._stopped = threading.Event()

    def run(self) -> None:
        """Calls ``update`` periodically until ``stop``; a failure is logged and does not end the loop."""
        loop = self._context.loops.loop(
            "job mail", log, fails="mails on ended jobs could not be sent", works="mails on ended jobs are sent again"
        )
        while not self._stopped.wait(EVERY_S):
            with loop:
                self.update()

    def stop(self) -> None:
        """End ``run``."""
        self._stopped.set()

    def update(self) -> None:
        """Read what was spooled, compose what is ready, and send what is due."""
        if not self._decides():
            return
        now = self._context.clock()
        for folder in self._policy.folders:
            _, damaged = self._outbox.take_in(folder, now)
            if damaged:
                log.warning("%d files in %s are no requests for mail; they were renamed to *.damaged", damaged, folder)
        for address, requests in self._outbox.waiting().items():
            self._answer(address, requests, now)
        if self._policy.weekly:
            self._write_to_leads(now)
        self._send(now)

    def _answer(self, address: str, requests: Sequence[MailRequest], now: UnixMs) -> None:
        ends = [request for request in requests if request.is_end and request.job is not None]
        for request in requests:
            if request not in ends:
                self._queue([request], self._plain(request), now)
        if not ends:
            return
        recent = self._outbox.sent_since(address, UnixMs(now - self._policy.digest_interval_ms))
        is_busy = len(recent) >= self._policy.digest_above
        if is_busy and now - recent[-1] < self._policy.digest_interval_ms:
            return  # the next digest has them
        newest, oldest = max(request.at for request in ends), min(request.at for request in ends)
        if len(ends) > self._policy.digest_above:
            # More may follow: tasks of an array end one after another.
            if now - newest >= SETTLED_MS or now - oldest >= PATIENCE_MS:
                self._queue(ends, self._digest(ends), now)
            return
        records = self._find_records(ends)
        for request in ends:
            record = records.get(request.key)
            is_known = record is not None and not record.state.is_active
            if now - request.at >= (SETTLED_MS if is_known or request.array else PATIENCE_MS):
                self._queue([request], self._single(request, record if is_known else None), now)

    def _find_records(self, requests: Sequence[MailRequest]) -> dict[str, Workload]:
        """The records of jobs by the key of their request; those with a task's raw number are looked up one by one."""
        ids = {request.key: WorkloadId(qualify(request.job or "")) for request in requests}
        stored = {workload.id: workload for workload in self._context.records.find_workloads(set(ids.values()))}
        records = {key: stored[job] for key, job in ids.items() if job in stored}
        for request in requests[:MAX_CARDS]:
            if request.key not in records and (job := find_workload(self._context.records, request.job or "")):
                records[request.key] = job
        return records

    def _plain(self, request: MailRequest) -> JobMailText | None:
        if self._choice(request) == "none":
            return None
        return write_without_card(
            request.subject, request.job, cluster=self._context.cluster, page_url=self._policy.page_url
        )

    def _single(self, request: MailRequest, record: Workload | None) -> JobMailText | None:
        choice = self._choice(request)
        if choice == "none":
            return None
        if request.array is not None:
            return self._array(request, choice)
        card = None if record is None else self._card(record)
        if choice == "waste" and (card is None or not has_waste(card)):
            return None
        if card is None:
            return self._plain(request)
        return write_job(card, page_url=self._policy.page_url)

    def _array(self, request: MailRequest, choice: str) -> JobMailText | None:
        """The digest of an array, from its tasks."""
        where = WorkloadFilter(text=f"slurm:{request.array}_")
        tasks = self._context.records.workloads(where, limit=MAX_TASKS).workloads
        prefix = f"slurm:{request.array}_"
        ended = [task for task in tasks if task.id.startswith(prefix) and not task.state.is_active]
        if not ended:
            return self._plain(request)
        return self._write_digest([(task.id.removeprefix("slurm:"), task) for task in ended], choice)

    def _digest(self, requests: Sequence[MailRequest]) -> JobMailText | None:
        choice = self._choice(requests[0])
        if choice == "none":
            return None
        records = self._find_records(requests)
        return self._write_digest([(request.job or "", records.get(request.key)) for request in requests], choice)

    def _write_digest(self, jobs: Sequence[tuple[str, Workload | None]], choice: str) -> JobMailText | None:
        now, listed = self._context.clock(), []
        chosen = _choose_samples([job for _, job in jobs if job is not None])
        for number, job in jobs:
            card = self._card(job) if job is not None and job.id in chosen else None
            listed.append(
                EndedJob(
                    job=number,
                    name=None if job is None or job.name is None else " ".join(job.name.split())[:40],
                    state="unknown" if job is None else job.state.value,
                    run_s=None if job is None else job.run_s(now),
                    card=card,
                )
            )
        if choice == "waste" and not any(job.card is not None and has_waste(job.card) for job in listed):
            return None
        return write_digest(listed, cluster=self._context.cluster, page_url=self._policy.page_url)

    def _card(self, job: Workload) -> Card | None:
        try:
            return asdict(self._jobs.card(job.id))
        except ClusterScapeError:
            return None

    def _choice(self, request: MailRequest) -> str:
        if request.user is None:
            return self._policy.standard
        document = self._context.records.document(CHOICE, request.user)
        return self._policy.standard if document is None else str(document.body.get("choice", self._policy.standard))

    def _queue(self, requests: Sequence[MailRequest], mail: JobMailText | None, now: UnixMs) -> None:
        address = requests[0].address
        recipient = address if "@" in address else self._policy.address_of(address)
        if recipient is None:
            log.warning("no address of %s: set `to` of the e-mail channel to {user}@…, or use --mail-user", address)
        key = hashlib.sha256("\0".join(request.key for request in requests).encode()).hexdigest()[:24]
        body = None if mail is None or recipient is None else self._build(mail, key, recipient, now)
        self._outbox.queue(requests, body, key=key, address=address, now=now)

    def _build(self, mail: JobMailText, key: str, recipient: str, now: UnixMs) -> bytes:
        message = build_message(mail, key=key, sender=self._policy.sender, recipient=recipient, at_ms=now)
        return message.as_bytes()

    def _write_to_leads(self, now: UnixMs) -> None:
        week = week_before(now)
        if week is None:
            return
        name, start, end = week
        leads = [
            (f"lead {login} {project} {name}", recipient, project)
            for login, project in find_leads(self._accounts())
            if (recipient := self._policy.address_of(login)) is not None
            and not self._outbox.was_queued(f"lead {login} {project} {name}")
        ]
        if not leads:
            return
        summaries = self._context.records.summary_columns(start_ms=start, end_ms=end)
        for key, recipient, project in leads:
            users = sum_users(summaries, project)
            if users:
                mail = write_week(project, users, cluster=self._context.cluster, page_url=self._policy.page_url)
                digest = hashlib.sha256(key.encode()).hexdigest()[:24]
                self._outbox.queue_once(self._build(mail, digest, recipient, now), key=key, address=recipient, now=now)

    def _send(self, now: UnixMs) -> None:
        from email import message_from_bytes, policy

        for mail in self._outbox.due(now):
            if self._stopped.is_set():
                return
            message = message_from_bytes(mail.body, policy=policy.SMTP)
            result = self._server.submit(message, sender=self._policy.sender, recipients=[str(message["To"])])
            if result.is_accepted:
                self._outbox.sent(mail)
            elif result.is_lasting or now - mail.created_at > 7 * 24 * HOUR_MS:
                log.warning("a mail to %s was refused, and is dropped: %s", mail.address, result.text)
                self._outbox.sent(mail)
            else:
                self._outbox.retry(mail, now)
                log.info("a mail to %s waits: %s", mail.address, result.text)
                return  # the server is away; the others would fail, too


def _choose_samples(jobs: Sequence[Workload]) -> set[str]:
    """The jobs of a digest whose cards are read: the longest of each name and state, as far as MAX_CARDS go."""
    longest: Mapping[tuple[str, str], Workload] = {}
    chosen: dict[tuple[str, str], Workload] = dict(longest)
    for job in sorted(jobs, key=lambda job: -(job.run_s(job.ended_at or UnixMs(0)) or 0.0)):
        chosen.setdefault((job.name or "", job.state.value), job)
    return {job.id for job in list(chosen.values())[:MAX_CARDS]}
