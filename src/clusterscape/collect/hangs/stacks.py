"""Reads stacks of ``py-spy dump --json`` and of faulthandler."""

import re
from typing import Any

from clusterscape.model.hangs import StackFrame, ThreadStack

MAX_FRAMES = 200
MAX_THREADS = 1_000
_THREAD = re.compile(r"^(Current thread|Thread) (0x[0-9a-f]+)(?: \[(.*)\])? \(most recent call first\):")
_FRAME = re.compile(r'^ {2}File "(.*)", line (\d{1,18}|\?\?\?) in (.*)$')


def is_pyspy_document(document: object) -> bool:
    """Whether a JSON document is an answer of ``py-spy dump --json``."""
    return bool(
        isinstance(document, list)
        and document
        and all(isinstance(thread, dict) and isinstance(thread.get("frames"), list) for thread in document)
        and "thread_id" in document[0]
    )


def read_pyspy(document: list[dict[str, Any]]) -> tuple[tuple[ThreadStack, ...], int | None]:
    """The threads, main thread first, and the id of their process."""
    pids = [thread.get("pid") for thread in document if isinstance(thread.get("pid"), int)]
    threads = [_pyspy_thread(thread) for thread in document[:MAX_THREADS]]
    threads.sort(key=lambda thread: not thread.is_main)
    return tuple(threads), pids[0] if pids else None


def _pyspy_thread(thread: dict[str, Any]) -> ThreadStack:
    frames = [frame for frame in thread["frames"][:MAX_FRAMES] if isinstance(frame, dict)]
    name = thread.get("thread_name")
    owns = thread.get("owns_gil")
    return ThreadStack(
        tuple(
            StackFrame(
                str(frame.get("name", ""))[:200],
                str(frame.get("filename", ""))[:1000],
                frame["line"] if isinstance(frame.get("line"), int) and frame["line"] > 0 else None,
            )
            for frame in frames
        ),
        name=str(name)[:100] if name else None,
        owns_gil=owns if isinstance(owns, bool) else None,
        is_main=name == "MainThread" if name else None,
    )


def is_faulthandler_text(text: str) -> bool:
    """Whether faulthandler wrote it."""
    return any(_THREAD.match(line) for line in text[:200_000].splitlines())


def parse_faulthandler(text: str) -> tuple[ThreadStack, ...]:
    """The last dump in a text that may hold several, main thread first: it handles signals, and is the oldest."""
    threads: dict[str, tuple[bool, str | None, list[StackFrame]]] = {}
    frames: list[StackFrame] | None = None
    for line in text.splitlines():
        if head := _THREAD.match(line):
            frames = []
            threads.pop(head[2], None)  # of an earlier dump
            threads[head[2]] = (head[1] == "Current thread", head[3], frames)
        elif frames is not None and (match := _FRAME.match(line)):
            if len(frames) < MAX_FRAMES:
                is_number = match[2].isdecimal() and len(match[2]) < 10
                frames.append(StackFrame(match[3][:200], match[1][:1000], int(match[2]) if is_number else None))
        elif not line.strip():
            frames = None
    # A thread without Python frames only writes the dump.
    stacks = [
        ThreadStack(tuple(frames_of_thread), name=name, is_main=is_current)
        for is_current, name, frames_of_thread in threads.values()
        if frames_of_thread
    ][-MAX_THREADS:]
    if stacks and not any(stack.is_main for stack in stacks):
        stacks[-1] = ThreadStack(stacks[-1].frames, stacks[-1].name, None, True)
    return tuple(sorted(stacks, key=lambda stack: not stack.is_main))
