"""Why the step is slow: root causes in words, ranked by what mending each would give back. May find nothing.

No cause smaller than the alignment's error or a hundredth of the step is named, and none of a rank that chance explains.
"""

from clusterscape.analyze.trace.causes import Excess, find_extra_work, measure_compute, measure_data_loading
from clusterscape.analyze.trace.collectives import MIN_STEPS, Slack
from clusterscape.analyze.trace.measures import Measures
from clusterscape.analyze.trace.run_wide import find_run_wide
from clusterscape.analyze.trace.whatif import StragglerAnswer
from clusterscape.model.verdicts import TraceVerdict, VerdictKind

MAIN_SHARE = 0.5  # a cause that explains half of a delay is its cause
MIN_IMBALANCE = 0.05
MIN_SLOWDOWN = 1.05  # S below which the published analysis calls a job healthy


def find_verdicts(measures: Measures) -> tuple[TraceVerdict, ...]:
    """Causes that one rank or stage has come first, then those that are only seen once others are mended, then run-wide."""
    if measures.stragglers is not None:
        located = _from_stragglers(measures, measures.stragglers)
    else:
        located = [*_slow_workers(measures), *_stage_imbalance(measures)]
    found = [*located, *find_run_wide(measures)]
    return tuple(
        sorted(
            found,
            key=lambda one: (one.rank is None and one.stage is None, one.is_hidden, -one.seconds_per_step),
        )
    )


def _slow_workers(measures: Measures) -> list[TraceVerdict]:
    """Ranks that others wait for, by what keeps them; and ranks with a stall that a slower rank hides."""
    if measures.step_count < MIN_STEPS:
        return []
    # Stages of a pipeline differ by design in what they load: only the peers of a stage are compared, by their collectives.
    stalls = measure_data_loading(measures.spans, measures.steps) if measures.bubble is None else []
    loading = {each.rank: each for each in stalls}
    compute = {each.rank: each for each in measure_compute(measures.spans, measures.steps)}
    late = {
        each.rank: each for each in measures.slack if each.low_ns is not None and each.low_ns / 1e9 > measures.least_s
    }
    found = []
    for slack in late.values():
        stall = loading.get(slack.rank)
        if stall is not None and stall.low_s * 1e9 > MAIN_SHARE * slack.slack_ns:
            found.append(_input_stall(stall, slack.slack_ns / 1e9, is_hidden=False))
        else:
            found.append(_slow_worker(measures, slack, compute.get(slack.rank)))
    hidden = [each for each in loading.values() if each.rank not in late and each.low_s > measures.least_s]
    return found + [_input_stall(each, each.mean_s, is_hidden=True) for each in hidden]


def _slow_worker(measures: Measures, slack: Slack, compute: Excess | None) -> TraceVerdict:
    slack_s = slack.slack_ns / 1e9
    words = f"Rank {slack.rank} comes last and makes the others wait {slack_s * 1e3:,.1f} ms per step"
    evidence: dict[str, float | str] = {
        "slack_s": slack_s,
        "slack_low_s": (slack.low_ns or 0.0) / 1e9,
        "slack_high_s": (slack.high_ns or 0.0) / 1e9,
        "last_times": float(slack.last_times),
    }
    if compute is not None and compute.low_s > MAIN_SHARE * slack_s:
        evidence |= {"compute_s": compute.own_s, "peers_compute_s": compute.peers_s}
        words += f": its device works {compute.mean_s * 1e3:,.1f} ms more than its peers'"
        extra = find_extra_work(measures.spans, slack.rank, measures.step_count)
        if extra is not None and extra[1] > MAIN_SHARE * compute.mean_s:
            evidence |= {"extra_work": extra[0], "extra_work_s": extra[1]}
            words += f", mostly in “{extra[0]}” ({extra[1] * 1e3:,.1f} ms)"
    return TraceVerdict(
        kind=VerdictKind.SLOW_WORKER,
        rank=slack.rank,
        seconds_per_step=slack_s,
        sentence=f"{words}.",
        evidence=evidence,
    )


