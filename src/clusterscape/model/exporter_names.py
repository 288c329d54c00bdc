"""Which node an exporter belongs to, where that is not certain. Only the records; ``ingest/node_ties.py`` makes the ties."""

from dataclasses import dataclass

from clusterscape.model.identity_fields import PublicText
from clusterscape.model.ids import NodeId

EXPORTER_TIES = "exporter-ties"
"""The kind of document under which the nodes of a collector's exporters are kept, by its shard."""

EXPORTER_QUESTIONS = "exporter-questions"
"""The kind of document under which is kept what a collector cannot tie, by its shard: questions, and nodes without exporters."""

HOST_NAMES = "node-host-names"
"""The kind of document under which a scheduler's other names of nodes are kept, by the source's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameQuestion:
    """An exporter that cannot be tied to one node with certainty, and what to write where the proposal is right."""

    exporter: PublicText  # host:port, or the name where only a Prometheus knows it
    host_name: PublicText | None  # what it calls its host
    gpus: int
    problem: PublicText
    proposed: NodeId | None
    setting: PublicText  # lines to paste into the settings file
    is_counted: bool  # whether its GPUs are part of the cluster's numbers now
