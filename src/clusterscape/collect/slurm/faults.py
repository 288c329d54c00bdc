"""Converts Slurm's errors to a SourceError with a message and a hint."""

import json
import re
from collections.abc import Mapping

import orjson

from clusterscape.collect.slurm.values import as_list, as_object, read_int, read_text
from clusterscape.errors import SourceError

# (pattern of the error, hint); the first match is used.
_HINTS: tuple[tuple[str, str], ...] = (
    (
        r"munge",
        "munged does not respond on this host: start it (`systemctl start munge`); all hosts need the same "
        "/etc/munge/munge.key and synchronized clocks.",
    ),
    (
        r"unrecognized option|invalid option",
        'The commands of this Slurm are older than 20.11: use newer ones, or slurmrestd with mode = "rest".',
    ),
    (
        r"json plugin|serializer",
        "Slurm's JSON plugin (serializer_json.so) is missing: install its package on this host.",
    ),
    (
        r"storage is disabled|not configured with slurmdbd",
        "This cluster has no accounting: set AccountingStorageType=accounting_storage/slurmdbd in slurm.conf, or "
        "collect.slurm.history_days = 0 to disable it.",
    ),
    (
        r"slurmdbd|database|persistent connection",
        "slurmdbd does not respond: check `systemctl status slurmdbd` on its host and `sacctmgr show cluster` on this one.",
    ),
    (
        r"protocol authentication|authentication (error|fail)|invalid (auth|token)|unauthorized|\b1007\b|\b401\b",
        "slurmrestd rejected the credentials, or the token has expired: create a new one with `scontrol token "
        "username=USER lifespan=SECONDS` and set collect.slurm.user and collect.slurm.token.",
    ),
    (
        r"access.*denied|permission denied|not authorized|user not found",
        "The user of ClusterScape lacks permission: run `sacctmgr modify user NAME set adminlevel=operator`, or relax "
        "PrivateData in slurm.conf.",
    ),
    (
        r"configuration source|slurm\.conf|fetch_config|dns srv",
        "The commands cannot find slurm.conf: set collect.slurm.conf to its path.",
    ),
    (
        r"incompatible version|protocol_version|protocol version",
        "The commands and slurmctld are of different Slurm releases: install matching commands.",
    ),
    (
        r"unable to contact|connect failure|connection refused|unspecified error|socket timed out|zero bytes|no route|resolve"
        r"|unable to load|load_ctl_conf",
        "slurmctld does not respond: check `scontrol ping`, and `systemctl status slurmctld` and its log on the controller.",
    ),
)
MAX_ERROR_CHARS = 300
_PREFIX = re.compile(r"^\w+: (error|fatal): ")
_NOTHING_FOUND = re.compile(r"nothing found|empty result|found nothing", re.IGNORECASE)


def response_too_large(request: str, max_bytes: int) -> SourceError:
    """The error for a response that is larger than the settings allow."""
    return SourceError(
        f"{request}: the response has more than {max_bytes // 2**20:,} MiB",
        hint="Check for jobs with long comments or names, or raise limits.sources.response_bytes.",
    )


def explain(request: str, text: str) -> SourceError:
    """The error for a failed ``request`` (a command or a path); ``text`` is its error output."""
    lines = [_PREFIX.sub("", line.strip())[:MAX_ERROR_CHARS] for line in text.splitlines() if line.strip()]
    for pattern, hint in _HINTS:
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return SourceError(f"{request}: {line}", hint=hint)
    message = lines[-1] if lines else "failed without an error message"
    return SourceError(f"{request}: {message}", hint=f"Run `{request}` manually as the user that runs ClusterScape.")


def parse_response(data: bytes, *, request: str, key: str, stderr: str = "") -> dict[str, object]:
    """Parse a JSON response that must have the list ``key``. Raises SourceError if it has none.

    Slurm may report success with errors inside and an empty list: without this check a dead slurmctld would look like an
    empty queue.
    """
    document = as_object(_parse_json(data, request, stderr))
    errors = _error_texts(document)
    if errors and not as_list(document.get(key)):
        if all(_NOTHING_FOUND.search(error) for error in errors):
            return {**document, key: [], "errors": []}
        raise explain(request, "\n".join([stderr, *errors]))
    if not isinstance(document.get(key), list):
        raise SourceError(
            f"{request}: the response has no list of {key}", hint="ClusterScape supports API versions 0.0.37 to 0.0.45."
        )
    return document


def _parse_json(data: bytes, request: str, stderr: str) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        # Slurm prints NaN, and job names in the encoding that the user typed.
        return json.loads(data.decode("utf-8", "replace"))
    except RecursionError:
        raise SourceError(f"{request}: the response is nested too deeply", hint="It is not Slurm's.") from None
    except ValueError:
        text = stderr or data[:500].decode("utf-8", "replace")
        raise explain(request, f"{text}\nthe response is not JSON" if not data.strip() else text) from None


def _error_texts(document: Mapping[str, object]) -> list[str]:
    texts = []
    for error in map(as_object, as_list(document.get("errors"))):
        parts = [read_text(error.get("description")), read_text(error.get("error"))]
        number = read_int(error.get("error_number", error.get("errno")))
        message = ": ".join(part for part in parts if part) or "an unnamed error"
        texts.append(f"{message} ({number})" if number else message)
    return texts


def version_of(document: Mapping[str, object]) -> str | None:
    """The Slurm release in a response, such as ``24.05.3``."""
    meta = as_object(document.get("meta"))
    return read_text(as_object(meta.get("slurm", meta.get("Slurm"))).get("release"))
