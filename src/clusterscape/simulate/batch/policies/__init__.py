"""Queue orders, one file each: a file that defines POLICY is a policy named after the file.

LABEL and TITLE set its name on the page, if the file's name is not suitable.
"""

from clusterscape.simulate.batch.contract import Policy
from clusterscape.simulate.choices import ChoiceFolder

POLICIES = ChoiceFolder(__name__, __path__, "policy")


def policy_names() -> list[str]:
    """Names of all policies, as on the command line."""
    return POLICIES.names()


def find_policy(name: str) -> Policy:
    """The policy of that name with default parameters; raises QueryError if there is none."""
    policy: Policy = POLICIES.load(name).POLICY
    return policy
