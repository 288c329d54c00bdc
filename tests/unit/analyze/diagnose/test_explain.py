import numpy as np
import pytest

from clusterscape.analyze.diagnose.explain import Value, explain_clusters, explain_group

GPUS = 64
PLACE = np.arange(GPUS)
ATTRIBUTES: dict[str, list[Value | None]] = {
    "node": [f"n{place // 8}" for place in range(GPUS)],
    "local rank": [place % 8 for place in range(GPUS)],
    "uuid": [f"GPU-{place}" for place in range(GPUS)],
    "driver": ["550"] * GPUS,
}


def test_local_rank_is_named_when_it_separates_exactly() -> None:
    explanation = explain_group(PLACE % 8 == 0, ATTRIBUTES)
    assert explanation is not None
    assert explanation.sentence == "All 8 differ from the other 56; they are exactly local rank 0."
    assert (explanation.attribute, explanation.values, explanation.precision, explanation.recall) == (
        "local rank",
        (0,),
        1.0,
        1.0,
    )
    assert explanation.information == pytest.approx(1.0)
    assert explanation.p_value < 1e-6


def test_values_are_joined_when_several_together_separate() -> None:
    explanation = explain_group(PLACE // 8 >= 6, ATTRIBUTES)
    assert explanation is not None
    assert explanation.sentence == "All 16 differ from the other 48; they are exactly node n6 and n7."
    main = explain_clusters((PLACE % 8 == 0).astype(np.int64), ATTRIBUTES)[0]
    assert main is not None
    assert main.values == (1, 2, 3, 4, 5, 6, 7)
    assert "local rank 1–7" in main.sentence


def test_shares_are_reported_when_the_attribute_mostly_separates() -> None:
    member = PLACE // 8 == 2
    member[[16, 40]] = [False, True]
    explanation = explain_group(member, ATTRIBUTES)
    assert explanation is not None
    assert explanation.sentence == "All 8 differ from the other 56; 7 of them are node n2, as are 1 of the others."
    assert (explanation.precision, explanation.recall) == (7 / 8, 7 / 8)


def test_equal_attributes_are_named_when_they_pick_the_same_gpus() -> None:
    explanation = explain_group(PLACE % 8 == 0, ATTRIBUTES | {"GPU index": ATTRIBUTES["local rank"]})
    assert explanation is not None
    assert explanation.same_as == (("GPU index", (0,)),)


def test_explanation_is_missing_when_members_are_random() -> None:
    false = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        member = np.zeros(GPUS, np.bool_)
        member[rng.choice(GPUS, rng.integers(1, 40), replace=False)] = True
        false += explain_group(member, ATTRIBUTES) is not None
    assert false <= 4


@pytest.mark.parametrize("members", [1, 8, 32])
def test_an_attribute_with_a_value_for_each_gpu_never_wins_when_it_fits_perfectly(members: int) -> None:
    assert explain_group(members > PLACE, {"uuid": ATTRIBUTES["uuid"]}) is None


def test_unknown_values_are_no_value_when_attributes_have_holes() -> None:
    ranks: list[Value | None] = [None if place in (3, 8) else place % 8 for place in range(GPUS)]
    explanation = explain_group(PLACE % 8 == 0, {"local rank": ranks})
    assert explanation is not None
    assert (explanation.precision, explanation.recall) == (1.0, 7 / 8)
    assert explain_group(PLACE % 8 == 0, {"local rank": [None] * GPUS}) is None


def test_explanation_is_missing_when_there_is_one_cluster() -> None:
    assert explain_clusters(np.zeros(GPUS, np.int64), ATTRIBUTES) == (None,)
    assert explain_group(np.ones(GPUS, np.bool_), ATTRIBUTES) is None
