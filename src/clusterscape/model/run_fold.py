"""Applies the events of a run to its stored record. Pure.

Counts are limited here: the first items are kept, and ``left_out`` counts the rest. The server applies the limits of its
settings; readers of local files have no limits.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from clusterscape.model.hangs import is_consistent, write_plain
from clusterscape.model.run_events import (
    Ended,
    EnvironmentDescribed,
    ExceptionNoted,
    HangEnded,
    HangFound,
    HangLooked,
    LeftoversFound,
    ListenerReported,
    Marked,
    MomentReached,
    ParamsSet,
    ProcessNamed,
    RanksFound,
    RunDescribed,
    RunEvent,
    SamplesDropped,
    Scalar,
    SeriesNamed,
    TagsSet,
)
from clusterscape.model.runs import RunAbout, RunEnd, RunHang, RunInstance, RunListener, RunMark, RunRanks, StoredRun

NAME_CHARS = 1000
PATH_CHARS = 4096
TEXT_CHARS = 8000
METRIC_CHARS = 256
MOST_EXCEPTIONS = 20
MOST_LISTENERS = 64
MOST_HANGS = 20
MOST_LOOKED_RANKS = 256
MOST_LOOKED_CALLS = 128
MOST_LOOKED_FRAMES = 256
MOST_LOOKED_GROUPS = 512
MOST_LOOKED_COMMUNICATORS = 2048
MOST_LOOKED_NOTES = 256
MOST_COUNT = 2**53
_EPOCH = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")


class FoldLimits(Struct, frozen=True, kw_only=True):
    """Limits on what is stored of a run, from the setting ``limits.runs``; by default none."""

    params: int = 2**62
    param_chars: int = 2**62
    text_chars: int = 2**62
    marks: int = 2**62
    devices: int = 2**62


def fold_event(event: RunEvent, run: StoredRun, limits: FoldLimits) -> None:
    """Apply one event to ``run``. ``series`` and ``process`` events belong to a file, and its reader applies them."""
    summary, detail = run.summary, run.detail
    match event:
        case RunDescribed():
            _describe(event, run, limits)
        case MomentReached(moment=moment, at=at):
            # The first report counts: the run holds its units from then on.
            if getattr(summary.moments, moment) is None:
                setattr(summary.moments, moment, at)
        case Ended():
            # The first report counts, unless another process made it for a killed tracker.
            if summary.end.state is None or (summary.end.is_closing and not event.is_closing):
                summary.end = _end_of(event)
                summary.moments.ended = event.at
        case ParamsSet():
            _put_texts(event.params, summary.params, "params", run, limits)
        case TagsSet():
            _put_texts(event.tags, summary.tags, "tags", run, limits)
        case Marked():
            _mark(event, run, limits)
        case ListenerReported():
            if event.listener in detail.listeners or len(detail.listeners) < MOST_LISTENERS:
                detail.listeners[event.listener] = _listener_of(event)
            else:
                leave_out(run, "listeners")
        case EnvironmentDescribed():
            fields = msgspec.to_builtins(event)
            detail.environment = {key: fields[key] for key in fields if key != "event" and fields[key] is not None}
        case ExceptionNoted():
            detail.exceptions = [*detail.exceptions[1 - MOST_EXCEPTIONS :], _cut(event.text, TEXT_CHARS)]
        case HangFound():
            detail.hangs = [*detail.hangs[1 - MOST_HANGS :], _hang_of(event)]
        case RanksFound():
            ranks = summary.ranks = summary.ranks or RunRanks()
            ranks.job, ranks.slurm_job, ranks.world_size = event.job, event.slurm_job, event.world_size
            detail.ranks = sorted(set(event.ranks))
        case HangLooked():
            _keep_look(event, run)
        case HangEnded():
            if summary.ranks is not None:
                summary.ranks.went_on_at = event.at
            if detail.hangs and detail.hangs[-1].ended_at is None:
                detail.hangs = [*detail.hangs[:-1], dataclasses.replace(detail.hangs[-1], ended_at=event.at)]
        case LeftoversFound():
            detail.leftovers = min(MOST_COUNT, detail.leftovers + event.count)
        case SamplesDropped():
            summary.dropped = min(MOST_COUNT, summary.dropped + event.samples)
        case SeriesNamed() | ProcessNamed():
            pass


def leave_out(run: StoredRun, what: str, count: int = 1) -> None:
    """Count items that were not stored."""
    if count:
        left_out = run.detail.left_out
        left_out[what] = min(MOST_COUNT, left_out.get(what, 0) + count)


def _describe(event: RunDescribed, run: StoredRun, limits: FoldLimits) -> None:
    about = RunAbout(
        run=event.run,
        name=_cut(event.name, NAME_CHARS),
        experiment=_cut(event.experiment, NAME_CHARS),
        workload=_cut(event.workload, NAME_CHARS),
        letter=_cut(event.letter, NAME_CHARS),
        user=event.user,
        host=event.host,
        pid=event.pid,
        command=[],
        cwd=_cut(event.cwd, PATH_CHARS),
        devices=(event.devices or [])[: limits.devices],
        collocation=_cut(event.collocation, NAME_CHARS),
        profiler=_cut(event.profiler, NAME_CHARS),
        mig=[
            RunInstance(gpu=part.gpu, instance=part.instance, profile=part.profile, uuid=part.uuid)
            for part in (event.mig or [])[: limits.devices]
        ],
        queued_at=event.queued_at,
        listeners=[word[:NAME_CHARS] for word in event.listeners or ()],
    )
    for devices in (event.devices, event.mig):
        leave_out(run, "devices", len((devices or [])[limits.devices :]))
    run.summary.about = about
    command = event.command or []
    about.command = list(_take_words(command, limits.text_chars - _count_chars(run)))
    leave_out(run, "command words", len(command) - len(about.command))
    _put_texts(event.params or {}, run.summary.params, "params", run, limits)


def _take_words(words: Iterable[str], chars: int) -> Iterable[str]:
    for word in words:
        chars -= len(word)
        if chars < 0:
            return
        yield word


def _put_texts(
    words: Mapping[str, Scalar], target: dict[str, str], what: str, run: StoredRun, limits: FoldLimits
) -> None:
    """Store params or tags up to the limits of their number and total length."""
    room = limits.text_chars - _count_chars(run)
    for key, value in words.items():
        text = str(value)
        if len(text) > limits.param_chars:
            text = f"{text[: limits.param_chars]}…"
        added_chars = len(key) + len(text) - (len(key) + len(target[key]) if key in target else 0)
        is_over_limit = key not in target and len(target) >= limits.params
        if len(key) > METRIC_CHARS or is_over_limit or added_chars > room:
            leave_out(run, what)
            continue
        target[key] = text
        room -= added_chars


def _count_chars(run: StoredRun) -> int:
    """Total length of params, tags and the command."""
    params, tags, command = run.summary.params, run.summary.tags, run.summary.about.command
    return sum(map(len, (*params, *params.values(), *tags, *tags.values(), *(command or ()))))


def _mark(event: Marked, run: StoredRun, limits: FoldLimits) -> None:
    is_unnumbered = event.kind == "epoch" and _EPOCH.fullmatch(event.name) is None
    if is_unnumbered or len(event.name) > METRIC_CHARS or len(run.detail.marks) >= limits.marks:
        leave_out(run, "marks")
    else:
        run.detail.marks.append(RunMark(kind=event.kind, name=event.name, at=event.at))


def _end_of(event: Ended) -> RunEnd:
    return RunEnd(
        state=event.state,
        cause=_cut(event.cause, TEXT_CHARS),
        exit_code=event.exit_code,
        exit_signal=event.exit_signal,
        at=event.at,
        is_closing=event.is_closing,
    )


def _keep_look(event: HangLooked, run: StoredRun) -> None:
    """Keep the newest two looks, within what a tracker sends of one machine."""
    look = event.look
    is_odd = (
        len(look.ranks) > MOST_LOOKED_RANKS
        or len(look.communicators) > MOST_LOOKED_COMMUNICATORS
        or len(look.notes) > MOST_LOOKED_NOTES
        or not is_consistent(look)
    )
    if is_odd or any(
        len(about.calls) > MOST_LOOKED_CALLS
        or len(about.groups) > MOST_LOOKED_GROUPS
        or sum(len(stack.frames) for stack in about.stacks) > MOST_LOOKED_FRAMES
        or sum(1 + len(helper.frames) for helper in (about.process.helpers if about.process else ()))
        > MOST_LOOKED_FRAMES
        for about in look.ranks.values()
    ):
        leave_out(run, "looks")
        return
    run.detail.looks = [*run.detail.looks[: event.number - 1], write_plain(look)]
    ranks = run.summary.ranks = run.summary.ranks or RunRanks()
    if not ranks.is_stalled:
        ranks.stalled_at = event.at
    ranks.looked_at = event.at


def _hang_of(event: HangFound) -> RunHang:
    return RunHang(
        kind=event.kind,
        title=event.title[:NAME_CHARS],
        reason=_cut(event.reason, TEXT_CHARS),
        ranks=event.ranks,
        place=_cut(event.place, NAME_CHARS),
        group=_cut(event.group, NAME_CHARS),
        collective=_cut(event.collective, NAME_CHARS),
        sequence=event.sequence,
        since=event.since,
        at=event.at,
        certainty=event.certainty,
        evidence=[text[:NAME_CHARS] for text in event.evidence],
        advice=_cut(event.advice, NAME_CHARS),
    )


def _listener_of(event: ListenerReported) -> RunListener:
    return RunListener(
        listener=event.listener,
        state=event.state,
        message=_cut(event.message, NAME_CHARS),
        at=event.at,
        ticks=event.ticks,
        missed=event.missed,
    )


def _cut(text: str | None, chars: int) -> str | None:
    return text if text is None or len(text) <= chars else f"{text[:chars]}…"
