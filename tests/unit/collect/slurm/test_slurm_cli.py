"""Text output of Slurm commands in addition to JSON: exit codes and priorities."""

from unit.collect.slurm.documents import NODES, START_S, history_job, jobs

from clusterscape.collect.slurm.cli import (
    PRIORITY_COMMAND,
    PRIORITY_FIELDS,
    add_exit_codes,
    lacks_exit_codes,
    parse_exit_codes,
    parse_priorities,
)
from clusterscape.collect.slurm.parse_history import parse_history
from clusterscape.collect.slurm.parse_nodes import parse_nodes
from clusterscape.model import UnixMs


def test_exit_codes_are_missing_when_an_old_version_lists_jobs() -> None:
    def document(major: object, name: str = "Slurm") -> dict[str, object]:
        return jobs(history_job(1)) | {"meta": {name: {"version": {"major": major}}}}

    assert lacks_exit_codes(document(22))
    assert lacks_exit_codes(document("21", "slurm"))
    assert not lacks_exit_codes(document(23))
    assert not lacks_exit_codes(jobs(history_job(1)))
    assert not lacks_exit_codes(document(22) | {"jobs": []})


def test_codes_and_signals_are_read_when_some_lines_are_damaged() -> None:
    lines = [f"7|{START_S}|3:0|5:0", f"8|{START_S}|0:9|0:0", "8|Unknown|0:0|0:0", "", "x|y", f"9|{START_S}|odd|0:0"]
    document = jobs(history_job(7, "FAILED"), history_job(8, "FAILED"), history_job(9, "FAILED"), "odd")
    add_exit_codes(document["jobs"], parse_exit_codes("\n".join(lines)))  # type: ignore[arg-type]
    workloads = parse_history(document, parse_nodes(NODES), UnixMs(0)).workloads
    assert [
        (workload.exit_code, workload.exit_signal, workload.derived_exit_code, workload.derived_exit_signal)
        for workload in workloads
    ] == [
        (3, None, 5, None),
        (None, 9, None, None),
        (None, None, None, None),
    ]


def test_parts_are_read_when_sprio_prints_them() -> None:
    printed = (
        "   4711|   2600|    100|   1500|      0|      0|   1000|      0|     0||    0\n"
        "   4712|   1190|   1000|    200|      0|      0|      0|      0|     0|cpu=10,gres/gpu=30|   50\n"
    )
    assert parse_priorities(printed) == {
        "4711": {"age": 100, "fair_share": 1500, "qos": 1000},
        "4712": {"age": 1000, "fair_share": 200, "tres": 40, "nice": -50},
    }


def test_best_partition_counts_when_a_job_requests_several() -> None:
    printed = "7|10|10|0|0|0|0|0|0||0\n7|90|10|0|0|80|0|0|0||0\n7|50|10|0|0|40|0|0|0||0\n"
    assert parse_priorities(printed) == {"7": {"age": 10, "partition": 80}}


def test_lines_are_left_out_when_they_are_no_priorities() -> None:
    printed = "JOBID|PRIORITY\nnonsense\n\n8|x|0|0|0|0|0|0|0||0\n9|5|a|0|0|0|0|0|0||0\n"
    assert parse_priorities(printed) == {"9": {}}


def test_command_requests_every_part_when_it_is_run() -> None:
    assert PRIORITY_COMMAND[-1].count("|") == len(PRIORITY_FIELDS) + 1
