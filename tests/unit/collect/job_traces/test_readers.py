"""Each format of job traces as its source writes it, and every kind of bad input: counted, explained, never silently repaired."""

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from clusterscape.collect.job_traces import read_openb_nodes, read_trace
from clusterscape.errors import QueryError, SourceError
from clusterscape.model.jobs import JobStatus, JobTrace

SWF = """; Version: 2.2
; MaxProcs: 128
; UnixStartTime: 781275672
; Queue: 1 batch
1 0 5 100 4 -1 -1 4 200 -1 1 7 3 -1 1 -1 -1 -1
2 10 -1 50 -1 -1 -1 8 -1 -1 0 -1 -1 -1 -1 -1 -1 -1
"""


def write(folder: Path, text: str | bytes, name: str = "trace") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows(trace: JobTrace, *columns: str) -> list[tuple[Any, ...]]:
    return trace.frame.select(columns).rows()


def noted(trace: JobTrace) -> dict[str, tuple[str, int, tuple[int, ...]]]:
    return {note.reason: (note.action, note.count, note.lines) for note in trace.notes}


def swf_lines(*changes: dict[int, str]) -> str:
    """One SWF line per change to a valid one; keys are field numbers from 0."""
    sound = ["1", "0", "5", "100", "4", "-1", "-1", "4", "200", "-1", "1", "7", "3", "-1", "1", "-1", "-1", "-1"]
    return "".join(
        " ".join(change.get(place, str(number) if place == 0 else cell) for place, cell in enumerate(sound)) + "\n"
        for number, change in enumerate(changes, start=1)
    )


def test_fields_and_header_are_read_when_swf(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, SWF))
    assert (trace.format, trace.total, trace.size_unit) == ("swf", 128, "processors")
    assert trace.header["UnixStartTime"] == "781275672"
    assert rows(trace, "line", "job_id", "user", "project", "queue") == [
        (5, "1", "7", "3", "batch"),
        (6, "2", None, None, None),
    ]
    assert rows(trace, "submit_s", "wait_s", "run_s", "processors", "requested_s", "status") == [
        (0.0, 5.0, 100.0, 4, 200.0, "completed"),
        (10.0, None, 50.0, 8, None, "failed"),
    ]


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", zstandard.ZstdCompressor().compress)],
)
def test_rows_are_the_same_when_the_file_is_compressed(tmp_path: Path, suffix: str, pack: Any) -> None:
    plain = read_trace(write(tmp_path, SWF))
    packed = read_trace(write(tmp_path, pack(SWF.encode()), f"trace.swf.{suffix}"))
    assert packed.frame.equals(plain.frame)


def test_jobs_are_sorted_and_counted_when_not_in_submit_order(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, swf_lines({1: "50"}, {1: "20"}, {1: "60"}, {1: "30"})))
    assert trace.frame["job_id"].to_list() == ["2", "4", "1", "3"]
    assert noted(trace)["not in submit order: sorted"] == ("repaired", 2, (2, 4))


def test_lines_are_dropped_and_named_when_truncated_or_too_long(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, SWF + "3 20 5 100 4\n" + swf_lines({}).replace("\n", " 9 9\n") + "4 30 5"))
    assert len(trace) == 2
    assert noted(trace)["fewer than 18 fields"] == ("dropped", 2, (7, 9))
    assert noted(trace)["more than 18 fields"] == ("dropped", 1, (8,))
    assert trace.dropped == 3


def test_lines_are_dropped_and_named_when_not_numeric(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, swf_lines({}, {3: "ten"}, {1: "0x5"}, {4: "inf"})))
    assert len(trace) == 1
    assert noted(trace)["run_s cannot be read"] == ("dropped", 1, (2,))
    assert noted(trace)["submit_s cannot be read"] == ("dropped", 1, (3,))
    assert noted(trace)["processors cannot be read"] == ("dropped", 1, (4,))


