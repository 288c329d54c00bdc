"""Pseudonyms of users and projects, stable per name and irreversible without the site's secret; and codes for workload ids that
contain names, as those of Kubernetes do (namespace and name).

Ids of Slurm are numbers and those of runs are random: they reveal nothing and are not replaced.
"""

import base64
import hashlib
import hmac
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import quote

from clusterscape.errors import StoreError
from clusterscape.model import UnixMs
from clusterscape.store.records.contract import RecordReader

USER, PROJECT, EXPERIMENT = "user", "project", "experiment"
SITE_KIND, SECRET_KEY = "site", "pseudonym-secret"
CODE_LENGTH = 7
"""Letters of a code, five bits each: with 10,000 names, one in 700 sites has a collision."""

MAX_CACHED = 200_000
NAMES_MS = 600_000
"""Maximum age of the list of users and projects that are replaced in texts."""

_SCRUBBED = frozenset({USER, PROJECT})
_CODE = re.compile(rf"[a-z2-7]{{{CODE_LENGTH}}}")
_WORD = re.compile(r"\w(?:[\w.-]*\w)?")
_PART = re.compile(r"[^\W_]+")


class Pseudonyms:
    """Pseudonyms of names. Thread-safe. The secret is in the record store, so that they survive restarts and replicas agree.

    `services/site_secret.py` writes it.
    """

    def __init__(self, records: RecordReader, clock: Callable[[], UnixMs]) -> None:
        self._records = records
        self._clock = clock
        self._secret = _read_secret(records)
        self._cached: dict[tuple[str, str], str] = {}
        self._real: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._names_loaded_at: int | None = None
        self._generation = 0
        self._lock = threading.Lock()
        self._loading = threading.Lock()

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of a name: ``user k3v9q2x``."""
        cached = self._cached.get((kind, name))
        if cached is not None:
            return cached
        pseudonym = f"{kind} {self.code(kind, name)}"
        with self._lock:
            if len(self._cached) >= MAX_CACHED:
                self._cached.clear()
                self._real.clear()
                self._names_loaded_at = None
            self._cached[kind, name] = pseudonym
            self._real[pseudonym] = name
            if kind in _SCRUBBED:
                self._names[name.casefold()] = pseudonym
                self._generation += 1
        return pseudonym

    def of_missing(self, kind: str, name: str | None) -> str | None:
        """The pseudonym of a name, or None."""
        return None if name is None else self.of(kind, name)

    def code(self, *words: str) -> str:
        """A keyed hash of words: CODE_LENGTH letters and digits."""
        digest = hmac.digest(self._secret, "\0".join(words).encode(), hashlib.sha256)
        return base64.b32encode(digest)[:CODE_LENGTH].decode().lower()

    def real(self, kind: str, pseudonym: str) -> str | None:
        """The name of a pseudonym; None if it is unknown."""
        if not pseudonym.startswith(f"{kind} "):
            return None
        if pseudonym not in self._real:
            self._load_names()
        return self._real.get(pseudonym)

    def is_pseudonym(self, kind: str, text: str) -> bool:
        """Whether ``text`` has the form of a pseudonym of this kind; names of schedulers contain no spaces."""
        return text.startswith(f"{kind} ") and _CODE.fullmatch(text, len(kind) + 1) is not None

    def refresh(self) -> int:
        """Reloads the names if they are too old; returns a number that changes with the names that are replaced in texts."""
        self._load_names()
        return self._generation

    def scrub(self, text: str, keep: frozenset[str] = frozenset()) -> str:
        """Replaces users and projects in ``text`` by pseudonyms, except those in ``keep``."""
        self._load_names()

        def replace_word(match: re.Match[str]) -> str:
            word = match.group()
            return word if word in keep else self._names.get(word.casefold(), word)

        def replace_parts(match: re.Match[str]) -> str:
            word = replace_word(match)
            return _PART.sub(replace_word, word) if word == match.group() and word not in keep else word

        return _WORD.sub(replace_parts, text)

    def _load_names(self) -> None:
        """Loads the names of all users and projects of the workload history, at most every NAMES_MS."""
        with self._loading:
            now = self._clock()
            if self._names_loaded_at is not None and abs(now - self._names_loaded_at) < NAMES_MS:
                return
            history = self._records.workload_history()
            for kind in (PROJECT, USER):
                for name in history[kind].drop_nulls().unique():
                    self.of(kind, str(name))
            self._names_loaded_at = now


def _read_secret(records: RecordReader) -> bytes:
    document = records.document(SITE_KIND, SECRET_KEY)
    if document is None:
        raise StoreError("this site has no pseudonym secret", hint="Start a server once; it creates the secret.")
    return bytes.fromhex(str(document.body["secret"]))


SOURCE = "kubernetes"
LOOK_UP_EVERY_MS = 5_000
"""Unknown codes (from another replica, or from before a restart) are looked up in the store at most this often."""
MAX_IDS = 100_000
"""Ids whose codes are cached (LRU). Answers repeat texts of requests, so without a limit requests could fill the memory."""

_ID = re.compile(r"kubernetes:[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?")
_WORKLOAD_CODE = re.compile(rf"{SOURCE}(:|%3[Aa])(?:~|%7[Ee])([a-z2-7]{{{CODE_LENGTH}}})")


class WorkloadCodes:
    """Codes of workload ids that contain names, the same on every replica. Thread-safe."""

    def __init__(
        self, names: Pseudonyms, records: RecordReader, clock: Callable[[], UnixMs], *, most: int = MAX_IDS
    ) -> None:
        self._names = names
        self._records = records
        self._clock = clock
        self._most = most
        self._ids: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()
        self._looking_up = threading.Lock()
        self._looked_up_at: int | None = None

    def __len__(self) -> int:
        """The number of cached ids."""
        return len(self._ids)

    def hide(self, name: str) -> str:
        """The code of an id: ``kubernetes:~k3v9q2x``."""
        return f"{SOURCE}:~{self._keep(name)}"

    def hide_in(self, text: str) -> str:
        """Replaces ids in ``text`` by codes."""
        if SOURCE not in text:
            return text
        return _ID.sub(lambda match: self.hide(match.group()), text)

    def reveal_in(self, text: str, *, is_encoded: bool = False) -> str:
        """Replaces known codes in ``text`` by ids; ``is_encoded``: it is part of a URL."""

        def reveal(match: re.Match[str]) -> str:
            name = self._find(match.group(2))
            if name is None:
                return match.group()
            return quote(name, safe="") if is_encoded else name

        return _WORKLOAD_CODE.sub(reveal, text) if SOURCE in text else text

    def _keep(self, name: str) -> str:
        """The code of an id, which becomes the most recently used one."""
        code = self._names.code("id", name)
        with self._lock:
            self._ids[code] = name
            self._ids.move_to_end(code)
            if len(self._ids) > self._most:
                self._ids.popitem(last=False)
        return code

    def _find(self, code: str) -> str | None:
        name = self._ids.get(code)
        if name is not None:
            return name
        with self._looking_up:
            return self._ids.get(code) or self._look_up(code)

    def _look_up(self, code: str) -> str | None:
        """Reads all ids from the store; there may be more than the cache holds, so the match is added last."""
        now = self._clock()
        if self._looked_up_at is not None and abs(now - self._looked_up_at) < LOOK_UP_EVERY_MS:
            return None
        self._looked_up_at = now
        ids = self._records.workload_history()["id"]
        match = None
        for name in ids.filter(ids.str.starts_with(f"{SOURCE}:")):
            if self._keep(str(name)) == code:
                match = str(name)
        if match is not None:
            self._keep(match)
        return match
