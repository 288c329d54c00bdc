"""Job traces as strangers have them: unknown ends, absurd numbers, foreign encodings, cut files. Nothing but our own errors."""

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hostile.memory import MIB, measure
from typer.testing import CliRunner
from unit.collect.job_traces.test_readers import SACCT, noted, rows, sacct_job, swf_lines, write

from clusterscape.analyze.jobs.describe import describe_traces
from clusterscape.cli.entry import app
from clusterscape.collect.job_traces import read_trace
from clusterscape.errors import QueryError, SourceError

MOST_MEMORY = 300 * MIB
"""Of a file with a few rows, whatever they say, its libraries included; without bounds the files below took 2 to 9 GB."""


def read_and_describe(path: Path) -> int:
    description = describe_traces([read_trace(path)])
    json.dumps(asdict(description), allow_nan=False)
    return description.traces[0].jobs


# How jobs ended


@pytest.mark.parametrize("status", ["0", "-1"])
def test_ends_are_unknown_when_every_row_of_swf_has_the_same_empty_status(tmp_path: Path, status: str) -> None:
    path = write(tmp_path, swf_lines(*({1: str(row), 10: status} for row in range(40))))
    trace = read_trace(path)
    assert set(trace.frame["status"]) == {"unknown"}
    description = describe_traces([trace])
    assert description.traces[0].failures is None
    sentences = [claim.sentence for claim in description.claims if claim.takeaway == 2]
    assert sentences == ["trace does not record how its jobs ended."] * 2
    reasons = {
        "0": ("repaired", "status 0 (failed), but no job completed: treated as unknown"),
        "-1": ("kept", "the trace does not say how the job ended"),
    }
    action, reason = reasons[status]
    assert noted(trace)[reason][:2] == (action, 40)
    done = CliRunner().invoke(app, ["sched", "describe", str(path)])
    assert "jobs of unknown end" in done.stdout
    line = next(line for line in done.stdout.splitlines() if "jobs of unknown end" in line)
    assert line.split()[-1] == "100.0%"
    assert next(line for line in done.stdout.splitlines() if "unsuccessful, of" in line).split()[-1] == "–"


def test_failures_stay_failures_when_other_jobs_of_swf_completed(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, swf_lines({}, {10: "0"}, {10: "-1"})))
    assert trace.frame["status"].to_list() == ["completed", "failed", "unknown"]


def test_failures_stay_failures_when_the_words_of_sacct_say_so(tmp_path: Path) -> None:
    text = SACCT.replace("COMPLETED", "FAILED").replace("TIMEOUT", "FAILED")
    assert set(read_trace(write(tmp_path, text)).frame["status"]) == {"failed", "cancelled"}


@pytest.mark.parametrize("word", ["", "Running", "None"])
def test_end_is_unknown_and_counted_when_a_table_names_none(tmp_path: Path, word: str) -> None:
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    trace = read_trace(write(tmp_path, f"{pods}p0,6000,12288,1,460,,LS,{word},427061,428061,427071\n"))
    assert trace.frame["status"].to_list() == ["unknown"]
    assert any("does not say how" in note.reason or "unknown status" in note.reason for note in trace.notes)


# Numbers


@pytest.mark.parametrize(
    "text",
    [
        swf_lines({}, {1: "1700000000000"}),
        "; UnixStartTime: 893466664\n" + swf_lines({}, {1: "1700000000000"}),
        "; UnixStartTime: " + "9" * 5000 + "\n; MaxProcs: " + "9" * 5000 + "\n" + swf_lines({}, {}),
        swf_lines({}, {3: "1e300"}, {8: "1e300"}, {2: "1e300"}, {4: "1e300", 7: "1e300"}),
        swf_lines({}, {3: "1e-320"}, {2: "1e-320"}),
        swf_lines({}, {1: "4000000000"}),
        "; UnixStartTime: 1\n" + swf_lines({}, {1: "4000000000"}),
        SACCT + "14|bob|bio|gpu|9999-12-31T23:59:59|Unknown|Unknown|05:00|00:05:00|8|1|cpu=8|COMPLETED\n",
        SACCT + "14|bob|bio|gpu|2024-03-01T10:03:00|9999-12-31T23:59:59|Unknown|05:00|00:05:00|8|1|cpu=8|COMPLETED\n",
        SACCT + "14|bob|bio|gpu|2024-03-01T10:03:00||Unknown|999999-05:00:00|00:05:00|8|1|gres/gpu=" + "9" * 40 + "|FAILED\n",
        json.dumps({"jobs": [sacct_job(1, "FAILED", 10), sacct_job(10**18, "FAILED", 2**62)]}),
        "submit_time,wait_time,run_time,gpu_num\n1,0,5,1\n1e18,inf,nan,1e18\n2,0,1e308,1e308\n",
    ],
    ids=["ms", "ms-unix", "header", "huge", "tiny", "far", "far-unix", "year-9999", "start-9999", "gpus", "json", "floats"],
)  # fmt: skip
def test_memory_follows_the_size_of_the_file_when_its_numbers_are_absurd(tmp_path: Path, text: str) -> None:
    cost = measure(read_and_describe, write(tmp_path, text))
    assert cost.error is None
    assert 1 <= cost.value <= 4
    assert cost.peak_bytes < MOST_MEMORY


