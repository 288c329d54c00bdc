"""What of a look is sent to a server: the newest calls, and stacks where they tell something."""

from dataclasses import replace

from clusterscape.model.hangs import CollectiveCall, HangLook, RankLook, ThreadStack

MOST_DONE = 40
MOST_PENDING = 64
MOST_FRAMES = 16
MOST_THREADS = 4
MOST_HELPERS = 12


def condense_look(look: HangLook) -> HangLook:
    """The look without most of its past. Idempotent."""
    return replace(look, ranks={rank: _condense(about) for rank, about in look.ranks.items()})


def _condense(about: RankLook) -> RankLook:
    pending = next((place for place, call in enumerate(about.calls) if not call.is_done), len(about.calls))
    kept = about.calls[max(0, pending - MOST_DONE) : pending + MOST_PENDING]
    has_frames = pending if pending < len(about.calls) else len(about.calls) - 1
    first = max(0, pending - MOST_DONE)
    main_first = sorted(about.stacks, key=lambda stack: (not stack.is_main, not stack.owns_gil))[:MOST_THREADS]
    process = about.process
    if process is not None:
        helpers = [replace(helper, frames=helper.frames[:MOST_FRAMES]) for helper in process.helpers[:MOST_HELPERS]]
        process = replace(process, helpers=tuple(helpers))
    return replace(
        about,
        files=(),
        process=process,
        calls=tuple(_shorten(call, has_frames=first + place == has_frames) for place, call in enumerate(kept)),
        stacks=tuple(ThreadStack(s.frames[:MOST_FRAMES], s.name, s.owns_gil, s.is_main) for s in main_first),
    )


def _shorten(call: CollectiveCall, *, has_frames: bool) -> CollectiveCall:
    return replace(call, frames=call.frames[:MOST_FRAMES] if has_frames else ())
