"""The verdict on looks at a run: slow or hanging, the first cause among groups that wait for each other, and its class."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clusterscape.analyze.hang.stacks import (
    Occupation,
    find_occupation,
    fold_stacks,
    is_in_collective,
    is_in_network,
    main_stack,
    module_of,
    user_frame,
    write_frame,
)
from clusterscape.analyze.hang.stalls import Stall, breaks_pattern, find_stalls, order_stalls, run_ranks
from clusterscape.analyze.hang.wording import ADVICE, agree, name_ranks, write_group, write_title
from clusterscape.model.hangs import (
    Certainty,
    HangKind,
    HangLook,
    HangVerdict,
    RankLook,
    StackFrame,
    StalledGroup,
)

MOST_STALLED = 64
"""The most groups listed with a verdict, causes first."""
MOST_COMPARED = 64
"""Of groups that wait for each other, the most ranks whose calls are compared with their own past."""
LONGEST_WORK_MS = 600_000
"""The time-out of NCCL's collectives, unless a script sets another one."""
GPU_BACKENDS = ("nccl", "rccl", "xccl", "ncclx", "hccl", "mccl")


@dataclass(frozen=True, slots=True)
class _Cause:
    """What a verdict says of its ranks."""

    kind: HangKind
    ranks: frozenset[int]
    reason: str
    certainty: Certainty
    stall: Stall | None = None
    occupation: Occupation | None = None
    frame: StackFrame | None = None
    evidence: tuple[str, ...] = ()
    alternatives: tuple[HangKind, ...] = ()
    does_wait: bool = True
    """Whether another rank waits for these."""


def judge_hang(looks: Sequence[HangLook]) -> HangVerdict:
    """The verdict on one look, or on the last two of several, the oldest first. Grows with ranks × kept calls.

    One look cannot tell a hang from a slow rank unless NCCL reports that a call timed out: then the verdict is less sure.
    """
    now, before = looks[-1], looks[-2] if len(looks) > 1 else None
    stalls = find_stalls(now)
    roots, circle = order_stalls(stalls)
    cause = _find_slow(now, before, roots) if before is not None else None
    if cause is None:
        cause = _find_cause(now, before, stalls, roots, circle)
        if before is None and not _has_timed_out(now):
            cause = _less_sure(cause)
        cause = _admit_work(_admit_slow(cause, now), now)
    return _verdict(cause, now, stalls, has_two_looks=before is not None)


def _verdict(cause: _Cause, now: HangLook, stalls: Sequence[Stall], *, has_two_looks: bool) -> HangVerdict:
    stall = cause.stall
    world = now.world_size or max((len(stall.members) for stall in stalls), default=0) or len(now.ranks) or None
    is_on_gpus = bool(now.communicators) or any(look.backend in GPU_BACKENDS for look in now.ranks.values())
    frame = cause.frame or (cause.occupation.frame if cause.occupation else None)
    notes = list(now.notes)
    if not has_two_looks and cause.kind is not HangKind.SLOW and not _has_timed_out(now):
        notes.append("One look cannot tell a hang from a slow rank: take a second look two steps later.")
    return HangVerdict(
        kind=cause.kind,
        title=_title_of(cause, stall),
        reason=cause.reason[:1].upper() + cause.reason[1:],
        ranks=tuple(sorted(cause.ranks)),
        world_size=world,
        group=stall.group if stall else None,
        group_description=stall.description if stall else None,
        collective=stall.operation if stall else None,
        sequence=stall.sequence if stall else None,
        doing=cause.occupation.phrase if cause.occupation else None,
        place=write_frame(frame) if frame else None,
        module=module_of(frame) if frame else None,
        since_ms=stall.since_ns // 1_000_000 if stall and stall.since_ns else None,
        held_gpus=world if is_on_gpus else None,
        certainty=cause.certainty,
        evidence=cause.evidence,
        advice=ADVICE[cause.kind],
        stalled=_list_stalled(stalls, stall),
        stacks=fold_stacks(now.ranks),
        notes=tuple(notes),
        alternatives=cause.alternatives,
    )


