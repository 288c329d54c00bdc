"""Responses do not reveal paths of the server."""

import errno
import os
from pathlib import Path

import pytest
from clusters.small import SmallCluster
from clusters.small import small_cluster as small_cluster
from fastapi.testclient import TestClient

from clusterscape.errors import StoreError, hide_folders
from clusterscape.serve.app import create_app
from clusterscape.store.files import storage_errors


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("the disk of /var/lib/site/raw/a.parquet is full", "the disk of …/a.parquet is full"),
        ("cannot write /data: no", "cannot write …/data: no"),
        ("'/srv/x/records.db' and (/srv/y)", "'…/records.db' and (…/y)"),
    ],
)
def test_folders_are_left_out_when_a_text_names_a_file(text: str, hidden: str) -> None:
    assert hide_folders(text) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "there is no /api/v1/nothing",
        "GET /openapi.json lists the allowed values.",
        "http://store:8428/select/0/prometheus did not answer",
        "the workload kubernetes:team/job-1 does 3/4 of 1024 B/s",
    ],
)
def test_text_stays_when_it_names_no_file(text: str) -> None:
    assert hide_folders(text) == text


def test_response_names_no_folder_when_a_store_fails(
    small_cluster: SmallCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        with storage_errors(tmp_path / "records"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(type(small_cluster.queries.views), "all", fail)
    client = TestClient(create_app(small_cluster.queries))
    answer = client.get("/api/v1/views")
    assert answer.status_code == StoreError.http_status
    assert "…/records" in answer.json()["error"]["message"]
    assert str(tmp_path) not in answer.text
