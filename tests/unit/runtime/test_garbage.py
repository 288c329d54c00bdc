"""What stays is not walked through again and again, and what nobody holds any more goes all the same."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from clusterscape.runtime.garbage import settle


class Knot:
    """Holds itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_is_alive_is_put_aside_when_garbage_is_settled() -> None:
    kept = [Knot() for _ in range(1000)]
    settle()
    assert gc.get_freeze_count() > len(kept)
    assert not any(each is kept for each in gc.get_objects())


def test_new_cycles_go_when_garbage_is_settled() -> None:
    settle()
    seen = weakref.ref(Knot())
    settle()
    assert seen() is None


def test_cycles_that_were_put_aside_go_when_everything_is_looked_through() -> None:
    knot = Knot()
    seen = weakref.ref(knot)
    settle()
    del knot
    settle()
    assert seen() is not None
    settle(whole=True)
    assert seen() is None
