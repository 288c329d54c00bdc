"""The rules of the site, in the order of the rule bar: shipped ones, own ones, and shipped ones that somebody changed.

Own and changed rules are documents of the record store; a shipped rule that nobody touched is not, so that it follows upgrades.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from clusterscape.analyze.rules.documents import read_document, write_document
from clusterscape.analyze.rules.shipped import shipped_rules
from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import UnixMs
from clusterscape.model.rules import Rule, Subject
from clusterscape.store.records.contract import RecordStore

RULE = "rule"
ORDER = "rule-order"
ORDER_KEY = "all"
MOST_RULES = 1000


class RuleBook:
    """All rules. Thread-safe; ``version`` grows with every change."""

    def __init__(self, records: RecordStore, *, clock: Callable[[], UnixMs]) -> None:
        self._records = records
        self._clock = clock
        self._lock = threading.Lock()
        self._shipped = {one.rule.key: one.rule for one in shipped_rules()}
        self.version = 1
        self.unreadable: dict[str, str] = {}
        """Stored rules that this version cannot read, and why: said, not judged, and never deleted."""
        self._rules = self._load()

    def rules(self) -> Sequence[Rule]:
        """In order."""
        return self._rules

    def enabled(self, subject: Subject | None = None) -> tuple[Rule, ...]:
        """Those that are judged, in order; of one subject where it is named."""
        return tuple(
            rule for rule in self._rules if rule.is_enabled and (subject is None or rule.scope.subject is subject)
        )

    def find(self, key: str) -> Rule:
        """One rule; raises NotFoundError."""
        for rule in self._rules:
            if rule.key == key:
                return rule
        raise NotFoundError(f"there is no rule {key[:80]!r}", hint="GET /api/v1/rules lists them.")

    def shipped(self, key: str) -> Rule | None:
        """The rule as it was shipped, if it was."""
        return self._shipped.get(key)

    def save(self, rule: Rule) -> Rule:
        """Add or replace a rule by its key."""
        with self._lock:
            if len(self._rules) >= MOST_RULES and all(rule.key != known.key for known in self._rules):
                raise QueryError(f"there are {MOST_RULES} rules already", hint="Remove one that nobody needs.")
            saved = replace(rule, is_shipped=rule.key in self._shipped)
            if saved == self._shipped.get(rule.key):
                self._records.remove_document(RULE, rule.key)
            else:
                self._records.write_document(RULE, rule.key, write_document(saved), at_ms=self._clock())
            self._renew()
            return saved

    def remove(self, key: str) -> None:
        """Forget an own rule. A shipped one becomes again what it was; to be rid of it, switch it off."""
        with self._lock:
            if not self._records.remove_document(RULE, key):
                if key in self._shipped:
                    raise QueryError(f"the rule {key!r} came with ClusterScape", hint="Switch it off instead.")
                raise NotFoundError(f"there is no rule {key[:80]!r}", hint="GET /api/v1/rules lists them.")
            self._renew()

    def order(self, keys: Sequence[str]) -> None:
        """Put these rules first, in this order; the others follow as they are."""
        with self._lock:
            known = {rule.key for rule in self._rules}
            unknown = [key for key in keys if key not in known]
            if unknown:
                raise NotFoundError(f"there is no rule {unknown[0][:80]!r}", hint="GET /api/v1/rules lists them.")
            chosen = list(dict.fromkeys(keys))
            rest = [rule.key for rule in self._rules if rule.key not in chosen]
            self._records.write_document(ORDER, ORDER_KEY, {"keys": chosen + rest}, at_ms=self._clock())
            self._renew()

    def reload(self) -> None:
        """Another process may have changed rules."""
        with self._lock:
            if self._load() != self._rules:
                self._renew()

    def _renew(self) -> None:
        self._rules = self._load()
        self.version += 1

    def _load(self) -> tuple[Rule, ...]:
        found = dict(self._shipped)
        self.unreadable = {}
        for document in self._records.documents(RULE):
            try:
                rule = read_document(document.body)
            except QueryError as error:
                self.unreadable[document.key] = error.message
                continue
            found[document.key] = replace(rule, key=document.key, is_shipped=document.key in self._shipped)
        order = self._records.document(ORDER, ORDER_KEY)
        listed = order.body.get("keys") if order else None
        places = {key: place for place, key in enumerate(listed)} if isinstance(listed, list) else {}
        return tuple(sorted(found.values(), key=lambda rule: places.get(rule.key, len(places))))