def _title_of(cause: _Cause, stall: Stall | None) -> str:
    title = write_title(cause.kind, sorted(cause.ranks), cause.occupation, stall)
    does_work = cause.occupation is not None and cause.occupation.progress is not None
    return f"{title}, and may only be slow" if does_work and HangKind.SLOW in cause.alternatives else title


def _admit_work(cause: _Cause, now: HangLook) -> _Cause:
    """A rank that works is slow, until the others have waited longer than collectives usually may."""
    progress = cause.occupation.progress if cause.occupation else None
    if progress is None or not cause.does_wait or cause.kind in (HangKind.SLOW, HangKind.UNKNOWN):
        return cause
    since_ms = cause.stall.since_ns // 1_000_000 if cause.stall and cause.stall.since_ns else None
    is_late = since_ms is not None and now.taken_ms is not None and now.taken_ms - since_ms > LONGEST_WORK_MS
    if progress.is_sure and not is_late:
        return replace(cause, kind=HangKind.SLOW, certainty=Certainty.LIKELY)
    if is_late and not progress.is_sure:
        return _less_sure(cause)
    return replace(cause, certainty=Certainty.POSSIBLE, alternatives=(HangKind.SLOW,))


def _list_stalled(stalls: Sequence[Stall], first: Stall | None) -> tuple[StalledGroup, ...]:
    ordered = sorted(stalls, key=lambda stall: (stall is not first, bool(stall.victim_of), stall.since_ns or 2**63))
    ordered = ordered[:MOST_STALLED]
    places = {id(stall): place for place, stall in enumerate(ordered)}
    return tuple(
        StalledGroup(
            group=stall.group,
            description=stall.description,
            sequence=stall.sequence,
            collective=stall.operation,
            waiting=tuple(sorted(stall.waiting - stall.laggards)),
            missing=tuple(sorted(stall.laggards or stall.missing)),
            is_victim=bool(stall.victim_of),
            waits_for=tuple(sorted(places[id(other)] for other in stall.victim_of if id(other) in places)),
            since_ms=stall.since_ns // 1_000_000 if stall.since_ns else None,
        )
        for stall in ordered
    )


def _has_timed_out(look: HangLook) -> bool:
    return any(call.is_timed_out for about in look.ranks.values() for call in about.calls)


def _admit_slow(cause: _Cause, now: HangLook) -> _Cause:
    """RAS as text does not list communicators that agree: a rank that advanced there looks still, and may only be slow."""
    is_blind = any(communicator.is_of_text for communicator in now.communicators)
    if not is_blind or cause.kind is not HangKind.ABSENT or cause.stall is None or cause.stall.source != "RAS":
        return cause
    return replace(cause, certainty=Certainty.POSSIBLE, alternatives=(HangKind.SLOW,))


def _less_sure(cause: _Cause) -> _Cause:
    return replace(cause, certainty=Certainty.LIKELY) if cause.certainty is Certainty.CERTAIN else cause


def _find_slow(now: HangLook, before: HangLook, roots: Sequence[Stall]) -> _Cause | None:
    """A cause if the numbers advanced between the looks: those of the ranks that the others wait for, if there are such.

    Ranks that wait may have advanced until they had to wait, so their numbers tell nothing.
    """
    late = roots[0].laggards | roots[0].missing if roots else frozenset[int]()
    were_stalled = {stall.key for stall in find_stalls(before)}
    is_same = bool(roots) and roots[0].key in were_stalled
    advanced = _find_advance(now, before, late if is_same else frozenset())
    if advanced is None and roots and not is_same and roots[0].source == "RAS" and before.communicators:
        advanced = f"communicator {roots[0].group} did not wait for this operation in the first look"
    if advanced is None or (is_same and not late and roots[0].source == "recorder"):
        return None
    earlier, _ = order_stalls(find_stalls(before))
    then = earlier[0].laggards if earlier else frozenset[int]()
    slow = (roots[0].laggards & then) if roots else then
    return _Cause(
        HangKind.SLOW,
        slow,
        f"{advanced[0].upper()}{advanced[1:]}, so the run makes progress.",
        Certainty.CERTAIN,
        roots[0] if roots else None,
        frame=_frame_of(now, min(slow)) if slow else None,
        evidence=(advanced,),
    )


