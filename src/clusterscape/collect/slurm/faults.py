"""Turns what Slurm says when it fails into a SourceError with a plain message and what to do about it."""

import json
import re
from collections.abc import Mapping

import orjson

from clusterscape.collect.slurm.values import as_list, as_object, read_int, read_text
from clusterscape.errors import SourceError

# (what the text must match, what to do), the first match wins.
_HINTS: tuple[tuple[str, str], ...] = (
    (
        r"munge",
        "munged does not answer here: start it (`systemctl start munge`); every host needs the same /etc/munge/munge.key "
        "and the same time.",
    ),
    (
        r"unrecognized option|invalid option",
        'This Slurm\'s commands know no --json (it came with 21.08): use newer commands, or slurmrestd with mode = "rest".',
    ),
    (
        r"json plugin|serializer",
        "Slurm's JSON plugin (serializer_json.so) is missing: install the package that brings it on this host.",
    ),
    (
        r"storage is disabled|not configured with slurmdbd",
        "This cluster keeps no accounting: set AccountingStorageType=accounting_storage/slurmdbd in slurm.conf, or "
        "collect.slurm.history_days = 0 to do without.",
    ),
    (
        r"slurmdbd|database|persistent connection",
        "slurmdbd does not answer: check `systemctl status slurmdbd` on its host and `sacctmgr show cluster` from here.",
    ),
    (
        r"protocol authentication|authentication (error|fail)|invalid (auth|token)|unauthorized|\b1007\b|\b401\b",
        "slurmrestd did not accept the credentials, or the token has expired: make a new one with `scontrol token "
        "username=USER lifespan=SECONDS` and set collect.slurm.user and collect.slurm.token.",
    ),
    (
        r"access.*denied|permission denied|not authorized|user not found",
        "The user of ClusterScape may not see this: give it `sacctmgr modify user NAME set adminlevel=operator`, or relax "
        "PrivateData in slurm.conf.",
    ),
    (
        r"configuration source|slurm\.conf|fetch_config|dns srv",
        "The commands find no slurm.conf: set collect.slurm.conf to its path.",
    ),
    (
        r"incompatible version|protocol_version|protocol version",
        "The commands are of another Slurm release than slurmctld: install matching ones.",
    ),
    (
        r"unable to contact|connect failure|connection refused|unspecified error|socket timed out|zero bytes|no route|resolve"
        r"|unable to load|load_ctl_conf",
        "slurmctld does not answer: check `scontrol ping`, and `systemctl status slurmctld` and its log on the controller.",
    ),
)
MAX_SAID_CHARS = 300
_PREFIX = re.compile(r"^\w+: (error|fatal): ")
_NOTHING_FOUND = re.compile(r"nothing found|empty result|found nothing", re.IGNORECASE)


def too_large(asked: str, most_bytes: int) -> SourceError:
    """The error for an answer that is larger than the settings allow."""
    return SourceError(
        f"{asked}: the answer has more than {most_bytes // 2**20:,} MiB",
        hint="Look for jobs with long comments or names, or raise limits.sources.answer_bytes.",
    )


def explain(asked: str, text: str) -> SourceError:
    """The error for what ``asked`` answered with; ``text`` is its last words."""
    lines = [_PREFIX.sub("", line.strip())[:MAX_SAID_CHARS] for line in text.splitlines() if line.strip()]
    for pattern, hint in _HINTS:
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return SourceError(f"{asked}: {line}", hint=hint)
    said = lines[-1] if lines else "it said nothing"
    return SourceError(f"{asked}: {said}", hint=f"Try `{asked}` by hand as the user that runs ClusterScape.")


def read_answer(data: bytes, *, asked: str, key: str, aside: str = "") -> dict[str, object]:
    """The JSON answer with its list ``key``; raises SourceError where there is none.

    Slurm may answer with success, errors inside and an empty list: without this check a dead slurmctld would look like an
    empty queue. ``aside`` is what came on standard error.
    """
    document = as_object(_parse_json(data, asked, aside))
    errors = _error_texts(document)
    if errors and not as_list(document.get(key)):
        if all(_NOTHING_FOUND.search(error) for error in errors):
            return {**document, key: [], "errors": []}
        raise explain(asked, "\n".join([aside, *errors]))
    if not isinstance(document.get(key), list):
        raise SourceError(
            f"{asked}: the answer has no list of {key}", hint="ClusterScape reads API versions 0.0.37 to 0.0.45."
        )
    return document


def _parse_json(data: bytes, asked: str, aside: str) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        # Slurm prints NaN, and job names in whatever encoding the user typed.
        return json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        text = aside or data[:500].decode("utf-8", "replace")
        raise explain(asked, f"{text}\nthe answer is not JSON" if not data.strip() else text) from None


def _error_texts(document: Mapping[str, object]) -> list[str]:
    texts = []
    for error in map(as_object, as_list(document.get("errors"))):
        parts = [read_text(error.get("description")), read_text(error.get("error"))]
        number = read_int(error.get("error_number", error.get("errno")))
        words = ": ".join(part for part in parts if part) or "an unnamed error"
        texts.append(f"{words} ({number})" if number else words)
    return texts


def version_of(document: Mapping[str, object]) -> str | None:
    """Slurm's release, such as ``24.05.3``, as an answer states it."""
    meta = as_object(document.get("meta"))
    return read_text(as_object(meta.get("slurm", meta.get("Slurm"))).get("release"))
