"""Saved views, shared by everybody, and which of them the page opens with."""

from typing import Annotated, Self

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field, model_validator

from clusterscape.model.identity_fields import Reveals
from clusterscape.query.answers import SavedView, SavedViews
from clusterscape.query.bounds import Name
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import CurrentViewer, State

router = APIRouter(prefix="/api/v1", tags=["views"], route_class=RedactedRoute)

ViewName = Annotated[str, Path(max_length=100, description="1 to 64 small letters, digits, - and _.")]
MOST_PROPERTIES = 200
"""Of a document; its size is the query's matter."""


class ViewDocument(BaseModel):
    """A view as the page describes it: any JSON object of at most 64 KiB with these two fields."""

    model_config = ConfigDict(extra="allow", strict=True, json_schema_extra={"maxProperties": MOST_PROPERTIES})

    version: int = Field(ge=1, le=1_000_000, description="Of the document's format.")
    title: str = Field(min_length=1, max_length=200)

    @model_validator(mode="after")
    def _check_properties(self) -> Self:
        if len(self.model_extra or {}) > MOST_PROPERTIES:
            raise ValueError(f"a document may have {MOST_PROPERTIES} properties")
        return self


class StartView(BaseModel):
    """The view to open the page with: a saved one, ``builtin:…`` for one of the page's own, or null for its choice."""

    name: Annotated[Name, Reveals.NOTHING] | None


@router.get("/views")
def list_views(state: State) -> SavedViews:
    """All saved views with their documents, and the start view."""
    return state.queries.views.all()


@router.put("/views/{name}")
def save_view(name: ViewName, document: ViewDocument, state: State, viewer: CurrentViewer) -> SavedView:
    """Save a view under a name, in place of the one that has it; an operator's is everybody's."""
    return state.queries.views.save(name, document.model_dump(), by=viewer)


@router.delete("/views/{name}", status_code=204)
def remove_view(name: ViewName, state: State, viewer: CurrentViewer) -> None:
    """Forget a saved view."""
    state.queries.views.remove(name, by=viewer)


@router.put("/start-view")
def set_start_view(choice: StartView, state: State) -> StartView:
    """Choose the view that the page opens with."""
    return StartView(name=state.queries.views.start_with(choice.name))