def _find_advance(now: HangLook, before: HangLook, ranks: frozenset[int]) -> str | None:
    """Which number advanced, of ``ranks`` or, if there are none, of any: completed calls, or launched operations."""
    for rank, look in now.ranks.items():
        then = before.ranks.get(rank)
        if then is None or (ranks and rank not in ranks):
            continue
        for name, progress in look.groups.items():
            earlier = then.groups.get(name)
            if earlier is not None and (progress.completed or 0) > (earlier.completed or 0):
                return (
                    f"rank {rank} completed number {progress.completed} of group {name} after {earlier.completed or 0}"
                )
    launched = {communicator.name: communicator for communicator in before.communicators}
    places = run_ranks(now.communicators)
    for communicator in now.communicators:
        old = launched.get(communicator.name)
        for rank, counts in communicator.counts.items() if old else ():
            number = places[communicator.name].get(rank, rank)
            then_counts = old.counts.get(rank) if old else None
            if then_counts is None or (ranks and number not in ranks):
                continue
            count, then_count = sum(counts.values()), sum(then_counts.values())
            if count > then_count:
                return f"rank {number} launched {count:,} operations of communicator {communicator.name} after {then_count:,}"
    return None


def _find_cause(
    now: HangLook, before: HangLook | None, stalls: Sequence[Stall], roots: Sequence[Stall], circle: Sequence[Stall]
) -> _Cause:
    if circle:
        apart = _find_apart(circle, now)
        return _judge_absent(apart, now, before) if apart is not None else _judge_circle(circle, now)
    if not roots:
        return _judge_stacks(now, before)
    root = roots[0]
    if root.odd:
        return _judge_mismatch(root, now)
    ended = _find_ended(stalls, now)
    if ended is not None:
        return ended
    if root.absent and not _all_wait_inside(root, now):
        return _judge_absent(root, now, before)
    if root.missing:
        return _judge_missing(root, now, before)
    if root.unstarted:
        return _judge_unstarted(root, now, before)
    return _judge_complete(root, now, before)


def _find_apart(circle: Sequence[Stall], now: HangLook) -> Stall | None:
    """By RAS, a stall of a circle with only those late ranks that are in no collective; None if there are none.

    Hosts run ahead by different numbers of calls, so that RAS sees circles where there are none.
    """
    for stall in circle:
        late = frozenset(
            rank
            for rank in stall.absent
            if (stack := main_stack(now.ranks.get(rank))) is not None and not is_in_collective(stack)
        )
        occupations = _occupations(late, now, None)
        late = frozenset(rank for rank, occupation in occupations.items() if occupation.kind is not HangKind.KERNEL)
        if stall.source == "RAS" and late:
            apart = Stall(**{name: getattr(stall, name) for name in Stall.__slots__})
            apart.absent = late
            return apart
    return None


def _all_wait_inside(root: Stall, now: HangLook) -> bool:
    """Whether all ranks with fewer launches wait in a collective themselves: hosts run ahead by different numbers of calls.

    Only RAS counts launches of a communicator without saying which one a rank is in.
    """
    stacks = [main_stack(now.ranks.get(rank)) for rank in root.absent]
    return root.source == "RAS" and all(stack is not None and is_in_collective(stack) for stack in stacks)


def _find_ended(stalls: Sequence[Stall], now: HangLook) -> _Cause | None:
    """Ranks whose process has ended, or that RAS considers dead."""
    dead: dict[int, str] = {}
    for rank, look in now.ranks.items():
        occupation = find_occupation(look, None, None)
        if occupation is not None and occupation.kind is HangKind.DEAD:
            dead[rank] = occupation.phrase
    for stall in stalls:
        for rank in stall.dead:
            dead.setdefault(rank, "is dead, by NCCL RAS")
    concerned = [stall for stall in stalls if stall.members & dead.keys()]
    if not concerned:
        return None
    first = min(concerned, key=lambda stall: (bool(stall.victim_of), stall.since_ns or 2**63))
    named = frozenset(dead) & first.members
    phrases = sorted({dead[rank] for rank in named})
    occupation = Occupation(HangKind.DEAD, phrases[0], _frame_of(now, min(named)), is_decisive=True)
    return _Cause(
        HangKind.DEAD,
        named,
        f"{name_ranks(sorted(named))} {agree(phrases[0], len(named))}; {_waiting_sentence(first)}",
        Certainty.CERTAIN,
        first,
        occupation,
        evidence=tuple(f"rank {rank} {dead[rank]}" for rank in sorted(named)[:8]),
    )


