"""Parses rule text: conditions first, then the clauses of the scope. Raises only RuleSyntaxError.

rule       = terms { clause }
terms      = all { "or" all }            all = one { "and" one }            one = "(" terms ")" | condition
condition  = [ across "of" ] subject [ window ] operator value [ window ]
subject    = metric statistic | [ "share of" ] metric side value | "longest" metric side value
window     = "over last" duration        side = "above" | "below"
"""

import re
from decimal import Decimal
from typing import NamedTuple

from clusterscape.analyze.rules.checking import (
    MAX_CONDITIONS,
    MAX_NESTING,
    NO_LIFE_MESSAGE,
    find_life_condition,
    iter_conditions,
    join,
)
from clusterscape.analyze.rules.scanner import Expected, Scanner, TextPiece
from clusterscape.analyze.rules.scope_reading import read_scope
from clusterscape.analyze.rules.vocabulary import (
    DURATIONS,
    SHORT_NAMES,
    STATISTIC_WORDS,
    UnitMismatchError,
    find_metrics,
    read_duration,
    read_quantity,
    short_name,
    suggest_metric,
)
from clusterscape.model.metrics import JUDGED_METRICS, Metric
from clusterscape.model.rules import (
    Across,
    Condition,
    Expression,
    Junction,
    Operator,
    Quantity,
    Rule,
    RuleScope,
    Severity,
    Statistic,
    StatisticKind,
)
from clusterscape.model.statistics import STATISTICS, MeasuredThing

MAX_LENGTH = 10_000
MAX_DURATION_MS = 10 * 365 * 86_400_000
_PERCENTILE = re.compile(r"[pP](\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?!\w)", re.ASCII)
_OPEN = re.compile(r"\(")
_CLOSE = re.compile(r"\)")
_PER_HOUR = re.compile(r"/\s*(?:h|hour)\b")
_OPERATOR = re.compile(r"<=|>=|!=|==|<>|[<>=≤≥≠]")
OPERATOR_SIGNS = {
    "==": Operator.EQUAL,
    "<>": Operator.UNEQUAL,
    "≠": Operator.UNEQUAL,
    "≤": Operator.AT_MOST,
    "≥": Operator.AT_LEAST,
} | {operator.value: operator for operator in Operator}
_SIDES = ("above", "below")
_CONTINUATIONS = ("and", "or", "for", "after", "with", "on", "over")


class RuleText(NamedTuple):
    """The parsed rule text."""

    expression: Expression
    scope: RuleScope


def parse_rule(
    text: str, *, key: str, name: str, severity: Severity = Severity.WARNING, me: str | None = None, reason: str = ""
) -> Rule:
    """A rule from its text and its other fields. ``me``: the user that ``for mine`` refers to."""
    parsed = parse_text(text, me=me)
    return Rule(key=key, name=name, severity=severity, expression=parsed.expression, scope=parsed.scope, reason=reason)


def parse_text(text: str, *, me: str | None = None) -> RuleText:
    """Conditions and scope of ``text``. ``me``: the user that ``for mine`` refers to."""
    scanner = Scanner(text)
    if len(text) > MAX_LENGTH:
        raise scanner.error(f"a rule has at most {MAX_LENGTH:,} characters", TextPiece("", MAX_LENGTH, len(text)))
    expression = _ConditionReader(scanner).read_terms(depth=0)
    if sum(1 for _ in iter_conditions(expression)) > MAX_CONDITIONS:
        raise scanner.error(f"a rule has at most {MAX_CONDITIONS} conditions", TextPiece("", 0, len(text)))
    scope = read_scope(scanner, lambda: take_duration_ms(scanner), me=me)
    life_condition = find_life_condition(expression, scope.subject)
    if life_condition is not None:
        hint = f"For example `{short_name(life_condition.metric)} max over last 1h`."
        raise scanner.error(NO_LIFE_MESSAGE, TextPiece("", 0, len(text.rstrip())), hint=hint)
    if not scanner.is_at_end:
        message = "expected `and`, `or`, or a clause (`for`, `on`, `with`, `after`)"
        raise scanner.error(message, expected=Expected.CONTINUATION, choices=_CONTINUATIONS)
    return RuleText(expression, scope)


