"""The random job stream: projects, users and experiments of the demo cluster, and the time, size and run time of their
submissions. Drawn block by block from a seeded generator.

Sizes and run times resemble published GPU traces: most jobs are small, run times are heavy-tailed (log-normal), more jobs
arrive by day, one in six fails or is cancelled, and time limits are well above run times.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from clusterscape.demo.hardware import LARGE, SMALL, V100, Hardware
from clusterscape.demo.jobs import DRAWS, ArrayTask, Behavior, DemoJob
from clusterscape.demo.scheduler import SubmittedJob
from clusterscape.model import WorkloadKind, WorkloadState
from clusterscape.model.durations import DAY_S, HOUR_S


@dataclass(frozen=True, slots=True)
class Project:
    """A project. ``weights``: its share of the submissions, by partition."""

    name: str
    users: tuple[str, ...]
    experiments: tuple[str, ...]
    weights: Mapping[str, float]


PROJECTS: tuple[Project, ...] = (
    Project(
        "nlp-core",
        ("lchen", "mweber", "osantos", "tkimura", "dnowak"),
        ("llm-7b-pretrain", "llm-7b-sft", "long-context", "tokenizer-ablation", "reward-model"),
        {SMALL: 0.08, LARGE: 0.38, V100: 0.02},
    ),
    Project(
        "rec-sys",
        ("apatel", "jlarsen", "ysato"),
        ("two-tower", "ranker-dlrm", "session-bert", "embedding-sweep"),
        {SMALL: 0.05, LARGE: 0.25, V100: 0.05},
    ),
    Project(
        "multimodal",
        ("hrossi", "kdubois", "fmensah"),
        ("clip-l14", "video-caption", "vlm-instruct", "audio-text"),
        {SMALL: 0.06, LARGE: 0.25, V100: 0.0},
    ),
    Project(
        "speech",
        ("ejansen", "rkapoor", "nberg"),
        ("asr-conformer", "tts-vocoder", "wakeword"),
        {SMALL: 0.24, LARGE: 0.04, V100: 0.24},
    ),
    Project(
        "vision",
        ("sgarcia", "pnovak", "whuang", "cmoreau"),
        ("det-swin", "seg-mask2former", "depth-vit", "ssl-dino"),
        {SMALL: 0.25, LARGE: 0.04, V100: 0.17},
    ),
    Project(
        "search",
        ("bokafor", "imeyer", "vpopescu"),
        ("dense-retrieval", "query-rewrite", "reranker"),
        {SMALL: 0.24, LARGE: 0.02, V100: 0.06},
    ),
    Project(
        "robotics",
        ("gtanaka", "lfischer"),
        ("sim2real", "grasp-policy", "world-model"),
        {SMALL: 0.06, LARGE: 0.02, V100: 0.08},
    ),
    Project(
        "students",
        ("zkowalski", "amartin", "quinn", "rsilva"),
        ("thesis-gnn", "course-hw4", "nas-search", "diffusion-toy"),
        {SMALL: 0.02, LARGE: 0.0, V100: 0.38},
    ),
)

SESSION_NAMES = ("jupyter", "interactive", "vscode-tunnel", "bash")
ARRAY_NAMES = ("sweep", "hpo", "eval-ckpts", "seeds")


MAX_RUN_S = 4 * DAY_S
LIMITS_S = tuple(hours * HOUR_S for hours in (1, 2, 4, 8, 12, 24, 48, 72, 120))
QOS_PRIORITY = {"low": 400, "normal": 1000, "high": 4000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Distribution of the jobs of one stream. ``sizes``: (GPUs, weight).

    ``target_demand``: GPUs of running and waiting jobs of this kind per GPU of the partition; ``usual_load``: of running ones.
    """

    partition: str
    sizes: tuple[tuple[int, float], ...]
    median_run_s: float
    sigma: float
    session_share: float
    array_share: float
    user_limit_share: float  # of the partition's GPUs
    target_demand: float
    usual_load: float = 0.92
    demand_range: float = 0.2  # excess demand at which submissions stop


SMALL_NODES = f"{SMALL} nodes"