def _frame_of(look: HangLook, rank: int) -> StackFrame | None:
    about = look.ranks.get(rank)
    stack = main_stack(about)
    if stack is not None:
        return user_frame(stack.frames)
    calls = about.calls if about else ()
    return user_frame(calls[-1].frames) if calls and calls[-1].frames else None


def _waiting_sentence(stall: Stall) -> str:
    waiting = stall.waiting - stall.laggards
    who = name_ranks(sorted(waiting)) if waiting else "the others"
    return f"{who} {'waits' if len(waiting) == 1 else 'wait'} in {write_group(stall)}."


def _judge_mismatch(root: Stall, now: HangLook) -> _Cause:
    rank = min(root.odd)
    calls = root.calls.get(rank, ())
    frame = user_frame(calls[0].frames) if calls and calls[0].frames else _frame_of(now, rank)
    return _Cause(
        HangKind.MISMATCH,
        root.odd,
        f"In {write_group(root)}, {root.mismatch}.",
        Certainty.CERTAIN if len(root.odd) < len(root.members) and root.source == "recorder" else Certainty.LIKELY,
        root,
        frame=frame,
        evidence=(f"number {root.sequence} of group {root.group}: {root.mismatch}",),
    )


def _judge_circle(circle: Sequence[Stall], now: HangLook) -> _Cause:
    """Groups that wait for each other: ranks call collectives of different groups in different orders."""
    involved = frozenset(rank for stall in circle for rank in stall.laggards)
    looks = {rank: now.ranks[rank] for rank in sorted(involved)[:MOST_COMPARED] if rank in now.ranks}
    unexpected = {rank for rank, look in looks.items() if breaks_pattern(look)}
    if unexpected == looks.keys():
        unexpected = set()
    sides = sorted((stall.waiting - stall.laggards for stall in circle), key=len)
    is_minority = len(sides) > 1 and 0 < len(sides[0]) < len(sides[1])
    odd = frozenset(unexpected) or (sides[0] if is_minority else involved)
    stall = next((stall for stall in circle if odd & (stall.waiting - stall.laggards)), circle[0])
    rank = min(odd)
    calls = stall.calls.get(rank, ())
    places = [f"{name_ranks(sorted(stall.waiting - stall.laggards))} in {write_group(stall)}" for stall in circle[:4]]
    return _Cause(
        HangKind.MISMATCH,
        odd,
        f"Groups wait for each other: {'; '.join(places)}. Ranks call them in different orders.",
        Certainty.CERTAIN if len(odd) < len(involved | odd) and stall.source == "recorder" else Certainty.LIKELY,
        stall,
        frame=user_frame(calls[0].frames) if calls and calls[0].frames else _frame_of(now, rank),
        evidence=tuple(places),
    )


def _elapsed_s(now: HangLook, before: HangLook | None) -> float | None:
    if before is None or now.taken_ms is None or before.taken_ms is None:
        return None
    return (now.taken_ms - before.taken_ms) / 1000


def _occupations(ranks: frozenset[int], now: HangLook, before: HangLook | None) -> Mapping[int, Occupation]:
    elapsed_s = _elapsed_s(now, before)
    occupations = {
        rank: find_occupation(now.ranks.get(rank), before.ranks.get(rank) if before else None, elapsed_s)
        for rank in ranks
    }
    return {rank: occupation for rank, occupation in occupations.items() if occupation is not None}


