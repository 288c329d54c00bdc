"""Saved views: named documents that everybody shares, and which of them the page opens with. Insights on runs are kept alike.

What a view means is the page's own business: it validates and migrates its documents. Here name, size and frame are checked.
"""

import re
from collections.abc import Mapping

import orjson

from clusterscape.errors import NotFoundError, QueryError, TooLargeError
from clusterscape.model.viewers import ANYONE_HERE, Viewer
from clusterscape.query.answers import SavedView, SavedViews
from clusterscape.query.context import QueryContext
from clusterscape.query.ownership import OWNER, check_owner, owner_for
from clusterscape.store.records.contract import Document

MAX_BYTES = 65_536

VIEW, INSIGHT = "view", "insight"
_SITE, _START = "site", "start-view"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_BUILT_IN = re.compile(r"builtin:[a-z0-9][a-z0-9_-]{0,63}")


class ViewQuery:
    """Reads and writes saved views, or what else is kept like them under ``kind``."""

    def __init__(self, context: QueryContext, kind: str = VIEW) -> None:
        self._context = context
        self._kind = kind

    def all(self) -> SavedViews:
        """Every saved view by name, and the one to start with."""
        views = [_describe(document) for document in self._context.records.documents(self._kind)]
        return SavedViews(views=views, start_view=self._start_view() if self._kind == VIEW else None)

    def save(self, name: str, body: Mapping[str, object], *, by: Viewer = ANYONE_HERE) -> SavedView:
        """Insert or replace the view ``name``. ``body``: a JSON object with ``version`` (integer) and ``title``."""
        _check_name(name)
        _check_frame(body)
        records = self._context.records
        known = records.document(self._kind, name)
        if known is not None:
            check_owner(known.body.get(OWNER), by, f"the {self._kind} {name}")
        owner = known.body.get(OWNER) if known is not None else owner_for(by)
        if known is None:
            self._check_number(owner_for(by))
        kept = {key: value for key, value in body.items() if key != OWNER} | ({OWNER: owner} if owner else {})
        now = self._context.clock()
        records.write_document(self._kind, name, kept, at_ms=now)
        return _describe(Document(kind=self._kind, key=name, body=kept, written_at=now))

    def _check_number(self, owner: object) -> None:
        limits = self._context.items
        owners = [document.body.get(OWNER) for document in self._context.records.documents(self._kind)]
        if len(owners) >= limits.views:
            raise TooLargeError(
                f"there are {limits.views:,} saved {self._kind}s already",
                setting="limits.items.views",
                hint="Delete one that nobody needs.",
            )
        if owner is not None and owners.count(owner) >= limits.views_per_user:
            raise TooLargeError(
                f"you have {limits.views_per_user:,} saved {self._kind}s already",
                setting="limits.items.views_per_user",
                hint="Delete one that you no longer need.",
            )

    def remove(self, name: str, *, by: Viewer = ANYONE_HERE) -> None:
        """Forget the view ``name``; where it was the start view, there is none any more."""
        known = self._context.records.document(self._kind, name)
        if known is None:
            raise self._not_found(name)
        check_owner(known.body.get(OWNER), by, f"the {self._kind} {name}")
        self._context.records.remove_document(self._kind, name)
        if self._kind == VIEW and self._start_view() == name:
            self.start_with(None)

    def start_with(self, name: str | None) -> str | None:
        """Open the page with the saved or built-in (``builtin:…``) view ``name``; None: with the page's own choice."""
        records = self._context.records
        if name is None:
            records.remove_document(_SITE, _START)
            return None
        if not _BUILT_IN.fullmatch(name):
            _check_name(name)
            if records.document(self._kind, name) is None:
                raise self._not_found(name)
        records.write_document(_SITE, _START, {"name": name}, at_ms=self._context.clock())
        return name

    def _start_view(self) -> str | None:
        found = self._context.records.document(_SITE, _START)
        name = found.body.get("name") if found else None
        return name if isinstance(name, str) else None

    def _not_found(self, name: str) -> NotFoundError:
        kind = self._kind
        return NotFoundError(f"there is no saved {kind} {name[:80]!r}", hint=f"GET /api/v1/{kind}s lists them.")


def _describe(document: Document) -> SavedView:
    title = document.body.get("title")
    return SavedView(
        name=document.key,
        title=title if isinstance(title, str) else document.key,
        written_at=document.written_at,
        document={key: value for key, value in document.body.items() if key != OWNER},
    )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise QueryError(
            f"{name[:80]!r} cannot name a view",
            hint="Use 1 to 64 small letters, digits, - and _, beginning with a letter or digit; the title is free.",
        )


def _check_frame(body: Mapping[str, object]) -> None:
    version, title = body.get("version"), body.get("title")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise QueryError("a view needs a `version`: the whole number of its format, at least 1")
    if not isinstance(title, str) or not title.strip() or len(title) > 200:
        raise QueryError("a view needs a `title` of 1 to 200 characters")
    try:
        size = len(orjson.dumps(body))
    except TypeError as error:
        raise QueryError(
            f"the view cannot be kept as JSON: {error}", hint="Numbers have at most 64 bits, text is valid Unicode."
        ) from None
    if size > MAX_BYTES:
        raise QueryError(f"the view has {size} bytes, more than {MAX_BYTES}", hint="Leave out what it does not need.")
