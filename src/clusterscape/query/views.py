"""Saved views: named documents, shared by all users, and the view that the page opens with. Insights on runs are stored alike.

The page defines, validates and migrates the content of the documents. Written by `services/saved_views.py`.
"""

from clusterscape.query.answers import SavedView, SavedViews
from clusterscape.query.context import QueryContext
from clusterscape.query.ownership import OWNER
from clusterscape.store.records.contract import Document

VIEW, INSIGHT = "view", "insight"
SITE, START = "site", "start-view"
"""Kind and key of the document that names the start view."""


class ViewQuery:
    """Reads saved views, or other documents of the same shape under ``kind``."""

    def __init__(self, context: QueryContext, kind: str = VIEW) -> None:
        self._context = context
        self._kind = kind

    def all(self) -> SavedViews:
        """Every saved view by name, and the one to start with."""
        views = [describe_view(document) for document in self._context.records.documents(self._kind)]
        return SavedViews(views=views, start_view=self.start_view() if self._kind == VIEW else None)

    def start_view(self) -> str | None:
        """The saved or built-in view that the page opens with; None: the page's default."""
        document = self._context.records.document(SITE, START)
        name = document.body.get("name") if document else None
        return name if isinstance(name, str) else None


def describe_view(document: Document) -> SavedView:
    """The view without its owner."""
    title = document.body.get("title")
    return SavedView(
        name=document.key,
        title=title if isinstance(title, str) else document.key,
        written_at=document.written_at,
        document={key: value for key, value in document.body.items() if key != OWNER},
    )
