"""Exports rules as Prometheus alerting rules over dcgm-exporter's metrics, where PromQL can express them.

Prometheus has no concept of a life. If the exporter labels series with their job, a series starts with the job, and a long enough
window covers its life. Without the label, a window also includes earlier jobs.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from clusterscape.analyze.rules.vocabulary import write_duration
from clusterscape.analyze.rules.writing import format_rule
from clusterscape.model.metrics import METRICS
from clusterscape.model.rules import (
    Across,
    Basis,
    Condition,
    Expression,
    Operator,
    Quantifier,
    Quantity,
    Rule,
    RuleScope,
    StatisticKind,
    Subject,
)
from clusterscape.model.statistics import STATISTICS, MeasuredThing
from clusterscape.model.xids import XIDS

LIFE_WINDOW_MS = 86_400_000
_PRESENCE = "DCGM_FI_DEV_GPU_UTIL"  # every exporter has it: lists the units
_UNIT_LABELS = ("instance", "gpu", "UUID", "GPU_I_ID")
_STEP = "1m"  # for shares of time: PromQL counts steps, not samples
_LIMITS = {
    # Neither the power limit nor the memory size is a default metric of the exporter, but used and free memory are.
    "power_watts": "DCGM_FI_DEV_POWER_MGMT_LIMIT",
    "memory_used_bytes": "(DCGM_FI_DEV_FB_USED{job} + DCGM_FI_DEV_FB_FREE{job})",
    "memory_free_bytes": "(DCGM_FI_DEV_FB_USED{job} + DCGM_FI_DEV_FB_FREE{job})",
    "memory_reserved_bytes": "(DCGM_FI_DEV_FB_USED{job} + DCGM_FI_DEV_FB_FREE{job})",
}
_HARDWARE_XID = "xid_hardware_code"  # computed by ingest from the exporter's last XID
_XID_SERIES = "DCGM_FI_DEV_XID_ERRORS"
_ACROSS = {Across.LEAST: "min", Across.MOST: "max", Across.AVERAGE: "avg"}


class _InexpressibleError(Exception):
    """The rule cannot be expressed in PromQL; the message says why."""


@dataclass(slots=True)
class _Writer:
    """Writes one rule; ``notes`` collects approximations."""

    job_label: str | None
    life_window_ms: int
    min_samples: int
    notes: dict[str, None] = field(default_factory=dict)

    def rule(self, rule: Rule) -> str:
        scope = rule.scope
        _check_scope(scope)
        # A range still contains samples of ended jobs: only series that exist now may fire.
        text = f"({self.expression(rule.expression)})\nand {self.on_unit()} {self.series(_PRESENCE)}"
        if scope.min_age_ms:
            text = f"{text}\nand {self.on_unit()} {self.series(_PRESENCE)} offset {write_duration(scope.min_age_ms)}"
        if scope.quantifier is not Quantifier.EACH or scope.min_gpus > 1:
            text = self.of_workload(text, scope)
        return text

    def of_workload(self, text: str, scope: RuleScope) -> str:
        job = self.need_job("it applies to the whole workload")
        gpus = f"count by ({job}) ({self.series(_PRESENCE)})"
        if scope.quantifier is Quantifier.ANY:
            text = f"group by ({job}) (\n{text}\n)"
        elif scope.quantifier is not Quantifier.EACH:
            share = 1.0 if scope.quantifier is Quantifier.ALL or scope.share is None else scope.share
            text = f"count by ({job}) (\n{text}\n) >= {_number(share)} * {gpus}"
        return text if scope.min_gpus <= 1 else f"({text})\nand on ({job}) {gpus} >= {scope.min_gpus}"

    def expression(self, expression: Expression) -> str:
        if isinstance(expression, Condition):
            return self.condition(expression)
        # The alert has the value of the left side of `and` and `or`; ignore labels that differ between metrics.
        joint = f"\n{expression.junction.value} {self.on_unit()} "
        return joint.join(f"({self.expression(term)})" for term in expression.terms)

    def condition(self, condition: Condition) -> str:
        subject, window = self.statistic(condition)
        operator = "==" if condition.operator is Operator.EQUAL else condition.operator.value
        if condition.across is None:
            text = f"{subject} {operator} {self.bound(condition)}"
        else:
            text = self.across(condition, subject, operator)
        is_counted = self.min_samples > 1 and condition.statistic.kind is not StatisticKind.NOW
        if not is_counted:
            return text
        metric = self.series(_exported_name(condition.metric))
        return f"{text} and count_over_time({metric}[{window}]) >= {self.min_samples}"

    def across(self, condition: Condition, subject: str, operator: str) -> str:
        """All units of the workloads that meet the condition: every condition selects units, so that they can be joined."""
        assert condition.across is not None
        job = self.need_job("it compares the GPUs of a workload")
        if condition.value.basis is Basis.LIMIT:
            subject = f"({subject}) / {self.limit(condition.metric)}"
            value = _number(condition.value.number)
        else:
            value = self.bound(condition)
        if condition.across is Across.SPREAD:
            aggregate = f"max by ({job}) ({subject}) - min by ({job}) ({subject})"
        else:
            aggregate = f"{_ACROSS[condition.across]} by ({job}) ({subject})"
        return f"{subject} and on ({job}) ({aggregate} {operator} {value})"

    def statistic(self, condition: Condition) -> tuple[str, str]:
        """The compared expression and its window."""
        statistic = condition.statistic
        series = self.series(_exported_name(condition.metric))
        window = self.window(condition)
        entry = STATISTICS[statistic.kind]
        if entry.promql is None:
            raise _InexpressibleError(f"PromQL cannot express the {entry.label} a value")
        if entry.promql_note is not None:
            self.note(entry.promql_note)
        is_computed = condition.metric == _HARDWARE_XID
        text = entry.promql.format(
            series=_hardware_xids(series) if is_computed else series,
            # A range of an expression is a subquery, which needs a step.
            window=f"{window}:{_STEP}" if is_computed and "{step}" not in entry.promql else window,
            rank="" if statistic.percentile is None else _number(statistic.percentile / 100),
            bound="" if statistic.threshold is None else self.quantity(condition.metric, statistic.threshold),
            step=_STEP,
        )
        return text, window

    def window(self, condition: Condition) -> str:
        if condition.window_ms is not None:
            return write_duration(condition.window_ms)
        if condition.statistic.kind is not StatisticKind.NOW:
            start_note = (
                f"series start with their {self.job_label}" if self.job_label else "earlier workloads count too"
            )
            text = write_duration(self.life_window_ms)
            self.note(f"Over the last {text} instead of the workload's life; {start_note}.")
        return write_duration(self.life_window_ms)

    def bound(self, condition: Condition) -> str:
        """The bound in the exporter's unit; for a share of time it is a share."""
        if STATISTICS[condition.statistic.kind].measures is MeasuredThing.SHARE:
            return _number(condition.value.number)
        return self.quantity(condition.metric, condition.value)

    def quantity(self, metric: str, quantity: Quantity) -> str:
        if quantity.basis is Basis.LIMIT:
            return f"{_number(quantity.number)} * {self.limit(metric)}"
        return _number(quantity.number / METRICS[metric].aliases.get(_exported_name(metric), 1.0))

    def limit(self, metric: str) -> str:
        name = _LIMITS.get(metric)
        if name is None:
            raise _InexpressibleError(f"the exporter has no limit of {metric}")
        if metric == "power_watts":
            self.note(f"Needs {name}, which is not among dcgm-exporter's default metrics.")
            return self.series(name)
        return name.replace("{job}", self.selector())

    def series(self, name: str) -> str:
        return f"{name}{self.selector()}"

    def selector(self) -> str:
        return "" if self.job_label is None else f'{{{self.job_label}!=""}}'

    def on_unit(self) -> str:
        return f"on ({', '.join(filter(None, (*_UNIT_LABELS, self.job_label)))})"

    def need_job(self, why: str) -> str:
        if self.job_label is None:
            raise _InexpressibleError(f"{why}, and no label names it")
        return self.job_label

    def note(self, text: str) -> None:
        self.notes[text] = None


