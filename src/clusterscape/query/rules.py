"""Rules, what they match now, and the state of alert channels. Written by `services/rules.py`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from clusterscape.analyze.rules.completion import Completion, complete, describe_language
from clusterscape.analyze.rules.documents import FormRow, read_document, read_form, write_document, write_form
from clusterscape.analyze.rules.facts import TRUE, UNKNOWN
from clusterscape.analyze.rules.reading import parse_text
from clusterscape.analyze.rules.writing import explain_in_words, format_rule
from clusterscape.errors import QueryError, RuleDocumentError, RuleSyntaxError
from clusterscape.model.rules import Expression, Quantifier, Rule, RuleScope, Severity, Subject
from clusterscape.query.rule_answers import (
    AlertState,
    ChannelAnswer,
    RuleAnswer,
    RuleCounts,
    RuleFault,
    RuleList,
    RuleReading,
)
from clusterscape.watch.judging import Judged
from clusterscape.watch.watcher import Watch


class AlertQuery:
    """Queries on alerts. Without any channel the answer is empty."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def state(self) -> AlertState:
        """Every channel that is configured or still has queued messages."""
        alerts = self._watch.alerts
        if alerts is None:
            return AlertState(channels=[], unposted=0)
        configured = alerts.names
        channels = [
            ChannelAnswer(
                name=channel.name,
                kind=channel.kind,
                is_configured=channel.name in configured,
                waiting=channel.waiting,
                waiting_turns=channel.waiting_turns,
                delivered=channel.delivered,
                delivered_at=channel.delivered_at,
                failing_since=channel.failing_since,
                last_error=channel.last_error,
                is_lasting=channel.is_lasting,
                attempts=channel.attempts,
                next_attempt_at=channel.next_attempt_at,
            )
            for channel in alerts.state()
        ]
        shown = [channel for channel in channels if channel.is_configured or channel.waiting or channel.waiting_turns]
        return AlertState(channels=shown, unposted=self._watch.unposted)


class RuleQuery:
    """Queries on rules."""

    def __init__(self, watch: Watch, *, redact: Callable[[Rule], Rule] = lambda rule: rule) -> None:
        """``redact``: removes names that the viewer may not see from a rule before it is formatted."""
        self._watch = watch
        self._redact = redact

    def all(self) -> RuleList:
        """All rules in order, with what they match now."""
        watch = self._watch
        counts = _count_all(watch)
        rules = [self._describe(rule, counts.get(rule.key)) for rule in watch.book.rules()]
        judged = watch.judged
        return RuleList(rules=rules, judged_at=judged.at if judged else None, unreadable=watch.book.unreadable)

    def describe(self, rule: Rule) -> RuleAnswer:
        """One rule, with what it matches now."""
        return self._describe(rule, _count_all(self._watch).get(rule.key))

    def count_due(self) -> int:
        """How many rules have not been evaluated on the stored past yet."""
        return len(self._watch.rejudging.due())

    def read(
        self,
        *,
        text: str | None = None,
        form: Sequence[FormRow] | None = None,
        document: Mapping[str, Any] | None = None,
    ) -> RuleReading:
        """Converts a rule from one representation to all. Errors are returned, not raised. A form has no scope."""
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
        """Parses an unnamed rule from one of its representations."""
        if document is not None:
            full = {"key": "new", "name": "new", "severity": Severity.WARNING.value, **document}
            return read_document(full)
        if form is not None:
            expression, scope = read_form(form), (parse_text(text).scope if text else RuleScope())
        elif text is not None:
            expression, scope = parse_text(text)
        else:
            raise QueryError("no rule in the request", hint="Pass text, form or document.")
        return Rule(key="new", name="new", severity=Severity.WARNING, expression=expression, scope=scope)

    def complete(self, text: str, cursor: int | None) -> list[Completion]:
        """Completions at the cursor."""
        return complete(text, cursor)

    def language(self) -> dict[str, Any]:
        """Metrics, statistics, operators and units of the rule language."""
        return describe_language()

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
        hardware_counts = _count(judged)
        if subject is not Subject.GPUS and judged.gpus is not None:
            hardware_counts = {
                key: replace(rule_counts, units=_count_gpus(judged, key))
                for key, rule_counts in hardware_counts.items()
            }
        counts |= hardware_counts
    return counts


def _count_gpus(judged: Judged, key: str) -> int:
    """GPUs of the nodes that violate a rule."""
    index = next(index for index, rule in enumerate(judged.verdicts.rules) if rule.key == key)
    return 0 if judged.gpus is None else int(judged.gpus[judged.verdicts.is_broken[index]].sum())


def _count(judged: Judged | None) -> dict[str, RuleCounts]:
    """What each rule matches among ongoing lives; a unit with two holders counts once."""
    if judged is None:
        return {}
    is_open = judged.columns.is_open
    unit, workload = judged.columns.unit, judged.columns.workload
    counts = {}
    for rule, states in zip(judged.verdicts.rules, judged.verdicts.states, strict=True):
        broken = is_open & (states == TRUE)
        counts[rule.key] = RuleCounts(
            workloads=len(np.unique(workload[broken])),
            units=len(np.unique(unit[broken])),
            unjudged=len(np.unique(unit[is_open & (states == UNKNOWN)])),
        )
    return counts
