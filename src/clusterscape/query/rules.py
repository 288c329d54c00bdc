"""Rules: what they are, what they say now, what they would have said. Changing them is here, too, as for saved views."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from clusterscape.analyze.rules.completion import Completion, complete, describe_language
from clusterscape.analyze.rules.documents import read_document, write_document
from clusterscape.analyze.rules.explaining import explain_in_words
from clusterscape.analyze.rules.form import FormRow, read_form, write_form
from clusterscape.analyze.rules.reading import parse_text
from clusterscape.analyze.rules.truths import TRUE, UNKNOWN
from clusterscape.analyze.rules.writing import format_rule
from clusterscape.errors import QueryError, RuleDocumentError, RuleSyntaxError
from clusterscape.model.rules import Expression, Quantifier, Rule, Scope, Severity, Subject
from clusterscape.query.context import QueryContext
from clusterscape.query.rule_answers import RuleAnswer, RuleCounts, RuleFault, RuleList, RuleReading
from clusterscape.watch.judging import Judged
from clusterscape.watch.mutes import remove_mutes
from clusterscape.watch.watcher import Watch

KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
COLOR = re.compile(r"#[0-9a-f]{6}")
MOST_NAME = 100
MOST_REASON = 4000


class RuleQuery:
    """Questions about rules, and changes of them."""

    def __init__(
        self, context: QueryContext, watch: Watch, *, redact: Callable[[Rule], Rule] = lambda rule: rule
    ) -> None:
        """``redact``: the rule as the viewer may read it. Its forms are written from that: all of them tell its scope."""
        self._context = context
        self._watch = watch
        self._redact = redact

    def all(self) -> RuleList:
        """All rules in order, with what they say now."""
        watch = self._watch
        counts = _count_all(watch)
        rules = [self._describe(rule, counts.get(rule.key)) for rule in watch.book.rules()]
        judged = watch.judged
        return RuleList(rules=rules, judged_at=judged.at if judged else None, unreadable=watch.book.unreadable)

    def count_due(self) -> int:
        """How many rules have yet to judge the stored past."""
        return len(self._watch.rejudging.due())

    def save(self, key: str, change: Mapping[str, Any]) -> RuleAnswer:
        """Add or replace a rule. ``change``: what differs from the rule that has the key; a new one needs name and rule.

        The rule itself comes as ``text``, as ``document`` (expression and scope) or as ``form`` with ``scope``.
        """
        if not KEY.fullmatch(key):
            raise QueryError(f"{key[:80]!r} cannot be a rule's key", hint="1 to 64 small letters, digits, - and _.")
        known = next((rule for rule in self._watch.book.rules() if rule.key == key), None)
        expression, scope = self._read_change(change, known)
        rule = Rule(
            key=key,
            name=_text(change, "name", known.name if known else "", MOST_NAME) or key,
            severity=_severity(change, known),
            expression=expression,
            scope=scope,
            reason=_text(change, "reason", known.reason if known else "", MOST_REASON),
            advice=_text(change, "advice", known.advice if known else "", MOST_REASON),
            owner=change.get("owner", known.owner if known else None),
            color=_color(change, known),
            is_enabled=bool(change.get("is_enabled", known.is_enabled if known else True)),
        )
        saved = self._watch.save_rule(rule)
        return self._describe(saved, _count_all(self._watch).get(key))

    def remove(self, key: str) -> None:
        """Forget an own rule, its violations and its mutes; a shipped one becomes again what it was."""
        self._watch.remove_rule(key)
        if self._watch.book.shipped(key) is None:
            remove_mutes(self._context.records, key)

    def order(self, keys: Sequence[str]) -> None:
        """Put these rules first, in this order."""
        self._watch.book.order(keys)
        self._context.changes.bump_rules()

    def read(
        self,
        *,
        text: str | None = None,
        form: Sequence[FormRow] | None = None,
        document: Mapping[str, Any] | None = None,
    ) -> RuleReading:
        """A rule in one form, read and written in all three; what is wrong is said, not raised. The form keeps no scope."""
        try:
            rule = self.parse(text=text, form=form, document=document)
        except RuleSyntaxError as error:
            fault = RuleFault(
                message=error.message,
                hint=error.hint,
                column=error.column,
                length=error.length,
                suggestion=error.suggestion,
            )
        except RuleDocumentError as error:
            fault = RuleFault(message=error.message, hint=error.hint, path=error.path)
        else:
            return RuleReading(
                text=format_rule(rule),
                words=explain_in_words(rule),
                document=write_document(rule),
                form=_form(rule.expression),
                fault=None,
            )
        return RuleReading(text=text or "", words=[], document=None, form=None, fault=fault)

    def parse(
        self,
        *,
        text: str | None = None,
        form: Sequence[FormRow] | None = None,
        document: Mapping[str, Any] | None = None,
    ) -> Rule:
        """A rule without a name from one of its forms."""
        if document is not None:
            full = {"key": "new", "name": "new", "severity": Severity.WARNING.value, **document}
            return read_document(full)
        if form is not None:
            expression, scope = read_form(form), (parse_text(text).scope if text else Scope())
        elif text is not None:
            expression, scope = parse_text(text)
        else:
            raise QueryError("no rule was given", hint="Give text, form or document.")
        return Rule(key="new", name="new", severity=Severity.WARNING, expression=expression, scope=scope)

    def complete(self, text: str, cursor: int | None) -> list[Completion]:
        """What may stand next."""
        return complete(text, cursor)

    def language(self) -> dict[str, Any]:
        """Metrics, statistics, operators and units of the language."""
        return describe_language()

    def _read_change(self, change: Mapping[str, Any], known: Rule | None) -> tuple[Expression, Scope]:
        if not any(change.get(name) is not None for name in ("text", "form", "document")):
            if known is None:
                raise QueryError("a new rule needs its conditions", hint="Give text, form or document.")
            return known.expression, known.scope
        rule = self.parse(text=change.get("text"), form=change.get("form"), document=change.get("document"))
        return rule.expression, rule.scope

    def _describe(self, rule: Rule, counts: RuleCounts | None) -> RuleAnswer:
        shipped = self._watch.book.shipped(rule.key)
        rule = self._redact(rule)
        return RuleAnswer(
            key=rule.key,
            name=rule.name,
            severity=rule.severity,
            text=format_rule(rule),
            words=explain_in_words(rule),
            reason=rule.reason,
            advice=rule.advice,
            color=rule.color,
            owner=rule.owner,
            is_enabled=rule.is_enabled,
            is_shipped=rule.is_shipped,
            is_changed=shipped is not None and replace(rule, is_enabled=shipped.is_enabled) != shipped,
            blames_units=rule.scope.quantifier is Quantifier.EACH
            and rule.scope.subject in (Subject.WORKLOADS, Subject.GPUS),
            subject=rule.scope.subject,
            document=write_document(rule),
            form=_form(rule.expression),
            counts=counts,
        )


def _form(expression: Expression) -> list[FormRow] | None:
    try:
        return write_form(expression)
    except RuleDocumentError:
        return None


def _count_all(watch: Watch) -> dict[str, RuleCounts]:
    counts = _count(watch.judged)
    for subject, judged in watch.hardware.judged.items():
        found = _count(judged)
        if subject is not Subject.GPUS and judged.gpus is not None:
            found = {key: replace(each, units=_count_gpus(judged, key)) for key, each in found.items()}
        counts |= found
    return counts


def _count_gpus(judged: Judged, key: str) -> int:
    """GPUs of the nodes that break a rule."""
    place = next(place for place, rule in enumerate(judged.verdicts.rules) if rule.key == key)
    return 0 if judged.gpus is None else int(judged.gpus[judged.verdicts.is_broken[place]].sum())


def _count(judged: Judged | None) -> dict[str, RuleCounts]:
    """What each rule says of the lives that go on; a unit with two holders counts once."""
    if judged is None:
        return {}
    alive = judged.columns.is_open
    unit, workload = judged.columns.unit, judged.columns.workload
    counts = {}
    for rule, states in zip(judged.verdicts.rules, judged.verdicts.states, strict=True):
        broken = alive & (states == TRUE)
        counts[rule.key] = RuleCounts(
            workloads=len(np.unique(workload[broken])),
            units=len(np.unique(unit[broken])),
            unjudged=len(np.unique(unit[alive & (states == UNKNOWN)])),
        )
    return counts


def _text(change: Mapping[str, Any], name: str, default: str, most: int) -> str:
    value = str(change.get(name, default)).strip()
    if len(value) > most:
        raise QueryError(f"{name} has {len(value)} characters, more than {most}")
    return value


def _severity(change: Mapping[str, Any], known: Rule | None) -> Severity:
    given = change.get("severity")
    if given is None:
        return known.severity if known else Severity.WARNING
    try:
        return Severity(given)
    except ValueError:
        names = ", ".join(severity.value for severity in Severity)
        raise QueryError(f"there is no severity {str(given)[:40]!r}", hint=f"One of: {names}.") from None


def _color(change: Mapping[str, Any], known: Rule | None) -> str | None:
    color = change.get("color", known.color if known else None)
    if color is None:
        return None
    if not COLOR.fullmatch(str(color)):
        raise QueryError(f"{str(color)[:40]!r} is no color", hint="Six hexadecimal digits: #ff8800.")
    return str(color)