MIXES = {
    # Jobs on part of a node run long: if they are spread over all nodes, no node is empty for hours.
    SMALL: Mix(
        partition=SMALL,
        sizes=((1, 0.46), (2, 0.27), (4, 0.27)),
        median_run_s=8.0 * HOUR_S,
        sigma=0.9,
        session_share=0.08,
        array_share=0.04,
        user_limit_share=0.35,
        target_demand=0.5,
        usual_load=0.48,
        demand_range=0.1,
    ),
    # Users who need whole nodes react only to the queue of such jobs.
    SMALL_NODES: Mix(
        partition=SMALL,
        sizes=((8, 1.0),),
        median_run_s=2.5 * HOUR_S,
        sigma=0.8,
        session_share=0.0,
        array_share=0.0,
        user_limit_share=0.35,
        target_demand=0.5,
        usual_load=0.14,
        demand_range=0.2,
    ),
    LARGE: Mix(
        partition=LARGE,
        sizes=((8, 0.3), (16, 0.3), (24, 0.06), (32, 0.2), (64, 0.09), (128, 0.035), (256, 0.012), (512, 0.003)),
        median_run_s=5.0 * HOUR_S,
        sigma=1.2,
        session_share=0.0,
        array_share=0.0,
        user_limit_share=0.32,
        target_demand=1.4,
    ),
    V100: Mix(
        partition=V100,
        sizes=((1, 0.38), (2, 0.22), (4, 0.2), (8, 0.17), (16, 0.03)),
        median_run_s=2.6 * HOUR_S,
        sigma=1.3,
        session_share=0.12,
        array_share=0.05,
        user_limit_share=0.22,
        target_demand=0.98,
        usual_load=0.76,
    ),
}

_BEHAVIORS = (
    (Behavior.HEALTHY, 0.57),
    (Behavior.VALIDATION, 0.25),
    (Behavior.INPUT_BOUND, 0.08),
    (Behavior.IDLE_TAIL, 0.05),
    (Behavior.STALLED, 0.03),
    (Behavior.MEMORY_LEAK, 0.02),
)
_OUTCOMES = (
    (WorkloadState.COMPLETED, 0.8),
    (WorkloadState.FAILED, 0.12),
    (WorkloadState.CANCELLED, 0.08),
)
_HOLDS = (
    ("Dependency", 0.03),
    ("BeginTime", 0.01),
    (None, 0.96),
)
_LONG_BEHAVIORS = frozenset({Behavior.STALLED, Behavior.IDLE_TAIL, Behavior.MEMORY_LEAK})
_RUN_NAMES = ("base", "lr3e4", "bs512", "ema", "v2-data", "fp8", "warm", "resume")

T = TypeVar("T")


def user_limits(hardware: Hardware) -> dict[str, int]:
    """The most GPUs that a user may hold in each partition, at least those of two nodes."""
    return {
        mix.partition: max(2 * hardware.gpus_per_node, round(mix.user_limit_share * hardware.capacity(mix.partition)))
        for mix in MIXES.values()
    }


@dataclass(frozen=True, slots=True)
class _Submission:
    """The user and time of a submission. ``id`` is unique within the stream; job ids are assigned later."""

    project: Project
    user: str
    submit_s: int
    id: int


