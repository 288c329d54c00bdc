"""Array tasks, experiments and notes."""

import pytest

from clusterscape.collect.slurm.facts import MAX_ARRAY_TASKS, MAX_NOTE_TAGS, expand_tasks, experiment_of, read_notes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3-4%2", [3, 4]),
        ("1,3,5-9:2", [1, 3, 5, 7, 9]),
        ("[7]", [7]),
        ("0x38", [3, 4, 5]),
        ("0x1", [0]),
    ],
)
def test_tasks_are_expanded_when_listed(text: str, expected: list[int]) -> None:
    assert expand_tasks(text) == expected


@pytest.mark.parametrize("text", ["", "1-3,7,...", "a", "5-1", "1-9:0", f"0-{MAX_ARRAY_TASKS}", "0xzz", "1-999999999"])
def test_tasks_stay_together_when_cut_short_or_too_many(text: str) -> None:
    assert expand_tasks(text) is None


@pytest.mark.parametrize(
    ("name", "wckey", "notes", "expected"),
    [
        ("train-03", "exp", {"experiment": "other"}, "exp"),
        ("train-03", "*", {"experiment": "other"}, "other"),
        ("train-03", None, {}, "train"),
        ("train_seed3_run-12.sh", None, {}, "train"),
        ("gpt2", None, {}, "gpt2"),
        ("llama-70b", None, {}, "llama-70b"),
        ("-1", None, {}, "-1"),
        (None, None, {}, None),
    ],
)
def test_most_specific_experiment_name_is_used_when_there_are_several(
    name: str | None, wckey: str | None, notes: dict[str, str], expected: str | None
) -> None:
    assert experiment_of(name, wckey, notes) == expected


def test_notes_are_plain_values_when_comments_are_json() -> None:
    notes = read_notes(
        ['{"experiment": "e1", "lr": 0.1, "deep": {"a": 1}, "none": null}', None, "by hand", '{"lr": 9}']
    )
    assert notes == {"experiment": "e1", "lr": "0.1", "comment": "by hand"}


def test_notes_are_words_when_json_is_broken() -> None:
    assert read_notes(['{"experiment": ']) == {"comment": '{"experiment": '}


def test_notes_are_bounded_when_a_comment_is_huge() -> None:
    many = "{" + ",".join(f'"k{index}": "{"x" * 5000}"' for index in range(100)) + "}"
    notes = read_notes([many])
    assert len(notes) == MAX_NOTE_TAGS
    assert max(map(len, notes.values())) == 200
