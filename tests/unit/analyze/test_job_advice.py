"""Advice on ended jobs: what would have been enough, and never what would have ended a past job."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.analyze.jobcard.advice import AdviceKind, GpuOffer, JobAdvice, find_advice, round_limit_s
from clusterscape.model import UnixMs, WorkloadId, WorkloadKind, WorkloadState
from clusterscape.model.job_summaries import JobSummary, SummarySource

GIB = 2.0**30
NO_OFFER = GpuOffer(models={})
OFFER = GpuOffer(
    models={"A100-80G": 80 * GIB, "A100-40G": 40 * GIB, "T4": 16 * GIB}, mig_profiles=("1g.10gb", "3g.40gb")
)


def summary(number: int = 1, **fields: object) -> JobSummary:
    job = JobSummary(
        workload=WorkloadId(f"slurm:{number}"),
        state=WorkloadState.COMPLETED,
        kind=WorkloadKind.JOB,
        name="train-1",
        family="train-#",
        user="ada",
        project="ml",
        partition="gpu",
        qos=None,
        resource_type="A100-80G-1",
        submitted_at=UnixMs(0),
        started_at=UnixMs(0),
        ended_at=UnixMs(7_200_000),
        run_s=7200.0,
        time_limit_s=86_400,
        nodes=1,
        gpus=0,
        cpus=16,
        memory_requested_bytes=int(64 * GIB),
        source=SummarySource.SAMPLES,
        cpu_s=7200.0 * 3,
        peak_cores=3.5,
        memory_used_bytes=8 * GIB,
        memory_limit_bytes=64 * GIB,
        memory_peak_bytes=8 * GIB,
    )
    return replace(job, **fields)  # type: ignore[arg-type]  # fields by name


def gpu_summary(number: int = 1, **fields: object) -> JobSummary:
    standard = {
        "gpus": 1,
        "gpu_util_ratio": 0.1,
        "gpus_idle": 0,
        "gpus_unused": 0,
        "gpu_memory_peak_bytes": 5 * GIB,
        "gpu_memory_total_bytes": 80 * GIB,
    }
    return summary(number, **{**standard, **fields})


def advice(job: JobSummary, *past: JobSummary, offer: GpuOffer = NO_OFFER) -> dict[AdviceKind, JobAdvice]:
    return {piece.kind: piece for piece in find_advice(job, past, offer)}


def test_memory_cores_and_limit_are_right_sized_when_a_single_job_used_little() -> None:
    pieces = advice(summary())
    assert pieces[AdviceKind.MEMORY].option == "--mem=10G"
    assert pieces[AdviceKind.MEMORY].saved == pytest.approx((64 - 10) * 2)
    assert pieces[AdviceKind.CORES].enough == 4
    assert pieces[AdviceKind.CORES].saved == pytest.approx(24.0)
    # Half as much again, since it rests on one job.
    assert pieces[AdviceKind.TIME_LIMIT].enough == 3 * 3600


def test_the_largest_use_decides_when_a_similar_job_used_more() -> None:
    past = summary(2, memory_peak_bytes=20 * GIB, peak_cores=9.0, run_s=20_000.0)
    pieces = advice(summary(), past)
    assert pieces[AdviceKind.MEMORY].enough == 24 * GIB
    assert pieces[AdviceKind.CORES].enough == 10
    assert pieces[AdviceKind.TIME_LIMIT].enough >= 1.5 * 20_000


def test_no_limit_is_advised_below_one_at_which_a_similar_job_was_ended() -> None:
    past = summary(2, state=WorkloadState.TIMEOUT, time_limit_s=70_000, run_s=70_000.0)
    assert AdviceKind.TIME_LIMIT not in advice(summary(), past)


def test_no_memory_is_advised_below_that_with_which_a_similar_job_was_killed() -> None:
    past = summary(2, state=WorkloadState.OUT_OF_MEMORY, memory_limit_bytes=32 * GIB, memory_peak_bytes=31 * GIB)
    assert advice(summary(), past)[AdviceKind.MEMORY].enough > 1.15 * 32 * GIB


def test_more_memory_is_advised_when_the_job_was_killed_for_it() -> None:
    job = summary(state=WorkloadState.OUT_OF_MEMORY, memory_limit_bytes=8 * GIB)
    assert advice(job)[AdviceKind.MEMORY].option == "--mem=12G"
    completed = summary(2, memory_peak_bytes=20 * GIB)
    assert advice(job, completed)[AdviceKind.MEMORY].option == "--mem=24G"


def test_a_longer_limit_is_advised_when_similar_jobs_needed_longer() -> None:
    job = summary(state=WorkloadState.TIMEOUT, time_limit_s=3600, run_s=3600.0)
    assert AdviceKind.TIME_LIMIT not in advice(job)
    piece = advice(job, summary(2, run_s=5000.0))[AdviceKind.TIME_LIMIT]
    assert (piece.enough, piece.saved) == (round_limit_s(6000), None)


def test_fewer_gpus_are_advised_when_the_same_number_was_never_used_before() -> None:
    job = gpu_summary(gpus=4, gpus_unused=3)
    assert advice(job)[AdviceKind.GPUS].option == "--gpus=1"
    assert advice(job, gpu_summary(2, gpus=4, gpus_unused=1))[AdviceKind.GPUS].option == "--gpus=3"
    assert AdviceKind.GPUS not in advice(job, gpu_summary(2, gpus=4, gpus_unused=0))
    assert advice(gpu_summary(gpus_unused=1))[AdviceKind.GPUS].enough == 0


def test_the_smallest_mig_instance_that_fits_is_advised_when_a_gpu_is_mostly_idle() -> None:
    assert advice(gpu_summary(), offer=OFFER)[AdviceKind.MIG].model == "1g.10gb"
    assert advice(gpu_summary(gpu_memory_peak_bytes=12 * GIB), offer=OFFER)[AdviceKind.MIG].model == "3g.40gb"
    assert advice(gpu_summary(gpu_util_ratio=0.145), offer=OFFER)[AdviceKind.MIG].model == "3g.40gb"
    busy = gpu_summary(2, gpu_util_ratio=0.6)
    assert AdviceKind.MIG not in advice(gpu_summary(), busy, offer=OFFER)


def test_no_smaller_gpu_is_advised_when_a_similar_job_would_not_have_ended_in_time() -> None:
    tight = gpu_summary(2, run_s=75_000.0, time_limit_s=86_400)
    pieces = advice(gpu_summary(), tight, offer=OFFER)
    # A tenth of the time takes at most 7 times as long on 1/7 of a GPU, and 7/3 on 3/7.
    assert pieces[AdviceKind.MIG].model == "3g.40gb"
    assert AdviceKind.GPU_MODEL not in pieces


def test_a_smaller_model_is_advised_only_when_the_memory_of_all_similar_jobs_fits() -> None:
    assert advice(gpu_summary(gpu_memory_peak_bytes=30 * GIB), offer=OFFER)[AdviceKind.GPU_MODEL].model == "A100-40G"
    large = gpu_summary(2, gpu_memory_peak_bytes=50 * GIB)
    assert AdviceKind.GPU_MODEL not in advice(gpu_summary(), large, offer=OFFER)


def test_nothing_is_advised_when_nothing_was_measured_but_the_limit() -> None:
    job = summary(cpu_s=None, peak_cores=None, memory_peak_bytes=None, memory_used_bytes=None)
    assert set(advice(job)) == {AdviceKind.TIME_LIMIT}


JOBS = st.builds(
    gpu_summary,
    number=st.integers(2, 10**6),
    state=st.sampled_from(
        [WorkloadState.COMPLETED, WorkloadState.FAILED, WorkloadState.TIMEOUT, WorkloadState.OUT_OF_MEMORY]
    ),
    run_s=st.floats(1, 86_400),
    gpus=st.integers(1, 8),
    gpus_unused=st.integers(0, 8) | st.none(),
    gpu_util_ratio=st.floats(0, 1) | st.none(),
    gpu_memory_peak_bytes=st.floats(0, 80 * GIB) | st.none(),
    memory_peak_bytes=st.floats(0, 64 * GIB) | st.none(),
    peak_cores=st.floats(0, 16) | st.none(),
)


@settings(deadline=None)
@given(st.builds(replace, JOBS, workload=st.just(WorkloadId("slurm:1"))), st.lists(JOBS, max_size=6))
def test_no_past_job_would_have_failed_whatever_the_past(job: JobSummary, past: list[JobSummary]) -> None:
    pieces = {piece.kind: piece for piece in find_advice(job, past, OFFER) if piece.saved is not None}
    for other in [job, *past]:
        memory, limit, gpus = (pieces.get(kind) for kind in (AdviceKind.MEMORY, AdviceKind.TIME_LIMIT, AdviceKind.GPUS))
        if memory is not None:
            assert memory.enough >= (other.memory_peak_bytes or 0)
            if other.state is WorkloadState.OUT_OF_MEMORY:
                assert memory.enough > (other.memory_limit_bytes or 0)
        if limit is not None:
            assert limit.enough >= other.run_s
            if other.state is WorkloadState.TIMEOUT:
                assert limit.enough > (other.time_limit_s or 0)
        if gpus is not None and other.gpus == job.gpus and other.gpus_unused is not None:
            assert gpus.enough >= other.gpus - other.gpus_unused
        for kind in (AdviceKind.MIG, AdviceKind.GPU_MODEL):
            if kind in pieces and other.gpu_util_ratio is not None:
                size = {"1g.10gb": 10e9, "3g.40gb": 40e9, **OFFER.models}[pieces[kind].model or ""]
                assert size >= (other.gpu_memory_peak_bytes or 0)
    assert all(piece.enough <= piece.asked for piece in pieces.values())
