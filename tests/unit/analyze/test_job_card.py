"""Shares, notes and roundings of a job's card, by cases worked out by hand."""

import pytest

from clusterscape.analyze.jobcard.card import ShareProblem, compute_shares
from clusterscape.analyze.jobcard.notes import NoteLevel, find_notes
from clusterscape.analyze.jobcard.rounding import (
    format_bytes,
    format_clock,
    format_percent,
    format_requested_memory,
    format_slurm_memory,
    suggest_memory_gib,
)
from clusterscape.model import WorkloadKind, WorkloadState
from clusterscape.model.job_usage import GpuUsage, JobUsage, NodeUsage

GIB = 2.0**30


def gpu(util: float | None = 0.5, used: float | None = 10 * GIB) -> GpuUsage:
    return GpuUsage(util_ratio=util, memory_used_bytes=used, memory_total_bytes=80 * GIB)


def node(
    *gpus: GpuUsage, cores: int | None = 12, cpu_s: float | None = 6000.0, used: float | None = 80 * GIB
) -> NodeUsage:
    return NodeUsage(
        cores=cores,
        cpu_s=cpu_s,
        memory_used_bytes=used,
        memory_limit_bytes=128 * GIB,
        gpus={str(index): one for index, one in enumerate(gpus)},
    )


def usage(*nodes: NodeUsage, run_s: float = 1000.0, gpus: int = 0) -> JobUsage:
    return JobUsage(run_s=run_s, gpu_count=gpus, nodes={f"n{index}": one for index, one in enumerate(nodes)})


def notes_of(
    job: JobUsage, state: WorkloadState = WorkloadState.COMPLETED, limit_s: int | None = None
) -> dict[str, str]:
    notes = find_notes(job, compute_shares(job), state=state, kind=WorkloadKind.JOB, time_limit_s=limit_s)
    return {note.code: note.level.value for note in notes}


def test_shares_are_of_all_nodes_together_when_all_have_samples() -> None:
    shares = compute_shares(usage(node(gpu(0.2), gpu(0.4)), node(gpu(0.9), cpu_s=0.0, used=0.0), gpus=3))

    assert shares.cpu.ratio == pytest.approx(6000 / 24_000)
    assert shares.cpu_memory.ratio == pytest.approx(80 / 256)
    assert shares.gpu is not None
    assert shares.gpu.ratio == pytest.approx(0.5)
    assert shares.gpu_memory is not None
    assert shares.gpu_memory.ratio == pytest.approx(30 / 240)


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        (usage(node(), node(cpu_s=None)), ShareProblem.MISSING),
        (usage(node(cores=None)), ShareProblem.MISSING),
        (usage(), ShareProblem.MISSING),
        (usage(node(cpu_s=12_001.0)), ShareProblem.ABOVE_ALL),
        (usage(node(cores=0, cpu_s=0.0)), ShareProblem.NOTHING),
    ],
)
def test_share_is_unknown_with_its_reason_when_a_part_is_not_usable(job: JobUsage, problem: ShareProblem) -> None:
    share = compute_shares(job).cpu

    assert (share.ratio, share.problem) == (None, problem)


def test_gpu_share_is_unknown_when_a_gpu_has_no_samples() -> None:
    missing = compute_shares(usage(node(gpu(), gpu(None)), gpus=2))
    absent = compute_shares(usage(node(gpu()), gpus=2))
    mig = compute_shares(usage(NodeUsage(gpus={"0/7": gpu(None)}), gpus=1))

    assert [job.gpu and job.gpu.problem for job in (missing, absent, mig)] == ["missing", "missing", "mig"]
    assert missing.gpu_memory is not None
    assert missing.gpu_memory.ratio == pytest.approx(0.125)


def test_notes_state_what_the_numbers_say_when_thresholds_are_passed() -> None:
    assert notes_of(usage(node(gpu(0.0), gpu(0.9)), gpus=2)) == {"unused-gpus": "critical", "much-memory": "info"}
    assert notes_of(usage(node(gpu(0.1), used=127 * GIB), gpus=1)) == {"low-gpu": "critical"}
    assert notes_of(usage(node(gpu(0.2), used=127 * GIB), gpus=1)) == {"low-gpu": "info"}
    assert notes_of(usage(node(cpu_s=960.0, used=127 * GIB))) == {"serial": "info"}
    assert notes_of(usage(node(used=127 * GIB))) == {"low-cpu": "critical"}
    assert notes_of(usage(node(gpu(), used=GIB), gpus=1), WorkloadState.OUT_OF_MEMORY) == {"out-of-memory": "critical"}
    assert notes_of(usage(node(cpu_s=11_900.0, used=127 * GIB)), limit_s=20_000) == {"long-limit": "critical"}


def test_nothing_is_noted_when_the_job_was_short_or_good() -> None:
    assert not notes_of(usage(node(gpu(0.0), cpu_s=0.0), run_s=200.0, gpus=1))
    assert not notes_of(usage(node(gpu(0.9), used=100 * GIB), gpus=1))


def test_critical_notes_come_first_when_there_are_several() -> None:
    job = usage(node(gpu(0.0), cpu_s=0.0), gpus=1)
    notes = find_notes(
        job, compute_shares(job), state=WorkloadState.COMPLETED, kind=WorkloadKind.JOB, time_limit_s=2000
    )

    assert [note.level for note in notes] == sorted(
        (note.level for note in notes), key=lambda level: level is NoteLevel.INFO
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "00:00:00"), (42.9, "00:00:42"), (4200, "01:10:00"), (86_400, "1-00:00:00"), (420_002, "4-20:40:02")],
)
def test_times_are_those_of_slurm_when_printed(seconds: float, text: str) -> None:
    assert format_clock(seconds) == text


def test_sizes_are_rounded_as_users_know_them_when_printed() -> None:
    assert [format_bytes(size) for size in (0, 1023, 2**30, 4e9, 4e12)] == [
        "0.0B",
        "1023.0B",
        "1.0GB",
        "3.7GB",
        "3.6TB",
    ]
    assert format_bytes(2**30, is_limit=True) == "1GB"
    assert format_bytes(350 * 2**20, is_limit=True) == "350.0MB"
    assert [format_percent(ratio) for ratio in (0.0, 0.95, 0.98604, 0.9502)] == ["0%", "95%", "98.6%", "95.0%"]


def test_requested_memory_is_that_of_sacct_when_printed() -> None:
    assert [format_slurm_memory(size) for size in (2**37, 350 * 2**20, 49_200 * 2**20)] == ["128G", "350M", "49200M"]
    assert format_requested_memory(2**37, 12) == "128GB (10.7GB per CPU-core)"
    assert format_requested_memory(10 * 2**30, 40) == "10GB (250MB per CPU-core)"
    assert format_requested_memory(350 * 2**20, 1) == "350MB"
    assert format_requested_memory(64_000 * 2**20, 16) == "64GB (4GB per CPU-core)"


def test_suggested_memory_has_a_margin_and_a_round_number_when_computed() -> None:
    assert [suggest_memory_gib(used) for used in (0, 9, 26, 90, 900, 2600)] == [1, 11, 35, 110, 1100, 3200]
