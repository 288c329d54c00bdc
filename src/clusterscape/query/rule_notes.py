"""What people add to violations: mutes, so that nobody is told for a while, and comments. Kept as documents."""

import secrets
from collections.abc import Callable, Mapping
from typing import cast

from clusterscape.errors import ForbiddenError, NotFoundError, QueryError, TooLargeError
from clusterscape.model import WorkloadId
from clusterscape.model.hardware import find_node, is_hardware, source_subject
from clusterscape.model.viewers import ANYONE_HERE, Viewer
from clusterscape.query.context import QueryContext
from clusterscape.query.ownership import check_owner
from clusterscape.query.rule_answers import CommentAnswer, MuteAnswer
from clusterscape.query.workload_ids import find_id, resolve_workload
from clusterscape.watch.mutes import MUTE, read_mutes, write_mute
from clusterscape.watch.rulebook import RuleBook

HOUR_MS = 3_600_000
MOST_HOURS = 24 * 366
COMMENT = "rule-comment"
MOST_TEXT = 4000


class RuleNotes:
    """Mutes and comments."""

    def __init__(
        self, context: QueryContext, book: RuleBook, *, may_comment: Callable[[str], bool] = lambda _: True
    ) -> None:
        """``may_comment``: whether the viewer may write about a workload."""
        self._context = context
        self._book = book
        self._may_comment = may_comment

    def mutes(self) -> list[MuteAnswer]:
        """Those that have not expired, newest first."""
        found = read_mutes(self._context.records, self._context.clock())
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
            for key, mute in found.items()
        ]
        return sorted(answers, key=lambda mute: mute.created_at, reverse=True)

    def mute(self, *, rule: str, workload: str | None, reason: str, author: str, hours: float) -> MuteAnswer:
        """Tell nobody of a rule's violations, by one workload or by all, for some hours."""
        self._book.find(rule)
        if workload is not None:
            workload = self._resolve(workload)
        now = self._context.clock()
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
        self._context.records.write_document(MUTE, answer.key, write_mute(answer), at_ms=now)
        self._context.changes.bump_rules()
        return answer

    def unmute(self, key: str) -> None:
        """End a mute."""
        if not self._context.records.remove_document(MUTE, key):
            raise NotFoundError(f"there is no mute {key[:80]!r}", hint="GET /api/v1/mutes lists them.")
        self._context.changes.bump_rules()

    def comments(self, workload: str | None = None) -> list[CommentAnswer]:
        """What people wrote, newest first; about one workload where it is named."""
        workload = None if workload is None else find_id(self._context.records, workload)
        found = [_comment_of(each.key, each.body) for each in self._context.records.documents(COMMENT)]
        wanted = [each for each in found if workload is None or each.workload == workload]
        return sorted(wanted, key=lambda each: each.created_at, reverse=True)

    def comment(self, *, workload: str, author: str, text: str) -> CommentAnswer:
        """Write something about a workload. Raises ForbiddenError where it is not the viewer's to comment on."""
        workload = self._resolve(workload)
        if not self._may_comment(workload):
            raise ForbiddenError(
                f"{workload} is not yours to comment on", hint="Its owner, leads of its project and operators can."
            )
        self._check_comments(workload, author.strip())
        now = self._context.clock()
        body = {
            "workload": workload,
            "author": _check_text(author, "author"),
            "text": _check_text(text, "text"),
            "created_at": now,
        }
        key = secrets.token_hex(6)
        self._context.records.write_document(COMMENT, key, body, at_ms=now)
        self._context.changes.bump_rules()
        return _comment_of(key, body)

    def remove_comment(self, key: str, *, by: Viewer = ANYONE_HERE) -> None:
        """Take back a comment."""
        found = self._context.records.document(COMMENT, key)
        if found is None:
            raise NotFoundError(f"there is no comment {key[:80]!r}", hint="GET /api/v1/comments lists them.")
        check_owner(found.body.get("author"), by, "the comment")
        self._context.records.remove_document(COMMENT, key)
        self._context.changes.bump_rules()

    def _resolve(self, workload: str) -> WorkloadId:
        """The workload, or the hardware that rules judge, by any of its names."""
        if is_hardware(workload):
            self._check_hardware(workload)
            return WorkloadId(workload)
        return resolve_workload(self._context.records, workload).id

    def _check_mutes(self) -> None:
        """Make room by forgetting what has expired; raise TooLargeError where there is none."""
        records, most = self._context.records, self._context.items.mutes
        kept = records.documents(MUTE)
        if len(kept) < most:
            return
        active = read_mutes(records, self._context.clock())
        for each in kept:
            if each.key not in active:
                records.remove_document(MUTE, each.key)
        if len(active) >= most:
            raise TooLargeError(
                f"there are {most:,} mutes already", setting="limits.items.mutes", hint="End one that nobody needs."
            )

    def _check_comments(self, workload: str, author: str) -> None:
        limits = self._context.items
        found = [each.body for each in self._context.records.documents(COMMENT)]
        for what, count, setting in (
            ("comments", len(found), "comments"),
            ("comments of yours", sum(each.get("author") == author for each in found), "comments_per_user"),
            (
                "comments on this workload",
                sum(each.get("workload") == workload for each in found),
                "comments_per_workload",
            ),
        ):
            if count >= getattr(limits, setting):
                raise TooLargeError(
                    f"there are {count:,} {what} already",
                    setting=f"limits.items.{setting}",
                    hint="Delete some that nobody needs.",
                )

    def _check_hardware(self, subject: str) -> None:
        node = find_node(subject)
        records = self._context.records
        is_known = (
            subject in {source_subject(status.kind) for status in records.sources()}
            if node is None
            else any(known.id == node for known in records.nodes())
        )
        if not is_known:
            raise NotFoundError(f"there is no {subject[:80]!r}", hint="Name it like node:gpu01 or source:slurm.")


def _comment_of(key: str, body: Mapping[str, object]) -> CommentAnswer:
    return CommentAnswer(
        key=key,
        workload=str(body["workload"]),
        author=str(body["author"]),
        text=str(body["text"]),
        created_at=cast(int, body["created_at"]),
    )


def check_hours(hours: float) -> float:
    """``hours``, if they make sense."""
    if not 0 < hours <= MOST_HOURS:
        raise QueryError(f"hours must be more than 0 and at most {MOST_HOURS}, not {hours}")
    return hours


def _check_text(text: str, what: str) -> str:
    cleaned = text.strip()
    if not cleaned or len(cleaned) > MOST_TEXT:
        raise QueryError(f"{what} must have 1 to {MOST_TEXT} characters, not {len(cleaned)}")
    return cleaned