def test_times_and_sizes_are_explained_when_zero_or_negative(tmp_path: Path) -> None:
    changes: tuple[dict[int, str], ...] = (
        {}, {1: "-7"}, {3: "-5"}, {3: "0"}, {3: "-1"}, {4: "0", 7: "0"}, {4: "-3"}, {8: "0"}, {2: "-9"}, {1: "-1"},
    )  # fmt: skip
    trace = read_trace(write(tmp_path, swf_lines(*changes)))
    notes_by_reason = noted(trace)
    assert notes_by_reason["negative submit time"] == ("dropped", 1, (2,))
    assert notes_by_reason["negative run time"] == ("dropped", 1, (3,))
    assert notes_by_reason["run time is zero"] == ("kept", 1, (4,))
    assert notes_by_reason["no run time: the job never ran"] == ("kept", 1, (5,))
    assert notes_by_reason["no size above zero"] == ("dropped", 1, (6,))
    assert notes_by_reason["negative size"] == ("dropped", 1, (7,))
    assert notes_by_reason["requested time is not above zero: treated as missing"] == ("repaired", 1, (8,))
    assert notes_by_reason["negative wait: treated as missing"] == ("repaired", 1, (9,))
    assert notes_by_reason["no submit time"] == ("dropped", 1, (10,))
    assert trace.frame["line"].to_list() == [1, 4, 5, 8, 9]
    assert rows(trace, "run_s", "requested_s", "wait_s")[2:] == [
        (None, 200.0, 5.0),
        (100.0, None, 5.0),
        (100.0, 200.0, None),
    ]


def test_jobs_are_dropped_when_larger_than_the_machine(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, "; MaxProcs: 16\n" + swf_lines({4: "16"}, {4: "17"})))
    assert noted(trace)["larger than the machine (16 processors)"] == ("dropped", 1, (3,))


def test_status_is_unknown_and_its_word_is_named_when_it_is_not_listed(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, swf_lines({}, {10: "9"}, {10: "9"})))
    assert trace.frame["status"].to_list() == ["completed", "unknown", "unknown"]
    assert noted(trace)["unknown status '9'"] == ("kept", 2, (2, 3))


def test_lines_are_read_and_counted_when_encodings_are_mixed(tmp_path: Path) -> None:
    lumos = "submit_time,wait_time,run_time,gpu_num,user\n1,0,5,1,Jörg\n2,0,5,1,".encode() + "Jörg\n".encode("latin-1")
    trace = read_trace(write(tmp_path, lumos))
    assert trace.frame["user"].to_list() == ["Jörg", "Jörg"]
    assert noted(trace)["bytes that are not UTF-8 were read as Latin-1"] == ("repaired", 1, (3,))


