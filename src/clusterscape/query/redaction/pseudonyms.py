"""Names that stand for people and projects: the same for the same name, without a way back but by the site's secret."""

import base64
import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Callable

from clusterscape.model import UnixMs
from clusterscape.store.records.contract import RecordStore

USER, PROJECT, EXPERIMENT = "user", "project", "experiment"
SITE_KIND, SECRET_KEY = "site", "pseudonym-secret"
CODE_LENGTH = 7
"""Letters of a code, five bits each: of 10,000 names two get the same one once in 700 sites."""

MOST_KEPT = 200_000
NAMES_MS = 600_000
"""People and projects that are named in texts are looked up in a list that is at most so old."""

_SCRUBBED = frozenset({USER, PROJECT})
_CODE = re.compile(rf"[a-z2-7]{{{CODE_LENGTH}}}")
_WORD = re.compile(r"\w(?:[\w.-]*\w)?")
_PART = re.compile(r"[^\W_]+")


class Pseudonyms:
    """Thread-safe. The secret is kept in the record store, so that names stay over restarts and are the same in all replicas."""

    def __init__(self, records: RecordStore, clock: Callable[[], UnixMs]) -> None:
        self._records = records
        self._clock = clock
        self._secret = _read_secret(records, clock)
        self._kept: dict[tuple[str, str], str] = {}
        self._real: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._named_at: int | None = None
        self._generation = 0
        self._lock = threading.Lock()
        self._naming = threading.Lock()

    def of(self, kind: str, name: str) -> str:
        """What stands for a name: ``user k3v9q2x``."""
        kept = self._kept.get((kind, name))
        if kept is not None:
            return kept
        made = f"{kind} {self.code(kind, name)}"
        with self._lock:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
                self._real.clear()
                self._named_at = None
            self._kept[kind, name] = made
            self._real[made] = name
            if kind in _SCRUBBED:
                self._names[name.casefold()] = made
                self._generation += 1
        return made

    def of_missing(self, kind: str, name: str | None) -> str | None:
        """The same, where there may be no name."""
        return None if name is None else self.of(kind, name)

    def code(self, *words: str) -> str:
        """A few letters and digits that stand for words."""
        digest = hmac.digest(self._secret, "\0".join(words).encode(), hashlib.sha256)
        return base64.b32encode(digest)[:CODE_LENGTH].decode().lower()

    def real(self, kind: str, pseudonym: str) -> str | None:
        """The name that a pseudonym stands for; None where it stands for none."""
        if not pseudonym.startswith(f"{kind} "):
            return None
        if pseudonym not in self._real:
            self._look_up_names()
        return self._real.get(pseudonym)

    def is_pseudonym(self, kind: str, text: str) -> bool:
        """Whether ``text`` looks like what stands for a name of this kind; schedulers allow no spaces in theirs."""
        return text.startswith(f"{kind} ") and _CODE.fullmatch(text, len(kind) + 1) is not None

    def refresh(self) -> int:
        """Look names up where that was long ago; returns a number that changes with the names that are replaced in texts."""
        self._look_up_names()
        return self._generation

    def scrub(self, text: str, keep: frozenset[str] = frozenset()) -> str:
        """``text`` with pseudonyms in place of users and projects, but for those in ``keep``."""
        self._look_up_names()

        def stand_in(match: re.Match[str]) -> str:
            word = match.group()
            return word if word in keep else self._names.get(word.casefold(), word)

        def stand_in_parts(match: re.Match[str]) -> str:
            whole = stand_in(match)
            return _PART.sub(stand_in, whole) if whole == match.group() and whole not in keep else whole

        return _WORD.sub(stand_in_parts, text)

    def _look_up_names(self) -> None:
        """Of everybody who ever had a workload; those whose names were redacted since are known at once."""
        with self._naming:
            now = self._clock()
            if self._named_at is not None and abs(now - self._named_at) < NAMES_MS:
                return
            history = self._records.workload_history()
            for kind in (PROJECT, USER):
                for name in history[kind].drop_nulls().unique():
                    self.of(kind, str(name))
            self._named_at = now


def _read_secret(records: RecordStore, clock: Callable[[], UnixMs]) -> bytes:
    if records.document(SITE_KIND, SECRET_KEY) is None:
        records.write_document(SITE_KIND, SECRET_KEY, {"secret": secrets.token_hex(32)}, at_ms=clock())
    kept = records.document(SITE_KIND, SECRET_KEY)  # read again: of replicas that start at once the last one's counts
    assert kept is not None, "a document that was written is there"
    return bytes.fromhex(str(kept.body["secret"]))
