"""What ``sprio`` prints, read: parts by job, the best partition's, and nothing of lines that are none."""

from clusterscape.collect.slurm.priorities import COMMAND, FIELDS, parse_priorities


def test_parts_are_read_when_sprio_prints_them() -> None:
    printed = (
        "   4711|   2600|    100|   1500|      0|      0|   1000|      0|     0||    0\n"
        "   4712|   1190|   1000|    200|      0|      0|      0|      0|     0|cpu=10,gres/gpu=30|   50\n"
    )
    assert parse_priorities(printed) == {
        "4711": {"age": 100, "fair_share": 1500, "qos": 1000},
        "4712": {"age": 1000, "fair_share": 200, "tres": 40, "nice": -50},
    }


def test_best_partition_counts_when_a_job_asks_for_several() -> None:
    printed = "7|10|10|0|0|0|0|0|0||0\n7|90|10|0|0|80|0|0|0||0\n7|50|10|0|0|40|0|0|0||0\n"
    assert parse_priorities(printed) == {"7": {"age": 10, "partition": 80}}


def test_lines_are_left_out_when_they_are_no_priorities() -> None:
    printed = "JOBID|PRIORITY\nnonsense\n\n8|x|0|0|0|0|0|0|0||0\n9|5|a|0|0|0|0|0|0||0\n"
    assert parse_priorities(printed) == {"9": {}}


def test_command_asks_for_every_part_when_it_is_run() -> None:
    assert COMMAND[-1].count("|") == len(FIELDS) + 1