def test_read_rows_are_kept_and_noted_when_a_compressed_file_is_truncated(tmp_path: Path) -> None:
    packed = gzip.compress(swf_lines(*({1: str(place), 3: str(place * 7919 % 1009)} for place in range(3000))).encode())
    trace = read_trace(write(tmp_path, packed[: len(packed) // 2], "trace.swf.gz"))
    assert 0 < len(trace) < 3000
    assert any("truncated" in note.reason for note in trace.notes)


@pytest.mark.parametrize("text", ["", "\n\n", "; MaxProcs: 5\n", "submit_time,wait_time,run_time,gpu_num\n"])
def test_error_says_so_when_a_file_holds_no_jobs(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match=r"is empty|has no jobs"):
        read_trace(write(tmp_path, text))


def test_error_lists_why_when_no_row_is_a_job(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no row is a valid job") as caught:
        read_trace(write(tmp_path, swf_lines({3: "x"}, {1: "-4"})))
    assert "run_s cannot be read (line 1)" in (caught.value.hint or "")


def test_error_lists_the_known_formats_when_a_format_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"unknown format of .*, which starts with 'hello'"):
        read_trace(write(tmp_path, "hello\nworld\n"))
    with pytest.raises(QueryError, match="unknown trace format 'exe'"):
        read_trace(write(tmp_path, SWF), "exe")
    with pytest.raises(SourceError, match="line 1: missing columns: run_time"):
        read_trace(write(tmp_path, "submit_time,wait_time,gpu_num\n1,2,3\n"), "lumos")
    with pytest.raises(SourceError, match="cannot read"):
        read_trace(tmp_path / "nowhere.swf")
    with pytest.raises(SourceError, match=r"cannot read .*: Is a directory"):
        read_trace(tmp_path)


SACCT = """JobID|User|Account|Partition|Submit|Start|End|Elapsed|Timelimit|NCPUS|NNodes|AllocTRES|State
10|ann|bio|gpu|2024-03-01T10:00:00|2024-03-01T10:05:00|2024-03-02T12:08:04|1-02:03:04|2-00:00:00|64|2|cpu=64,gres/gpu=16,node=2|COMPLETED
10.batch||bio||2024-03-01T10:05:00|2024-03-01T10:05:00|2024-03-02T12:08:04|1-02:03:04||32|1|cpu=32|COMPLETED
11|bob|bio|gpu|2024-03-01T10:01:00|Unknown|2024-03-01T11:00:00|00:00:00|UNLIMITED|8|1|cpu=8,gres/gpu=1|CANCELLED by 1000
12|bob|bio|gpu|2024-03-01T10:02:00|2024-03-01T10:02:01|Unknown|05:00|01:00:00|8|1|cpu=8,gres/gpu:a100=2,gres/gpu=2|RUNNING
13|bob|bio|gpu|2024-03-01T10:03:00|2024-03-01T10:04:00|2024-03-01T10:09:00|05:00|00:05:00|8|1|cpu=8,gres/gpu=2|TIMEOUT
"""


def test_jobs_but_no_steps_are_read_when_sacct_printed_them(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, SACCT))
    assert (trace.format, trace.size_unit) == ("sacct", "gpus")
    assert rows(trace, "job_id", "wait_s", "run_s", "requested_s", "processors", "gpus", "nodes", "status") == [
        ("10", 300.0, 93784.0, 172800.0, 64, 16.0, 2, "completed"),
        ("11", None, None, None, 8, 1.0, 1, "cancelled"),
        ("13", 60.0, 300.0, 300.0, 8, 2.0, 1, "timeout"),
    ]
    assert trace.frame["submit_s"][0] == 1709287200.0
    assert noted(trace)["a job step, not a job"] == ("dropped", 1, (3,))
    assert noted(trace)["the job has not ended"] == ("dropped", 1, (5,))


def test_times_are_shifted_when_sacct_ran_in_another_zone(tmp_path: Path) -> None:
    here = read_trace(write(tmp_path, SACCT), timezone="Europe/Berlin")
    assert here.frame["submit_s"][0] == 1709287200.0 - 3600


def test_line_is_dropped_when_a_time_of_sacct_is_damaged(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, SACCT.replace("2024-03-01T10:03:00", "2024-03-01T10:0")))
    assert noted(trace)["submit_s cannot be read"] == ("dropped", 1, (6,))


def sacct_job(number: int, state: object, limit: object) -> dict[str, object]:
    return {
        "job_id": number, "user": "ann", "account": "bio", "partition": "gpu", "state": {"current": state, "reason": "None"},
        "time": {"submission": 1000, "start": 1060, "end": 1160, "elapsed": 100, "limit": limit},
        "required": {"CPUs": 4}, "allocation_nodes": 1,
        "tres": {"allocated": [{"type": "cpu", "name": "", "count": 4}, {"type": "gres", "name": "gpu:a100", "count": 2}]},
    }  # fmt: skip


def test_drifting_shapes_are_read_when_sacct_wrote_json(tmp_path: Path) -> None:
    old, new = sacct_job(1, "FAILED", 10), sacct_job(2, ["TIMEOUT"], {"set": True, "infinite": False, "number": 10})
    text = json.dumps({"meta": {}, "jobs": [old, new, sacct_job(3, "RUNNING", 10)], "errors": []}, indent=1)
    trace = read_trace(write(tmp_path, text))
    assert rows(trace, "job_id", "wait_s", "run_s", "requested_s", "processors", "gpus", "status") == [
        ("1", 60.0, 100.0, 600.0, 4, 2.0, "failed"),
        ("2", 60.0, 100.0, 600.0, 4, 2.0, "timeout"),
    ]
    cut = read_trace(write(tmp_path, text[: text.index('"job_id": 2') + 20]))
    assert cut.frame["job_id"].to_list() == ["1"]
    assert noted(cut)["it is truncated in job 2: only the part before that is read"] == ("kept", 1, ())
    with pytest.raises(SourceError, match=r"truncated in job 1"):
        read_trace(write(tmp_path, text[: text.index('"job_id": 1') + 20]))


LUMOS = """,job,user,project,state,gpu_num,cpu_num,node_num,submit_time,wait_time,run_time,wall_time,node_hour,new_status
0,35079,35012304659472,45081100820135,0,0,8192.0,512.0,1535348017.0,102306,17348.0,18000.0,8882176.0,Pass
1,35088,35012304659472,45081100820135,0,0,8192.0,512.0,1535348020.0,102363,15780.0,18000.0,8079360.0,Killed
"""


def test_whole_nodes_are_the_size_when_lumos_names_no_gpus(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, LUMOS))
    assert trace.size_unit == "nodes"
    assert rows(trace, "job_id", "submit_s", "wait_s", "requested_s", "status")[1] == (
        "35088", 1535348020.0, 102363.0, 18000.0, "cancelled",
    )  # fmt: skip