def to_prometheus_rules(
    rules: Sequence[Rule], *, job_label: str | None = "hpc_job", life_window_ms: int = LIFE_WINDOW_MS
) -> tuple[str, list[tuple[Rule, str]]]:
    """A rules file (YAML), and the rules that are not in it, each with the reason.

    Parameters
    ----------
    rules
        Disabled rules are skipped.
    job_label
        The exporter's label of a GPU's job; None if it has none: then unallocated GPUs are included, too.
    life_window_ms
        The window that replaces a workload's life.
    """
    entries: list[str] = []
    skipped: list[tuple[Rule, str]] = []
    for rule in rules:
        if not rule.is_enabled:
            skipped.append((rule, "it is disabled"))
            continue
        label = None if rule.scope.subject is Subject.GPUS else job_label  # applies to all GPUs, allocated or not
        writer = _Writer(label, life_window_ms, rule.scope.min_samples)
        try:
            entries.append(_entry(rule, writer.rule(rule), list(writer.notes), label))
        except _InexpressibleError as error:
            skipped.append((rule, str(error)))
    head = ["# Written by ClusterScape.", *(f"# Skipped: {_line(rule.key)}: {why}." for rule, why in skipped)]
    body = ["groups:", "  - name: clusterscape", "    rules:", *entries] if entries else ["groups: []"]
    return "\n".join([*head, *body]) + "\n", skipped


