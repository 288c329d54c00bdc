"""Traces of GPU clusters as they are published: by their schemas, with made-up content."""

from pathlib import Path

import pytest
from unit.collect.job_traces.test_readers import noted, rows, write

from clusterscape.collect.job_traces import read_trace
from clusterscape.errors import SourceError


def test_workload_is_read_when_pollux_or_sia_made_it_from_philly(tmp_path: Path) -> None:
    text = "name,time,application,num_replicas,batch_size\ncifar10-0,107,cifar10,6,2048\nbert-1,812.5,bert,12,384\n"
    trace = read_trace(write(tmp_path, text))
    assert (trace.format, trace.size_unit) == ("table", "gpus")
    assert rows(trace, "job_id", "submit_s", "gpus", "run_s", "status") == [
        ("cifar10-0", 107.0, 6.0, None, "unknown"),
        ("bert-1", 812.5, 12.0, None, "unknown"),
    ]
    assert noted(trace)["the trace has no run times"] == ("kept", 2, (2, 3))


def test_run_times_are_read_when_pollux_published_philly_as_a_table(tmp_path: Path) -> None:
    text = ",jobid,timestamp,num_gpus,duration,gpu_time\n0,application_1,2017-10-09 07:01:00,4,3600.0,14400.0\n"
    trace = read_trace(write(tmp_path, text))
    assert rows(trace, "job_id", "submit_s", "gpus", "run_s") == [("application_1", 1507532460.0, 4.0, 3600.0)]


def test_both_clusters_are_read_when_acme(tmp_path: Path) -> None:
    kalos = (
        "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,"
        "fail_time,stop_time,duration,queue,gpu_time\n"
        "dlc1,uf7,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,,,,18,10.0,1152.0\n"
        "dlc2,uf7,1,0,8,10,,CPU,COMPLETED,2023-05-17 12:00:58+00:00,2023-05-17 12:01:08+00:00,,,,18,10.0,0.0\n"
    )
    trace = read_trace(write(tmp_path, kalos))
    assert (trace.format, trace.size_unit, trace.dropped) == ("acme", "gpus", 0)
    assert rows(trace, "user", "project", "submit_s", "wait_s", "run_s", "gpus", "nodes", "status") == [
        ("uf7", "Other", 1684321258.0, 10.0, 18.0, 64.0, 8, "failed"),
        ("uf7", "CPU", 1684324858.0, 10.0, 18.0, 0.0, 1, "completed"),
    ]


TASKS = """a1,tensorflow,1.0,Terminated,1739162.0,1739200.0,600.0,29.296875,50.0,MISC
a2,ps,2.0,Terminated,1739180.0,1749200.0,600.0,29.3,,
a2,worker,4.0,Failed,1739190.0,1749100.0,400.0,29.3,100.0,V100
a3,worker,1.0,Running,1939190.0,,600.0,29.3,200.0,T4
"""
HEADING = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"


@pytest.mark.parametrize("heading", ["", HEADING])
def test_tasks_of_a_job_count_once_when_alibaba_2020(tmp_path: Path, heading: str) -> None:
    trace = read_trace(write(tmp_path, heading + TASKS))
    assert (trace.format, trace.size_unit) == ("alibaba-2020", "gpus")
    assert rows(trace, "job_id", "submit_s", "run_s", "gpus", "processors", "status") == [
        ("a1", 1739162.0, 38.0, 0.5, 6, "completed"),
        ("a2", 1739180.0, 10020.0, 4.0, 28, "failed"),
        ("a3", 1939190.0, None, 2.0, 6, "unknown"),
    ]


def test_error_names_the_right_table_when_alibaba_2020_is_given_the_jobs(tmp_path: Path) -> None:
    jobs = "4b3f,8cb3,5854,Terminated,4550879.0,4551416.0\n" * 3
    with pytest.raises(SourceError, match="does not have the 10 columns") as caught:
        read_trace(write(tmp_path, jobs))
    assert "give pai_task_table.csv" in str(caught.value.hint)


@pytest.mark.parametrize(
    "text",
    [
        "job_id,submit_time,duration,num_gpu,user\n7,3600,120,0.5,u1\n8,3700,60,8,u2\n",
        "job_id,arrival_time,duration,gpu_milli,num_gpus\n7,3600,120,500,1\n8,3700,60,1000,8\n",
        "name,num_gpu,gpu_milli,creation_time,deletion_time\n7,1,500,3600,3720\n8,8,1000,3700,3760\n",
    ],
    ids=["2020-sample", "sharing", "2023-pods"],
)
def test_five_columns_are_enough_when_alibaba_was_cut_down(tmp_path: Path, text: str) -> None:
    trace = read_trace(write(tmp_path, text))
    assert trace.size_unit == "gpus"
    assert rows(trace, "job_id", "submit_s", "run_s", "gpus") == [("7", 3600.0, 120.0, 0.5), ("8", 3700.0, 60.0, 8.0)]


EVENTS_2011 = """600000000,,351,0,,0,u1,2,9,0.025,0.0159,0.0004,0
600000000,,351,1,,0,u1,2,9,0.025,0.0159,0.0004,0
605000000,,351,0,70,1,u1,2,9,0.025,0.0159,0.0004,0
606000000,,351,1,71,1,u1,2,9,0.025,0.0159,0.0004,0
906000000,,351,0,70,4,u1,2,9,0.025,0.0159,0.0004,0
907000000,,351,1,71,{last},u1,2,9,0.025,0.0159,0.0004,0
0,2,352,0,72,0,u2,0,0,,,,
"""