def test_four_columns_are_enough_when_lumos_kept_no_more_of_philly(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, ",run_time,wait_time,submit_time,gpu_num\n0,1389243,0,1502114581,1\n"))
    assert (trace.size_unit, trace.frame["gpus"].to_list()) == ("gpus", [1.0])
    assert trace.frame["status"].to_list() == [JobStatus.UNKNOWN]


def test_a_job_counts_once_when_philly_tried_it_twice(tmp_path: Path) -> None:
    tries = [
        {
            "start_time": "2017-10-07 01:12:09",
            "end_time": "2017-10-07 01:13:23",
            "detail": [{"ip": "m47", "gpus": ["gpu0"] * 8}],
        },
        {
            "start_time": "2017-10-07 01:13:30",
            "end_time": "2017-10-09 06:53:12",
            "detail": [{"ip": "m41", "gpus": ["gpu0"] * 8}],
        },
    ]
    job = {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1",
        "attempts": tries,
        "submitted_time": "2017-10-07 01:11:39",
    }
    never = {
        "status": "Killed",
        "vc": "e",
        "jobid": "application_2",
        "attempts": [],
        "submitted_time": "2017-10-07 01:11:40",
    }
    trace = read_trace(write(tmp_path, json.dumps([job | {"user": "ce2f4c"}, never | {"user": "x"}])))
    assert rows(trace, "job_id", "queue", "wait_s", "run_s", "gpus", "status") == [
        ("application_1", "ee9e8c", 30.0, 193263.0, 8.0, "completed")
    ]
    assert noted(trace)["no size above zero"] == ("dropped", 1, (2,))


def test_virtual_cluster_is_the_queue_when_helios(tmp_path: Path) -> None:
    head = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    row = "1425512,uVMrF,vchbv,4,16,1,NODE_FAIL,2020-06-09 18:41:27,2020-06-09 18:41:28,2020-06-09 18:45:37,249,1\n"
    trace = read_trace(write(tmp_path, head + row))
    assert trace.format == "helios"
    assert rows(trace, "user", "queue", "submit_s", "wait_s", "run_s", "gpus", "status") == [
        ("uVMrF", "vchbv", 1591728087.0, 1.0, 249.0, 4.0, "failed")
    ]


