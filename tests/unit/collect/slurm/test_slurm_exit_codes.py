"""Exit codes are taken from sacct's table where its JSON does not have them."""

from unit.collect.slurm.documents import NODES, START_S, history_job, jobs

from clusterscape.collect.slurm.exit_codes import add_exit_codes, lacks_exit_codes, parse_exit_codes
from clusterscape.collect.slurm.parse_history import parse_history
from clusterscape.collect.slurm.parse_nodes import parse_nodes
from clusterscape.model import UnixMs


def test_only_old_versions_with_jobs_are_asked_again() -> None:
    def document(major: object, name: str = "Slurm") -> dict[str, object]:
        return jobs(history_job(1)) | {"meta": {name: {"version": {"major": major}}}}

    assert lacks_exit_codes(document(22))
    assert lacks_exit_codes(document("21", "slurm"))
    assert not lacks_exit_codes(document(23))
    assert not lacks_exit_codes(jobs(history_job(1)))
    assert not lacks_exit_codes(document(22) | {"jobs": []})


def test_codes_and_signals_are_read_of_each_execution_and_damaged_lines_are_left_out() -> None:
    lines = [f"7|{START_S}|3:0|5:0", f"8|{START_S}|0:9|0:0", "8|Unknown|0:0|0:0", "", "x|y", f"9|{START_S}|odd|0:0"]
    document = jobs(history_job(7, "FAILED"), history_job(8, "FAILED"), history_job(9, "FAILED"), "odd")
    add_exit_codes(document["jobs"], parse_exit_codes("\n".join(lines)))  # type: ignore[arg-type]
    found = parse_history(document, parse_nodes(NODES), UnixMs(0)).workloads
    assert [(each.exit_code, each.exit_signal, each.derived_exit_code, each.derived_exit_signal) for each in found] == [
        (3, None, 5, None),
        (None, 9, None, None),
        (None, None, None, None),
    ]
