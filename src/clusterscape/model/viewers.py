"""Who looks at the cluster and what they may do. How somebody proved who they are is the server's matter."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What somebody is on this site; each may all that those before it may."""

    VIEWER = "viewer"
    """Sees the picture; whose it is only where the site is open."""
    RESEARCHER = "researcher"
    """Sees their own workloads in detail, keeps views, runs and traces of their own."""
    LEAD = "lead"
    """Sees the workloads of their projects in detail, too."""
    OPERATOR = "operator"
    """Sees everything; sets rules, alerts and shared views."""
    ADMIN = "admin"
    """Also gives accounts and tokens, and reads the audit log."""

    @property
    def rank(self) -> int:
        """Place in the order of the roles, from 0."""
        return _ORDER[self]

    def reaches(self, least: "Role") -> bool:
        """Whether it may what ``least`` may."""
        return self.rank >= least.rank


_ORDER = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who asks. ``login`` is the user name that the scheduler knows; None: nobody in particular.

    ``projects`` are those that a lead answers for.
    """

    login: str | None
    role: Role
    projects: frozenset[str] = frozenset()
    title: str | None = None
    """Name to show, such as "Ada Lovelace"."""

    def knows(self, user: str | None, project: str | None) -> bool:
        """Whether a workload of this user and project may be shown as it is on a private site."""
        if self.role.reaches(Role.OPERATOR):
            return True
        if self.role.reaches(Role.RESEARCHER) and user is not None and user == self.login:
            return True
        return self.role.reaches(Role.LEAD) and project is not None and project in self.projects


ANYONE_HERE = Viewer(login=None, role=Role.ADMIN)
"""Whoever asks a server that only this machine reaches and that wants no login."""
