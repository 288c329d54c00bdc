"""Number formats of the command line."""

import pytest

from clusterscape.cli.output import count, percent
from clusterscape.model.quantities import format_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (125, "2 min 5 s"),
        (3600, "1 h"),
        (90_000, "1 d 1 h"),
        (2_600_000, "30 d"),
    ],
)
def test_duration_has_its_two_largest_units_when_written(seconds: float | None, text: str) -> None:
    assert format_duration(seconds) == text


def test_counts_and_shares_are_readable_when_written() -> None:
    assert (count(1, "node"), count(1250, "node")) == ("1 node", "1,250 nodes")
    assert (percent(None), percent(0.614)) == ("–", "61%")
