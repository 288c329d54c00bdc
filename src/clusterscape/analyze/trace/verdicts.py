"""Why the step is slow: root causes in words, ranked by the seconds that a re-simulation without each gives back. There may be
none.

Causes smaller than the alignment error or 1% of the step are not reported. ``causes.py`` decides what is beyond chance,
``savings.py`` what it costs, ``run_wide.py`` knows causes that the attribution of idle time does not show.
"""

import numpy as np

from clusterscape.analyze.trace.attribution import find_longest
from clusterscape.analyze.trace.cause_words import WORK_ADVICE, advise, name_verdict, write_sentence, write_when
from clusterscape.analyze.trace.causes import MAX_CHANCE, MIN_SHARE, describe_rhythm, measure_chance
from clusterscape.analyze.trace.match import MIN_STEPS, Slack
from clusterscape.analyze.trace.measures import TraceMeasures
from clusterscape.analyze.trace.run_wide import find_run_wide
from clusterscape.analyze.trace.savings import Saving, find_interval
from clusterscape.analyze.trace.whatif import StragglerAnswer
from clusterscape.model.arrays import Float64s
from clusterscape.model.trace_report import CauseOccurrences, TimeKind, TraceVerdict, VerdictKind

MAIN_SHARE = 0.5  # a delay is attributed to a cause that explains at least this share of it
MIN_IMBALANCE = 0.05
MIN_SLOWDOWN = 1.05  # S below which the published analysis calls a job healthy
MIN_SHARED = 0.03  # of the step: what all ranks spend on it, or work that differs
MORE_WORK = 0.1  # a rank that is late by nothing else is so because of its work
MAX_OCCURRENCES = 2000
LATE_ADVICE = "Record the host, shapes and Python stacks of this rank: the trace does not show why it is late."
BALANCE_ADVICE = "Move layers from this stage to the others."


def find_verdicts(measures: TraceMeasures) -> tuple[TraceVerdict, ...]:
    """All verdicts, the most expensive first; idle time of all ranks that the trace does not explain comes last."""
    if measures.stragglers is not None:
        verdicts = _from_stragglers(measures, measures.stragglers)
    else:
        verdicts = [*_from_savings(measures), *_stage_imbalance(measures)]
        verdicts += _late_ranks(measures, verdicts)
    verdicts += find_run_wide(measures)
    verdicts.sort(key=lambda verdict: (_is_unexplained(verdict), -verdict.seconds_per_step))
    # What a larger cause hides saves nothing yet, so it is never the first.
    first = next((at for at, verdict in enumerate(verdicts) if not verdict.is_hidden), 0)
    return (*verdicts[first : first + 1], *verdicts[:first], *verdicts[first + 1 :])


def _is_unexplained(verdict: TraceVerdict) -> bool:
    is_idle = verdict.rank is None and verdict.kind in (VerdictKind.HOST_PAUSE, VerdictKind.IDLE_DEVICE)
    return is_idle or "unhidden_s" in verdict.evidence


def _from_savings(measures: TraceMeasures) -> list[TraceVerdict]:
    verdicts = []
    for saving in measures.savings:
        is_located = saving.cause.rank is not None
        if measures.bubble is not None and not is_located and saving.cause.kind is TimeKind.IDLE:
            continue  # stages wait for one another by design
        # Durations on one clock: the alignment error does not matter.
        least_s = (MIN_SHARE if is_located else MIN_SHARED) * measures.step_s
        if saving.mean_s >= least_s:
            verdicts.append(_describe_saving(saving, measures))
    return verdicts


def _describe_saving(saving: Saving, measures: TraceMeasures) -> TraceVerdict:
    cause = saving.cause
    sentence, evidence = write_sentence(cause, measures.spans, measures.attribution)
    low_s, high_s = (None, None) if saving.is_hidden else find_interval(saving.seconds, measures.generator)
    if saving.joint_ranks:
        ranks = " and ".join(map(str, saving.joint_ranks))
        sentence += f"; rank {ranks} delays the same steps as much: only without both is a step shorter"
        evidence |= {"joint_ranks": ", ".join(map(str, saving.joint_ranks))}
    sentence += "; a larger cause hides it now." if saving.is_hidden else "."
    return TraceVerdict(
        kind=name_verdict(cause),
        rank=cause.rank,
        ranks=() if cause.rank is None else (cause.rank,),
        seconds_per_step=saving.mean_s,
        low_s=low_s,
        high_s=high_s,
        sentence=sentence,
        is_hidden=saving.is_hidden,
        evidence=evidence,
        rhythm=cause.rhythm,
        occurrences=_find_occurrences(saving, measures),
        advice=advise(cause),
    )


