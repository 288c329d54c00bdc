"""Maps the groups that a provider or proxy reports to a role and projects, as the settings define. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from clusterscape.model.access import Role
from clusterscape.settings import AuthSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRights:
    """The role and projects of a user. ``role`` None: the user may not sign in."""

    role: Role | None
    projects: frozenset[str]


def resolve_groups(groups: Iterable[str], auth: AuthSettings) -> GroupRights:
    """The highest role of the groups, or the default role; and all their projects."""
    names = list(groups)
    roles = [auth.roles[name] for name in names if name in auth.roles]
    projects = {project for name in names for project in auth.projects.get(name, ())}
    if auth.projects_pattern is not None:
        pattern = re.compile(auth.projects_pattern)
        projects |= {match[1] for name in names if (match := pattern.fullmatch(name)) and match[1]}
    role = max(roles, key=lambda role: role.rank) if roles else auth.default_role
    return GroupRights(role=role, projects=frozenset(projects))
