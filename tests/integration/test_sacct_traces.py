"""Job traces that a real Slurm's sacct printed, as text and as JSON."""

import time
from pathlib import Path

import pytest
from servers.slurm import slurm_server

from clusterscape.collect.job_traces import read_trace
from clusterscape.model.jobs import JobTrace

FIELDS = "JobID,JobIDRaw,User,Account,Partition,Submit,Start,End,Elapsed,Timelimit,AllocCPUS,AllocNodes,AllocTRES,State"


def find(trace: JobTrace, job: int) -> dict[str, object]:
    return trace.frame.filter(trace.frame["job_id"] == str(job)).row(0, named=True)


@pytest.mark.server
def test_both_ways_of_printing_give_the_same_jobs_when_slurm_ran_them(tmp_path: Path) -> None:
    with slurm_server(accounting=True) as server:
        done = server.submit("--gpus=2", "--time=10", script="srun true; sleep 1")
        failed = server.submit("--gpus=1", "--time=5", script="exit 3")
        cancelled = server.submit("--gpus=1")
        running = server.submit("--gpus=1")
        for job, state in ((done, "COMPLETED"), (failed, "FAILED"), (cancelled, "RUNNING"), (running, "RUNNING")):
            server.wait_for_state(job, state)
        server.command("scancel", str(cancelled))
        ended = (done, failed, cancelled)
        server.wait_until(lambda: server.is_accounted(*ended), "the accounting to know")
        text, document = tmp_path / "sacct.txt", tmp_path / "sacct.json"
        text.write_text(server.command("sacct", "-a", "-P", "-o", FIELDS))
        document.write_text(server.command("sacct", "-a", "--json", f"--starttime=uts{int(time.time()) - 3600}"))
    printed, structured = read_trace(text), read_trace(document)
    assert (printed.format, structured.format) == ("sacct", "sacct-json")
    expected = {done: ("completed", 2.0, 600.0), failed: ("failed", 1.0, 300.0), cancelled: ("cancelled", 1.0, None)}
    for trace in (printed, structured):
        assert set(trace.frame["job_id"]) == {str(job) for job in ended}
        for job, (status, gpus, requested_s) in expected.items():
            row = find(trace, job)
            assert (row["status"], row["gpus"]) == (status, gpus)
            assert requested_s is None or row["requested_s"] == requested_s
        reasons = {note.reason: note.count for note in trace.notes}
        assert reasons["the job has not ended"] >= 1
    assert any(note.reason == "a job step, not a job" for note in printed.notes)
    for job in ended:
        printed_row, structured_row = find(printed, job), find(structured, job)
        for column in ("user", "queue", "wait_s", "run_s", "processors", "nodes"):
            assert printed_row[column] == structured_row[column], (job, column)
