"""Markers of text fields that say what a field reveals about a person; ``query/redaction`` redacts by them.

They are part of the field's type: ``user: UserName``. A text field without a marker cannot be redacted and raises an error.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Annotated, Any, TypeVar

T = TypeVar("T", bound=type)


class Reveals(Enum):
    """What a field reveals about a person, and what replaces it for viewers who may not see that person."""

    NOTHING = auto()
    """Names of nodes, partitions and metrics, and fixed texts: shown to everybody."""
    USER = auto()
    """A login, replaced by a pseudonym. It also names the owner of the other fields of its type."""
    PERSON = auto()
    """A login of a person who is mentioned but does not own the other fields: a pseudonym."""
    PROJECT = auto()
    """A project or account: a pseudonym. It also names the owner of the other fields."""
    EXPERIMENT = auto()
    """The name of an experiment: a pseudonym."""
    WORKLOAD_ID = auto()
    """Kubernetes ids contain names: a code. Identifies the owner of the other fields where the type has no user and project."""
    UNIT_ID = auto()
    """Requested units are named after their workload: a code where the workload id is replaced by one."""
    OWNER_TEXT = auto()
    """Written by the owner, such as the name of a job: null, or ``hidden`` where the field is required."""
    FREE_TEXT = auto()
    """Written by anybody: users and projects that it mentions become pseudonyms."""
    TAGS = auto()
    """Tags that owners set on a workload: only the sizes of its parallel layout are kept."""
    OPERATOR_TEXT = auto()
    """May mention anybody: replaced by a hint to ask an operator."""
    OPERATOR_ONLY = auto()
    """May mention anybody: null, or empty."""
    SCOPED_TEXT = auto()
    """Built from redacted records, or copied from the viewer's own request: only ids become codes."""
    REDACTION_FLAG = auto()
    """Whether the response is redacted."""


PublicText = Annotated[str, Reveals.NOTHING]
UserName = Annotated[str, Reveals.USER]
PersonName = Annotated[str, Reveals.PERSON]
ProjectName = Annotated[str, Reveals.PROJECT]
ExperimentName = Annotated[str, Reveals.EXPERIMENT]
WorkloadRef = Annotated[str, Reveals.WORKLOAD_ID]
UnitRef = Annotated[str, Reveals.UNIT_ID]
OwnerText = Annotated[str, Reveals.OWNER_TEXT]
FreeText = Annotated[str, Reveals.FREE_TEXT]
OperatorText = Annotated[str, Reveals.OPERATOR_TEXT]
OperatorOnly = Annotated[str, Reveals.OPERATOR_ONLY]
ScopedText = Annotated[str, Reveals.SCOPED_TEXT]
WorkloadTags = Annotated[Mapping[str, str], Reveals.TAGS]
PublicDocument = Annotated[dict[str, Any], Reveals.NOTHING]

CHECKED_ATTRIBUTE = "__access_checked__"


def access_checked(what: str) -> Callable[[T], T]:
    """Mark a type whose unmarked texts are content of ``what``, to which access was checked before."""

    def mark(kind: T) -> T:
        setattr(kind, CHECKED_ATTRIBUTE, what)
        return kind

    return mark