def test_rows_are_dropped_with_a_question_when_their_time_is_in_milliseconds(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, swf_lines({}, {1: "1700000000000"})))
    assert noted(trace)["submitted after the year 2100: is the time in milliseconds?"] == ("dropped", 1, (2,))


def test_rates_count_hours_without_submissions_when_they_are_not_listed(tmp_path: Path) -> None:
    """Two jobs a year and three hours apart: every hour of the day occurred 365 or 366 times."""
    year = 365 * 86_400
    text = f"; UnixStartTime: 1609459200\n{swf_lines({1: '0'}, {1: str(year + 3 * 3600)})}"
    arrivals = describe_traces([read_trace(write(tmp_path, text))]).traces[0].arrivals
    rates = [rate.value for rate in arrivals.jobs_per_hour_by_hour or [] if rate is not None]
    assert rates == pytest.approx([1 / 366, 0, 0, 1 / 366] + [0] * 20)
    days = [rate.value for rate in arrivals.jobs_per_hour_by_weekday or [] if rate is not None]
    # Friday 1 January 2021 and, 365 days later, the first four hours of a Saturday.
    assert days == pytest.approx([0, 0, 0, 0, 1 / 24 / 53, 1 / 4 / 53, 0])


# Bytes


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_rows_are_the_same_when_a_table_has_another_encoding(tmp_path: Path, encoding: str, line_end: str) -> None:
    """PowerShell writes UTF-16 with a byte-order mark where a command's output goes to a file."""
    plain = read_trace(write(tmp_path, SACCT))
    other = read_trace(write(tmp_path, SACCT.replace("\n", line_end).encode(encoding), "other"))
    assert other.frame.equals(plain.frame)


@pytest.mark.parametrize("keep", [0.02, 0.3, 0.9])
def test_beginning_is_kept_when_a_compressed_file_is_cut(tmp_path: Path, keep: float) -> None:
    text = swf_lines(*({1: str(place), 3: str(place * 7919 % 1009)} for place in range(3000)))
    packed = gzip.compress(text.encode())
    trace = read_trace(write(tmp_path, packed[: int(len(packed) * keep)], "trace.swf.gz"))
    assert 0 < len(trace) < 3000
    assert noted(trace)["the compressed file is truncated or damaged: only the part before that is read"][0] == "kept"


