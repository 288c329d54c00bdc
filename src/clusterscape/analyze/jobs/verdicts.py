"""How a claim is judged: supported, not supported, cannot tell, from an effect's intervals and what would be worth noticing."""

from dataclasses import dataclass, field
from enum import StrEnum

from clusterscape.analyze.jobs.intervals import Measured
from clusterscape.model.identity_fields import access_checked


class ClaimVerdict(StrEnum):
    """What the jobs say about a claim."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not_supported"
    CANNOT_TELL = "cannot_tell"


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class PaperClaim:
    """A statement of the paper, tested on traces.

    ``effect``: in ``effect_unit``, with the interval of the jobs at hand; ``effect_by_user``: the same with users resampled.
    ``sentence`` says the verdict with its numbers, ``rests_on`` what it was computed from and how it was judged.
    """

    key: str
    takeaway: int | None
    statement: str
    traces: list[str]
    verdict: ClaimVerdict
    sentence: str
    rests_on: str
    effect_name: str
    effect_unit: str
    effect: Measured | None = None
    effect_by_user: Measured | None = None
    caveats: list[str] = field(default_factory=list)


def judge(effect: Measured, by_user: Measured | None, worth: float) -> ClaimVerdict:
    """Of an effect that the claim says is above zero; ``worth``: the least that would be worth noticing.

    Supported: above zero for these jobs, and whichever users there had been. Not supported: so large an effect is excluded for
    these jobs. Else it cannot be told: too few jobs, or it hangs on a few users.
    """
    if effect.is_above_zero:
        is_sure = by_user is None or by_user.low is None or by_user.low > 0
        return ClaimVerdict.SUPPORTED if is_sure else ClaimVerdict.CANNOT_TELL
    if effect.high is not None and effect.high < worth:
        return ClaimVerdict.NOT_SUPPORTED
    return ClaimVerdict.CANNOT_TELL


def doubt(verdict: ClaimVerdict, by_user: Measured | None, worth: float) -> list[str]:
    """What "not supported" leaves open: these jobs do not show it, but with other users a difference of shares might be there."""
    if verdict is not ClaimVerdict.NOT_SUPPORTED or by_user is None or by_user.high is None or by_user.high < worth:
        return []
    return [
        f"That is said of these jobs: with other users, up to {100 * by_user.high:.0f} points more are not excluded."
    ]


def flip(measured: Measured) -> Measured:
    """The same effect, counted in the other direction."""
    low = None if measured.high is None else -measured.high
    return Measured(value=-measured.value, low=low, high=None if measured.low is None else -measured.low)
