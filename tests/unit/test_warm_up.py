"""Areas that are not compiled yet raise an error with the time that is left."""

import pytest

from clusterscape.errors import WarmingUpError
from clusterscape.warm_up import ESTIMATES_S, Area, WarmUp


class FakeClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_everything_is_ready_when_nothing_was_begun() -> None:
    warm_up = WarmUp()
    assert all(warm_up.is_ready(area) for area in Area)
    assert warm_up.remaining_s() == 0
    warm_up.require(Area.WHAT_IF)


def test_areas_become_ready_one_by_one_when_each_is_finished() -> None:
    warm_up = WarmUp()
    warm_up.begin()
    assert not warm_up.wait(Area.RULES, 0)
    warm_up.finish(Area.RULES)
    assert warm_up.wait(Area.RULES, 0)
    assert not warm_up.is_ready(Area.QUEUE)
    warm_up.finish_all()
    assert all(warm_up.is_ready(area) for area in Area)


def test_the_time_left_counts_what_comes_before_when_an_area_is_awaited() -> None:
    clock = FakeClock()
    warm_up = WarmUp(clock)
    warm_up.begin()
    assert warm_up.remaining_s(Area.QUEUE) == ESTIMATES_S[Area.RULES] + ESTIMATES_S[Area.QUEUE]
    clock.now_s += 5
    assert warm_up.remaining_s(Area.RULES) == ESTIMATES_S[Area.RULES] - 5
    clock.now_s += 1000
    assert warm_up.remaining_s(Area.RULES) == 1


def test_the_time_left_follows_the_machine_when_the_first_area_took_longer() -> None:
    clock = FakeClock()
    warm_up = WarmUp(clock)
    warm_up.begin()
    clock.now_s += 3 * ESTIMATES_S[Area.RULES]
    warm_up.finish(Area.RULES)
    assert warm_up.remaining_s(Area.QUEUE) == 3 * ESTIMATES_S[Area.QUEUE]


def test_the_error_says_how_long_when_an_area_is_not_ready() -> None:
    warm_up = WarmUp(FakeClock())
    warm_up.begin()
    with pytest.raises(WarmingUpError, match=r"about 10 s left") as error:
        warm_up.require(Area.RULES)
    assert error.value.http_status == 503
    assert error.value.retry_after_s == 5
