"""From the groups that a provider or proxy tells to a role and projects here, as the settings say. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from clusterscape.model.viewers import Role
from clusterscape.settings import AuthSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What somebody is here. ``role`` None: they may not come in."""

    role: Role | None
    projects: frozenset[str]


def find_standing(groups: Iterable[str], auth: AuthSettings) -> Standing:
    """The greatest role of the groups, or the default one; and all their projects."""
    names = list(groups)
    roles = [auth.roles[name] for name in names if name in auth.roles]
    projects = {project for name in names for project in auth.projects.get(name, ())}
    if auth.projects_pattern is not None:
        pattern = re.compile(auth.projects_pattern)
        projects |= {found[1] for name in names if (found := pattern.fullmatch(name)) and found[1]}
    role = max(roles, key=lambda each: each.rank) if roles else auth.default_role
    return Standing(role=role, projects=frozenset(projects))
