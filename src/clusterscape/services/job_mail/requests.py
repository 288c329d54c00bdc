"""Parses what Slurm says of a job when it calls the MailProg: the subject, the address and the environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from clusterscape.model import UnixMs

MAX_BYTES = 64 * 1024
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}(?:@[A-Za-z0-9.-]{1,190})?")
_JOB = re.compile(r"Job_id=(\d{1,12})(?:_(\d{1,9}|\*|\[[^\]]*\]))?(?:\+(\d{1,9}))?")
_KINDS = ("Began", "Ended", "Failed", "Requeued", "Invalid dependency", "Staged Out")
_KIND = re.compile(r" (Began|Ended|Failed|Requeued|Invalid dependency|Staged Out|Reached[^,]*time limit)(?=,|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MailRequest:
    """One call of the MailProg. ``job``: the id as Slurm prints it; None: the subject names none.

    ``array``: the number of the array, if the mail is the summary of all its tasks.
    """

    key: str
    at: UnixMs
    address: str
    subject: str
    user: str | None
    job: str | None
    array: str | None
    kind: str

    @property
    def is_end(self) -> bool:
        """Whether the job has ended."""
        return self.kind in ("Ended", "Failed")


def parse_request(key: str, data: bytes) -> MailRequest | None:
    """The request of a spooled file; None if it is incomplete, or the address is none."""
    if len(data) > MAX_BYTES or not data.endswith(b"\n"):
        return None
    try:
        document = orjson.loads(data)
        address, subject, at = str(document["address"]), str(document["subject"]), UnixMs(int(document["at"]))
        variables = {str(name): str(value) for name, value in document["variables"].items()}
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        return None
    if _ADDRESS.fullmatch(address) is None:
        return None
    subject = " ".join(subject.split())[:500]
    job, array = _find_job(subject)
    return MailRequest(
        key=key,
        at=at,
        address=address,
        subject=subject,
        user=variables.get("SLURM_JOB_USER"),
        job=job,
        array=array,
        kind=_find_kind(subject, variables),
    )


def _find_job(subject: str) -> tuple[str | None, str | None]:
    match = _JOB.search(subject)
    if match is None:
        return None, None
    number, task, component = match.groups()
    if task is not None and not task.isdigit():
        return number, number
    suffix = f"_{task}" if task is not None else f"+{component}" if component is not None else ""
    return f"{number}{suffix}", None


def _find_kind(subject: str, variables: Mapping[str, str]) -> str:
    """The type of the mail; of the words in the subject the last, since users choose the name of the job before it."""
    kind = variables.get("SLURM_JOB_MAIL_TYPE", "")
    if kind in _KINDS or kind.startswith("Reached"):
        return kind
    words: list[str] = _KIND.findall(subject)
    return words[-1] if words else ""