def _judge_absent(root: Stall, now: HangLook, before: HangLook | None) -> _Cause:
    occupations = _occupations(root.absent, now, before)
    evidence = [_progress_sentence(root)]
    if not occupations:
        rank = min(root.absent)
        last = _last_call(now.ranks.get(rank))
        return _Cause(
            HangKind.ABSENT,
            root.absent,
            f"{name_ranks(sorted(root.absent))} did not call {write_group(root)}, and no stack "
            f"tells what {'it does' if len(root.absent) == 1 else 'they do'} instead.",
            Certainty.LIKELY,
            root,
            frame=user_frame(last) if last else None,
            evidence=tuple(evidence),
        )
    idle = {rank: occupation for rank, occupation in occupations.items() if occupation.progress is None}
    if idle and len(occupations) == len(root.absent):
        occupations = idle
    kinds = [occupation.kind for occupation in occupations.values()]
    kind = max(set(kinds), key=lambda kind: (kinds.count(kind), kind is not HangKind.ABSENT))
    if kind is HangKind.KERNEL:
        evidence.append("its GPU has not finished what was queued before the collective")
    named = frozenset(rank for rank, occupation in occupations.items() if occupation.kind is kind)
    occupation = occupations[min(named)]
    if occupation.evidence:
        evidence.append(f"rank {min(named)}: {occupation.evidence}")
    ranks = root.absent if len(occupations) < len(root.absent) else named
    return _Cause(
        kind,
        ranks,
        f"{name_ranks(sorted(ranks))} {agree(occupation.phrase, len(ranks))} and did not call {write_group(root)}; "
        f"{_waiting_sentence(root)}",
        # RAS as text does not list communicators that agree: another one may have advanced.
        Certainty.CERTAIN if occupation.is_decisive and root.source == "recorder" else Certainty.LIKELY,
        root,
        occupation,
        evidence=tuple(evidence),
    )


def _last_call(look: RankLook | None) -> tuple[StackFrame, ...]:
    return look.calls[-1].frames if look and look.calls else ()


def _progress_sentence(root: Stall) -> str:
    if root.source == "RAS":
        return f"RAS: {name_ranks(sorted(root.absent))} launched fewer operations than the other ranks of {root.group}"
    absent = name_ranks(sorted(root.laggards))
    others = f"{len(root.waiting)} {'rank waits' if len(root.waiting) == 1 else 'ranks wait'} in it"
    return f"recorder: {absent} did not reach number {root.sequence} of group {root.group}, {others}"


def _judge_missing(root: Stall, now: HangLook, before: HangLook | None) -> _Cause:
    """Members without a dump: alive by other sources, unresponsive, or unknown."""
    occupations = _occupations(root.missing, now, before)
    if occupations:
        alive = frozenset(occupations)
        stall = Stall(**{name: getattr(root, name) for name in Stall.__slots__})
        stall.absent = alive
        return _judge_absent(stall, now, before)
    if now.is_partial:
        named = name_ranks(sorted(root.missing))
        return _Cause(
            HangKind.UNKNOWN,
            frozenset(),
            f"{_waiting_sentence(root)[:-1]} for {named}, on machines that nobody has looked at.",
            Certainty.POSSIBLE,
            root,
            evidence=(_progress_of_partial(root),),
        )
    source = "does not answer NCCL RAS" if root.source == "RAS" else "left no dump"
    plural = source if len(root.missing) == 1 else source.replace("does not", "do not")
    return _Cause(
        HangKind.DEAD,
        root.missing,
        f"{name_ranks(sorted(root.missing))} {plural}, and {_waiting_sentence(root)}",
        Certainty.LIKELY if len(root.missing) < len(root.members) else Certainty.POSSIBLE,
        root,
        evidence=(f"{name_ranks(sorted(root.missing))} {plural}",),
    )


def _progress_of_partial(root: Stall) -> str:
    return f"{len(root.waiting)} ranks of this machine wait in {write_group(root)}"


