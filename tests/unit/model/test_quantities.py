import pytest

from clusterscape.model.quantities import format_hours


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (None, "–"), (0, "0"), (0.01, "<0.1"), (0.05, "0.1"), (0.44, "0.4"), (9.94, "9.9"), (9.96, "10"), (27.1, "27"),
        (1234.5, "1,234"),
    ],
)  # fmt: skip
def test_hours_keep_a_digit_when_below_ten(hours: float | None, text: str) -> None:
    assert format_hours(hours) == text
