from concurrent.futures import ThreadPoolExecutor

from clusterscape.ingest.drops import MEANINGS, DropReason, Drops, LimitReason, NoteReason


def test_rows_add_up_when_counted_from_several_threads() -> None:
    drops = Drops()

    def count(_: int) -> None:
        for _ in range(500):
            drops.add("dcgm", DropReason.BLANK)
            drops.add_all("dcgm", {DropReason.LATE: 2, "malformed_line": 0})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))

    assert drops.counts() == {("dcgm", "blank_value"): 2_000, ("dcgm", "late"): 4_000}


def test_table_lists_drops_before_notes_and_the_greatest_first_when_read() -> None:
    drops = Drops()
    drops.add("slurm", "job_without_id", 3)
    drops.add("dcgm", DropReason.BLANK, 5)
    drops.note_all("dcgm", {NoteReason.COUNTER_RESET: 9})

    table = drops.table()

    assert [(row.kind, row.reason, row.count, row.is_stored) for row in table] == [
        ("dcgm", "blank_value", 5, False),
        ("slurm", "job_without_id", 3, False),
        ("dcgm", "counter_reset", 9, True),
    ]
    assert table[0].meaning == MEANINGS[DropReason.BLANK]
    assert table[1].meaning is None


def test_notes_are_no_drops_when_rows_were_stored() -> None:
    drops = Drops()
    drops.note_all("dcgm", {NoteReason.CLOCK_SKEW: 1})

    assert drops.counts() == {}
    assert drops.notes() == {("dcgm", "clock_skew_corrected"): 1}


def test_every_reason_has_a_meaning_when_shown() -> None:
    assert set(MEANINGS) == {*DropReason, *NoteReason, *LimitReason}
