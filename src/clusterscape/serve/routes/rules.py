"""Rules: list, read, try, save, remove, order; and the vocabulary of the rule language."""

from collections.abc import Iterator
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Header, Path
from pydantic import BaseModel, ConfigDict, Field

from clusterscape.errors import ClusterScapeError
from clusterscape.model.identity_fields import PublicDocument
from clusterscape.model.rules import Across, Junction, Operator, Severity, StatisticKind
from clusterscape.query.bounds import LongText, Moment, Name
from clusterscape.query.redaction.redactor import ScopeRedactor
from clusterscape.query.rule_answers import Completion, FormRow, RuleAnswer, RuleList, RuleReading, TrialAnswer
from clusterscape.serve.admission import limit_stream
from clusterscape.serve.problems import to_problem
from clusterscape.serve.redaction import RedactedRoute, RedactedStream
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1", tags=["rules"], route_class=RedactedRoute)

RuleKey = Annotated[str, Path(max_length=100, description="1 to 64 small letters, digits, - and _.")]
MOST_TEXT = 4000
LINES = "application/x-ndjson"
MIN_PROGRESS_STEP = 0.005
"""The smallest progress of a trial that is sent."""


class FormField(BaseModel):
    """One condition as a form sends it; see ``FormRow`` of the answers."""

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
        """The condition as the rule language reads it."""
        return FormRow(**dict(self))


class RuleForms(BaseModel):
    """A rule in one of its forms. A form has no scope: then ``text`` gives the clauses after the conditions."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str | None, Field(max_length=MOST_TEXT)] = None
    form: Annotated[list[FormField] | None, Field(max_length=50)] = None
    document: Annotated[dict[Name, Any] | None, Field(max_length=50)] = None


class RuleChange(RuleForms):
    """Changes of a rule; omitted fields stay. A new rule needs one of its forms."""

    name: Name | None = None
    severity: Severity | None = None
    reason: LongText | None = None
    advice: Annotated[LongText | None, Field(description="For the workload's user, in plain words.")] = None
    color: Annotated[Name | None, Field(description="Null: by severity.")] = None
    owner: Name | None = None
    is_enabled: bool | None = None


class RuleTrial(RuleForms):
    """A rule, and the hours of the past to try it on."""

    hours: Annotated[float, Field(gt=0, le=24 * 366)] = 24.0


class RuleOrder(BaseModel):
    """Keys of rules in order; rules that are not listed follow."""

    keys: Annotated[list[Name], Field(max_length=1000)]


class CompletionQuestion(BaseModel):
    """A text that is being typed, and the position of the cursor."""

    text: Annotated[str, Field(max_length=MOST_TEXT)]
    cursor: Annotated[int | None, Field(ge=0, le=MOST_TEXT)] = None


@router.get("/rules")
def list_rules(state: State) -> RuleList:
    """All rules in their order, with their current violations."""
    return state.queries.rules.all()


@router.put("/rules/{key}")
def save_rule(key: RuleKey, change: RuleChange, state: State) -> RuleAnswer:
    """Add a rule, or change one."""
    return state.services.rules.save(key, change.model_dump(exclude_unset=True) | _forms(change))


@router.delete("/rules/{key}", status_code=204)
def remove_rule(key: RuleKey, state: State) -> None:
    """Delete a rule of this site, or reset a shipped rule to its original."""
    state.services.rules.remove(key)


@router.put("/rule-order", status_code=204)
def order_rules(order: RuleOrder, state: State) -> None:
    """Set the order of the rules."""
    state.services.rules.order(order.keys)


@router.post("/rules/read")
def read_rule(rule_forms: RuleForms, state: State) -> RuleReading:
    """Convert a rule from text, form or document to all three; reports errors with their position."""
    return state.queries.rules.read(**_forms(rule_forms))


@router.post("/rules/complete")
def complete_rule(question: CompletionQuestion, state: State) -> list[Completion]:
    """Completions at the cursor."""
    return state.queries.rules.complete(question.text, question.cursor)


@router.post(
    "/rules/try",
    response_model=TrialAnswer,
    responses={200: {"content": {LINES: {"schema": {"type": "string"}}}}},
    dependencies=[Depends(limit_stream, scope="request")],
)
def try_rule(
    rule_forms: RuleTrial, state: State, accept: Annotated[str, Header(max_length=1000)] = ""
) -> TrialAnswer | RedactedStream:
    """The violations that a rule would have had in the last hours, before it is saved.

    With ``Accept: application/x-ndjson``, one JSON object per line: ``{"share": 0.42}`` as progress, then ``{"answer": …}``, or
    ``{"error": …}`` in the one error shape. Closing the connection stops the trial.
    """
    rule = state.queries.rules.parse(**_forms(rule_forms))
    if LINES not in accept:
        return state.queries.violations.try_rule(rule, hours=rule_forms.hours)
    lines = _encode_progress(state.queries.violations.follow_trial(rule, hours=rule_forms.hours), state.redactor)
    # Compression would delay lines.
    return RedactedStream(lines, media_type=LINES, headers={"Content-Encoding": "identity"})


def _encode_progress(trial: Iterator[float | TrialAnswer], redactor: ScopeRedactor | None) -> Iterator[bytes]:
    sent_share = -1.0
    try:
        for step in trial:
            if not isinstance(step, float):
                answer = step if redactor is None else redactor.redact(step)
                yield orjson.dumps({"answer": answer}) + b"\n"
            elif step - sent_share >= MIN_PROGRESS_STEP:
                sent_share = step
                yield orjson.dumps({"share": round(step, 4)}) + b"\n"
    except ClusterScapeError as error:
        problem = to_problem(error)
        redacted = problem if redactor is None else redactor.redact(problem)
        yield orjson.dumps({"error": redacted.model_dump()}) + b"\n"


@router.get("/rule-language")
def describe_rule_language(state: State) -> PublicDocument:
    """Metrics, statistics, operators and units, for forms and for completion."""
    return state.queries.rules.language()


def _forms(rule_forms: RuleForms) -> dict[str, Any]:
    form = None if rule_forms.form is None else [field.row() for field in rule_forms.form]
    return {"text": rule_forms.text, "form": form, "document": rule_forms.document}