def _input_stall(stall: Excess, seconds: float, *, is_hidden: bool) -> TraceVerdict:
    words = (
        f"Rank {stall.rank} waits for its input {stall.own_s * 1e3:,.1f} ms per step, "
        f"its peers {stall.peers_s * 1e3:,.1f} ms"
    )
    return TraceVerdict(
        kind=VerdictKind.INPUT_STALL,
        rank=stall.rank,
        seconds_per_step=seconds,
        sentence=f"{words}; a slower rank hides it now." if is_hidden else f"{words}, and the others wait for it.",
        is_hidden=is_hidden,
        evidence={"data_loading_s": stall.own_s, "peers_data_loading_s": stall.peers_s},
    )


def _stage_imbalance(measures: Measures) -> list[TraceVerdict]:
    bubble = measures.bubble
    if bubble is None:
        return []
    mean_s = sum(bubble.stage_compute_s) / bubble.stages
    stage = max(range(bubble.stages), key=lambda each: bubble.stage_compute_s[each])
    imbalance = bubble.stage_compute_s[stage] / mean_s - 1
    gain_s = bubble.resimulated_s - bubble.balanced_s
    if imbalance < MIN_IMBALANCE or gain_s < measures.least_s:
        return []
    return [
        TraceVerdict(
            kind=VerdictKind.STAGE_IMBALANCE,
            stage=stage,
            rank=next((facts.rank for facts in measures.ranks if facts.stage == stage), None),
            seconds_per_step=gain_s,
            sentence=(
                f"Stage {stage} works {imbalance:.0%} longer than the mean of the stages; "
                f"balanced stages would save {gain_s * 1e3:,.1f} ms per step."
            ),
            evidence={
                "stage_compute_s": bubble.stage_compute_s[stage],
                "mean_stage_compute_s": mean_s,
                "imbalance_ratio": imbalance,
                "bubble_ratio": bubble.measured,
                "bubble_imbalance_ratio": bubble.imbalance,
            },
        )
    ]


def _from_stragglers(measures: Measures, answer: StragglerAnswer) -> list[TraceVerdict]:
    """The what-if answers name the worker or the stage; a worker that explains the slowdown also explains its stage."""
    if answer.slowdown < MIN_SLOWDOWN or answer.worker_share is None or answer.last_stage_share is None:
        return []
    evidence: dict[str, float | str] = {
        "slowdown_ratio": answer.slowdown,
        "worker_share_ratio": answer.worker_share,
        "last_stage_share_ratio": answer.last_stage_share,
    }
    if answer.worker_share >= MAIN_SHARE:
        stage, parallel = answer.worst_workers[0]
        rank = next(
            facts.rank for facts in measures.ranks if (facts.stage, facts.data_parallel_rank) == (stage, parallel)
        )
        gain_s = answer.without_delay_s - answer.without_worker_s
        words = f"Rank {rank} is slow: with it as fast as the others a step would be {gain_s:,.2f} s shorter"
        share = answer.worker_share
        kind, at_stage, at_rank = VerdictKind.SLOW_WORKER, stage, rank
    else:
        at_stage = max(range(len(answer.stage_slowdown)), key=lambda each: answer.stage_slowdown[each])
        if at_stage != len(answer.stage_slowdown) - 1 or answer.last_stage_share < MAIN_SHARE:
            return []
        gain_s = answer.without_delay_s - answer.without_last_stage_s
        words = f"The last stage ({at_stage}) does more than the others: alike, a step would be {gain_s:,.2f} s shorter"
        share = answer.last_stage_share
        kind, at_rank = VerdictKind.STAGE_IMBALANCE, -1
    if gain_s < measures.least_s:
        return []
    return [
        TraceVerdict(
            kind=kind,
            rank=at_rank if at_rank >= 0 else None,
            stage=at_stage,
            seconds_per_step=gain_s,
            sentence=f"{words}, {share:.0%} of what stragglers cost (S = {answer.slowdown:.3f}).",
            evidence=evidence,
        )
    ]
