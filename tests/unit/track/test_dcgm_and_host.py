"""Values of DCGM and the host during a run: from a fake ``dcgmi``, an exporter, and this machine's /proc."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tracking.command import Command

from clusterscape.errors import ConfigError
from clusterscape.track.listeners import parse_listeners
from clusterscape.track.listeners.dcgm import FIELDS, parse_exporter, parse_row
from clusterscape.track.spooled import SpooledRun

# As dcgmi 3 and 4 print it; N/A stands where a field is not profiled.
DMON = """\
#!/bin/sh
test "$1 $2" = "dmon -e" || exit 3
while :; do
  echo "#Entity   GRACT  SMACT  SMOCC  TENSO  DRAMA  FP64A  FP32A  FP16A  PCITX      PCIRX      NVLTX  NVLRX"
  echo "ID"
  echo "GPU 0     0.900  0.800  0.400  0.300  0.200  0.000  0.100  N/A    1000       2000       0      0"
  echo "GPU 1     0.100  0.100  0.100  0.100  0.100  0.000  0.100  N/A    1000       2000       0      0"
  sleep 0.3
done
"""
EXPORTED = """\
# HELP DCGM_FI_PROF_SM_ACTIVE SM activity
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-1",device="nvidia0"} 0.75
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-2",device="nvidia1",GPU_I_ID="1"} 0.5
DCGM_FI_PROF_PCIE_RX_BYTES{gpu="0",UUID="GPU-1"} 4096
DCGM_FI_DEV_GPU_UTIL{gpu="0"} 12
"""


def values(run: SpooledRun) -> dict[tuple[str, str | None, str], float | None]:
    return {(metric.name, metric.unit, metric.scope): metric.last for metric in run.metrics}


def test_profiling_is_recorded_when_dcgmi_reports_it(command: Command, tmp_path: Path) -> None:
    program = tmp_path / "dcgmi"
    program.write_text(DMON)
    program.chmod(0o755)
    command.variables = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = command("run", "-l", "dcgmi", "-d", "0", "--", "sleep", "2.5")
    assert done.returncode == 0, done.stderr
    run = command.only_run()
    host = run.about["host"]
    measured = values(run)
    assert measured["sm_active_ratio", f"{host}:0", "device"] == 0.8
    assert measured["tensor_active_ratio", f"{host}:0", "device"] == 0.3
    assert not [key for key in measured if key[1] == f"{host}:1"]
    assert run.listeners["dcgm"]["state"] == "running"


def test_run_goes_on_and_says_so_when_dcgmi_is_missing_or_ends(command: Command, tmp_path: Path) -> None:
    command.variables = {"PATH": "/usr/bin:/bin"}
    assert command("run", "-l", "dcgm", "--", "sleep", "0.2").returncode == 0
    assert "dcgmi is not installed" in str(command.only_run().listeners["dcgm"]["message"])
    program = tmp_path / "dcgmi"
    program.write_text("#!/bin/sh\necho 'Error: Unable to connect to the host engine'\nexit 1\n")
    program.chmod(0o755)
    command.variables = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert command("run", "-l", "dcgm", "--", "sleep", "2.5").returncode == 0
    failed = command.runs()[1].listeners["dcgm"]
    assert failed["state"] == "failed"
    assert "Unable to connect to the host engine" in str(failed["message"])


def test_exporter_is_read_when_its_address_is_given(command: Command) -> None:
    class Exporter(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(EXPORTED.encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Exporter) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/metrics"
        done = command("run", "-l", f"dcgm={address}+host", "--", "sleep", "2.5")
        server.shutdown()
    assert done.returncode == 0, done.stderr
    run = command.only_run()
    host = str(run.about["host"])
    measured = values(run)
    assert measured["sm_active_ratio", f"{host}:0", "device"] == 0.75
    memory = measured["host_memory_used_bytes", host, "host"]
    assert memory is not None
    assert memory > 2**20
    cores = measured["host_cpu_cores", host, "host"]
    assert cores is not None
    assert cores >= 0
    assert ("host_network_receive_bytes_per_second", host, "host") in measured


def test_rows_are_read_and_others_left_out_when_dcgmi_prints() -> None:
    assert parse_row("#Entity   GRACT", list(FIELDS)) is None
    assert parse_row("    GPU 3     0.500     N/A", [1002, 1003]) == (3, {"sm_active_ratio": 0.5})
    assert parse_exporter(EXPORTED)[0] == {"sm_active_ratio": 0.75, "pcie_rx_bytes_per_second": 4096.0}
    assert 1 not in parse_exporter(EXPORTED)  # a MIG instance is not the GPU


def test_address_is_refused_when_it_is_invalid() -> None:
    with pytest.raises(ConfigError, match="dcgm=here is not an exporter's address"):
        parse_listeners(["dcgm=here"])
    choices, later = parse_listeners(["smi", "dcgmi", "free", "nsys"])
    assert [str(choice) for choice in choices] == ["nvml", "dcgm", "host"]
    assert later == ["nsys"]
