"""Queue orders, one file each: a file that defines POLICY is a policy under its own name."""

import importlib
import pkgutil

from clusterscape.errors import QueryError
from clusterscape.simulate.batch.contract import Policy


def policy_names() -> list[str]:
    """Every policy there is, as it is written on the command line."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def find_policy(name: str) -> Policy:
    """The policy of that name with its usual parameters; raises QueryError where there is none."""
    if name not in policy_names():
        raise QueryError(f"there is no policy {name!r}", hint=f"There are {', '.join(policy_names())}.")
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    policy: Policy = module.POLICY
    return policy
