"""Listeners with real processes: each run reads its own values, and a failing listener does not affect the run."""

import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from servers.programs import need_program
from tracking.command import Command
from tracking.stub_nvml import build_stub

from clusterscape.track.listeners.contract import ListenedRun, ListenerContext, ListenerUnavailableError
from clusterscape.track.listeners.prometheus import parse_exposition
from clusterscape.track.listeners.rapl import RaplListener
from clusterscape.track.listeners.ticker import Ticker
from clusterscape.track.processes import ProcessTree
from clusterscape.track.spool import RunClock, Spool
from clusterscape.track.spooled import MetricSummary, SpooledRun, read_run

# Keeps a core busy for a share of the time, half of it in a child that ends; says what the system charged it with.
BURNER = """\
import os, resource, sys, time
import clusterscape
def burn(share, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.process_time()
        while time.process_time() - begun < 0.02 * share:
            pass
        time.sleep(0.02 * (1 - share))
share = float(sys.argv[sys.argv.index("--share") + 1])
begun = time.monotonic()
child = os.fork()
if child == 0:
    burn(share, 2)
    os._exit(0)
os.waitpid(child, 0)
burn(share, 2)
used = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
clusterscape.run().log({"own_cpu_seconds": used, "own_cores": used / (time.monotonic() - begun)})
"""


def metrics(run: SpooledRun) -> dict[tuple[str, str | None], MetricSummary]:
    return {(metric.name, metric.unit): metric for metric in run.metrics}


def test_each_run_reads_its_own_processor_time_when_two_burn_together(command: Command) -> None:
    command.script("burn.py", BURNER)
    command.script(
        "plan.csv",
        "Experiment,Workload,Devices,File,Listeners,Params\n"
        "1,1,cpu,burn.py,top,share=1\n1,1,cpu,burn.py,top,share=0.5\n",
    )
    done = command("plan", "plan.csv")
    assert done.returncode == 0, done.stderr
    runs = sorted(command.runs(), key=lambda run: run.params["share"])
    assert [run.params["share"] for run in runs] == ["0.5", "1"]
    for run in runs:
        by_name = metrics(run)
        own = by_name["own_cpu_seconds", None].last
        total = by_name["process_cpu_seconds", None].last
        seconds = run.times_s["running"]
        assert own is not None
        assert total is not None
        assert seconds is not None
        # Within 5 points of a core of what the system charged: a busy machine gives a burner less than it asks for.
        assert abs(total - own) / seconds < 0.05
        mean = by_name["process_cpu_cores", None].mean
        assert mean is not None
        assert abs(mean - own / seconds) < 0.15  # of few samples of unequal length
        assert by_name["process_memory_bytes", None].last


def test_gpu_values_carry_scope_and_method_when_a_run_shares_a_gpu(command: Command, tmp_path: Path) -> None:
    processes = tmp_path / "processes"
    command.variables = {
        **build_stub(need_program("gcc", "gcc"), tmp_path),
        "STUB_NVML_GPUS": "2",
        "STUB_NVML_PROCESSES": str(processes),
    }
    command.script(
        "model.py",
        f"import os, time\nopen({str(processes)!r}, 'w').write(f'1 {{os.getpid()}} 1000 30\\n1 1 500 60\\n')\ntime.sleep(4.5)\n",
    )
    assert command("run", "-l", "nvml=5", "model.py").returncode == 0
    run = command.only_run()
    by_name = {(metric.name, metric.scope): metric for metric in run.metrics}
    host = run.about["host"]
    device = by_name["gpu_util_ratio", "device"]
    assert (device.unit, device.last, device.method) == (f"{host}:1", 0.2, "measured")
    own = by_name["gpu_util_ratio", "process"]
    assert (own.unit, own.method) == (f"run:{run.run}/{host}:1", "measured")
    assert own.last == pytest.approx(0.3)
    assert by_name["memory_used_bytes", "process"].last == 1000
    assert by_name["energy_joules", "process"].method == "estimated"
    assert {metric.unit for metric in run.metrics} == {device.unit, own.unit}
    assert run.listeners["nvml"]["state"] == "running"


