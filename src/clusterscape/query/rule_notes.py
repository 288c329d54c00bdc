"""Mutes, which suppress alerts for a time, and comments on violations. Written by `services/rules.py`."""

from collections.abc import Mapping
from typing import cast

from clusterscape.errors import QueryError
from clusterscape.query.context import QueryContext
from clusterscape.query.rule_answers import CommentAnswer, MuteAnswer
from clusterscape.query.search import find_id
from clusterscape.watch.rulebook import read_mutes

COMMENT = "rule-comment"
MAX_HOURS = 24 * 366


class RuleNotes:
    """Mutes and comments."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context

    def mutes(self) -> list[MuteAnswer]:
        """Mutes that have not expired, newest first."""
        answers = [
            MuteAnswer(
                key=key,
                rule=mute.rule,
                workload=mute.workload,
                reason=mute.reason,
                author=mute.author,
                created_at=mute.created_at,
                expires_at=mute.expires_at,
            )
            for key, mute in read_mutes(self._context.records, self._context.clock()).items()
        ]
        return sorted(answers, key=lambda mute: mute.created_at, reverse=True)

    def comments(self, workload: str | None = None) -> list[CommentAnswer]:
        """Comments, newest first; only those on ``workload`` if it is not None."""
        workload = None if workload is None else find_id(self._context.records, workload)
        comments = [read_comment(document.key, document.body) for document in self._context.records.documents(COMMENT)]
        matching = [comment for comment in comments if workload is None or comment.workload == workload]
        return sorted(matching, key=lambda comment: comment.created_at, reverse=True)


def read_comment(key: str, body: Mapping[str, object]) -> CommentAnswer:
    """Parses a stored document."""
    return CommentAnswer(
        key=key,
        workload=str(body["workload"]),
        author=str(body["author"]),
        text=str(body["text"]),
        created_at=cast(int, body["created_at"]),
    )


def check_hours(hours: float) -> float:
    """``hours``, or a QueryError if they are out of range."""
    if not 0 < hours <= MAX_HOURS:
        raise QueryError(f"hours must be more than 0 and at most {MAX_HOURS}, not {hours}")
    return hours
