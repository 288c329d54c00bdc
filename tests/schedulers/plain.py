"""A reference scheduler: plain lists, everything recounted each time. Slow, obviously right.

Tests compare the compiled simulation with it; the benchmark takes it as the peer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from clusterscape.simulate.batch import Backfill, BatchJobs, Semantics

Score = Callable[["PlainJob", int], float]


@dataclass
class PlainJob:
    """One job with its start and first promised start."""

    number: int
    submit_s: int
    run_s: int
    estimate_s: int
    processors: int
    start_s: int | None = None
    promise_s: int | None = None

    @property
    def estimated_end_s(self) -> int:
        assert self.start_s is not None
        return self.start_s + self.estimate_s

    @property
    def end_s(self) -> int:
        assert self.start_s is not None
        return self.start_s + self.run_s


def by_submission(job: PlainJob, now_s: int) -> float:
    """First come, first served."""
    return float(job.submit_s)


@dataclass
class PlainScheduler:
    """The machine, the queue and the rules."""

    total: int
    backfill: Backfill
    semantics: Semantics
    score: Score = by_submission
    running: list[PlainJob] = field(default_factory=list)
    queue: list[PlainJob] = field(default_factory=list)
    head: PlainJob | None = None
    fixed_s: int = 0
    blocked_queue: int = 0

    def free_at(self, time_s: int) -> int:
        """Processors that no running job is expected to hold then."""
        return self.total - sum(job.processors for job in self.running if job.estimated_end_s > time_s)

    def free_now(self, now_s: int) -> int:
        if self.semantics.freed == "at_estimated_end":
            return self.free_at(now_s)
        return self.total - sum(job.processors for job in self.running)

    def start(self, job: PlainJob, now_s: int) -> None:
        job.start_s = now_s
        self.queue.remove(job)
        self.running.append(job)

    def look(self, now_s: int) -> None:
        """Heads in order, then candidates."""
        if self.backfill.kind == "conservative":
            self.look_conservatively(now_s)
            return
        is_kept = self.semantics.head == "kept" and self.head is not None and self.head.start_s is None
        while self.queue:
            self.queue.sort(key=lambda job: (self.score(job, now_s), job.number))
            head = self.head if is_kept and self.head is not None else self.queue[0]
            if head.processors > self.free_now(now_s):
                self.block(head, now_s)
                return
            self.start(head, now_s)
            is_kept = False

    def block(self, head: PlainJob, now_s: int) -> None:
        ends = sorted(job.estimated_end_s for job in self.running)
        start_s = next(end for end in ends if self.free_at(end) >= head.processors)
        if head is not self.head or self.blocked_queue == 0:
            self.fixed_s, self.blocked_queue = start_s, len(self.queue)
        self.head = head
        if head.promise_s is None:
            head.promise_s = start_s
        if self.backfill.kind != "none":
            self.fill(head, self.fixed_s if self.semantics.promise == "fixed" else start_s, now_s)

    def fill(self, head: PlainJob, start_s: int, now_s: int) -> None:
        bound_s = start_s + self.relaxation() * max(0, start_s - head.submit_s)
        order: Callable[[PlainJob], tuple[float, int]] = lambda job: (self.score(job, now_s), job.number)  # noqa: E731
        if self.backfill.kind == "easy-sjbf":
            order = lambda job: (job.estimate_s, job.number)  # noqa: E731
        elif self.backfill.kind == "frugal":
            order = lambda job: (job.estimate_s * job.processors, job.number)  # noqa: E731
        elif self.semantics.candidate_order == "submit":
            order = lambda job: (0, job.number)  # noqa: E731
        for job in sorted((job for job in self.queue if job is not head), key=order):
            if job.processors > self.free_now(now_s):
                continue
            end_s = now_s + job.estimate_s
            is_short = end_s < bound_s or (end_s == bound_s and self.semantics.bound == "inclusive")
            fits_extra_nodes = self.semantics.extra_nodes and job.processors <= self.free_at(start_s) - head.processors
            if is_short or fits_extra_nodes:
                self.start(job, now_s)

    def relaxation(self) -> float:
        if self.backfill.kind not in ("relaxed", "adaptive", "frugal"):
            return 0.0
        if self.backfill.kind != "adaptive":
            return self.backfill.share
        queued = self.blocked_queue if self.semantics.adaptive_queue == "when_blocked" else len(self.queue)
        part = queued / self.backfill.whole_at
        return self.backfill.share * (min(part, 1.0) if self.semantics.adaptive_cap == "at_full_share" else part)

    def look_conservatively(self, now_s: int) -> None:
        """Each job in order gets the first start at which it fits, given all before it, for its whole expected run time."""
        held = [(now_s, job.estimated_end_s, job.processors) for job in self.running if job.estimated_end_s > now_s]
        for job in sorted(self.queue, key=lambda job: (self.score(job, now_s), job.number)):
            starts = sorted({now_s, *(end for _, end, _ in held)})
            start_s = next(at for at in starts if self.fits(job, at, held))
            held.append((start_s, start_s + job.estimate_s, job.processors))
            if start_s == now_s and job.processors <= self.free_now(now_s):
                self.start(job, now_s)
            elif job.promise_s is None:
                job.promise_s = start_s

    def fits(self, job: PlainJob, at_s: int, held: list[tuple[int, int, int]]) -> bool:
        moments = [at_s, *(start for start, _, _ in held if at_s < start < at_s + job.estimate_s)]
        return all(
            sum(size for start, end, size in held if start <= moment < end) + job.processors <= self.total
            for moment in moments
        )


def simulate_plainly(
    jobs: BatchJobs, total: int, backfill: Backfill, semantics: Semantics, score: Score = by_submission
) -> list[PlainJob]:
    """All jobs with their starts and first promises, in the order given."""
    columns = (jobs.submit_s, jobs.run_s, jobs.estimate_s, jobs.processors)
    plain = [
        PlainJob(number, *row) for number, row in enumerate(zip(*(column.tolist() for column in columns), strict=True))
    ]
    scheduler = PlainScheduler(total, backfill, semantics, score)
    coming = list(plain)
    while coming or scheduler.running:
        ends = [job.end_s for job in scheduler.running]
        now_s = min([*ends, coming[0].submit_s] if coming else ends)
        ended = [job for job in scheduler.running if job.end_s == now_s]
        # Started in this order: the list of running jobs keeps it.
        arrived = [job for job in coming if job.submit_s == now_s]
        if semantics.events == "one_by_one":
            takes_arrival = arrived and (semantics.same_time == "submit_first" or not ended)
            ended, arrived = ([], arrived[:1]) if takes_arrival else (ended[:1], [])
        for job in ended:
            scheduler.running.remove(job)
        for job in arrived:
            coming.remove(job)
            scheduler.queue.append(job)
        scheduler.look(now_s)
    return plain