def test_beginning_is_kept_when_compressed_json_is_cut(tmp_path: Path) -> None:
    text = json.dumps({"jobs": [sacct_job(number * 7919 % 100_003, "FAILED", 10) for number in range(1, 500)]})
    packed = gzip.compress(text.encode())
    trace = read_trace(write(tmp_path, packed[: len(packed) // 2], "sacct.json.gz"))
    assert 0 < len(trace) < 499
    assert any("truncated" in note.reason for note in trace.notes)


def test_error_says_so_when_nothing_of_a_compressed_file_is_left(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot decompress"):
        read_trace(write(tmp_path, gzip.compress(SACCT.encode())[:12], "trace.swf.gz"))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_beginning_is_kept_when_a_compressed_file_is_damaged_in_the_middle(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    random = np.random.default_rng(0)
    text = swf_lines(*({1: str(place), 3: str(random.integers(1, 10**6))} for place in range(80_000)))
    packed = bytearray(compress(text.encode()))
    middle = len(packed) * 4 // 5
    packed[middle : middle + 8] = b"damaged!"
    trace = read_trace(write(tmp_path, bytes(packed), "trace.swf"))
    assert 20_000 < len(trace) < 80_000
    assert "the compressed file is truncated or damaged: only the part before that is read" in noted(trace)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress, bytes])
@pytest.mark.parametrize("name", ["trace.swf", "trace.swf.gz"])
def test_rows_are_the_same_when_the_suffix_does_not_say_how_a_file_is_compressed(
    tmp_path: Path, compress: Callable[[bytes], bytes], name: str
) -> None:
    text = swf_lines({1: "1"}, {1: "2"})
    assert rows(read_trace(write(tmp_path, compress(text.encode()), name))) == rows(
        read_trace(write(tmp_path, text, "plain.swf"))
    )


def test_rows_are_the_same_when_lines_end_as_on_an_old_mac(tmp_path: Path) -> None:
    text = "; MaxProcs: 64\n" + swf_lines({1: "1"}, {1: "2"})
    old = read_trace(write(tmp_path, text.replace("\n", "\r"), "old.swf"))
    assert rows(old) == rows(read_trace(write(tmp_path, text, "new.swf")))
    assert old.total == 64


@pytest.mark.parametrize("command", [["sched", "describe"], ["sched", "wait"], ["trace", "report"]])
def test_pipe_and_device_are_refused_without_being_opened(tmp_path: Path, command: list[str]) -> None:
    """Nobody writes into the pipe, so a command that opened it would never end."""
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path / "pipe.json", Path("/dev/null")):
        result = CliRunner().invoke(app, [*command, str(path)])
        assert isinstance(result.exception, SourceError)
        assert "is a pipe or a device, not a file" in str(result.exception)


def test_jobs_before_the_damage_are_kept_when_json_has_an_endless_number(tmp_path: Path) -> None:
    good, bad = json.dumps(sacct_job(1, "FAILED", 10)), '{"job_id": ' + "9" * 5000 + "}"
    trace = read_trace(write(tmp_path, f'{{"jobs": [{good}, {bad}, {good}]}}'))
    assert trace.frame["job_id"].to_list() == ["1"]
    assert noted(trace)["a number in job 2 is too long: only the part before that is read"][0] == "kept"


def test_nan_is_a_missing_number_when_json_has_it(tmp_path: Path) -> None:
    text = json.dumps({"jobs": [sacct_job(1, "FAILED", 10)]}).replace('"elapsed": 100', '"elapsed": NaN')
    assert rows(read_trace(write(tmp_path, text)), "run_s") == [(None,)]


def test_error_names_the_zone_when_it_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="unknown time zone 'Mars/Olympus'"):
        read_trace(write(tmp_path, SACCT), timezone="Mars/Olympus")


# The command


def test_command_fails_after_its_output_when_most_rows_cannot_be_used(tmp_path: Path) -> None:
    path = write(tmp_path, swf_lines({}, {3: "x"}, {3: "x"}, {1: "-5"}))
    done = CliRunner().invoke(app, ["sched", "describe", str(path), "--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["traces"][0]["jobs"] == 1
    assert "75% of the file was not used; 2 dropped: run_s cannot be read (line 2, 3)" in done.stderr


@pytest.mark.parametrize("command", [["sched", "describe"], ["sched", "simulate", "--processors", "64"]])
def test_command_succeeds_when_only_steps_of_jobs_are_left_out(tmp_path: Path, command: list[str]) -> None:
    step = SACCT.splitlines()[2] + "\n"
    done = CliRunner().invoke(app, [*command, str(write(tmp_path, SACCT + step * 20))])
    assert (done.exit_code, done.exception) == (0, None)


def test_command_fails_when_json_is_damaged_near_its_beginning(tmp_path: Path) -> None:
    jobs = [json.dumps(sacct_job(number, "FAILED", 10)) for number in range(1, 50)]
    path = write(tmp_path, '{"jobs": [' + ", ".join([*jobs[:3], '{"job_id": ]', *jobs[3:]]) + "]}")
    done = CliRunner().invoke(app, ["sched", "describe", str(path)])
    assert done.exit_code == 1
    assert "of the file was not used" in done.stderr
    assert "job 4 is damaged" in done.stderr
