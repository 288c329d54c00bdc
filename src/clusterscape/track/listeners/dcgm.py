"""Profiling fields of GPUs from DCGM: activity of SMs, tensor cores and memory, by ``dcgmi dmon`` or an exporter (``dcgm=URL``).

Profiling is of the whole GPU or MIG instance, of all processes: scope ``device``.
"""

import re
import shutil
import subprocess
import threading
from collections.abc import Sequence

from clusterscape.model.metrics import ALIASES
from clusterscape.model.run_frames import SampleScope
from clusterscape.track.listeners.contract import ListenedRun, ListenerContext, ListenerUnavailableError

PROGRAM = "dcgmi"
# Field number and exporter's name, through which the catalogue gives name and unit.
FIELDS = {
    1001: "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    1002: "DCGM_FI_PROF_SM_ACTIVE",
    1003: "DCGM_FI_PROF_SM_OCCUPANCY",
    1004: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    1005: "DCGM_FI_PROF_DRAM_ACTIVE",
    1006: "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
    1007: "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    1008: "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
    1009: "DCGM_FI_PROF_PCIE_TX_BYTES",
    1010: "DCGM_FI_PROF_PCIE_RX_BYTES",
    1011: "DCGM_FI_PROF_NVLINK_TX_BYTES",
    1012: "DCGM_FI_PROF_NVLINK_RX_BYTES",
}
_ROW = re.compile(r"^\s*GPU\s+(\d+)\s+(.*)$")
_INDEX = re.compile(r'[{,]\s*gpu="(\d+)"')
_MOST_BYTES = 8 * 2**20
_END_WITHIN_S = 2.0


class DcgmListener:
    """One ``dcgmi dmon`` for all runs, or one request per second to an exporter."""

    name = "dcgm"
    period_s = 1.0

    def __init__(self, context: ListenerContext) -> None:
        self._host = context.host
        self._url = context.argument
        self._process: subprocess.Popen[str] | None = None
        self._latest: dict[int, dict[str, float]] = {}
        self._reader: threading.Thread | None = None
        self._message = ""
        self._lock = threading.Lock()

    def open(self, runs: Sequence[ListenedRun]) -> None:
        """Find an exporter or ``dcgmi``."""
        del runs
        if self._url is not None:
            self._read_exporter()
            return
        program = shutil.which(PROGRAM)
        if program is None:
            raise ListenerUnavailableError(
                f"{PROGRAM} is not installed; or use an exporter: dcgm=http://127.0.0.1:9400/metrics"
            )
        words = [program, "dmon", "-e", ",".join(map(str, FIELDS)), "-d", str(int(self.period_s * 1000))]
        self._process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
        )
        self._reader = threading.Thread(target=self._follow, args=(self._process,), name="dcgmi", daemon=True)
        self._reader.start()

    def sample(self, runs: Sequence[ListenedRun], time_us: int) -> None:
        """Values since the last call; each run gets those of its GPUs."""
        if self._url is not None:
            readings = self._read_exporter()
        else:
            with self._lock:
                readings, self._latest = self._latest, {}
            if self._process is not None and self._process.poll() is not None:
                if self._reader is not None:
                    self._reader.join(_END_WITHIN_S)  # what it said last
                raise RuntimeError(f"{PROGRAM} has ended: {self._message or f'exit code {self._process.returncode}'}")
        for gpu, values in readings.items():
            for run in runs:
                if not run.devices or gpu in run.devices:
                    for name, value in values.items():
                        unit = f"{self._host}:{gpu}"
                        run.spool.sample(time_us, name, value, unit=unit, scope=SampleScope.DEVICE)

    def finish(self, run: ListenedRun, time_us: int) -> None:
        """Nothing to do: values are averages over a second."""

    def close(self) -> None:
        """End ``dcgmi``."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_END_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _follow(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        numbers = list(FIELDS)
        with process.stdout as lines:
            for line in lines:
                row = parse_row(line, numbers)
                if row is None:
                    self._message = line.strip() or self._message
                    continue
                with self._lock:
                    self._latest[row[0]] = row[1]

    def _read_exporter(self) -> dict[int, dict[str, float]]:
        from urllib.request import urlopen

        assert self._url is not None
        try:
            with urlopen(self._url, timeout=self.period_s) as answer:  # noqa: S310 – the scheme was checked
                text = answer.read(_MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise ListenerUnavailableError(f"{self._url} does not answer: {error}") from None
        return parse_exporter(text)


def parse_row(line: str, fields: Sequence[int]) -> tuple[int, dict[str, float]] | None:
    """One row of ``dcgmi dmon``: GPU and values by canonical name, without N/A. None for headings."""
    match = _ROW.match(line)
    if match is None:
        return None
    values: dict[str, float] = {}
    for field, word in zip(fields, match[2].split(), strict=False):
        _add(values, FIELDS[field], word)
    return int(match[1]), values


def parse_exporter(text: str) -> dict[int, dict[str, float]]:
    """Profiling fields by GPU; values of MIG instances are skipped, because the run's instance is not known here."""
    wanted = set(FIELDS.values())
    values: dict[int, dict[str, float]] = {}
    for line in text.splitlines():
        name, brace, labels = line.partition("{")
        index = _INDEX.search(brace + labels)
        if name in wanted and index is not None and "GPU_I_ID=" not in labels:
            _add(values.setdefault(int(index[1]), {}), name, labels.rpartition("}")[2].split()[0])
    return values


def _add(values: dict[str, float], name: str, word: str) -> None:
    alias = ALIASES.get(name)
    try:
        value = float(word)
    except ValueError:  # N/A
        return
    if alias is not None and value - value == 0.0:
        values[alias.metric.name] = value * alias.scale
