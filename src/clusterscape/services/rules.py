"""Writes rules, mutes, which suppress alerts for a time, and comments on violations."""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clusterscape.errors import ForbiddenError, NotFoundError, QueryError, TooLargeError
from clusterscape.model import WorkloadId
from clusterscape.model.access import LOCAL_ADMIN, Viewer
from clusterscape.model.durations import HOUR_MS
from clusterscape.model.rules import (
    Expression,
    Rule,
    RuleScope,
    Severity,
    find_node,
    find_owner,
    is_no_workload,
    source_subject,
)
from clusterscape.query.ownership import check_owner
from clusterscape.query.rule_answers import CommentAnswer, MuteAnswer, RuleAnswer
from clusterscape.query.rule_notes import COMMENT, check_hours, read_comment
from clusterscape.query.rules import RuleQuery
from clusterscape.query.search import resolve_workload
from clusterscape.services.context import ServiceContext
from clusterscape.watch.rulebook import MUTE, RuleBook, read_mutes, remove_mutes, write_mute
from clusterscape.watch.watcher import Watch

KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
COLOR = re.compile(r"#[0-9a-f]{6}")
MAX_NAME = 100
MAX_REASON = 4000
MAX_TEXT = 4000


class RuleKeeper:
    """Saves, deletes and orders rules."""

    def __init__(self, context: ServiceContext, watch: Watch, rules: RuleQuery) -> None:
        """``rules``: parses and describes rules for the viewer."""
        self._context = context
        self._watch = watch
        self._rules = rules

    def save(self, key: str, change: Mapping[str, Any]) -> RuleAnswer:
        """Adds or replaces a rule. ``change``: the fields that differ from the rule of that key; a new one needs its conditions.

        The conditions are ``text``, ``document`` (expression and scope) or ``form`` with ``scope``.
        """
        if not KEY.fullmatch(key):
            raise QueryError(
                f"{key[:80]!r} is not a valid rule key", hint="Use 1 to 64 lowercase letters, digits, - and _."
            )
        existing = next((rule for rule in self._watch.book.rules() if rule.key == key), None)
        expression, scope = self._read_change(change, existing)
        rule = Rule(
            key=key,
            name=_text(change, "name", existing.name if existing else "", MAX_NAME) or key,
            severity=_severity(change, existing),
            expression=expression,
            scope=scope,
            reason=_text(change, "reason", existing.reason if existing else "", MAX_REASON),
            advice=_text(change, "advice", existing.advice if existing else "", MAX_REASON),
            owner=change.get("owner", existing.owner if existing else None),
            color=_color(change, existing),
            is_enabled=bool(change.get("is_enabled", existing.is_enabled if existing else True)),
        )
        saved = self._watch.save_rule(rule)
        return self._rules.describe(saved)

    def remove(self, key: str) -> None:
        """Deletes a rule, its violations and its mutes; a shipped rule is reset to its original."""
        self._watch.remove_rule(key)
        if self._watch.book.shipped(key) is None:
            remove_mutes(self._context.records, key)

    def order(self, keys: Sequence[str]) -> None:
        """Moves these rules to the front, in this order."""
        self._watch.book.order(keys)
        self._context.reads.changes.bump_rules()

    def _read_change(self, change: Mapping[str, Any], existing: Rule | None) -> tuple[Expression, RuleScope]:
        if not any(change.get(name) is not None for name in ("text", "form", "document")):
            if existing is None:
                raise QueryError("a new rule needs its conditions", hint="Pass text, form or document.")
            return existing.expression, existing.scope
        rule = self._rules.parse(text=change.get("text"), form=change.get("form"), document=change.get("document"))
        return rule.expression, rule.scope


