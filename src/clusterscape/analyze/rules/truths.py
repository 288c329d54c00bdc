"""Three-valued truth of many rows at once, and comparing with a bound."""

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.rules.facts import Bools
from clusterscape.analyze.stats.contract import EQUAL_WITHIN
from clusterscape.model.rules import Operator
from clusterscape.model.samples import Float64s

Truths = NDArray[np.uint8]
# In this order the smaller of two is their `and`, the larger their `or`.
FALSE = np.uint8(0)
UNKNOWN = np.uint8(1)
TRUE = np.uint8(2)
OUT_OF_SCOPE = np.uint8(3)


def compare(values: Float64s, operator: Operator, bound: Float64s) -> Bools:
    """NaN compares as false. What differs from the bound by less than a rounding error equals it."""
    slack = np.abs(bound) * EQUAL_WITHIN
    match operator:
        case Operator.LESS:
            return np.asarray(values < bound - slack)
        case Operator.AT_MOST:
            return np.asarray(values <= bound + slack)
        case Operator.MORE:
            return np.asarray(values > bound + slack)
        case Operator.AT_LEAST:
            return np.asarray(values >= bound - slack)
        case Operator.EQUAL:
            return np.asarray(np.abs(values - bound) <= slack)
        case Operator.UNEQUAL:
            return np.asarray(np.abs(values - bound) > slack)
