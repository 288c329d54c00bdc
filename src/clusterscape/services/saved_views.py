"""Writes saved views and insights. Checks name, size and required fields; the page defines the rest of the content."""

import re
from collections.abc import Mapping

import orjson

from clusterscape.errors import NotFoundError, QueryError, TooLargeError
from clusterscape.model.access import LOCAL_ADMIN, Viewer
from clusterscape.query.answers import SavedView
from clusterscape.query.ownership import OWNER, check_owner, owner_for
from clusterscape.query.views import SITE, START, VIEW, ViewQuery, describe_view
from clusterscape.services.context import ServiceContext
from clusterscape.store.records.contract import Document

MAX_BYTES = 65_536

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_BUILT_IN = re.compile(r"builtin:[a-z0-9][a-z0-9_-]{0,63}")


class ViewKeeper:
    """Saves and deletes views, or other documents of the same shape under ``kind``."""

    def __init__(self, context: ServiceContext, kind: str = VIEW) -> None:
        self._context = context
        self._records = context.reads.records
        self._kind = kind

    def save(self, name: str, body: Mapping[str, object], *, by: Viewer = LOCAL_ADMIN) -> SavedView:
        """Insert or replace the view ``name``. ``body``: a JSON object with ``version`` (integer) and ``title``."""
        _check_name(name)
        _check_content(body)
        document = self._records.document(self._kind, name)
        if document is None:
            owner: object = owner_for(by)
            self._check_count(owner)
        else:
            owner = document.body.get(OWNER)
            check_owner(owner, by, f"{self._kind} {name}")
        stored = {key: value for key, value in body.items() if key != OWNER} | ({OWNER: owner} if owner else {})
        now = self._context.reads.clock()
        self._context.write_document(self._kind, name, stored, at_ms=now)
        return describe_view(Document(kind=self._kind, key=name, body=stored, written_at=now))

    def _check_count(self, owner: object) -> None:
        limits = self._context.items
        owners = [document.body.get(OWNER) for document in self._records.documents(self._kind)]
        if len(owners) >= limits.views:
            raise TooLargeError(
                f"the limit of {limits.views:,} saved {self._kind}s is reached",
                setting="limits.items.views",
                hint=f"Delete unused {self._kind}s.",
            )
        if owner is not None and owners.count(owner) >= limits.views_per_user:
            raise TooLargeError(
                f"your limit of {limits.views_per_user:,} saved {self._kind}s is reached",
                setting="limits.items.views_per_user",
                hint="Delete one that you no longer need.",
            )

    def remove(self, name: str, *, by: Viewer = LOCAL_ADMIN) -> None:
        """Deletes the view ``name``; if it was the start view, the start view is reset."""
        document = self._records.document(self._kind, name)
        if document is None:
            raise self._not_found(name)
        check_owner(document.body.get(OWNER), by, f"{self._kind} {name}")
        self._context.remove_document(self._kind, name)
        if self._kind == VIEW and ViewQuery(self._context.reads).start_view() == name:
            self.start_with(None)

    def start_with(self, name: str | None) -> str | None:
        """Sets the view that the page opens with, a saved or built-in (``builtin:…``) one; None: the page's default."""
        if name is None:
            self._context.remove_document(SITE, START)
            return None
        if not _BUILT_IN.fullmatch(name):
            _check_name(name)
            if self._records.document(self._kind, name) is None:
                raise self._not_found(name)
        self._context.write_document(SITE, START, {"name": name}, at_ms=self._context.reads.clock())
        return name

    def _not_found(self, name: str) -> NotFoundError:
        kind = self._kind
        return NotFoundError(f"no saved {kind} {name[:80]!r}", hint=f"GET /api/v1/{kind}s lists them.")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise QueryError(
            f"{name[:80]!r} is not a valid name",
            hint="Use 1 to 64 lowercase letters, digits, - and _, starting with a letter or digit. The title may be any text.",
        )


def _check_content(body: Mapping[str, object]) -> None:
    version, title = body.get("version"), body.get("title")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise QueryError("a view needs a `version`: the number of its format, an integer of at least 1")
    if not isinstance(title, str) or not title.strip() or len(title) > 200:
        raise QueryError("a view needs a `title` of 1 to 200 characters")
    try:
        size = len(orjson.dumps(body))
    except TypeError as error:
        raise QueryError(
            f"the view cannot be stored as JSON: {error}", hint="Numbers have at most 64 bits, text is valid Unicode."
        ) from None
    if size > MAX_BYTES:
        raise QueryError(f"the view has {size} bytes, more than {MAX_BYTES}", hint="Make the view smaller.")
