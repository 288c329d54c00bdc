"""Who may change what users save or start: views, comments, uploads, traces, simulations. Owners and operators may."""

from clusterscape.errors import ForbiddenError
from clusterscape.model.access import Role, Viewer

OWNER = "owned_by"
"""The field of a document that holds its owner's login; null or absent: shared by all users."""


def owner_for(viewer: Viewer) -> str | None:
    """The owner of what this viewer saves; None: shared by all users, as for operators."""
    if viewer.role.is_at_least(Role.OPERATOR):
        return None
    if viewer.login is None:
        raise ForbiddenError("saving requires a signed-in user", hint="Sign in, or ask an operator.")
    return viewer.login


def deleter_for(viewer: Viewer) -> str | None:
    """The login whose runs this viewer may delete; None: all runs, as for admins. Operators may delete only their own."""
    if viewer.role.is_at_least(Role.ADMIN):
        return None
    if viewer.login is None:
        raise ForbiddenError("only its owner or an admin may delete a run", hint="Sign in, or ask an admin.")
    return viewer.login


def check_owner(owner: object, viewer: Viewer, item: str) -> None:
    """Raise ForbiddenError unless the viewer owns ``item``, or is an operator."""
    if viewer.role.is_at_least(Role.OPERATOR) or (owner is not None and owner == viewer.login):
        return
    reason = "is shared by all users" if owner is None else "belongs to another user"
    raise ForbiddenError(f"{item} {reason}", hint="Ask an operator to change it, or create your own.")


def is_owner(started_by: str | None, viewer: Viewer) -> bool:
    """Whether the viewer started it, or is an operator. ``started_by``: a login; None: started without a login."""
    return viewer.role.is_at_least(Role.OPERATOR) or started_by == viewer.login


def check_starter(started_by: str | None, viewer: Viewer, item: str) -> None:
    """Raise ForbiddenError unless the viewer started ``item``, or is an operator."""
    if not is_owner(started_by, viewer):
        raise ForbiddenError(f"{item} was started by another user", hint="Ask them, or an operator, to stop it.")
