"""Queue orders, one file each: a file that defines POLICY is a policy under its own name.

LABEL and TITLE are what the page calls it, where its name does not do.
"""

from clusterscape.simulate.batch.contract import Policy
from clusterscape.simulate.choices import Folder

POLICIES = Folder(__name__, __path__, "policy")


def policy_names() -> list[str]:
    """Every policy there is, as it is written on the command line."""
    return POLICIES.names()


def find_policy(name: str) -> Policy:
    """The policy of that name with its usual parameters; raises QueryError where there is none."""
    policy: Policy = POLICIES.load(name).POLICY
    return policy
