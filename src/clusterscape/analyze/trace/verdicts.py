"""Why the step is slow: root causes in words, ranked by the time that fixing each would save, with the spans that show it.
There may be none.

Causes smaller than the alignment error or 1% of the step are not reported, nor a slow rank that is not statistically significant.
"""

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from clusterscape.analyze.trace.match import MIN_STEPS, Matches, Slack
from clusterscape.analyze.trace.measures import (
    Excess,
    TraceMeasures,
    find_extra_work,
    measure_compute,
    measure_data_loading,
)
from clusterscape.analyze.trace.run_wide import find_run_wide
from clusterscape.analyze.trace.whatif import StragglerAnswer
from clusterscape.model.spans import Phase, SpanClass
from clusterscape.model.trace_report import TraceVerdict, VerdictKind

MAIN_SHARE = 0.5  # a delay is attributed to a cause that explains at least this share of it
MIN_IMBALANCE = 0.05
MIN_SLOWDOWN = 1.05  # S below which the published analysis calls a job healthy


def find_verdicts(measures: TraceMeasures) -> tuple[TraceVerdict, ...]:
    """All verdicts: those of one rank or stage first, of these the currently hidden ones last; then run-wide ones."""
    if measures.stragglers is not None:
        located = _from_stragglers(measures, measures.stragglers)
    else:
        located = [*_slow_workers(measures), *_stage_imbalance(measures)]
    verdicts = [*located, *find_run_wide(measures)]
    return tuple(
        sorted(
            verdicts,
            key=lambda verdict: (
                verdict.rank is None and verdict.stage is None,
                verdict.is_hidden,
                -verdict.seconds_per_step,
            ),
        )
    )


def _slow_workers(measures: TraceMeasures) -> list[TraceVerdict]:
    """Ranks that others wait for, with the cause; and ranks with an input stall that a slower rank hides."""
    if measures.step_count < MIN_STEPS:
        return []
    # Pipeline stages load different data by design: within a pipeline, ranks are compared only by the collectives of their stage.
    stalls = measure_data_loading(measures.spans, measures.steps) if measures.bubble is None else []
    loading = {stall.rank: stall for stall in stalls}
    compute = {excess.rank: excess for excess in measure_compute(measures.spans, measures.steps)}
    late = {
        slack.rank: slack
        for slack in measures.slack
        if slack.low_ns is not None and slack.low_ns / 1e9 > measures.min_gain_s
    }
    verdicts = []
    for slack in late.values():
        stall = loading.get(slack.rank)
        if stall is not None and stall.low_s * 1e9 > MAIN_SHARE * slack.slack_ns:
            verdicts.append(_input_stall(stall, slack.slack_ns / 1e9, is_hidden=False))
        else:
            verdicts.append(_slow_worker(measures, slack, compute.get(slack.rank)))
    hidden = [stall for stall in loading.values() if stall.rank not in late and stall.low_s > measures.min_gain_s]
    return verdicts + [_input_stall(stall, stall.mean_s, is_hidden=True) for stall in hidden]


def _slow_worker(measures: TraceMeasures, slack: Slack, compute: Excess | None) -> TraceVerdict:
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


def _stage_imbalance(measures: TraceMeasures) -> list[TraceVerdict]:
    bubble = measures.bubble
    if bubble is None:
        return []
    mean_s = sum(bubble.stage_compute_s) / bubble.stages
    stage = max(range(bubble.stages), key=lambda number: bubble.stage_compute_s[number])
    imbalance = bubble.stage_compute_s[stage] / mean_s - 1
    gain_s = bubble.resimulated_s - bubble.balanced_s
    if imbalance < MIN_IMBALANCE or gain_s < measures.min_gain_s:
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


MAX_SPANS = 6
LENGTH = pl.col("end_ns") - pl.col("start_ns")


def attach_spans(verdict: TraceVerdict, measures: TraceMeasures, matches: Matches) -> TraceVerdict:
    """The verdict with the rows of the spans that show it, the clearest first."""
    table = measures.spans.with_row_index("span")
    if verdict.rank is not None:
        table = table.filter(pl.col("rank") == verdict.rank)
    elif verdict.stage is not None:
        table = table.filter(pl.col("stage") == verdict.stage)
    spans = _SPAN_FINDERS[verdict.kind](verdict, table, measures, matches)
    return replace(verdict, spans=tuple(dict.fromkeys(spans[:MAX_SPANS])))


def _longest(table: pl.DataFrame) -> list[int]:
    return [int(span) for span in table.sort(LENGTH, descending=True)["span"].head(MAX_SPANS)]