def parse_duration_ms(text: str) -> int:
    """``30m``, ``1h30m`` as milliseconds; the whole text must be a duration."""
    scanner = Scanner(text)
    duration_ms = take_duration_ms(scanner)
    if not scanner.is_at_end:
        raise scanner.error("unexpected text after the time")
    return duration_ms


def take_duration_ms(scanner: Scanner) -> int:
    """``30m``, ``1h30m``, ``90 s`` as whole milliseconds."""
    start = scanner.skip_space()
    total = Decimal(0)
    is_first = True
    while number_piece := scanner.take_number(is_adjacent=not is_first):
        number, _ = number_piece
        unit = scanner.take_unit()
        part = read_duration(number, unit.text)
        if part is None:
            units = tuple(duration.word for duration in DURATIONS)
            raise scanner.error("expected a unit of time: s, m, h or d", unit if unit.text else None, choices=units)
        total += part
        is_first = False
    if is_first:
        raise scanner.error("expected a time such as `30m`", expected=Expected.DURATION, choices=("30m", "1h", "10m"))
    if not 0 <= total <= MAX_DURATION_MS:
        raise scanner.error("a time must be between 0 and ten years", TextPiece("", start, scanner.at))
    return int(total.to_integral_value())


class _ConditionReader:
    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner

    def read_terms(self, depth: int) -> Expression:
        terms = [self._read_all(depth)]
        while self._scanner.take_words("or"):
            terms.append(self._read_all(depth))
        return join(Junction.OR, terms)

    def _read_all(self, depth: int) -> Expression:
        terms = [self._read_one(depth)]
        while self._scanner.take_words("and"):
            terms.append(self._read_one(depth))
        return join(Junction.AND, terms)

    def _read_one(self, depth: int) -> Expression:
        opened = self._scanner.take(_OPEN)
        if opened is None:
            return self._read_condition()
        if depth >= MAX_NESTING:
            raise self._scanner.error(f"parentheses are nested deeper than {MAX_NESTING} levels", opened)
        inner = self.read_terms(depth + 1)
        if self._scanner.take(_CLOSE) is None:
            raise self._scanner.error(
                f"expected `)` for the `(` at column {opened.start + 1}, or `and`, or `or`",
                expected=Expected.CONTINUATION,
                choices=(")", "and", "or"),
            )
        return inner

    def _read_condition(self) -> Condition:
        across = self._take_across()
        metric, statistic = self._read_subject()
        window_ms = self._take_window()
        operator = self._read_operator(metric)
        value = self._read_value(metric, statistic.kind)
        if window_ms is None:
            window_ms = self._take_window()
        return Condition(
            metric=metric.name,
            statistic=statistic,
            operator=operator,
            value=value,
            window_ms=window_ms,
            across=across,
        )

    def _take_across(self) -> Across | None:
        return next((across for across in Across if self._scanner.take_words(across.value, "of")), None)

    def _read_subject(self) -> tuple[Metric, Statistic]:
        if self._scanner.take_words("longest"):
            metric = self._read_metric(Expected.METRIC)
            return metric, self._read_side(metric, is_run=True)
        if self._scanner.take_words("share", "of"):
            metric = self._read_metric(Expected.METRIC)
            return metric, self._read_side(metric, is_run=False)
        metric = self._read_metric(Expected.CONDITION)
        if self._scanner.peek_word() in _SIDES:
            return metric, self._read_side(metric, is_run=False)
        return metric, self._read_statistic(metric)

    def _read_metric(self, expected: Expected) -> Metric:
        back = self._scanner.at
        piece = self._scanner.take_word()
        if piece is None:
            raise self._scanner.error("expected a metric", expected=expected, choices=tuple(SHORT_NAMES))
        matches = find_metrics(piece.text)
        if len(matches) == 1:
            return JUDGED_METRICS[matches[0]]
        self._scanner.at = back
        if matches:
            names = ", ".join(f"`{short_name(name)}`" for name in matches[:6])
            raise self._scanner.error(
                f"`{piece.text}` matches several metrics", piece, expected=expected, hint=f"One of {names}."
            )
        suggestion = suggest_metric(piece.text)
        hint = None if suggestion else "docs/reference/rules.md lists the metrics."
        raise self._scanner.error(
            f"there is no metric `{piece.text[:40]}`", piece, expected=expected, suggestion=suggestion, hint=hint
        )

    def _read_statistic(self, metric: Metric) -> Statistic:
        percentile = self._scanner.take(_PERCENTILE)
        if percentile is not None:
            number = float(percentile.text[1:])
            if number > 100:
                raise self._scanner.error("a percentile must be between p0 and p100", percentile)
            return Statistic(StatisticKind.PERCENTILE, percentile=number)
        word = self._scanner.peek_word()
        if word in STATISTIC_WORDS:
            self._scanner.take_word()
            return STATISTIC_WORDS[word]
        name = short_name(metric.name)
        raise self._scanner.error(
            f"expected a statistic of `{name}`",
            expected=Expected.STATISTIC,
            choices=(*STATISTIC_WORDS, *_SIDES, "p95", "p50", "p5"),
            hint=None if word else f"For example `{name} p95`, `{name} mean`, `{name} now`, or `{name} above …`.",
        )

    def _read_side(self, metric: Metric, *, is_run: bool) -> Statistic:
        word = self._scanner.peek_word()
        if word not in _SIDES:
            raise self._scanner.error("expected `above` or `below`", expected=Expected.SIDE, choices=_SIDES)
        self._scanner.take_word()
        threshold = self._read_quantity(metric, None)
        kind = StatisticKind(f"longest_{word}" if is_run else word)
        return Statistic(kind, threshold=threshold)

    def _take_window(self) -> int | None:
        if self._scanner.peek_word() != "over":
            return None
        self._scanner.take_word()
        self._scanner.take_words("the")
        if not self._scanner.take_words("last"):
            raise self._scanner.error("expected `last` as in `over last 30m`", choices=("last",))
        start = self._scanner.skip_space()
        window_ms = take_duration_ms(self._scanner)
        if window_ms == 0:
            raise self._scanner.error("a window must be longer than 0", TextPiece("", start, self._scanner.at))
        return window_ms

    def _read_operator(self, metric: Metric) -> Operator:
        piece = self._scanner.take(_OPERATOR)
        if piece is None:
            signs = tuple(operator.value for operator in Operator)
            message = f"expected a comparison of `{short_name(metric.name)}`: {' '.join(signs)}"
            raise self._scanner.error(message, expected=Expected.OPERATOR, choices=signs)
        return OPERATOR_SIGNS[piece.text]

    def _read_value(self, metric: Metric, kind: StatisticKind) -> Quantity:
        measures = STATISTICS[kind].measures
        if measures is MeasuredThing.DURATION and (compound := self._take_compound_s()) is not None:
            return compound
        value = self._read_quantity(metric, kind)
        if measures is MeasuredThing.RATE:
            self._scanner.take(_PER_HOUR)
        return value

    def _take_compound_s(self) -> Quantity | None:
        """``1h30m`` as seconds; None if it does not have at least two parts."""
        if re.compile(r"\s*\d+[hmd]+\d").match(self._scanner.text, self._scanner.at) is None:
            return None
        return Quantity(take_duration_ms(self._scanner) / 1000)

    def _read_quantity(self, metric: Metric, kind: StatisticKind | None) -> Quantity:
        number_piece = self._scanner.take_number()
        if number_piece is None:
            raise self._scanner.error("expected a number", expected=Expected.VALUE, choices=("90%", "70%", "0"))
        number, piece = number_piece
        unit = self._scanner.take_unit()
        try:
            return read_quantity(number, unit.text, metric, kind)
        except UnitMismatchError as error:
            end = unit.end if unit.text else piece.end
            where = TextPiece(self._scanner.text[piece.start : end], piece.start, end)
            raise self._scanner.error(str(error), where, suggestion=error.suggestion) from None
