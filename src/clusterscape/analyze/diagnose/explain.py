"""What the GPUs of a cluster have in common: the attribute and values that best separate them from the others, if any."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from clusterscape.model.arrays import Bools, Float64s, Int64s

Value = str | int


@dataclass(frozen=True, slots=True)
class Explanation:
    """The GPUs of the cluster are those with ``attribute`` in ``values``, with this ``recall`` and ``precision``.

    ``information``: adjusted mutual information (0 … 1) of attribute and membership; ``p_value``: corrected for all sets of
    values and all attributes tried; ``same_as``: other attributes that select exactly the same GPUs, with their values.
    """

    attribute: str
    values: tuple[Value, ...]
    precision: float
    recall: float
    information: float
    p_value: float
    sentence: str
    same_as: tuple[tuple[str, tuple[Value, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    attribute: str
    values: tuple[Value, ...]
    inside: Bools
    log_p: float
    information: float


def explain_group(
    is_member: Bools,
    attributes: Mapping[str, Sequence[Value | None]],
    *,
    significance: float = 0.01,
    min_information: float = 0.3,
) -> Explanation | None:
    """The attribute that best separates the members from the rest; None if there is none.

    Parameters
    ----------
    is_member : (GPU,).
    attributes : name → value of each GPU, None where unknown (such GPUs are in no set).

    For each attribute, values are sorted by their share of members, and the most significant of the nested sets is kept. The
    p-value is the hypergeometric probability of as many members among as many GPUs, times the number C(V, m) of sets of m of the
    V values, times V (sizes tried), times the number of attributes. So an attribute with a distinct value for each GPU never
    wins: it has as many sets as there are ways to choose the members.
    """
    members = int(is_member.sum())
    if not 0 < members < is_member.size or not attributes:
        return None
    candidates = [_best_set(name, values, is_member) for name, values in attributes.items()]
    penalty = math.log(len(attributes))
    significant = [
        candidate
        for candidate in candidates
        if candidate is not None
        and candidate.log_p + penalty <= math.log(significance)
        and candidate.information >= min_information
    ]
    if not significant:
        return None
    best = min(significant, key=lambda candidate: (candidate.log_p, len(candidate.values)))
    same = [c for c in significant if c is not best and np.array_equal(c.inside, best.inside)]
    hit = int((best.inside & is_member).sum())
    p_value = min(1.0, math.exp(min(0.0, best.log_p + penalty)))
    return Explanation(
        best.attribute,
        best.values,
        hit / int(best.inside.sum()),
        hit / members,
        best.information,
        p_value,
        _sentence(best, is_member),
        tuple((candidate.attribute, candidate.values) for candidate in same),
    )


def explain_clusters(
    labels: Int64s, attributes: Mapping[str, Sequence[Value | None]], *, significance: float = 0.01
) -> tuple[Explanation | None, ...]:
    """``explain_group`` for each label (0 is the main cluster) against all other GPUs; corrected for the number of clusters."""
    count = int(labels.max(initial=-1)) + 1
    if count < 2:
        return (None,) * count
    return tuple(
        explain_group(labels == label, attributes, significance=significance / count) for label in range(count)
    )


def _best_set(attribute: str, values: Sequence[Value | None], is_member: Bools) -> _Candidate | None:
    """The most significant set of values; None if the attribute has only one value."""
    from scipy.stats import hypergeom  # slow to import

    names, codes = _encode(values)
    if len(names) < 2:
        return None
    is_known = codes >= 0
    sizes = np.bincount(codes[is_known], minlength=len(names))
    hits = np.bincount(codes[is_known & is_member], minlength=len(names))
    order = np.lexsort((np.arange(sizes.size), -hits, -hits / sizes))
    order = order[hits[order] > 0]
    inside, hit = np.cumsum(sizes[order]), np.cumsum(hits[order])
    total, members = is_member.size, int(is_member.sum())
    # P(X ≥ hit), X hypergeometric: ``inside`` GPUs drawn of all.
    log_p: Float64s = hypergeom.logsf(hit - 1, total, members, inside)
    set_sizes = np.arange(1, order.size + 1)
    choices = (
        gammaln(len(names) + 1) - gammaln(set_sizes + 1) - gammaln(len(names) - set_sizes + 1) + math.log(len(names))
    )
    log_p = np.minimum(np.nan_to_num(log_p, nan=0.0, neginf=-700.0) + choices, 0.0)
    if log_p.size == 0:
        return None
    best = int(log_p.argmin())
    chosen = np.sort(order[: best + 1])
    return _Candidate(
        attribute,
        tuple(names[code] for code in chosen),
        np.isin(codes, chosen),
        float(log_p[best]),
        _adjusted_information(sizes, hits, is_member),
    )


def _encode(values: Sequence[Value | None]) -> tuple[list[Value], Int64s]:
    """Values in natural order, and the index of each GPU's value; −1 if unknown (within this module only)."""
    distinct = {value for value in values if value is not None}
    names: list[Value] = sorted(
        distinct, key=lambda value: (isinstance(value, str), value if isinstance(value, int) else 0, str(value))
    )
    code = {value: place for place, value in enumerate(names)}
    return names, np.array([-1 if value is None else code[value] for value in values], np.int64)


def _adjusted_information(sizes: Int64s, hits: Int64s, is_member: Bools) -> float:
    """(MI − E[MI]) / (H(member) − E[MI]); the expectation over all permutations of the members (Vinh, Epps, Bailey 2010)."""
    from sklearn.metrics.cluster import expected_mutual_information

    unknown = is_member.size - int(sizes.sum())
    unknown_hits = int(is_member.sum()) - int(hits.sum())
    if unknown:
        sizes, hits = np.append(sizes, unknown), np.append(hits, unknown_hits)
    table = np.stack([hits, sizes - hits]).astype(np.float64)
    total = table.sum()
    joint = table / total
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    is_positive = joint > 0
    mutual = float((joint[is_positive] * np.log(joint[is_positive] / outer[is_positive])).sum())
    share = joint.sum(axis=1)
    entropy = -float((share * np.log(share)).sum())
    expected = float(expected_mutual_information(table.astype(np.int64), int(total)))
    room = entropy - expected
    return max(0.0, min(1.0, (mutual - expected) / room)) if room > 1e-9 else 0.0


def _sentence(best: _Candidate, is_member: Bools) -> str:
    members, inside = int(is_member.sum()), int(best.inside.sum())
    hit = int((best.inside & is_member).sum())
    name = f"{best.attribute} {format_values(best.values)}"
    rest = is_member.size - members
    differ = f"All {members} differ" if members > 1 else "It differs"
    start = f"{differ} from the other {rest}; "
    if hit == members == inside:
        return f"{start}{'they are' if members > 1 else 'it is'} exactly {name}."
    if hit == members:
        return f"{start}all are {name}, as are {inside - hit} of the others."
    if hit == inside:
        return f"{start}{hit} of them are {name}, and no other GPU is."
    return f"{start}{hit} of them are {name}, as are {inside - hit} of the others."


def format_values(values: Sequence[Value]) -> str:
    """``0``, ``1–7``, ``a and b``, ``a, b and 5 more``."""
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) == len(values) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}–{numbers[-1]}"
    names = [str(value) for value in values]
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
