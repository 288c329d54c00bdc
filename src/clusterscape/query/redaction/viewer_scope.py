"""Whose names a viewer reads on a private site. Viewers of the same scope get the same answers, and share them."""

from dataclasses import dataclass

from clusterscape.model.viewers import Role, Viewer


@dataclass(frozen=True, slots=True)
class ViewerScope:
    """``user``: whose workloads are shown in full; ``projects``: and those of these projects. Neither: nobody's."""

    user: str | None = None
    projects: frozenset[str] = frozenset()

    def covers(self, user: str | None, project: str | None) -> bool:
        """Whether what belongs to this user and project is shown in full."""
        return (user is not None and user == self.user) or (project is not None and project in self.projects)

    @property
    def names(self) -> frozenset[str]:
        """Users and projects that are named in any text."""
        return self.projects if self.user is None else self.projects | {self.user}


NOBODY = ViewerScope()


def scope_of(viewer: Viewer) -> ViewerScope | None:
    """None: the viewer reads every name."""
    if viewer.role.reaches(Role.OPERATOR):
        return None
    return ViewerScope(
        viewer.login if viewer.role.reaches(Role.RESEARCHER) else None,
        viewer.projects if viewer.role.reaches(Role.LEAD) else frozenset(),
    )


def strip_viewer(viewer: Viewer, *, is_private: bool) -> Viewer:
    """The part of a viewer that answers about the cluster depend on: viewers equal in it share answers."""
    scope = scope_of(viewer) if is_private else None
    if scope is None:
        return Viewer(login=None, role=viewer.role)
    return Viewer(login=scope.user, role=viewer.role, projects=scope.projects)
