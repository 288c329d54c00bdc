"""Late ranks in a pipeline come from collectives within a stage only, as stages wait for one another by design."""

import polars as pl

from clusterscape.analyze.trace.match import MEMBER_COLUMNS, Matches, measure_collectives, within_stages
from clusterscape.model.spans import RankFacts

RANKS = [RankFacts(rank=rank, source="", stage=rank // 2) for rank in range(4)]


def make_matches(collectives: list[tuple[int, ...]]) -> Matches:
    """One collective per group of ranks; the last rank of a group arrives last."""
    rows = [
        (number, rank, "group", "all_reduce", 0, "gloo:all_reduce", 0, 10 * place, 50, 4, 0)
        for number, ranks in enumerate(collectives)
        for place, rank in enumerate(ranks)
    ]
    members = pl.DataFrame(rows, schema=list(MEMBER_COLUMNS), orient="row")
    members = members.with_columns(pl.col("instance").cast(pl.UInt32), pl.col("rank", "step").cast(pl.Int32))
    return Matches(members, pl.DataFrame(), len(collectives), 0, ())


def test_only_peers_of_a_stage_are_kept_when_collectives_cross_stages() -> None:
    matches = make_matches([(0, 1), (0, 1, 2, 3), (2, 3), (1, 3)])
    kept = within_stages(measure_collectives(matches), matches, RANKS)
    assert kept["instance"].to_list() == [0, 2]
    assert kept["last_rank"].to_list() == [1, 3]


def test_collectives_are_dropped_when_the_stage_of_a_member_is_unknown() -> None:
    matches = make_matches([(0, 1), (2, 3)])
    ranks = [*RANKS[:3], RankFacts(rank=3, source="")]
    assert within_stages(measure_collectives(matches), matches, ranks)["instance"].to_list() == [0]


def test_result_is_empty_when_there_are_no_collectives() -> None:
    matches = Matches(pl.DataFrame(schema=dict.fromkeys(MEMBER_COLUMNS, pl.Int64)), pl.DataFrame(), 0, 0, ())
    assert within_stages(measure_collectives(matches), matches, RANKS).height == 0
