"""Rules: list, read, try, save, remove, order; and the words of their language."""

from collections.abc import Iterator
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Header, Path
from pydantic import BaseModel, ConfigDict, Field

from clusterscape.errors import ClusterScapeError
from clusterscape.model.identity_fields import PublicDocument
from clusterscape.model.rules import Across, Junction, Operator, Severity, StatisticKind
from clusterscape.query.bounds import LongText, Moment, Name
from clusterscape.query.redaction.redactor import Redactor
from clusterscape.query.rule_answers import Completion, FormRow, RuleAnswer, RuleList, RuleReading, TrialAnswer
from clusterscape.serve.admission import limit_stream
from clusterscape.serve.problems import describe_error
from clusterscape.serve.redaction import RedactedRoute, RedactedStream
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1", tags=["rules"], route_class=RedactedRoute)

RuleKey = Annotated[str, Path(max_length=100, description="1 to 64 small letters, digits, - and _.")]
MOST_TEXT = 4000
LINES = "application/x-ndjson"
LEAST_STEP = 0.005
"""Of a trial, that is worth telling."""


class FormField(BaseModel):
    """One condition as a form has it; see ``FormRow`` of the answers."""

    model_config = ConfigDict(extra="forbid")

    metric: Name
    statistic: StatisticKind
    operator: Operator
    value: Name
    unit: Name = ""
    argument: Name | None = None
    argument_unit: Name = ""
    window_ms: Moment | None = None
    across: Across | None = None
    junction: Junction = Junction.AND

    def row(self) -> FormRow:
        """As the language takes it."""
        return FormRow(**dict(self))


class RuleForms(BaseModel):
    """A rule in one of its forms. The form has no scope: ``text`` beside it gives the clauses after the conditions."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str | None, Field(max_length=MOST_TEXT)] = None
    form: Annotated[list[FormField] | None, Field(max_length=50)] = None
    document: Annotated[dict[Name, Any] | None, Field(max_length=50)] = None


class RuleChange(RuleForms):
    """What to change of a rule; what is not given stays as it is. A new rule needs one of its forms."""

    name: Name | None = None
    severity: Severity | None = None
    reason: LongText | None = None
    advice: Annotated[LongText | None, Field(description="To the workload's user, in their words.")] = None
    color: Annotated[Name | None, Field(description="Null: by severity.")] = None
    owner: Name | None = None
    is_enabled: bool | None = None


class RuleTrial(RuleForms):
    """A rule and how much of the past to try it on."""

    hours: Annotated[float, Field(gt=0, le=24 * 366)] = 24.0


class RuleOrder(BaseModel):
    """Keys of rules, first ones first; rules that are not named follow."""

    keys: Annotated[list[Name], Field(max_length=1000)]


class CompletionQuestion(BaseModel):
    """A text being typed, and where."""

    text: Annotated[str, Field(max_length=MOST_TEXT)]
    cursor: Annotated[int | None, Field(ge=0, le=MOST_TEXT)] = None


@router.get("/rules")
def list_rules(state: State) -> RuleList:
    """All rules in the order of the bar, with what they say now."""
    return state.queries.rules.all()


@router.put("/rules/{key}")
def save_rule(key: RuleKey, change: RuleChange, state: State) -> RuleAnswer:
    """Add a rule, or change one."""
    return state.queries.rules.save(key, change.model_dump(exclude_unset=True) | _forms(change))


@router.delete("/rules/{key}", status_code=204)
def remove_rule(key: RuleKey, state: State) -> None:
    """Forget an own rule; a shipped one becomes again what it was."""
    state.queries.rules.remove(key)


@router.put("/rule-order", status_code=204)
def order_rules(order: RuleOrder, state: State) -> None:
    """Put rules into an order."""
    state.queries.rules.order(order.keys)


@router.post("/rules/read")
def read_rule(given: RuleForms, state: State) -> RuleReading:
    """A rule from text, form or document in all three; says what is wrong and where."""
    return state.queries.rules.read(**_forms(given))


@router.post("/rules/complete")
def complete_rule(question: CompletionQuestion, state: State) -> list[Completion]:
    """What may stand at the cursor."""
    return state.queries.rules.complete(question.text, question.cursor)


@router.post(
    "/rules/try",
    response_model=TrialAnswer,
    responses={200: {"content": {LINES: {"schema": {"type": "string"}}}}},
    dependencies=[Depends(limit_stream, scope="request")],
)
def try_rule(
    given: RuleTrial, state: State, accept: Annotated[str, Header(max_length=1000)] = ""
) -> TrialAnswer | RedactedStream:
    """What a rule would have done in the last hours, before it is saved.

    With ``Accept: application/x-ndjson`` one JSON object a line: ``{"share": 0.42}`` while it is being found out, then
    ``{"answer": …}``, or ``{"error": …}`` in the one error shape. Hanging up stops it.
    """
    rule = state.queries.rules.parse(**_forms(given))
    if LINES not in accept:
        return state.queries.violations.try_rule(rule, hours=given.hours)
    told = _tell(state.queries.violations.follow_trial(rule, hours=given.hours), state.redactor)
    # Compressed, lines would wait for one another.
    return RedactedStream(told, media_type=LINES, headers={"Content-Encoding": "identity"})


def _tell(trial: Iterator[float | TrialAnswer], redactor: Redactor | None) -> Iterator[bytes]:
    said = -1.0
    try:
        for step in trial:
            if not isinstance(step, float):
                answer = step if redactor is None else redactor.redact(step)
                yield orjson.dumps({"answer": answer}) + b"\n"
            elif step - said >= LEAST_STEP:
                said = step
                yield orjson.dumps({"share": round(step, 4)}) + b"\n"
    except ClusterScapeError as error:
        about = describe_error(error)
        shown = about if redactor is None else redactor.redact(about)
        yield orjson.dumps({"error": shown.model_dump()}) + b"\n"


@router.get("/rule-language")
def describe_rule_language(state: State) -> PublicDocument:
    """Metrics, statistics, operators and units, for forms and for completion."""
    return state.queries.rules.language()


def _forms(given: RuleForms) -> dict[str, Any]:
    form = None if given.form is None else [field.row() for field in given.form]
    return {"text": given.text, "form": form, "document": given.document}
