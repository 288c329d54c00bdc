"""The rules of the site in the order of the rule bar (shipped, changed and the site's own), and mutes.

Changed and own rules are documents of the record store; an unchanged shipped rule is not, so that it follows upgrades.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

from clusterscape.analyze.rules.documents import read_document, write_document
from clusterscape.analyze.rules.shipped import shipped_rules
from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import UnixMs, WorkloadId
from clusterscape.model.rules import Mute, Rule, Subject
from clusterscape.store.records.contract import RecordReader, RecordStore

MUTE = "mute"


class MuteFields(Protocol):
    """Anything with the fields of a mute."""

    @property
    def rule(self) -> str: ...
    @property
    def workload(self) -> str | None: ...
    @property
    def reason(self) -> str: ...
    @property
    def author(self) -> str: ...
    @property
    def created_at(self) -> int: ...
    @property
    def expires_at(self) -> int: ...


def write_mute(mute: MuteFields) -> dict[str, object]:
    """The document of a mute."""
    return {
        "rule": mute.rule,
        "workload": mute.workload,
        "reason": mute.reason,
        "author": mute.author,
        "created_at": mute.created_at,
        "expires_at": mute.expires_at,
    }


def read_mutes(records: RecordReader, now: UnixMs) -> dict[str, Mute]:
    """Mutes that have not expired, by key."""
    mutes = {document.key: _mute_of(document.body) for document in records.documents(MUTE)}
    return {key: mute for key, mute in mutes.items() if mute.expires_at > now}


def remove_mutes(records: RecordStore, rule: str) -> None:
    """Delete the mutes of a removed rule."""
    for document in records.documents(MUTE):
        if document.body["rule"] == rule:
            records.remove_document(MUTE, document.key)


def is_muted(mutes: Mapping[str, Mute], rule: str, workload: WorkloadId) -> bool:
    """Whether messages about this rule and workload are muted."""
    return any(mute.rule == rule and mute.workload in (None, workload) for mute in mutes.values())


def _mute_of(body: Mapping[str, object]) -> Mute:
    workload = body["workload"]
    return Mute(
        rule=str(body["rule"]),
        workload=None if workload is None else WorkloadId(str(workload)),
        reason=str(body["reason"]),
        author=str(body["author"]),
        created_at=UnixMs(cast(int, body["created_at"])),
        expires_at=UnixMs(cast(int, body["expires_at"])),
    )


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
        self._shipped = {shipped.rule.key: shipped.rule for shipped in shipped_rules()}
        self.version = 1
        self.unreadable: dict[str, str] = {}
        """Stored rules that this version cannot read, and why: reported, not judged, and never deleted."""
        self._rules = self._load()

    def rules(self) -> Sequence[Rule]:
        """All rules, in order."""
        return self._rules

    def enabled(self, subject: Subject | None = None) -> tuple[Rule, ...]:
        """Enabled rules in order, of one subject if it is given."""
        return tuple(
            rule for rule in self._rules if rule.is_enabled and (subject is None or rule.scope.subject is subject)
        )

    def find(self, key: str) -> Rule:
        """One rule; raises NotFoundError."""
        for rule in self._rules:
            if rule.key == key:
                return rule
        raise NotFoundError(f"no rule {key[:80]!r}", hint="GET /api/v1/rules lists them.")

    def shipped(self, key: str) -> Rule | None:
        """The original of a shipped rule; None for other rules."""
        return self._shipped.get(key)

    def save(self, rule: Rule) -> Rule:
        """Add or replace a rule by its key."""
        with self._lock:
            if len(self._rules) >= MOST_RULES and all(rule.key != other.key for other in self._rules):
                raise QueryError(
                    f"too many rules: at most {MOST_RULES}", hint="Remove a rule that is no longer needed."
                )
            saved = replace(rule, is_shipped=rule.key in self._shipped)
            if saved == self._shipped.get(rule.key):
                self._records.remove_document(RULE, rule.key)
            else:
                self._records.write_document(RULE, rule.key, write_document(saved), at_ms=self._clock())
            self._refresh()
            return saved

    def remove(self, key: str) -> None:
        """Delete a rule of the site, or reset a changed shipped rule. Shipped rules cannot be deleted, only disabled."""
        with self._lock:
            if not self._records.remove_document(RULE, key):
                if key in self._shipped:
                    raise QueryError(
                        f"the rule {key!r} is shipped with ClusterScape and cannot be removed",
                        hint="Disable it instead.",
                    )
                raise NotFoundError(f"no rule {key[:80]!r}", hint="GET /api/v1/rules lists them.")
            self._refresh()

    def order(self, keys: Sequence[str]) -> None:
        """Put these rules first, in this order; the others follow in their current order."""
        with self._lock:
            existing = {rule.key for rule in self._rules}
            unknown = [key for key in keys if key not in existing]
            if unknown:
                raise NotFoundError(f"no rule {unknown[0][:80]!r}", hint="GET /api/v1/rules lists them.")
            chosen = list(dict.fromkeys(keys))
            rest = [rule.key for rule in self._rules if rule.key not in chosen]
            self._records.write_document(ORDER, ORDER_KEY, {"keys": chosen + rest}, at_ms=self._clock())
            self._refresh()

    def reload(self) -> None:
        """Read the rules again: another process may have changed them."""
        with self._lock:
            if self._load() != self._rules:
                self._refresh()

    def _refresh(self) -> None:
        self._rules = self._load()
        self.version += 1

    def _load(self) -> tuple[Rule, ...]:
        rules = dict(self._shipped)
        self.unreadable = {}
        for document in self._records.documents(RULE):
            try:
                rule = read_document(document.body)
            except QueryError as error:
                self.unreadable[document.key] = error.message
                continue
            rules[document.key] = replace(rule, key=document.key, is_shipped=document.key in self._shipped)
        order = self._records.document(ORDER, ORDER_KEY)
        listed = order.body.get("keys") if order else None
        places = {key: place for place, key in enumerate(listed)} if isinstance(listed, list) else {}
        return tuple(sorted(rules.values(), key=lambda rule: places.get(rule.key, len(places))))
