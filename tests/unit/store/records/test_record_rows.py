from dataclasses import fields, replace

from contract.record_samples import (
    FULL_ALLOCATION,
    FULL_NODE,
    FULL_PARTITION,
    FULL_STATUS,
    FULL_UNIT,
    FULL_WORKLOAD,
    T0,
    at,
    job,
)
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.model import WorkloadState
from clusterscape.store.records import rows, tables

UNSTORED = frozenset({"address", "is_named"})
"""Of a source, for ingest alone."""


def test_rows_name_every_column_in_order_when_built() -> None:
    built = {
        tables.nodes: rows.node_row(FULL_NODE, T0),
        tables.partitions: rows.partition_row(FULL_PARTITION, T0),
        tables.units: rows.unit_row(FULL_UNIT, T0),
        tables.workloads: rows.workload_row(FULL_WORKLOAD, T0),
        tables.allocations: rows.allocation_row(FULL_ALLOCATION),
        tables.sources: rows.source_row(FULL_STATUS),
    }
    for table, row in built.items():
        assert list(row) == [column.name for column in table.c]


def test_sample_records_leave_no_field_at_its_default_when_used_as_full() -> None:
    for record in (FULL_NODE, FULL_PARTITION, FULL_UNIT, FULL_WORKLOAD, FULL_ALLOCATION, FULL_STATUS):
        stored = [field.name for field in fields(record) if field.name not in UNSTORED]
        assert all(getattr(record, name) is not None for name in stored)


def test_begin_and_end_are_derived_when_only_some_times_are_known() -> None:
    def span(**changes: object) -> tuple[object, object]:
        row = rows.workload_row(replace(job(1), submitted_at=None, **changes), T0)  # type: ignore[arg-type]
        return row["begins_at"], row["ends_at"]

    done = WorkloadState.COMPLETED
    assert span() == (T0, None)
    assert span(eligible_at=at(1), started_at=at(2)) == (at(1), None)
    assert span(state=done, started_at=at(2), ended_at=at(3)) == (at(2), at(3))
    assert span(state=done, ended_at=at(3)) == (at(3), at(3) + 1)
    assert span(state=done, started_at=at(-1)) == (at(-1), T0)
    assert span(state=done, started_at=at(4), ended_at=at(3)) == (at(4), at(4) + 1)  # a clock went back


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_text_is_always_storable_when_cleaned(text: str) -> None:
    cleaned = rows.storable(text)
    assert "\0" not in cleaned
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    if "\0" not in text and text.encode("utf-8", "replace").decode() == text:
        assert cleaned == text


@given(st.dictionaries(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=()))))
def test_tags_become_json_when_they_hold_any_text(tags: dict[str, str]) -> None:
    rows.json_text(tags).encode("utf-8")