def _judge_unstarted(root: Stall, now: HangLook, before: HangLook | None) -> _Cause:
    occupations = _occupations(root.unstarted, now, before)
    occupation = occupations.get(min(root.unstarted))
    is_waiting = occupation is not None and occupation.kind is HangKind.KERNEL
    calls = root.calls.get(min(root.unstarted), ())
    frame = (
        occupation.frame
        if occupation and is_waiting
        else (user_frame(calls[0].frames) if calls and calls[0].frames else None)
    )
    plural = "has" if len(root.unstarted) == 1 else "have"
    return _Cause(
        HangKind.KERNEL,
        root.unstarted,
        f"{name_ranks(sorted(root.unstarted))} {plural} queued {write_group(root)}, but the GPU has not started it; on the "
        f"others it runs and waits.",
        Certainty.CERTAIN if is_waiting and occupation and occupation.is_decisive else Certainty.LIKELY,
        root,
        occupation if is_waiting else None,
        frame,
        (f"recorder: scheduled on {name_ranks(sorted(root.unstarted))}, started on the others",)
        + ((occupation.evidence,) if occupation and is_waiting and occupation.evidence else ()),
    )


def _judge_complete(root: Stall, now: HangLook, before: HangLook | None) -> _Cause:
    """All ranks are in the same call."""
    stopped = {
        rank: occupation
        for rank, occupation in _occupations(root.members, now, before).items()
        if occupation.is_decisive and (occupation.kind is HangKind.STORAGE or "stopped" in occupation.phrase)
    }
    if stopped:
        occupation = stopped[min(stopped)]
        return _Cause(
            occupation.kind,
            frozenset(stopped),
            f"{name_ranks(sorted(stopped))} {agree(occupation.phrase, len(stopped))}; all ranks are in {write_group(root)}.",
            Certainty.CERTAIN,
            root,
            occupation,
            evidence=(occupation.evidence or occupation.phrase,),
        )
    if root.source == "RAS":
        if elsewhere := _find_elsewhere(now):
            return _judge_elsewhere(elsewhere, now, root)
        spinning = _find_synchronizing(now)
        if spinning:
            return _Cause(
                HangKind.KERNEL,
                spinning,
                f"All ranks launched the same operations; {name_ranks(sorted(spinning))} "
                f"{'waits' if len(spinning) == 1 else 'wait'} for the GPU outside a collective.",
                Certainty.POSSIBLE,
                root,
                _occupations(spinning, now, before).get(min(spinning)),
                evidence=("RAS: all launched the same number of operations", "stacks: a synchronizing call"),
                alternatives=(HangKind.LINK, HangKind.MISMATCH),
            )
    is_sure = root.is_started and root.waiting == root.members
    pair = root.members if len(root.members) == 2 else frozenset[int]()
    return _Cause(
        HangKind.LINK,
        pair,
        f"All ranks of the group are in {write_group(root)} with equal shapes, and it does not end.",
        Certainty.LIKELY if is_sure else Certainty.POSSIBLE,
        root,
        evidence=(
            f"recorder: {len(root.waiting)} of {len(root.members)} ranks have started number {root.sequence}"
            if root.is_started
            else "no rank is missing and all calls are alike",
        ),
        # RAS counts launches: it sees neither sizes nor what a GPU has started.
        alternatives=(HangKind.KERNEL, HangKind.MISMATCH) if root.source == "RAS" else (),
    )


def _find_elsewhere(now: HangLook) -> frozenset[int]:
    """Ranks that wait for their GPU or a collective at another line than most; all of two that differ.

    Only for ranks that launched the same: in lockstep they are at the same line.
    """
    places: dict[int, tuple[object, ...]] = {}
    for rank, look in now.ranks.items():
        stack = main_stack(look)
        occupation = find_occupation(look, None, None)
        is_synchronizing = occupation is not None and occupation.kind is HangKind.KERNEL
        if stack is None or not (is_in_collective(stack) or is_synchronizing):
            return frozenset()
        frame = user_frame(stack.frames)
        places[rank] = (
            is_synchronizing,
            stack.frames[0].function,
            frame.file if frame else "",
            frame.line if frame else 0,
        )
    counts = Counter(places.values()).most_common(2)
    if len(counts) < 2:
        return frozenset()
    (usual, most), (_, second) = counts
    if most == second:
        return frozenset(places) if len(places) == 2 else frozenset()
    odd = frozenset(rank for rank, place in places.items() if place != usual)
    return odd if len(odd) < most else frozenset()