class JobStream:
    """Draws the jobs of the stream ``name`` of MIXES."""

    def __init__(self, hardware: Hardware, name: str, midnight_s: int) -> None:
        """``midnight_s``: the start of a Thursday in the users' local time."""
        self.name = name
        self._midnight_s = midnight_s
        self._mix = MIXES[name]
        self.partition = partition = self._mix.partition
        self._per_node = hardware.gpus_per_node
        self._capacity = hardware.capacity(partition)
        # Jobs run longer on larger clusters, so that the number of jobs grows more slowly than the number of GPUs.
        self._median_run_s = self._mix.median_run_s * max(1.0, hardware.unit_count / 1024) ** (1 / 3)
        fitting = [(gpus, weight) for gpus, weight in self._mix.sizes if gpus <= self._largest(hardware)] or [
            (self._per_node, 1.0)
        ]
        self._sizes = [gpus for gpus, _ in fitting]
        self._weights = [weight for _, weight in fitting]
        self._project_weights = [project.weights[partition] for project in PROJECTS]
        self._mean_gpu_s = self._measure()
        self._submitted = 0

    def _largest(self, hardware: Hardware) -> int:
        limit = user_limits(hardware)[self.partition]
        whole_nodes = [node for node in hardware.partition(self.partition) if node.gpu_count == self._per_node]
        return min(limit, max(1, len(whole_nodes) // 3) * self._per_node)

    def _measure(self) -> float:
        """Mean GPU-seconds of one submission, from a separate sample."""
        rng = Random(20_000)
        # Ignores failures, cancellations and arrays: the feedback in the submission rate corrects for them.
        drawn = [self._draw_shape(rng) for _ in range(1000)]
        return sum(gpus * run_s for gpus, run_s in drawn) / len(drawn)

    def _draw_shape(self, rng: Random) -> tuple[int, int]:
        """GPUs and run time of a job; larger jobs run somewhat longer."""
        gpus = rng.choices(self._sizes, self._weights)[0]
        run_s = rng.lognormvariate(math.log(self._median_run_s), self._mix.sigma) * (1.0 + 0.15 * math.log2(gpus))
        return gpus, int(min(max(run_s, 90), MAX_RUN_S))

    def fill(self, rng: Random, at_s: int) -> list[DemoJob]:
        """Jobs that fill the empty partition at the origin, as in steady state."""
        jobs: list[DemoJob] = []
        gpus = 0
        while gpus < self._capacity * self._mix.target_demand:
            more = self._submit(rng, at_s + rng.randrange(900))
            gpus += sum(job.job.gpus for job in more)
            jobs += more
        return jobs

    def draw(self, rng: Random, start_s: int, end_s: int, demand: float) -> list[DemoJob]:
        """Submissions in [start, end). ``demand``: GPUs of this kind's jobs, running and waiting, per GPU of the partition.

        Users submit less while queues are long.
        """
        hold_back = min(max(1.0 + (self._mix.target_demand - demand) / self._mix.demand_range, 0.1), 6.0)
        per_s = (
            self._mix.usual_load
            * self._capacity
            / self._mean_gpu_s
            * hold_back
            * day_factor(start_s - self._midnight_s)
        )
        jobs: list[DemoJob] = []
        time_s = start_s + rng.expovariate(per_s)
        while time_s < end_s:
            jobs += self._submit(rng, int(time_s))
            time_s += rng.expovariate(per_s)
        return jobs

    def _submit(self, rng: Random, submit_s: int) -> list[DemoJob]:
        """One submission: a job, a session, or all tasks of an array."""
        project = rng.choices(PROJECTS, self._project_weights)[0]
        user = project.users[min(int(rng.expovariate(0.9)), len(project.users) - 1)]
        self._submitted += 1
        submission = _Submission(project, user, submit_s, self._submitted)
        kind = rng.random()
        if kind < self._mix.session_share:
            return [self._draw_session(rng, submission)]
        if kind < self._mix.session_share + self._mix.array_share:
            return self._draw_array(rng, submission)
        gpus, run_s = self._draw_shape(rng)
        return [self._draw_job(rng, submission, gpus, run_s, rng.choice(project.experiments))]

    def _draw_session(self, rng: Random, submission: _Submission) -> DemoJob:
        run_s = int(rng.uniform(0.3, 7.5) * HOUR_S)
        return DemoJob(
            job=self._request(submission, 1, run_s, 8 * HOUR_S, "high"),
            name=rng.choice(SESSION_NAMES),
            project=submission.project.name,
            experiment="interactive",
            behavior=Behavior.INTERACTIVE,
            draws=_draws(rng),
            kind=WorkloadKind.SESSION,
            stream=self.name,
            qos="high",
        )

    def _draw_array(self, rng: Random, submission: _Submission) -> list[DemoJob]:
        experiment = rng.choice(submission.project.experiments)
        name = f"{experiment}-{rng.choice(ARRAY_NAMES)}"
        task_count = rng.randrange(3, 9)
        run_s = rng.lognormvariate(math.log(0.4 * self._mix.median_run_s), 0.6) + 120
        tasks = []
        for task_id in range(task_count):
            drawn = self._draw_job(rng, submission, 1, int(run_s * rng.uniform(0.8, 1.25)), experiment)
            # Tasks of an array are not held or withdrawn individually.
            job = replace(drawn.job, eligible_s=None, withdraw_s=None)
            array = ArrayTask(submission.id, task_id, task_count)
            tasks.append(replace(drawn, job=job, name=name, hold_reason=None, array=array))
        return tasks

    def _draw_job(self, rng: Random, submission: _Submission, gpus: int, run_s: int, experiment: str) -> DemoJob:
        behavior = _pick(rng, _BEHAVIORS)
        if behavior in _LONG_BEHAVIORS:
            run_s = max(run_s, 3 * HOUR_S)
        outcome = _pick(rng, _OUTCOMES)
        if outcome is not WorkloadState.COMPLETED:
            run_s = max(30, int(run_s * rng.betavariate(0.6, 1.8)))  # most failures are early
        if behavior is Behavior.MEMORY_LEAK:
            outcome = WorkloadState.OUT_OF_MEMORY
        qos = "low" if submission.project.name == "students" else "high" if rng.random() < 0.06 else "normal"
        hold_reason = _pick(rng, _HOLDS)
        submit_s = submission.submit_s
        job = self._request(
            submission,
            gpus,
            run_s,
            _draw_limit(rng, run_s),
            qos,
            eligible_s=submit_s + int(rng.expovariate(1 / (3 * HOUR_S))) if hold_reason else None,
            withdraw_s=submit_s + 600 + int(rng.expovariate(1 / (10 * HOUR_S))) if rng.random() < 0.05 else None,
            is_requeued=rng.random() < 0.5,
        )
        return DemoJob(
            job=job,
            name=experiment if rng.random() < 0.5 else f"{experiment}-{rng.choice(_RUN_NAMES)}",
            project=submission.project.name,
            experiment=experiment,
            behavior=behavior,
            draws=_draws(rng),
            stream=self.name,
            qos=qos,
            outcome=outcome,
            exit_code=rng.choice((1, 1, 2, 137, 139)) if outcome is WorkloadState.FAILED else 0,
            hold_reason=hold_reason,
        )

    def _request(
        self,
        submission: _Submission,
        gpus: int,
        run_s: int,
        limit_s: int,
        qos: str,
        *,
        eligible_s: int | None = None,
        withdraw_s: int | None = None,
        is_requeued: bool = False,
    ) -> SubmittedJob:
        nodes = -(-gpus // self._per_node)
        return SubmittedJob(
            id=submission.id,
            partition=self.partition,
            submit_s=submission.submit_s,
            run_s=run_s,
            limit_s=limit_s,
            gpus_per_node=gpus if nodes == 1 else self._per_node,
            nodes=nodes,
            user=submission.user,
            priority=QOS_PRIORITY[qos],
            eligible_s=eligible_s,
            withdraw_s=withdraw_s,
            is_requeued=is_requeued,
        )


def day_factor(time_s: int) -> float:
    """Relative submission rate by hour and weekday, about 1 on average. ``time_s``: seconds since a Thursday, 00:00."""
    hour = time_s / HOUR_S % 24
    is_weekend = (time_s // DAY_S + 3) % 7 >= 5
    return (1.0 - 0.45 * math.cos((hour - 2.0) / 24 * 2 * math.pi)) * (0.8 if is_weekend else 1.08)


def _draw_limit(rng: Random, run_s: int) -> int:
    """A user's time limit: a round number well above the run time, in a few percent of jobs too low."""
    wanted_s = run_s * (rng.uniform(0.6, 0.95) if rng.random() < 0.05 else rng.uniform(1.15, 3.5))
    return next((limit_s for limit_s in LIMITS_S if limit_s >= wanted_s), LIMITS_S[-1])


def _draws(rng: Random) -> tuple[float, ...]:
    return tuple(rng.random() for _ in range(DRAWS))


def _pick(rng: Random, choices: tuple[tuple[T, float], ...]) -> T:
    """One of ``choices`` by weight; the weights add up to 1."""
    drawn = rng.random()
    for choice, weight in choices:
        drawn -= weight
        if drawn < 0:
            return choice
    return choices[-1][0]
