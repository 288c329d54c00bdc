"""The kinds of faults and how the case of a seed is drawn: rank, onset, size and rhythm are random. Half of the seeds (the odd
ones) are held back: they are not looked at while thresholds are chosen.
"""

import random
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

FORMAT = 1
LICENCE = "CC0-1.0"
RHYTHMS = ("persistent", "1 in 5", "1 in 20")
Source = Literal["recorded", "gpu", "simulated"]
"""``recorded``: on CPU; ``gpu``: on a GPU that the ranks share; ``simulated``: of simulated devices."""
CPU_RANKS = 2
"""As many as a small machine has cores: ranks that share a core really lose time to each other."""
GPU_RANKS = 4


@dataclass(frozen=True, slots=True)
class FaultKind:
    """``accept``: names of causes that count as right; ``is_of_rank``: one rank is guilty; ``seconds``: the injector measures
    them (else they are the loss against the twin); ``rhythms``: those that make sense. Kinds that are recorded on CPU are
    recorded on a GPU, too.
    """

    name: str
    source: Source
    accept: tuple[str, ...]
    is_of_rank: bool = True
    has_seconds: bool = True
    rhythms: tuple[str, ...] = RHYTHMS


PAUSES = ("host_pause", "host_code")
KINDS = (
    # Recorded on CPU and gloo (or a GPU).
    FaultKind("slow_loader", "recorded", ("input_stall",)),
    FaultKind("busy_loader", "recorded", ("input_stall",)),
    FaultKind("uncached_loader", "recorded", ("input_stall",)),
    FaultKind("slow_loader_everywhere", "recorded", ("input_stall",), is_of_rank=False, rhythms=("persistent", "1 in 5")),
    FaultKind("garbage_collection", "recorded", ("garbage_collection", *PAUSES)),
    FaultKind("checkpoint", "recorded", ("checkpoint", "copy_to_host", *PAUSES)),
    FaultKind("synced_log", "recorded", (*PAUSES, "checkpoint")),
    FaultKind("sleep", "recorded", PAUSES),
    FaultKind("stopped", "recorded", (*PAUSES, "slow_worker")),
    FaultKind("file_lock", "recorded", PAUSES),
    FaultKind("python_loop", "recorded", PAUSES),
    FaultKind("throttled", "recorded", ("slow_worker", *PAUSES), rhythms=("persistent", "1 in 5")),
    FaultKind("extra_products", "recorded", ("slow_worker",)),
    FaultKind("evaluation", "recorded", ("slow_worker",)),
    FaultKind("uneven_batch", "recorded", ("uneven_work",), has_seconds=False, rhythms=("persistent",)),
    FaultKind("sequence_lengths", "recorded", ("uneven_work",), False, has_seconds=False, rhythms=("persistent",)),
    # Recorded on a GPU only.
    FaultKind("slow_precision", "gpu", ("slow_worker",), has_seconds=False, rhythms=("persistent", "1 in 5")),
    FaultKind("spinning_kernel", "gpu", ("slow_worker",)),
    FaultKind("large_copies", "gpu", ("copy_to_host", "checkpoint")),
    FaultKind("new_blocks", "gpu", ("allocation",)),
    FaultKind("reads_per_parameter", "gpu", ("scalar_reads",), False, has_seconds=False, rhythms=("persistent",)),
    FaultKind("needless_waits", "gpu", ("synchronization",), False, has_seconds=False, rhythms=("persistent",)),
    FaultKind("many_small_kernels", "gpu", ("launch_bound",), False, has_seconds=False, rhythms=("persistent",)),
    # Of simulated devices.
    FaultKind("device_slow_loader", "simulated", ("input_stall",)),
    FaultKind("device_checkpoint", "simulated", ("checkpoint", "copy_to_host")),
    FaultKind("device_garbage_collection", "simulated", ("garbage_collection",)),
    FaultKind("device_pause", "simulated", PAUSES),
    FaultKind("slow_clock", "simulated", ("slow_worker",)),
    FaultKind("slow_operator", "simulated", ("slow_worker",)),
    FaultKind("extra_kernels", "simulated", ("slow_worker",)),
    FaultKind("blocking_allocation", "simulated", ("allocation",)),
    FaultKind("long_call", "simulated", ("runtime_call",)),
    FaultKind("copies_to_host", "simulated", ("copy_to_host",)),
    FaultKind("scalar_reads", "simulated", ("scalar_reads",), is_of_rank=False, rhythms=("persistent",)),
    FaultKind("synchronizations", "simulated", ("synchronization",), is_of_rank=False, rhythms=("persistent",)),
    FaultKind("tiny_kernels", "simulated", ("launch_bound",), False, has_seconds=False, rhythms=("persistent",)),
    FaultKind("device_sequence_lengths", "simulated", ("uneven_work",), False, has_seconds=False, rhythms=("persistent",)),
    FaultKind("unhidden_transfers", "simulated", ("exposed_communication",), False, has_seconds=False, rhythms=("persistent",)),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Case:
    """What is planted. ``steps_with_fault``: numbers from 0; ``size``: in usual steps; ``twin``: the same without the fault."""

    case_id: str
    source: Source
    seed: int
    kind: str | None
    ranks: int
    steps: int
    rank: int | None
    rhythm: str | None
    steps_with_fault: tuple[int, ...]
    size: float
    place: str
    twin: str | None
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def is_held_back(self) -> bool:
        """Whether the case is in the half that thresholds were not chosen by."""
        return self.seed % 2 == 1

    def describe(self) -> dict[str, Any]:
        """As it is written."""
        return asdict(self) | {"steps_with_fault": list(self.steps_with_fault), "is_held_back": self.is_held_back}


def draw_cases(source: Source, seed: int, recorded_ranks: int | None = None) -> list[Case]:
    """The cases of one seed, each after its twin: every kind once, with one of its rhythms."""
    cases = []
    kinds = [kind for kind in KINDS if kind.source in ((source, "recorded") if source == "gpu" else (source,))]
    for number, kind in enumerate(kinds):
        generator = random.Random(f"{source} {seed} {kind.name}")
        rhythm = kind.rhythms[(seed // 2 + number) % len(kind.rhythms)]
        usual_ranks = {"recorded": CPU_RANKS, "gpu": GPU_RANKS}.get(source)
        ranks = recorded_ranks or usual_ranks or generator.choice((2, 4, 8))
        steps = 40 if rhythm == "1 in 20" else 20 if rhythm == "1 in 5" else generator.randint(8, 16)
        onset = generator.randint(0, steps // 3) if generator.random() < 0.25 and rhythm == "persistent" else 0
        affected = tuple(range(onset, steps))
        if rhythm != "persistent":
            count = max(2, round(steps / int(rhythm.split()[-1])))
            affected = tuple(sorted(generator.sample(range(1, steps), count)))
            if generator.random() < 0.5 and count >= 3:
                first = generator.randint(1, steps // count - 1)
                affected = tuple(range(first, steps, steps // count))
        place = generator.choice(("before", "between", "after"))
        twin = f"{source}-{seed:03d}-{kind.name}-healthy"
        common: dict[str, Any] = {
            "source": source, "seed": seed, "ranks": ranks, "steps": steps, "place": place,
            "parameters": {"width": generator.choice((192, 256, 320)), "names_pauses": generator.random() < 0.5},
        }  # fmt: skip
        cases.append(Case(twin, kind=None, rank=None, rhythm=None, steps_with_fault=(), size=0.0, twin=None, **common))
        cases.append(
            Case(
                f"{source}-{seed:03d}-{kind.name}",
                kind=kind.name,
                rank=generator.randrange(ranks) if kind.is_of_rank else None,
                rhythm=rhythm,
                steps_with_fault=affected,
                size=generator.choice((0.5, 1.0, 2.0)) * (1.0 if rhythm == "persistent" else 2.0),
                twin=twin,
                **common,
            )
        )
    return cases
