"""Whose it is what people keep: views, insights, comments, uploads, traces. Owners and operators change it, nobody else."""

from clusterscape.errors import ForbiddenError
from clusterscape.model.viewers import Role, Viewer

OWNER = "owned_by"
"""The field of a document that says whose it is; null or not there: everybody's."""


def owner_for(viewer: Viewer) -> str | None:
    """Whose it is what this viewer keeps. What operators keep is everybody's."""
    if viewer.role.reaches(Role.OPERATOR):
        return None
    if viewer.login is None:
        raise ForbiddenError("only somebody with a name can keep something", hint="Sign in, or ask an operator.")
    return viewer.login


def check_owner(owner: object, viewer: Viewer, what: str) -> None:
    """Raise ForbiddenError unless ``what`` is the viewer's own, or they may change everybody's."""
    if viewer.role.reaches(Role.OPERATOR) or (owner is not None and owner == viewer.login):
        return
    whose = "everybody's" if owner is None else "somebody else's"
    raise ForbiddenError(f"{what} is {whose}", hint="Ask an operator to change it, or make one of your own.")
