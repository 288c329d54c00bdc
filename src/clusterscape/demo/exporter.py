"""Speaks as dcgm-exporter: exposition text of one node, from a snapshot of the whole cluster.

The text but for its numbers is a template per node, made again only when another job holds one of its GPUs.
"""

import numpy as np

from clusterscape.demo.fields import FIELDS
from clusterscape.demo.hardware import DRIVER_VERSION, DemoNode, pci_bus_id
from clusterscape.demo.scenario import Scenario
from clusterscape.demo.telemetry import Snapshot, Telemetry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Exporters:
    """All the nodes' exporters. Asked for several nodes at the same second, it computes that second once."""

    def __init__(self, scenario: Scenario, telemetry: Telemetry) -> None:
        self._scenario = scenario
        self._telemetry = telemetry
        self._templates: dict[str, tuple[tuple[int, ...], bytes]] = {}
        self._snapshot: Snapshot | None = None
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

    def _look(self, time_ms: int) -> Snapshot:
        if self._snapshot is None or self._snapshot.time_ms != time_ms:
            self._snapshot = self._telemetry.at(time_ms)
            self._table = np.stack([self._snapshot.values[field.name] for field in FIELDS])
        return self._snapshot

    def _template(self, node: DemoNode, jobs: tuple[int, ...]) -> bytes:
        known = self._templates.get(node.name)
        if known is None or known[0] != jobs:
            known = self._templates[node.name] = (jobs, self._write_template(node, jobs))
        return known[1]

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
