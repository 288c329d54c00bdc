"""Live objects are frozen, so that collections skip them; unreachable objects are still freed."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from clusterscape.runtime.server import freeze_survivors


class Knot:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_live_objects_are_frozen_when_survivors_are_frozen() -> None:
    kept = [Knot() for _ in range(1000)]
    freeze_survivors()
    assert gc.get_freeze_count() > len(kept)
    assert not any(obj is kept for obj in gc.get_objects())


def test_new_cycles_are_freed_when_survivors_are_frozen() -> None:
    freeze_survivors()
    reference = weakref.ref(Knot())
    freeze_survivors()
    assert reference() is None


def test_frozen_cycles_are_freed_when_the_collection_is_full() -> None:
    knot = Knot()
    reference = weakref.ref(knot)
    freeze_survivors()
    del knot
    freeze_survivors()
    assert reference() is not None
    freeze_survivors(full=True)
    assert reference() is None