def _judge_elsewhere(ranks: frozenset[int], now: HangLook, root: Stall | None) -> _Cause:
    """Ranks that wait at another line than most, with nothing else that tells them apart."""
    looks = {rank: now.ranks[rank] for rank in sorted(ranks)}
    synchronizing = {
        rank: occupation
        for rank, look in looks.items()
        if (occupation := find_occupation(look, None, None)) is not None and occupation.kind is HangKind.KERNEL
    }
    if 0 < len(synchronizing) < len(ranks):
        ranks = frozenset(synchronizing)
    occupation = synchronizing.get(min(ranks))
    is_kernel = occupation is not None and len(ranks) < len(now.ranks)
    if not is_kernel and _is_whole_group(ranks, now):
        return _Cause(
            HangKind.LINK,
            ranks,
            f"{name_ranks(sorted(ranks))} wait in a collective of their own group, and all launched the same.",
            Certainty.POSSIBLE,
            root,
            frame=_frame_of(now, min(ranks)),
            evidence=("RAS and stacks: all ranks of one group wait at one line, the others at another",),
            alternatives=(HangKind.KERNEL, HangKind.MISMATCH),
        )
    frame = _frame_of(now, min(ranks))
    what = "GPU" if is_kernel else "collective"
    return _Cause(
        HangKind.KERNEL if is_kernel else HangKind.MISMATCH,
        ranks,
        f"{name_ranks(sorted(ranks))} {agree('waits', len(ranks))} for {'its' if len(ranks) == 1 else 'their'} {what} at "
        f"another line than the other ranks.",
        Certainty.POSSIBLE,
        root,
        occupation if is_kernel else None,
        frame,
        evidence=("stacks: all ranks wait, these at another line",),
        alternatives=(HangKind.LINK, HangKind.MISMATCH if is_kernel else HangKind.KERNEL),
    )


def _is_whole_group(ranks: frozenset[int], now: HangLook) -> bool:
    """Whether the ranks are all members of a smaller group, launched the same there, and wait at one line."""
    places = run_ranks(now.communicators)
    groups = [
        communicator
        for communicator in now.communicators
        if frozenset(places[communicator.name].values()) == ranks
        and len({tuple(sorted(counts.items())) for counts in communicator.counts.values()}) == 1
    ]
    lines = {stack.frames[:2] for rank in ranks if (stack := main_stack(now.ranks.get(rank))) is not None}
    return bool(groups) and len(lines) == 1 and len(ranks) < len(now.ranks)


def _find_synchronizing(now: HangLook) -> frozenset[int]:
    """Ranks that wait for their GPU, if they are fewer than the ranks in collectives."""
    by_rank = _occupations(frozenset(now.ranks), now, None)
    ranks = frozenset(rank for rank, occupation in by_rank.items() if occupation.kind is HangKind.KERNEL)
    inside = sum(is_in_collective(main_stack(look)) for look in now.ranks.values())
    return ranks if len(ranks) <= inside else frozenset()


def _judge_stacks(now: HangLook, before: HangLook | None) -> _Cause:
    """Without recorder and RAS: ranks in no collective are the cause."""
    observed = {rank: look for rank, look in now.ranks.items() if look.stacks or look.process}
    inside = frozenset(rank for rank, look in observed.items() if is_in_collective(main_stack(look)))
    outside = frozenset(observed) - inside
    occupations = _occupations(outside, now, before)
    if not occupations:
        if elsewhere := _find_elsewhere(now):
            return _judge_elsewhere(elsewhere, now, None)
        if inside:
            return _Cause(
                HangKind.LINK,
                frozenset(),
                "All ranks whose stacks are known are in a collective; without a recorder it is unknown in which.",
                Certainty.POSSIBLE,
                evidence=(f"stacks: {_count_ranks(len(inside))} in a collective",),
                alternatives=(HangKind.KERNEL, HangKind.MISMATCH),
            )
        return _Cause(
            HangKind.UNKNOWN,
            frozenset(),
            "No rank waits in a collective, as far as the files tell.",
            Certainty.POSSIBLE,
        )
    if (
        not inside
        and all(occupation.kind is HangKind.KERNEL for occupation in occupations.values())
        and len(outside) > 1
    ):
        if elsewhere := _find_elsewhere(now):
            return _judge_elsewhere(elsewhere, now, None)
        return _judge_gpus(outside)
    if not inside:
        return _judge_apart(occupations, now)
    idle = {rank: occupation for rank, occupation in occupations.items() if occupation.progress is None}
    occupations = idle or occupations
    dead = frozenset(rank for rank, occupation in occupations.items() if occupation.kind is HangKind.DEAD)
    kinds = [occupation.kind for occupation in occupations.values()]
    kind = HangKind.DEAD if dead else max(set(kinds), key=kinds.count)
    named = frozenset(rank for rank, occupation in occupations.items() if occupation.kind is kind)
    occupation = occupations[min(named)]
    others = f"; {name_ranks(sorted(inside))} {'waits' if len(inside) == 1 else 'wait'} in a collective."
    return _Cause(
        kind,
        named,
        f"{name_ranks(sorted(named))} {agree(occupation.phrase, len(named))}{others}",
        Certainty.LIKELY if occupation.is_decisive else Certainty.POSSIBLE,
        None,
        occupation,
        evidence=tuple(filter(None, (occupation.evidence, f"stacks: {_count_ranks(len(inside))} in a collective"))),
        alternatives=(HangKind.LINK, HangKind.MISMATCH) if kind is HangKind.KERNEL else (),
    )