def test_rows_of_the_public_file_are_read_when_helios(tmp_path: Path) -> None:
    # The heading and the rows that HeliosData (CC BY 4.0) shows of its published cluster_log.csv.
    lines = (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
        "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0",
        "1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0",
        "1425513,uzqls,vcpDC,1,1,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0",
        "1425514,uzqls,vcpDC,0,8,1,SUSPENDED,2020-06-09 18:41:29,2020-06-09 18:41:29,2020-06-09 18:41:39,10,0",
    )
    trace = read_trace(write(tmp_path, "\n".join(lines) + "\n"), timezone="Asia/Shanghai")
    assert (trace.format, trace.size_unit, trace.dropped) == ("helios", "gpus", 0)
    assert rows(trace, "job_id", "user", "queue", "submit_s", "wait_s", "run_s", "gpus", "processors", "status") == [
        ("1425511", "uXBbc", "vcJkd", 1591699261.0, 0.0, 36848.0, 1.0, 1, "completed"),
        ("1425512", "uVMrF", "vchbv", 1591699287.0, 0.0, 249.0, 4.0, 16, "failed"),
        ("1425513", "uzqls", "vcpDC", 1591699288.0, 0.0, 675233.0, 1.0, 1, "cancelled"),
        ("1425514", "uzqls", "vcpDC", 1591699289.0, 0.0, 10.0, 0.0, 8, "unknown"),
    ]


def test_utc_offset_is_respected_when_acme(tmp_path: Path) -> None:
    head = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
    row = "5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,,117,32,936.0\n"
    trace = read_trace(write(tmp_path, head + row))
    assert trace.format == "acme"
    assert rows(trace, "project", "submit_s", "wait_s", "run_s", "gpus", "processors") == [
        ("Other", 1677601102.0, 32.0, 117.0, 8.0, 128)
    ]


def test_shares_of_a_gpu_are_fractions_when_openb(tmp_path: Path) -> None:
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    pods = "p0,6000,12288,1,460,,LS,Succeeded,427061,428061,427071\np1,500,1,0,0,,BE,Pending,427062,428061,\n"
    trace = read_trace(write(tmp_path, head + pods))
    assert rows(trace, "job_id", "queue", "gpus", "processors", "wait_s", "run_s", "status") == [
        ("p0", "LS", 0.46, 6, 10.0, 990.0, "completed"),
        ("p1", "BE", 0.0, 1, None, None, "unknown"),
    ]
    nodes = read_openb_nodes(
        write(tmp_path, "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,8,V100\nn1,1,1,0,\n", "n.csv")
    )
    assert (nodes.gpus, nodes.frame["model"].to_list()) == (8, ["V100", None])
    with pytest.raises(SourceError, match="line 2: not a node"):
        read_openb_nodes(write(tmp_path, "sn,cpu_milli,memory_mib,gpu,model\nn0,many,1,8,V100\n", "n.csv"))


def test_quoted_fields_are_one_field_when_they_hold_the_separator(tmp_path: Path) -> None:
    text = 'submit_time,wait_time,run_time,gpu_num,user\n1,0,5,1,"Doe, Jane"\n2,0,5,1,Roe, Jane\n'
    trace = read_trace(write(tmp_path, text))
    assert trace.frame["user"].to_list() == ["Doe, Jane"]
    assert noted(trace)["more than 5 fields"] == ("dropped", 1, (3,))


def test_lines_keep_their_numbers_when_a_file_is_read_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BLOCK_BYTES", "STEP_BYTES"):
        monkeypatch.setattr(f"clusterscape.collect.job_traces.text.{name}", 100)
    trace = read_trace(write(tmp_path, swf_lines(*({1: str(place)} for place in range(50)), {3: "x"})))
    assert trace.frame["line"].to_list() == list(range(1, 51))
    assert noted(trace)["run_s cannot be read"][2] == (51,)
