"""Accounting logs of Torque, in which Blue Waters published its jobs."""

from pathlib import Path

import pytest

from clusterscape.collect.job_traces import read_trace
from clusterscape.errors import SourceError
from clusterscape.model.jobs import JobStatus

# Made up in the published form: records of several types, chunks of nodes, array jobs, a requeued job, fields with spaces.
LOG = """\
03/28/2017 00:00:01;Q;4001.bw;queue=normal
03/28/2017 00:00:09;S;4001.bw;user=u01 group=g7 account=p3 jobname=a queue=normal ctime=100 qtime=100 etime=100 start=160 \
owner=u01@h2o exec_host=1/0+2/0 Resource_List.neednodes=64:ppn=32:xe Resource_List.nodect=64 \
Resource_List.nodes=64:ppn=32:xe Resource_List.walltime=12:00:00
03/28/2017 01:00:09;E;4001.bw;user=u01 group=g7 account=p3 jobname=a queue=normal ctime=100 qtime=100 etime=100 start=160 \
owner=u01@h2o exec_host=1/0+2/0 Resource_List.nodect=64 Resource_List.nodes=64:ppn=32:xe Resource_List.walltime=12:00:00 \
session=1 end=3760 Exit_status=0 resources_used.cput=00:00:06 resources_used.walltime=01:00:00
03/28/2017 01:10:00;E;4002[7].bw;user=u02 group=g7 account=p4 jobname=b queue=debug qtime=200 start=200 \
Resource_List.nodes=1:ppn=8+2:ppn=4 Resource_List.walltime=00:30:00 end=2000 Exit_status=271
03/28/2017 01:11:00;E;4003.bw;user=u02 group=g7 account=p4 jobname=c queue=debug qtime=300 start=330 \
Resource_List.nodes=n1+n2 Resource_List.walltime=1800 end=400 Exit_status=271
03/28/2017 01:12:00;E;4004.bw;user=u03 group=g7 jobname=d queue=normal qtime=400 start=500 \
Resource_List.nodect=8 Resource_List.walltime=1-00:00:00 end=900 Exit_status=1
03/28/2017 01:13:00;D;4005.bw;requestor=u03@h2o
03/28/2017 01:14:00;E;4006.bw;user=u03 queue=normal qtime=500 start=600 Resource_List.nodect=8 \
Resource_List.walltime=01:00:00 end=4200 Exit_status=-11
"""


def test_ended_jobs_are_read_when_the_file_is_an_accounting_log(tmp_path: Path) -> None:
    path = tmp_path / "20170328"
    path.write_text(LOG)
    trace = read_trace(path)
    assert (trace.format, trace.size_unit, trace.total) == ("torque", "nodes", None)
    jobs = trace.frame.rows(named=True)
    assert [job["job_id"] for job in jobs] == ["4001.bw", "4002[7].bw", "4003.bw", "4004.bw", "4006.bw"]
    assert [job["nodes"] for job in jobs] == [64, 3, 2, 8, 8]
    assert [job["wait_s"] for job in jobs] == [60, 0, 30, 100, 100]
    assert [job["run_s"] for job in jobs] == [3600, 1800, 70, 400, 3600]
    assert [job["requested_s"] for job in jobs] == [43_200, 1800, 1800, 86_400, 3600]
    assert [job["status"] for job in jobs] == [
        JobStatus.COMPLETED,
        JobStatus.TIMEOUT,  # killed at its limit
        JobStatus.CANCELLED,  # killed before
        JobStatus.FAILED,
        JobStatus.TIMEOUT,
    ]
    assert [job["project"] for job in jobs] == ["p3", "p4", "p4", None, None]
    assert jobs[0]["queue"] == "normal"


def test_lines_that_are_no_records_are_counted_when_a_log_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        LOG + "03/28/2017 01:15:00;E;4007.bw\nhalf a li\n" + LOG.splitlines()[2].replace("end=3760", "end=x")
    )
    trace = read_trace(path, "torque")
    notes = {note.reason: note for note in trace.notes}
    assert notes["no accounting record"].count == 2
    assert notes["no accounting record"].lines == (9, 10)
    assert notes["no run time: the job never ran"].count == 1


def test_error_says_so_when_no_job_of_a_log_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(LOG.splitlines()[0] + "\n")
    with pytest.raises(SourceError, match="has no jobs"):
        read_trace(path)