def _find_occurrences(saving: Saving, measures: TraceMeasures) -> CauseOccurrences:
    """Where the cause acts: the largest ``MAX_OCCURRENCES``, in the order of ranks and steps."""
    cause, attribution = saving.cause, measures.attribution
    seconds = cause.seconds
    at = np.argwhere(seconds > 0)
    at = at[np.argsort(-seconds[at[:, 0], at[:, 1]], kind="stable")[:MAX_OCCURRENCES]]
    at = at[np.lexsort((at[:, 1], at[:, 0]))]
    windows = {
        (rank, step): (start, end)
        for rank, step, start, end in measures.steps.select("rank", "step", "start_ns", "end_ns").iter_rows()
    }
    kind = TimeKind.COMPUTE if cause.kind is TimeKind.SLOWER_COMPUTE else cause.kind
    times = []
    for row, column in at:
        rank, step = attribution.ranks[row], attribution.steps[column]
        start, end = windows[rank, step]
        times += find_longest(attribution.times[rank, kind], [start], [end])
    return CauseOccurrences(
        ranks=[attribution.ranks[row] for row in at[:, 0]],
        steps=[attribution.steps[column] for column in at[:, 1]],
        seconds=[float(seconds[row, column]) for row, column in at],
        start_ns=[float(start - measures.origin_ns) for start, _ in times],
        end_ns=[float(end - measures.origin_ns) for _, end in times],
    )


def _late_ranks(measures: TraceMeasures, verdicts: list[TraceVerdict]) -> list[TraceVerdict]:
    """Ranks that others wait for although nothing in their own past explains it."""
    if measures.step_count < MIN_STEPS:
        return []
    explained: dict[int, float] = {}
    for verdict in verdicts:
        if verdict.rank is not None:
            explained[verdict.rank] = explained.get(verdict.rank, 0.0) + verdict.seconds_per_step
    if any(verdict.kind is VerdictKind.UNEVEN_WORK for verdict in verdicts):
        return []
    late = _find_lateness(measures)
    return [
        _describe_late(measures, slack, late)
        for slack in measures.slack
        if slack.low_ns is not None
        and slack.low_ns / 1e9 > measures.min_gain_s
        and (cost_s := _cost_of_lateness(measures, slack, late)) > measures.min_gain_s
        and explained.get(slack.rank, 0.0) < MAIN_SHARE * cost_s
        and _is_beyond_chance(measures, slack, late)
    ]


def _cost_of_lateness(measures: TraceMeasures, slack: Slack, late: Float64s) -> float:
    """What a step with the rank as fast as its peers is shorter, by the what-if, but at most the longest time that others wait
    for it in a step: a rank that is late to several collectives may be late once.
    """
    longest_s = float(late[measures.attribution.ranks.index(slack.rank)].mean())
    answers = (change for change in measures.changes if (change.kind, change.rank) == ("straggler", slack.rank))
    answer = next(answers, None)
    return longest_s if answer is None else min(longest_s, answer.now_s - answer.then_s)


def _find_lateness(measures: TraceMeasures) -> Float64s:
    """The longest time that others waited for each rank (rank, step), in seconds."""
    attribution = measures.attribution
    late = np.zeros((len(attribution.ranks), len(attribution.steps)))
    rows = {rank: at for at, rank in enumerate(attribution.ranks)}
    columns = {step: at for at, step in enumerate(attribution.steps)}
    for rank, step, gap_ns in measures.collectives.select("last_rank", "step", "gap_ns").iter_rows():
        if rank in rows and step in columns:
            at = rows[rank], columns[step]
            late[at] = max(late[at], gap_ns / 1e9)
    return late


def _is_beyond_chance(measures: TraceMeasures, slack: Slack, late: Float64s) -> bool:
    row = measures.attribution.ranks.index(slack.rank)
    chance = measure_chance(late, row, measures.generator, measures.min_gain_s)
    others = np.delete(late.sum(axis=1), row)
    return chance is not None and (chance <= MAX_CHANCE or late[row].sum() > 4 * others.max(initial=0.0))


