"""What a job is called: its workload ids (arrays, heterogeneous jobs), its experiment and its tags."""

import re
from collections.abc import Iterable, Mapping

import orjson

from clusterscape.model import WorkloadId

MAX_ARRAY_TASKS = 4096
"""Waiting tasks of one array that become workloads of their own; a larger array stays one workload until its tasks start."""

MAX_TAG_CHARS = 200
MAX_NOTE_TAGS = 16

_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_EXTENSION = re.compile(r"\.(sh|py|sbatch|slurm|bash|job)$", re.IGNORECASE)
_NUMBER = re.compile(r"[-_. ](?:seed|run|trial|fold|rep|job|task)?[-_=]?\d+$", re.IGNORECASE)


def workload_id(native: str) -> WorkloadId:
    """``slurm:4711``, ``slurm:4711_3`` (array task), ``slurm:4711+1`` (component of a heterogeneous job)."""
    return WorkloadId(f"slurm:{native}")


def expand_tasks(text: str) -> list[int] | None:
    """Task numbers of ``1,3,5-9:2%4`` or of the bit mask ``0x38``; None where cut short, malformed or too many."""
    text = text.split("%")[0].strip().strip("[]")
    if text.startswith("0x"):
        return _expand_mask(text[2:])
    tasks: list[int] = []
    for piece in text.split(","):
        match = _TASKS.fullmatch(piece.strip())
        if match is None:
            return None
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step == 0 or (last - first) // step + 1 > MAX_ARRAY_TASKS - len(tasks):
            return None
        tasks.extend(range(first, last + 1, step))
    return tasks


def _expand_mask(digits: str) -> list[int] | None:
    if not re.fullmatch(r"[0-9A-Fa-f]{1,4096}", digits, re.ASCII):
        return None
    mask = int(digits, 16)
    if mask.bit_count() > MAX_ARRAY_TASKS:
        return None
    return [task for task in range(mask.bit_length()) if mask >> task & 1]


def experiment_of(name: str | None, wckey: str | None, notes: Mapping[str, str]) -> str | None:
    """The WCKey, else ``experiment`` of a JSON comment, else the job name without extension and trailing numbers."""
    if wckey and wckey.lstrip("*"):
        return wckey.lstrip("*")
    if notes.get("experiment"):
        return notes["experiment"]
    return _stem(name) if name else None


def _stem(name: str) -> str:
    stem = _EXTENSION.sub("", name)
    while (shorter := _NUMBER.sub("", stem)) != stem and shorter:
        stem = shorter
    return stem


def read_notes(comments: Iterable[str | None]) -> dict[str, str]:
    """Plain values of comments that are JSON objects; a comment in words becomes ``comment``. Earlier ones win."""
    notes: dict[str, str] = {}
    for comment in comments:
        if comment:
            for key, value in _read_note(comment).items():
                if len(notes) < MAX_NOTE_TAGS:
                    notes.setdefault(key, value)
    return notes


def _read_note(comment: str) -> dict[str, str]:
    if comment.startswith("{"):
        try:
            parsed = orjson.loads(comment)
        except orjson.JSONDecodeError:
            parsed = None
        if isinstance(parsed, dict):
            return {key[:MAX_TAG_CHARS]: _short(value) for key, value in parsed.items() if _is_plain(value)}
    return {"comment": _short(comment)}


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool) and value != ""


def _short(value: object) -> str:
    return (value if isinstance(value, str) else orjson.dumps(value).decode())[:MAX_TAG_CHARS]