def _check_scope(scope: RuleScope) -> None:
    if scope.subject.is_lifeless and scope.subject is not Subject.GPUS:
        raise _InexpressibleError(f"the exporter has no series of {scope.subject.value}")
    names = {
        "users": scope.users,
        "projects": scope.projects,
        "partitions": scope.partitions,
        "machine types": scope.machine_types,
        "names": scope.names,
    }
    used = [name for name, values in names.items() if values]
    if used:
        raise _InexpressibleError(f"the exporter has no labels for {' and '.join(used)} of workloads")


def _entry(rule: Rule, expression: str, notes: Sequence[str], job_label: str | None) -> str:
    """One alert. Strings are written as JSON, which is valid YAML."""
    is_of_unit = rule.scope.quantifier is Quantifier.EACH
    unit = "GPU {{ $labels.gpu }} of {{ $labels.Hostname }}" if is_of_unit else ""
    job = f"job {{{{ $labels.{job_label} }}}}" if job_label else ""
    summary = f"{_escape_template(rule.name)}: {', '.join(filter(None, (job, unit)))}"
    lines = [
        f"# {_line(format_rule(rule))}",
        *(f"# {note}" for note in notes),
        f"- alert: {_quote(rule.key)}",
        "  expr: |-",
    ]
    lines += [f"    {line}" for line in expression.splitlines()]
    lines += ["  labels:", f"    severity: {rule.severity.value}", "  annotations:", f"    summary: {_quote(summary)}"]
    if rule.reason:
        lines.append(f"    description: {_quote(_escape_template(rule.reason))}")
    return "\n".join(f"      {line}" for line in lines)


def _hardware_xids(series: str) -> str:
    """Like ``xid_hardware_code``: the last XID, and 0 in place of codes of programs. Both sides drop the metric's name."""
    program_codes = "".join(f" != {code}" for code, xid in sorted(XIDS.items()) if not xid.needs_operator)
    return f"({series} * 1{program_codes} or {series} * 0)"


def _exported_name(metric: str) -> str:
    """The exporter's series that the metric is, or is computed from."""
    if metric == _HARDWARE_XID:
        return _XID_SERIES
    entry = METRICS.get(metric)
    for alias in entry.aliases if entry else ():
        if alias.startswith("DCGM_"):
            return alias
    raise _InexpressibleError(f"dcgm-exporter does not export {metric}")


def _number(value: float) -> str:
    """Twelve digits; further digits are rounding noise of unit conversion."""
    return f"{value:.12g}"


def _escape_template(text: str) -> str:
    """Escape braces, so that the text is not a template."""
    return text.replace("{{", '{{ "{{" }}')


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _line(text: str) -> str:
    return " ".join(text.split())