@pytest.mark.parametrize(
    ("last", "run_s", "status"), [(4, 302.0, "completed"), (3, 302.0, "failed"), (5, 302.0, "cancelled"), (8, None, "unknown")]
)  # fmt: skip
def test_events_are_joined_to_jobs_when_google_2011(
    tmp_path: Path, last: int, run_s: float | None, status: str
) -> None:
    trace = read_trace(write(tmp_path, EVENTS_2011.format(last=last)))
    assert trace.format == "google-2011"
    assert rows(trace, "job_id", "user", "submit_s", "wait_s", "run_s", "processors", "status") == [
        ("351", "u1", 600.0, 5.0, run_s, 2, status)
    ]
    assert noted(trace)["a job's size is its number of tasks"] == ("kept", 1, ())
    assert noted(trace)["submitted before the trace, or in another file of it"] == ("dropped", 1, (7,))


def test_jobs_have_no_size_when_google_2011_gives_their_own_events(tmp_path: Path) -> None:
    text = "600000000,,351,0,u1,2,n,l\n605000000,,351,1,u1,2,n,l\n906000000,,351,4,u1,2,n,l\n"
    trace = read_trace(write(tmp_path, text))
    assert rows(trace, "job_id", "wait_s", "run_s", "processors", "status") == [("351", 5.0, 301.0, 1, "completed")]
    assert noted(trace)["the file has no sizes: each job counts as 1"] == ("kept", 1, ())


def test_csv_and_json_lines_agree_when_google_2019(tmp_path: Path) -> None:
    table = (
        "time,type,collection_id,instance_index,machine_id,user\n600000000,0,9,0,0,u\n605000000,3,9,0,7,u\n"
        "906000000,6,9,0,7,u\n9223372036854775807,8,10,0,7,u\n"
    )
    # JSON leaves out zeros: the type of a submission, the first index.
    lines = (
        '{"time":"600000000","collection_id":"9","instance_index":"0","user":"u"}\n{"time":"605000000","type":"3",'
        '"collection_id":"9","instance_index":"0","machine_id":"7","user":"u"}\nnot json\n'
        '{"time":"906000000","type":"FINISH","collection_id":"9","instance_index":"0","user":"u"}\n'
    )
    for text in (table, lines):
        trace = read_trace(write(tmp_path, text))
        assert trace.format == "google-2019"
        assert rows(trace, "job_id", "user", "submit_s", "wait_s", "run_s", "processors", "status") == [
            ("9", "u", 600.0, 5.0, 301.0, 1, "completed")
        ]
    assert noted(trace)["the line is not a JSON object"] == ("dropped", 1, (3,))


def test_columns_are_found_by_their_usual_names_when_a_table_is_anybodys(tmp_path: Path) -> None:
    text = (
        "Job ID;User;Submit Time;Start Time;End Time;GPUs;State\n"
        "1;ann;2023-01-01 00:00:00;2023-01-01 00:01:00;2023-01-01 01:00:00;4;success\n"
        "2;bob;2023-01-02 00:00:00;2023-01-02 00:01:00;2023-01-02 00:31:00;2;weird\n"
    )
    trace = read_trace(write(tmp_path, text))
    assert rows(trace, "job_id", "user", "wait_s", "run_s", "gpus", "status") == [
        ("1", "ann", 60.0, 3540.0, 4.0, "completed"),
        ("2", "bob", 60.0, 1800.0, 2.0, "unknown"),
    ]


def test_typed_gpus_and_requests_count_when_sacct_has_no_total(tmp_path: Path) -> None:
    head = "JobID|Submit|Start|ElapsedRaw|NCPUS|ReqTRES|AllocTRES|State\n"
    rows_ = "1|2020-11-01T10:00:00|2020-11-01T10:00:10|60|8|cpu=8,gres/gpu:a100=2|cpu=8,gres/gpu:a100=2|COMPLETED\n"
    rows_ += "2|2020-11-01T10:00:00|Unknown|0|8|cpu=8,gres/gpu=4||CANCELLED\n"
    trace = read_trace(write(tmp_path, head + rows_))
    assert trace.frame["gpus"].to_list() == [2.0, 4.0]


def test_gpus_are_read_from_gres_when_sacct_is_older_than_tres(tmp_path: Path) -> None:
    head = "JobID|Submit|Start|Elapsed|AllocCPUS|AllocGRES|State\n"
    text = head + "1|2020-11-01T10:00:00|2020-11-01T10:00:10|00:01:00|8|gpu:tesla:2|COMPLETED\n"
    text += "2|2020-11-01T10:00:00|2020-11-01T10:00:10|00:01:00|8|gpu:1,mic:1|COMPLETED\n"
    assert read_trace(write(tmp_path, text)).frame["gpus"].to_list() == [2.0, 1.0]


def test_clock_times_are_read_when_a_table_has_them_as_durations(tmp_path: Path) -> None:
    text = "JobID,Submit,Elapsed,TimeLimit,NCPUS,State\n1,2023-01-01T00:00:00,1-00:00:10,02:00:00,8,COMPLETED\n"
    trace = read_trace(write(tmp_path, text))
    assert rows(trace, "run_s", "requested_s", "processors") == [(86_410.0, 7_200.0, 8)]


def test_error_names_what_is_missing_when_a_table_has_no_submissions(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="line 1: no column with the time of submission"):
        read_trace(write(tmp_path, "job,gpus\n1,2\n"), "table")