def test_one_sampler_serves_all_runs_of_a_host_when_several_go_on(command: Command, tmp_path: Path) -> None:
    command.variables = {**build_stub(need_program("gcc", "gcc"), tmp_path), "STUB_NVML_GPUS": "1"}
    until_there = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)"
    wait = "import time; time.sleep(3)"
    done = tmp_path / "done"
    with command.started("run", "-d", "0", "-l", "nvml=5", "--", "python3", "-c", until_there, str(done)) as leader:
        time.sleep(1.5)
        assert command("run", "-d", "0", "-l", "nvml=5", "--", "python3", "-c", wait).returncode == 0
        assert leader.poll() is None
        done.touch()
        leader.wait(60)
    for run in command.runs():
        (power,) = [metric for metric in run.metrics if metric.name == "power_watts"]
        assert power.last == 100.0
        assert power.samples >= 3


class Numbered(BaseHTTPRequestHandler):
    """Responds with the number of requests so far."""

    requests = 0

    def do_GET(self) -> None:
        Numbered.requests += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(
            f'# HELP x y\nsteps_total{{rank="0"}} {Numbered.requests}\nbad NaN\nloss 0.5 1700000000\n'.encode()
        )

    def log_message(self, *_: object) -> None:
        pass


def test_endpoint_of_the_script_is_read_when_it_has_one(command: Command) -> None:
    server = HTTPServer(("127.0.0.1", 0), Numbered)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/metrics"
    try:
        done = command("run", "-l", f"prometheus={url}", "--", "python3", "-c", "import time; time.sleep(2)")
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0
    by_name = metrics(command.only_run())
    assert set(by_name) == {('steps_total{rank="0"}', None), ("loss", None)}
    assert by_name["loss", None].last == 0.5


def test_only_finite_numbers_are_taken_when_an_endpoint_answers() -> None:
    text = '# TYPE a counter\na 1\nb{x="y z"} 2.5e3 17\nc +Inf\nd\n}broken\n'
    assert dict(parse_exposition(text)) == {"a": 1.0, 'b{x="y z"}': 2500.0}


class Failing:
    """A listener that raises every second time."""

    name = "failing"
    period_s = 0.02

    def __init__(self) -> None:
        self.calls = 0

    def open(self, runs: Sequence[ListenedRun]) -> None:
        pass

    def sample(self, runs: Sequence[ListenedRun], time_us: int) -> None:
        self.calls += 1
        if self.calls % 2:
            raise RuntimeError("no answer")
        runs[0].spool.sample(time_us, "asked", self.calls)

    def finish(self, run: ListenedRun, time_us: int) -> None:
        raise OSError("gone")

    def close(self) -> None:
        pass


def test_listener_is_reported_and_goes_on_when_it_fails(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "tracker.spool")
    run = ListenedRun("a", spool, ProcessTree(1), ())
    ticker = Ticker(Failing(), RunClock(), [run])
    ticker.start()
    time.sleep(0.5)
    ticker.finish(run)
    ticker.stop(5)
    spool.close()
    read = read_run(tmp_path)
    failing = read.listeners["failing"]
    assert (failing["state"], failing["message"]) == ("failed", "gone")
    assert metrics(read)["asked", None].samples >= 2


def test_energy_adds_up_when_its_counter_wraps(tmp_path: Path) -> None:
    zone = tmp_path / "powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    for name, text in {"name": "package-0", "max_energy_range_uj": "999", "energy_uj": "900"}.items():
        (zone / name).write_text(text)
    spool = Spool(tmp_path / "tracker.spool")
    run = ListenedRun("a", spool, ProcessTree(1), ())
    listener = RaplListener(ListenerContext("host", tmp_path, None), tmp_path / "powercap")
    listener.open([run])
    for value in ("950", "30", "40"):
        (zone / "energy_uj").write_text(value)
        listener.sample([run], 1)
    spool.close()
    assert metrics(read_run(tmp_path))["cpu_energy_joules", "host/package-0"].last == pytest.approx(140e-6)
    with pytest.raises(ListenerUnavailableError, match="no RAPL"):
        RaplListener(ListenerContext("host", tmp_path, None), tmp_path / "nothing").open([run])