def _describe_late(measures: TraceMeasures, slack: Slack, late: Float64s) -> TraceVerdict:
    row = measures.attribution.ranks.index(slack.rank)
    mine = late[row]
    rhythm = describe_rhythm(
        mine > measures.min_gain_s,
        mine,
        measures.attribution.steps,
        measure_chance(late, row, measures.generator, measures.min_gain_s),
    )
    when = write_when(rhythm, len(measures.attribution.steps))
    cost_s = _cost_of_lateness(measures, slack, late)
    more_work = _compare_work(measures, row)
    if more_work > MORE_WORK:
        return TraceVerdict(
            kind=VerdictKind.UNEVEN_WORK,
            rank=slack.rank,
            ranks=(slack.rank,),
            seconds_per_step=cost_s,
            sentence=(
                f"Rank {slack.rank} has {more_work:.0%} more work than its peers, because input shapes do: it comes last {when} "
                f"and makes the others wait {cost_s * 1e3:,.1f} ms per step."
            ),
            evidence={"slack_s": slack.slack_ns / 1e9, "more_work_ratio": more_work},
            rhythm=rhythm,
            advice=WORK_ADVICE,
        )
    return TraceVerdict(
        kind=VerdictKind.SLOW_WORKER,
        rank=slack.rank,
        ranks=(slack.rank,),
        seconds_per_step=cost_s,
        sentence=(
            f"Rank {slack.rank} comes last {when} and makes the others wait {cost_s * 1e3:,.1f} ms per step; "
            "the trace does not show why."
        ),
        evidence={"slack_s": slack.slack_ns / 1e9, "last_times": float(slack.last_times)},
        rhythm=rhythm,
        advice=LATE_ADVICE,
    )


def _compare_work(measures: TraceMeasures, row: int) -> float:
    """How much more FLOPs a rank has than its peers have at the median, as a ratio; 0 if shapes were not recorded."""
    if not measures.work.is_known:
        return 0.0
    means = np.nanmean(measures.work.flops, axis=1)
    peers = next(rows for rows in measures.groups if row in rows)
    others = means[peers[peers != row]]
    usual = float(np.median(others)) if others.size else 0.0
    return float(means[row]) / usual - 1 if usual else 0.0


def _stage_imbalance(measures: TraceMeasures) -> list[TraceVerdict]:
    """The stage with the most work, if the what-if about balanced stages says that balancing saves time."""
    bubble = measures.bubble
    if bubble is None:
        return []
    mean_s = sum(bubble.stage_compute_s) / bubble.stages
    stage = max(range(bubble.stages), key=lambda number: bubble.stage_compute_s[number])
    imbalance = bubble.stage_compute_s[stage] / mean_s - 1
    balanced = next((change for change in measures.changes if change.kind == "balance"), None)
    gain_s = bubble.resimulated_s - bubble.balanced_s if balanced is None else balanced.now_s - balanced.then_s
    if imbalance < MIN_IMBALANCE or gain_s < measures.min_gain_s:
        return []
    return [
        TraceVerdict(
            kind=VerdictKind.STAGE_IMBALANCE,
            stage=stage,
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
            advice=BALANCE_ADVICE,
        )
    ]


def _from_stragglers(measures: TraceMeasures, answer: StragglerAnswer) -> list[TraceVerdict]:
    """The worker or stage that the what-if analysis blames; a worker that explains the slowdown also explains its stage."""
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
        words = f"Rank {rank} is slow: if it were as fast as the others, a step would be {gain_s:,.2f} s shorter"
        share = answer.worker_share
        kind, at_stage, at_rank = VerdictKind.SLOW_WORKER, stage, rank
    else:
        at_stage = max(range(len(answer.stage_slowdown)), key=lambda number: answer.stage_slowdown[number])
        if at_stage != len(answer.stage_slowdown) - 1 or answer.last_stage_share < MAIN_SHARE:
            return []
        gain_s = answer.without_delay_s - answer.without_last_stage_s
        words = f"The last stage ({at_stage}) does more than the others: if balanced, a step would be {gain_s:,.2f} s shorter"
        share = answer.last_stage_share
        kind, at_rank = VerdictKind.STAGE_IMBALANCE, -1
    if gain_s < measures.min_gain_s:
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
