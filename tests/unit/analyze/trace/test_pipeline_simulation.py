"""Hand-computed pipelines: schedules with known lengths."""

import pytest

from clusterscape.analyze.trace.pipeline import Key, simulate_passes


def gpipe(stages: int, micro_batches: int) -> list[Key]:
    """All forwards, then all backwards, last first."""
    order: list[Key] = []
    for stage in range(stages):
        order += [(stage, "forward", micro_batch, 0) for micro_batch in range(micro_batches)]
        order += [(stage, "backward", micro_batch, 0) for micro_batch in reversed(range(micro_batches))]
    return order


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 2), (4, 8), (3, 1)])
def test_bubble_is_ideal_when_all_passes_are_equal(stages: int, micro_batches: int) -> None:
    order = gpipe(stages, micro_batches)
    whole = simulate_passes(order, dict.fromkeys(order, 1.0), stages, 1)
    assert whole == 2 * (micro_batches + stages - 1)


def test_slow_stage_sets_the_pace_when_it_takes_longer() -> None:
    order = gpipe(3, 4)
    whole = simulate_passes(order, {key: 2.0 if key[0] == 1 else 1.0 for key in order}, 3, 1)
    # One forward to reach the stage, its 8 passes of 2, the round trip over the last stage hidden, one backward to leave it.
    assert whole == pytest.approx(1 + 4 * 2 + 1 + 1 + 4 * 2 + 1)


def test_result_is_missing_when_passes_wait_in_a_cycle() -> None:
    order: list[Key] = [(0, "backward", 0, 0), (0, "forward", 0, 0), (1, "forward", 0, 0), (1, "backward", 0, 0)]
    assert simulate_passes(order, dict.fromkeys(order, 1.0), 2, 1) is None
