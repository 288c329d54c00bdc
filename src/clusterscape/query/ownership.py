"""Ownership of what people keep and begin: views, comments, uploads, traces, simulations. Owners and operators change it."""

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


def deleter_for(viewer: Viewer) -> str | None:
    """Whose runs this viewer may delete; None: everybody's. Operators keep what others measured."""
    if viewer.role.reaches(Role.ADMIN):
        return None
    if viewer.login is None:
        raise ForbiddenError("only owners of runs and admins delete them", hint="Sign in, or ask an admin.")
    return viewer.login


def check_owner(owner: object, viewer: Viewer, what: str) -> None:
    """Raise ForbiddenError unless ``what`` is the viewer's own, or they may change everybody's."""
    if viewer.role.reaches(Role.OPERATOR) or (owner is not None and owner == viewer.login):
        return
    whose = "everybody's" if owner is None else "somebody else's"
    raise ForbiddenError(f"{what} is {whose}", hint="Ask an operator to change it, or make one of your own.")


def is_owner(began: str | None, viewer: Viewer) -> bool:
    """Whether the viewer began it, or may change everybody's. ``began``: a login; None: nobody in particular."""
    return viewer.role.reaches(Role.OPERATOR) or began == viewer.login


def check_began(began: str | None, viewer: Viewer, what: str) -> None:
    """Raise ForbiddenError unless the viewer began ``what``, or may change everybody's."""
    if not is_owner(began, viewer):
        raise ForbiddenError(f"{what} was begun by somebody else", hint="Ask them, or an operator, to stop it.")
