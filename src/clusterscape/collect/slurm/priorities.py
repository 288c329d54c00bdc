"""Why a waiting job has the priority it has: the parts that ``sprio`` prints where the cluster uses priority/multifactor.

Owns the question and how its answer is read. slurmrestd does not tell these parts.
"""

from collections.abc import Mapping

FIELDS: Mapping[str, str] = {
    "age": "%A",
    "fair_share": "%F",
    "size": "%J",
    "partition": "%P",
    "qos": "%Q",
    "association": "%B",
    "site": "%S",
    "tres": "%T",
    "nice": "%N",
}
"""Parts by name, with sprio's letter for the weighted one. ``nice`` is taken off the sum; ``tres`` is a list, to be summed."""

COMMAND = ("sprio", "--noheader", "--format=" + "|".join(("%i", "%Y", *FIELDS.values())))

NOT_MULTIFACTOR = "priority/multifactor"
"""What sprio says where the cluster goes by first come, first served: that only this plugin has parts."""


def parse_priorities(text: str) -> dict[str, dict[str, int]]:
    """The parts other than 0 by job number; of a job in several partitions those of its best one. Other lines are left out."""
    best: dict[str, int] = {}
    found: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        job, *values = (value.strip() for value in line.split("|"))
        numbers = [_read(value) for value in values]
        if not job.isdigit() or len(numbers) != len(FIELDS) + 1 or numbers[0] is None:
            continue
        if numbers[0] <= best.get(job, -1):
            continue
        best[job] = numbers[0]
        parts = dict(zip(FIELDS, numbers[1:], strict=True))
        found[job] = {name: -value if name == "nice" else value for name, value in parts.items() if value}
    return found


def _read(value: str) -> int | None:
    """A number, or the sum of ``cpu=10,gres/gpu=250``; None of anything else."""
    if not value:
        return 0
    try:
        return sum(round(float(piece.rpartition("=")[2])) for piece in value.split(",") if piece)
    except (ValueError, OverflowError):
        return None
