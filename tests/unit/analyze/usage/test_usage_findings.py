"""Sentences about a period, with their numbers."""

from clusterscape.analyze.usage.findings import PeriodSums, UsageFinding, find_usage

TOTAL = PeriodSums(
    name="2026-10",
    gpu_hours=1000,
    idle_gpu_hours=100,
    execution_idle_gpu_hours=100,
    unknown_gpu_hours=200,
    suspended_gpu_hours=12,
    jobs=340,
    started=300,
    wait_hours=450,
    median_wait_s=600,
    money=1500,
)
OWNERS = [
    PeriodSums(name="nlp", gpu_hours=700, idle_gpu_hours=20, execution_idle_gpu_hours=100),
    PeriodSums(name="bio", gpu_hours=300, idle_gpu_hours=80, unknown_gpu_hours=200),
]
ENDS = [
    PeriodSums(name="completed", gpu_hours=800),
    PeriodSums(name="node_failed", gpu_hours=150),
    PeriodSums(name="timeout", gpu_hours=50),
]


def find(**changes: object) -> dict[str, UsageFinding]:
    options: dict[str, object] = {
        "before": None,
        "is_complete": True,
        "owners": OWNERS,
        "owner_word": "project",
        "ends": ENDS,
    }
    found = find_usage(TOTAL, **(options | changes))  # type: ignore[arg-type]
    return {finding.code: finding for finding in found}


def test_each_finding_states_its_number() -> None:
    found = find(before=PeriodSums(name="2026-09", gpu_hours=800, started=9, median_wait_s=60), currency="EUR")
    assert found["held"].text == (
        "1,000 GPU-hours were held by 340 jobs, 25 % more than in 2026-09; they cost 1,500.00 EUR."
    )
    assert (found["largest"].value, found["idle"].value, found["not_completed"].value) == (0.7, 200, 200)
    assert "25 % of those measured" in found["idle"].text
    assert "node failed" in found["not_completed"].text
    assert "in 2026-09: 1 min" in found["waits"].text


def test_most_idle_is_not_said_of_who_was_hardly_measured() -> None:
    worst = find()["most_idle"]
    assert worst.value == 120
    assert "nlp" in worst.text
    assert "mostly with a program loaded" in worst.text


def test_period_is_not_compared_when_it_is_not_over() -> None:
    held = find(is_complete=False, before=PeriodSums(name="2026-09", gpu_hours=800))["held"]
    assert "so far" in held.text
    assert "2026-09" not in held.text


def test_nothing_is_said_when_nothing_was_held() -> None:
    assert (
        find_usage(
            PeriodSums(name="2026-10", gpu_hours=0),
            before=None,
            is_complete=True,
            owners=[],
            owner_word="user",
            ends=[],
        )
        == []
    )
