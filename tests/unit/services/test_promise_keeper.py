"""Ledgers are written to queries and the store, in this process and in later ones."""

import pytest
from clusters.opened import open_services
from clusters.queued import HOUR_MS, NOW, QueuedCluster
from clusters.queued import queued_cluster as queued_cluster

from clusterscape.errors import StoreError
from clusterscape.model import UnixMs
from clusterscape.services.promises import KIND
from clusterscape.store.records.sql import SqlRecordStore


def written(cluster: QueuedCluster, key: str) -> set[str]:
    document = cluster.records.document(KIND, key)
    rows = document.body["ledgers"] if document else []
    assert isinstance(rows, list)
    return {row[0] for row in rows}


def test_ledgers_are_read_and_written_when_the_queue_was_read(queued_cluster: QueuedCluster) -> None:
    assert queued_cluster.queries.promises.ledger("slurm:10") is None
    queued_cluster.wait("slurm:10", 8)
    queued_cluster.services.promises.update()
    assert set(queued_cluster.queries.promises.open) == written(queued_cluster, "open") == {"slurm:10"}
    queued_cluster.now = UnixMs(NOW + HOUR_MS)
    queued_cluster.start("slurm:10", "n4")
    queued_cluster.services.promises.update()
    assert (written(queued_cluster, "open"), written(queued_cluster, "closed")) == (set(), {"slurm:10"})
    ledger = queued_cluster.queries.promises.ledger("slurm:10")
    assert ledger is not None
    assert ledger.started_s == queued_cluster.now // 1000


def test_ledgers_are_written_at_the_next_update_when_the_store_refused_them(
    queued_cluster: QueuedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued_cluster.wait("slurm:10", 8)

    def refuse(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(SqlRecordStore, "write_document", refuse)
        with pytest.raises(StoreError):
            queued_cluster.services.promises.update()
    assert set(queued_cluster.queries.promises.open) == {"slurm:10"}  # shown all the same
    assert written(queued_cluster, "open") == set()
    queued_cluster.services.promises.update()
    assert written(queued_cluster, "open") == {"slurm:10"}


def test_nothing_is_written_when_nothing_moved(queued_cluster: QueuedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    queued_cluster.wait("slurm:10", 8)
    queued_cluster.services.promises.update()
    monkeypatch.setattr(SqlRecordStore, "write_document", lambda *_, **__: pytest.fail("written again"))
    queued_cluster.services.promises.update()


def test_another_process_shows_the_same_when_it_follows(queued_cluster: QueuedCluster) -> None:
    other = queued_cluster.make_queries()
    follower = open_services(other).promises
    queued_cluster.wait("slurm:10", 8)
    queued_cluster.services.promises.update()
    assert other.promises.open == {}
    follower.reload()
    assert other.promises.open == queued_cluster.queries.promises.open