class NoteKeeper:
    """Writes mutes and comments."""

    def __init__(
        self, context: ServiceContext, book: RuleBook, *, may_comment: Callable[[str], bool] = lambda _: True
    ) -> None:
        """``may_comment``: whether the viewer may comment on a workload."""
        self._context = context
        self._reads = context.reads
        self._book = book
        self._may_comment = may_comment

    def mute(self, *, rule: str, workload: str | None, reason: str, author: str, hours: float) -> MuteAnswer:
        """Sends no alerts for a rule's violations, by one workload or by all, for some hours."""
        self._book.find(rule)
        if workload is not None:
            workload = self._resolve(workload)
        now = self._reads.clock()
        self._check_mutes()
        answer = MuteAnswer(
            key=secrets.token_hex(6),
            rule=rule,
            workload=workload,
            reason=_check_text(reason, "reason"),
            author=_check_text(author, "author"),
            created_at=now,
            expires_at=now + int(check_hours(hours) * HOUR_MS),
        )
        self._context.write_document(MUTE, answer.key, write_mute(answer), at_ms=now)
        self._reads.changes.bump_rules()
        return answer

    def unmute(self, key: str) -> None:
        """Deletes a mute."""
        if not self._context.remove_document(MUTE, key):
            raise NotFoundError(f"no mute {key[:80]!r}", hint="GET /api/v1/mutes lists them.")
        self._reads.changes.bump_rules()

    def comment(self, *, workload: str, author: str, text: str) -> CommentAnswer:
        """Comments on a workload. Raises ForbiddenError if the viewer may not comment on it."""
        workload = self._resolve(workload)
        if not self._may_comment(workload):
            raise ForbiddenError(
                f"you may not comment on {workload}", hint="Its owner, leads of its project and operators may."
            )
        self._check_comments(workload, author.strip())
        now = self._reads.clock()
        body = {
            "workload": workload,
            "author": _check_text(author, "author"),
            "text": _check_text(text, "text"),
            "created_at": now,
        }
        key = secrets.token_hex(6)
        self._context.write_document(COMMENT, key, body, at_ms=now)
        self._reads.changes.bump_rules()
        return read_comment(key, body)

    def remove_comment(self, key: str, *, by: Viewer = LOCAL_ADMIN) -> None:
        """Deletes a comment."""
        document = self._reads.records.document(COMMENT, key)
        if document is None:
            raise NotFoundError(f"no comment {key[:80]!r}", hint="GET /api/v1/comments lists them.")
        check_owner(document.body.get("author"), by, "the comment")
        self._context.remove_document(COMMENT, key)
        self._reads.changes.bump_rules()

    def _resolve(self, workload: str) -> WorkloadId:
        """The id of a workload, or of the hardware that rules are about."""
        if is_no_workload(workload):
            self._check_hardware(workload)
            return WorkloadId(workload)
        return resolve_workload(self._reads.records, workload).id

    def _check_mutes(self) -> None:
        """At the limit, deletes expired mutes; raises TooLargeError if there are still too many."""
        records, limit = self._reads.records, self._context.items.mutes
        mutes = records.documents(MUTE)
        if len(mutes) < limit:
            return
        active = read_mutes(records, self._reads.clock())
        for mute in mutes:
            if mute.key not in active:
                self._context.remove_document(MUTE, mute.key)
        if len(active) >= limit:
            raise TooLargeError(
                f"the limit of {limit:,} mutes is reached", setting="limits.items.mutes", hint="Delete unused mutes."
            )

    def _check_comments(self, workload: str, author: str) -> None:
        limits = self._context.items
        comments = [document.body for document in self._reads.records.documents(COMMENT)]
        for subject, count, setting in (
            ("comments", len(comments), "comments"),
            ("comments per user", sum(body.get("author") == author for body in comments), "comments_per_user"),
            (
                "comments per workload",
                sum(body.get("workload") == workload for body in comments),
                "comments_per_workload",
            ),
        ):
            if count >= getattr(limits, setting):
                raise TooLargeError(
                    f"the limit of {getattr(limits, setting):,} {subject} is reached",
                    setting=f"limits.items.{setting}",
                    hint="Delete unused comments.",
                )

    def _check_hardware(self, subject: str) -> None:
        node = find_node(subject)
        records = self._reads.records
        if any(find_owner(subject)):
            return
        exists = (
            subject in {source_subject(status.kind) for status in records.sources()}
            if node is None
            else any(record.id == node for record in records.nodes())
        )
        if not exists:
            raise NotFoundError(f"{subject[:80]!r} does not exist", hint="Use the form node:gpu01 or source:slurm.")


def _text(change: Mapping[str, Any], name: str, default: str, most: int) -> str:
    value = str(change.get(name, default)).strip()
    if len(value) > most:
        raise QueryError(f"{name} has {len(value)} characters, more than {most}")
    return value


def _severity(change: Mapping[str, Any], existing: Rule | None) -> Severity:
    severity = change.get("severity")
    if severity is None:
        return existing.severity if existing else Severity.WARNING
    try:
        return Severity(severity)
    except ValueError:
        names = ", ".join(member.value for member in Severity)
        raise QueryError(f"unknown severity {str(severity)[:40]!r}", hint=f"Choose one of {names}.") from None


def _color(change: Mapping[str, Any], existing: Rule | None) -> str | None:
    color = change.get("color", existing.color if existing else None)
    if color is None:
        return None
    if not COLOR.fullmatch(str(color)):
        raise QueryError(f"{str(color)[:40]!r} is not a color", hint="Use six hexadecimal digits, such as #ff8800.")
    return str(color)


def _check_text(text: str, field: str) -> str:
    cleaned = text.strip()
    if not cleaned or len(cleaned) > MAX_TEXT:
        raise QueryError(f"{field} must have 1 to {MAX_TEXT} characters, not {len(cleaned)}")
    return cleaned
