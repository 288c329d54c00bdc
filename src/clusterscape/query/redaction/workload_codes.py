"""Ids that are names: Kubernetes knows a workload by its namespace and name, so a code stands for them.

Slurm's ids are numbers and those of runs are drawn by lot: they tell nothing and stay.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import quote

from clusterscape.model import UnixMs
from clusterscape.query.redaction.pseudonyms import CODE_LENGTH, Pseudonyms
from clusterscape.store.records.contract import RecordStore

SOURCE = "kubernetes"
LOOK_UP_EVERY_MS = 5_000
"""Codes that are not known (of another replica, of before a restart) are looked for in the store so often at most."""
MOST_IDS = 100_000
"""Ids whose codes are kept, last used ones first: texts of requests come back in answers, and would fill the memory."""

_ID = re.compile(r"kubernetes:[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?")
_CODE = re.compile(rf"{SOURCE}(:|%3[Aa])(?:~|%7[Ee])([a-z2-7]{{{CODE_LENGTH}}})")


class WorkloadCodes:
    """Thread-safe; the same code for the same id, on every replica."""

    def __init__(
        self, names: Pseudonyms, records: RecordStore, clock: Callable[[], UnixMs], *, most: int = MOST_IDS
    ) -> None:
        self._names = names
        self._records = records
        self._clock = clock
        self._most = most
        self._ids: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()
        self._looking_up = threading.Lock()
        self._looked_at: int | None = None

    def __len__(self) -> int:
        """Codes whose ids are kept."""
        return len(self._ids)

    def hide(self, name: str) -> str:
        """What stands for an id: ``kubernetes:~k3v9q2x``."""
        return f"{SOURCE}:~{self._keep(name)}"

    def hide_in(self, text: str) -> str:
        """``text`` with codes in place of ids."""
        if SOURCE not in text:
            return text
        return _ID.sub(lambda match: self.hide(match.group()), text)

    def reveal_in(self, text: str, *, is_encoded: bool = False) -> str:
        """``text`` with ids in place of codes that stand for one; ``is_encoded``: it is part of an address."""

        def reveal(match: re.Match[str]) -> str:
            name = self._find(match.group(2))
            if name is None:
                return match.group()
            return quote(name, safe="") if is_encoded else name

        return _CODE.sub(reveal, text) if SOURCE in text else text

    def _keep(self, name: str) -> str:
        """The code of an id, which becomes the last used one."""
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
        """Read the ids of the store; more of them than are kept may be there, so the wanted one is kept last."""
        now = self._clock()
        if self._looked_at is not None and abs(now - self._looked_at) < LOOK_UP_EVERY_MS:
            return None
        self._looked_at = now
        ids = self._records.workload_history()["id"]
        match = None
        for name in ids.filter(ids.str.starts_with(f"{SOURCE}:")):
            if self._keep(str(name)) == code:
                match = str(name)
        if match is not None:
            self._keep(match)
        return match
