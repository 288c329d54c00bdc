"""Simulates dcgm-exporter: Prometheus text of one node, from a snapshot of the whole cluster.

Each node has a template of the text without values, which is rebuilt only when another job holds one of its GPUs.
"""

import numpy as np

from clusterscape.demo.hardware import DRIVER_VERSION, DemoNode, pci_bus_id
from clusterscape.demo.scenario import DemoScenario
from clusterscape.demo.telemetry import FIELDS, DemoTelemetry, TelemetrySnapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Exporters:
    """The exporters of all nodes. Requests within the same second share one snapshot."""

    def __init__(self, scenario: DemoScenario, telemetry: DemoTelemetry) -> None:
        self._scenario = scenario
        self._telemetry = telemetry
        self._templates: dict[str, tuple[tuple[int, ...], bytes]] = {}
        self._snapshot: TelemetrySnapshot | None = None
        self._table = np.empty((0, 0))

    def render(self, node_name: str, time_ms: int) -> bytes | None:
        """The node's exposition text at the full second of ``time_ms``; None while the node is down.

        Raises KeyError for a node that does not exist.
        """
        node = self._scenario.hardware.nodes[self._scenario.hardware.node_index[node_name]]
        snapshot = self._look(time_ms // 1000 * 1000)
        low, high = np.searchsorted(snapshot.units, (node.first_unit, node.first_unit + node.gpu_count))
        if low == high:
            return None
        template = self._template(node, tuple(snapshot.jobs[low:high].tolist()))
        return template % tuple(self._table[:, low:high].ravel().tolist())

    def _look(self, time_ms: int) -> TelemetrySnapshot:
        if self._snapshot is None or self._snapshot.time_ms != time_ms:
            self._snapshot = self._telemetry.at(time_ms)
            self._table = np.stack([self._snapshot.values[field.name] for field in FIELDS])
        return self._snapshot

    def _template(self, node: DemoNode, jobs: tuple[int, ...]) -> bytes:
        cached = self._templates.get(node.name)
        if cached is None or cached[0] != jobs:
            cached = self._templates[node.name] = (jobs, self._write_template(node, jobs))
        return cached[1]

    def _write_template(self, node: DemoNode, jobs: tuple[int, ...]) -> bytes:
        labels = [self._labels(node, index, job) for index, job in enumerate(jobs)]
        lines = []
        for field in FIELDS:
            text = field.help.replace("%", "%%")  # the lines become a template
            lines += [f"# HELP {field.name} {text}", f"# TYPE {field.name} {field.type}"]
            lines += [f"{field.name}{{{label}}} {field.format}" for label in labels]
        return "\n".join((*lines, "")).encode()

    def _labels(self, node: DemoNode, index: int, job: int) -> str:
        labels = {
            "gpu": str(index),
            "UUID": self._scenario.hardware.uuid(node, index),
            "pci_bus_id": pci_bus_id(index),
            "device": f"nvidia{index}",
            "modelName": node.machine.model_name,
            "Hostname": node.name,
            "DCGM_FI_DRIVER_VERSION": DRIVER_VERSION,
        }
        if job:
            labels["hpc_job"] = self._scenario.lives[job].demo.native_id
        return ",".join(f'{key}="{value}"' for key, value in labels.items())
