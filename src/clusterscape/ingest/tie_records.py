"""Keeps ties, questions and other names of nodes as documents: for the next run, for other collectors, for whoever answers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import msgspec

from clusterscape.ingest.node_ties import NodeTies
from clusterscape.model import NodeId, UnixMs
from clusterscape.model.exporter_names import EXPORTER_QUESTIONS, EXPORTER_TIES, HOST_NAMES, NameQuestion
from clusterscape.store.records.contract import RecordStore


class TieRecords:
    """The documents of one collector. Writes only what changed."""

    def __init__(self, records: RecordStore, shard: str) -> None:
        self._records = records
        self._shard = shard
        self._written: dict[tuple[str, str], bytes] = {}

    def read_host_names(self) -> dict[NodeId, Sequence[str]]:
        """What schedulers told, to whichever process."""
        found: dict[NodeId, Sequence[str]] = {}
        for document in self._records.documents(HOST_NAMES):
            for node, names in document.body.items():
                if isinstance(names, list):
                    found[NodeId(node)] = tuple(map(str, names))
        return found

    def read_former_ties(self) -> dict[str, NodeId]:
        """The nodes behind addresses, as this or another collector last knew them."""
        found: dict[str, NodeId] = {}
        for document in self._records.documents(EXPORTER_TIES):
            ties = document.body.get("ties")
            if isinstance(ties, Mapping):
                found.update((str(address), NodeId(str(node))) for address, node in ties.items())
        return found

    def forget_others(self) -> None:
        """Nobody else collects: what other shards left behind is not true any more."""
        for kind in (EXPORTER_TIES, EXPORTER_QUESTIONS):
            for document in self._records.documents(kind):
                if document.key != self._shard:
                    self._records.remove_document(kind, document.key)

    def write_host_names(self, source: str, host_names: Mapping[NodeId, Sequence[str]], at: UnixMs) -> None:
        """Where a scheduler reaches its nodes."""
        if host_names:
            self._write(HOST_NAMES, source, {node: list(names) for node, names in sorted(host_names.items())}, at)

    def write_ties(self, ties: NodeTies, questions: Sequence[NameQuestion], at: UnixMs) -> bool:
        """Where each exporter is and what is open; returns whether the latter changed."""
        self._write(EXPORTER_TIES, self._shard, {"ties": dict(sorted(ties.tied_addresses().items()))}, at)
        lacking = ties.nodes_without_exporter() if ties.has_exporters else []
        body = {"questions": [asdict(each) for each in questions], "nodes_without_exporter": lacking}
        return self._write(EXPORTER_QUESTIONS, self._shard, body, at)

    def _write(self, kind: str, key: str, body: Mapping[str, object], at: UnixMs) -> bool:
        encoded = msgspec.json.encode(body)
        if self._written.get((kind, key)) == encoded:
            return False
        self._records.write_document(kind, key, msgspec.json.decode(encoded), at_ms=at)
        self._written[kind, key] = encoded
        return True
