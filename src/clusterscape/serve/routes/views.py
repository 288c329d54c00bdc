"""Saved views, shared by all users, and the start view of the page."""

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
"""Properties of a document; the query limits its size."""


class ViewDocument(BaseModel):
    """A view as the page describes it: any JSON object of at most 64 KiB with these two fields."""

    model_config = ConfigDict(extra="allow", strict=True, json_schema_extra={"maxProperties": MOST_PROPERTIES})

    version: int = Field(ge=1, le=1_000_000, description="Of the document's format.")
    title: str = Field(min_length=1, max_length=200)

    @model_validator(mode="after")
    def _check_properties(self) -> Self:
        if len(self.model_extra or {}) > MOST_PROPERTIES:
            raise ValueError(f"a document may have at most {MOST_PROPERTIES} properties")
        return self


class StartView(BaseModel):
    """The start view of the page: a saved view, ``builtin:…`` for a built-in view, or null for the default."""

    name: Annotated[Name, Reveals.NOTHING] | None


@router.get("/views")
def list_views(state: State) -> SavedViews:
    """All saved views with their documents, and the start view."""
    return state.queries.views.all()


@router.put("/views/{name}")
def save_view(name: ViewName, document: ViewDocument, state: State, viewer: CurrentViewer) -> SavedView:
    """Save a view under a name; overwrites an existing one. Views of operators belong to everybody."""
    return state.services.views.save(name, document.model_dump(), by=viewer)


@router.delete("/views/{name}", status_code=204)
def remove_view(name: ViewName, state: State, viewer: CurrentViewer) -> None:
    """Delete a saved view."""
    state.services.views.remove(name, by=viewer)


@router.put("/start-view")
def set_start_view(choice: StartView, state: State) -> StartView:
    """Set the start view of the page."""
    return StartView(name=state.services.views.start_with(choice.name))