def _find_late(verdict: TraceVerdict, table: pl.DataFrame, measures: TraceMeasures, matches: Matches) -> list[int]:
    """The extra work of the rank, then the collectives for which it arrived latest."""
    extra = verdict.evidence.get("extra_work")
    work: list[int] = []
    if extra is not None:
        inside = pl.col("namespace").cast(pl.String).str.starts_with(str(extra)).fill_null(False)
        is_mark = (pl.col("span_class") == SpanClass.ANNOTATION.value) & (pl.col("name").cast(pl.String) == str(extra))
        marks = table.filter(is_mark & ~pl.col("is_device"))
        work = _longest(marks if marks.height else table.filter(inside))[: MAX_SPANS // 2]
    if not measures.collectives.height:
        return work or _longest(table.filter(pl.col("span_class") == SpanClass.COMPUTE.value))
    last = (
        measures.collectives.filter(pl.col("last_rank") == verdict.rank).sort("gap_ns", descending=True).head(MAX_SPANS)
    )
    members = matches.members.filter(pl.col("rank") == verdict.rank).select("instance", "span")
    arrivals = last.select("instance").join(members, on="instance", maintain_order="left")["span"].to_list()
    return [*work, *(int(span) for span in arrivals)]


def _find_loading(_: TraceVerdict, table: pl.DataFrame, __: TraceMeasures, ___: Matches) -> list[int]:
    is_mark = (pl.col("span_class") == SpanClass.ANNOTATION.value) & (pl.col("phase") == Phase.DATA.value)
    return _longest(table.filter(is_mark & ~pl.col("is_device")))


def _find_pass_spans(_: TraceVerdict, table: pl.DataFrame, __: TraceMeasures, ___: Matches) -> list[int]:
    """The longest annotated forwards and backwards; else the longest compute spans."""
    in_pass = pl.col("phase").cast(pl.String).is_in(["forward", "backward"]) & pl.col("micro_batch").is_not_null()
    is_message = pl.col("name").cast(pl.String).str.contains("(?i)send|recv")
    in_passes = table.filter(in_pass & ~is_message)
    marks = in_passes.filter((pl.col("span_class") == SpanClass.ANNOTATION.value) & ~pl.col("is_device"))
    return _longest(marks if marks.height else table.filter(pl.col("span_class") == SpanClass.COMPUTE.value))


def _find_launches(_: TraceVerdict, table: pl.DataFrame, __: TraceMeasures, ___: Matches) -> list[int]:
    return _longest(table.filter(pl.col("span_class") == SpanClass.LAUNCH.value))


def _find_transfers(verdict: TraceVerdict, table: pl.DataFrame, measures: TraceMeasures, matches: Matches) -> list[int]:
    """Members of the collectives with the longest transfer: of the verdict's process group, or small ones."""
    chosen = measures.collectives
    group = verdict.evidence.get("process_group")
    if group is not None:
        chosen = chosen.filter(pl.col("process_group") == group)
    if verdict.kind is VerdictKind.SMALL_COLLECTIVES:
        chosen = chosen.filter(pl.col("bytes") < pl.col("bytes").quantile(0.5).fill_null(0) + 1)
    if not chosen.height:
        return _longest(table.filter(pl.col("span_class") == SpanClass.COMMUNICATION.value))
    worst = chosen.sort("transfer_ns", descending=True).head(MAX_SPANS).select("instance")
    members = matches.members.sort("rank").unique("instance", keep="first", maintain_order=True)
    return [
        int(s) for s in worst.join(members.select("instance", "span"), on="instance", maintain_order="left")["span"]
    ]


def _find_garbage_collection(_: TraceVerdict, table: pl.DataFrame, __: TraceMeasures, ___: Matches) -> list[int]:
    name = pl.col("name").cast(pl.String)
    return _longest(table.filter((name == "gc") | name.str.contains("(?i)garbage|gc\\.collect")))


_SPAN_FINDERS: dict[VerdictKind, Callable[[TraceVerdict, pl.DataFrame, TraceMeasures, Matches], list[int]]] = {
    VerdictKind.SLOW_WORKER: _find_late,
    VerdictKind.INPUT_STALL: _find_loading,
    VerdictKind.STAGE_IMBALANCE: _find_pass_spans,
    VerdictKind.SEQUENCE_LENGTH_VARIANCE: _find_pass_spans,
    VerdictKind.LAUNCH_BOUND: _find_launches,
    VerdictKind.SLOW_LINK: _find_transfers,
    VerdictKind.SMALL_COLLECTIVES: _find_transfers,
    VerdictKind.EXPOSED_COMMUNICATION: _find_transfers,
    VerdictKind.GARBAGE_COLLECTION: _find_garbage_collection,
}