def _judge_gpus(ranks: frozenset[int]) -> _Cause:
    """All ranks wait for their GPUs: most often inside a collective that was queued before."""
    return _Cause(
        HangKind.LINK,
        frozenset(),
        "All ranks wait for their GPUs at the same line; without a recorder it is unknown in which collective.",
        Certainty.POSSIBLE,
        evidence=(f"stacks: {_count_ranks(len(ranks))} in a synchronizing call",),
        alternatives=(HangKind.KERNEL, HangKind.MISMATCH),
    )


def _judge_apart(occupations: Mapping[int, Occupation], now: HangLook) -> _Cause:
    """No rank waits in a collective: only ranks that cannot go on by themselves hang, and only if none works.

    Ranks that have ended are not a cause then: a run may save its model on one rank, after the others have ended.
    """
    living = {
        rank: occupation
        for rank, occupation in occupations.items()
        if occupation.kind is not HangKind.DEAD or _has_failed(rank, now)
    }
    works = frozenset(rank for rank, occupation in living.items() if occupation.progress is not None)
    blocked = frozenset(
        rank
        for rank, occupation in living.items()
        if occupation.is_blocked or occupation.kind in (HangKind.DEAD, HangKind.KERNEL)
    )
    is_hang = bool(blocked) and not works and not any(is_in_network(now.ranks.get(rank)) for rank in living)
    candidates = blocked if is_hang else works or frozenset(living) or frozenset(occupations)
    kinds = [occupations[rank].kind for rank in candidates]
    kind = max(sorted(set(kinds)), key=kinds.count)
    named = frozenset(rank for rank in candidates if occupations[rank].kind is kind)
    occupation = occupations[min(named)]
    if not is_hang:
        kind = HangKind.SLOW if works else HangKind.UNKNOWN
    is_sure = occupation.is_decisive and len(occupations) == 1
    return _Cause(
        kind,
        named,
        f"{name_ranks(sorted(named))} {agree(occupation.phrase, len(named))}; no rank waits in a collective.",
        Certainty.LIKELY if is_sure or works else Certainty.POSSIBLE,
        None,
        occupation,
        evidence=tuple(filter(None, (occupation.evidence, "stacks: no rank is in a collective"))),
        alternatives=_alternatives_apart(kind, len(occupations)),
        does_wait=False,
    )


def _alternatives_apart(kind: HangKind, ranks: int) -> tuple[HangKind, ...]:
    if kind is not HangKind.KERNEL:
        return ()
    return (HangKind.SLOW,) if ranks == 1 else (HangKind.LINK, HangKind.MISMATCH)


def _has_failed(rank: int, now: HangLook) -> bool:
    """Whether the process did not end by itself."""
    process = now.ranks[rank].process
    return process is not None and (
        process.ran_out_of_memory or bool(process.exit_signal) or process.exit_code not in (None, 0)
    )


def _count_ranks(count: int) -> str:
    return f"{count:,} {'rank' if count == 1 else 'ranks'}"
