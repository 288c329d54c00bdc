"""Markers that say what each text of a record or an answer tells about a person; ``query/redaction`` follows them.

They stand where the type is defined: ``user: UserName``. A text without a marker cannot be redacted, and is refused.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Annotated, Any, TypeVar

T = TypeVar("T", bound=type)


class Reveals(Enum):
    """What a field tells about a person, and so what a viewer reads instead who may not know that person."""

    NOTHING = auto()
    """Names of the cluster, of metrics and of the program's own words: the same for everybody."""
    USER = auto()
    """A login: a pseudonym. In a type with this field, the field says whose the other fields are."""
    PERSON = auto()
    """A login of somebody who is mentioned, and does not own the other fields: a pseudonym."""
    PROJECT = auto()
    """A project or account: a pseudonym; says whose the other fields are, too."""
    EXPERIMENT = auto()
    """What somebody calls their experiment: a pseudonym."""
    WORKLOAD_ID = auto()
    """Kubernetes ids are made of names: a code. Says whose the other fields are where user and project are not beside it."""
    UNIT_ID = auto()
    """Requested units are named after their workload: a code where that id is one."""
    OWNER_TEXT = auto()
    """Written by the owner, such as the name of a job: missing, or ``hidden`` where it cannot be."""
    FREE_TEXT = auto()
    """Written by anybody: pseudonyms in place of users and projects that it mentions."""
    TAGS = auto()
    """What owners noted of a workload: only sizes of its parallel layout."""
    OPERATOR_TEXT = auto()
    """May mention anybody: a hint to ask an operator."""
    OPERATOR_ONLY = auto()
    """May mention anybody: missing, or empty."""
    SCOPED_TEXT = auto()
    """Made from records that were redacted already, or repeated from the viewer's own request: only ids become codes."""
    REDACTION_FLAG = auto()
    """Whether the answer is redacted."""


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
    """Marks a type whose unmarked texts are content of ``what``, which the viewer was allowed to open."""

    def mark(kind: T) -> T:
        setattr(kind, CHECKED_ATTRIBUTE, what)
        return kind

    return mark
