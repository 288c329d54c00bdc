"""What a viewer can see on a private site. Viewers of the same sight get the same answers, and share them."""

from dataclasses import dataclass

from clusterscape.model.viewers import Role, Viewer


@dataclass(frozen=True, slots=True)
class Sight:
    """``user``: whose workloads are shown as they are; ``projects``: of which projects, too. Neither: nobody's."""

    user: str | None = None
    projects: frozenset[str] = frozenset()

    def knows(self, user: str | None, project: str | None) -> bool:
        """Whether what belongs to this user and project is shown as it is."""
        return (user is not None and user == self.user) or (project is not None and project in self.projects)


def sight_of(viewer: Viewer) -> Sight | None:
    """None: everything is shown as it is."""
    if viewer.role.reaches(Role.OPERATOR):
        return None
    return Sight(
        viewer.login if viewer.role.reaches(Role.RESEARCHER) else None,
        viewer.projects if viewer.role.reaches(Role.LEAD) else frozenset(),
    )


def strip_viewer(viewer: Viewer, *, is_private: bool) -> Viewer:
    """Nothing of a viewer but what answers about the cluster depend on: those who are equal so are answered alike."""
    sight = sight_of(viewer) if is_private else None
    if sight is None:
        return Viewer(login=None, role=viewer.role)
    return Viewer(login=sight.user, role=viewer.role, projects=sight.projects)
