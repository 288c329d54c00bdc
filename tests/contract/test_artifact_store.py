"""Contract of artifact stores, against a folder and a real S3-compatible store."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.seaweed import SeaweedServer, seaweed_server

from clusterscape.errors import NotFoundError, QueryError, StoreError
from clusterscape.settings import S3Settings, StorageSettings
from clusterscape.store.artifacts import ArtifactStore, open_artifact_store


@pytest.fixture(scope="module")
def seaweed() -> Iterator[SeaweedServer]:
    with seaweed_server() as server:
        yield server


def s3_settings(server: SeaweedServer, **more: object) -> S3Settings:
    keys = {"access_key": server.access_key, "secret_key": server.secret_key}
    return S3Settings.model_validate({"endpoint": server.url, **keys, **more})


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    if request.param == "folder":
        return open_artifact_store(StorageSettings(data_dir=tmp_path, min_free_bytes=0))
    settings = s3_settings(request.getfixturevalue("seaweed"), part_bytes=5 * 2**20)
    # One bucket for all tests: each has a prefix of its own.
    address = f"s3://artifacts/{hashlib.sha256(request.node.name.encode()).hexdigest()[:12]}"
    return open_artifact_store(StorageSettings(data_dir=tmp_path, artifacts=address, s3=settings))


def read(store: ArtifactStore, key: str) -> bytes:
    with store.open(key) as file:
        return file.read()


def test_content_comes_back_when_put_in_chunks(store: ArtifactStore) -> None:
    assert store.put("traces/a-1/spans.parquet", [b"one", b"", b"two"]) == 6
    assert read(store, "traces/a-1/spans.parquet") == b"onetwo"
    assert store.path("traces/a-1/spans.parquet").read_bytes() == b"onetwo"


def test_artifact_is_replaced_when_put_again(store: ArtifactStore) -> None:
    store.put("a/b", [b"older"])
    store.put("a/b", [b"new"])
    assert read(store, "a/b") == b"new"
    assert [artifact.key for artifact in store.list()] == ["a/b"]


def test_older_artifact_stays_when_chunks_fail(store: ArtifactStore) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionError("gone")

    store.put("a/b", [b"older"])
    with pytest.raises((ConnectionError, StoreError)):
        store.put("a/b", broken())
    assert read(store, "a/b") == b"older"
    assert [(artifact.key, artifact.size) for artifact in store.list()] == [("a/b", 5)]


def test_listing_is_by_prefix_when_folders_are_nested(store: ArtifactStore) -> None:
    for key in ("traces/b/x", "traces/a/y", "traces/a/deep/z", "jobs/a", "traces/ab"):
        store.put(key, [b"1"])
    assert [artifact.key for artifact in store.list("traces/a/")] == ["traces/a/deep/z", "traces/a/y"]
    assert [artifact.key for artifact in store.list("traces/a")] == ["traces/a/deep/z", "traces/a/y", "traces/ab"]
    assert store.list("nothing/") == []
    assert list(store.folders("traces/")) == ["a", "b"]
    assert list(store.folders("traces/a/deep/")) == list(store.folders("nothing/")) == []


def test_deletion_reports_whether_the_artifact_existed_when_repeated(store: ArtifactStore) -> None:
    store.put("a/b/c", [b"1"])
    assert store.delete("a/b/c") is True
    assert store.delete("a/b/c") is False
    assert store.list() == []
    with pytest.raises(NotFoundError, match="stored file a/b/c does not exist"):
        store.open("a/b/c")
    with pytest.raises(NotFoundError):
        store.path("a/b")


@pytest.mark.parametrize(
    "key", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/.hidden", "a/", "a\\b", "a\x00b", "a\nb", "x" * 600]
)
def test_key_is_refused_when_it_could_leave_the_folder(store: ArtifactStore, key: str) -> None:
    with pytest.raises(QueryError, match="is not a valid name"):
        store.folders(f"{key}/")
    with pytest.raises(QueryError, match="is not a valid name"):
        store.put(key, [b"1"])
    with pytest.raises(QueryError):
        store.open(key)


def test_content_comes_back_when_it_is_sent_in_many_parts(store: ArtifactStore) -> None:
    pieces = [os.urandom(1_000_003) for _ in range(13)]
    whole = b"".join(pieces)
    assert store.put("traces/large", pieces) == len(whole)
    assert [(artifact.key, artifact.size) for artifact in store.list()] == [("traces/large", len(whole))]
    with store.open("traces/large") as file:
        file.seek(5_000_000)
        assert file.read(1000) == whole[5_000_000:5_001_000]
        file.seek(0)
        assert hashlib.sha256(file.read()).digest() == hashlib.sha256(whole).digest()
    path = store.path("traces/large")
    assert path.name == "large", "readers know formats by names"
    assert path.read_bytes() == whole
    assert store.path("traces/large") == path


def test_older_artifact_stays_when_a_later_part_fails(store: ArtifactStore) -> None:
    def broken() -> Iterator[bytes]:
        for _ in range(12):
            yield bytes(1_000_000)
        raise ConnectionError("gone")

    store.put("a/b", [b"older"])
    with pytest.raises((ConnectionError, StoreError)):
        store.put("a/b", broken())
    assert read(store, "a/b") == b"older"


def test_a_copy_follows_when_its_artifact_is_replaced(store: ArtifactStore) -> None:
    store.put("a/b.json", [b"one"])
    assert store.path("a/b.json").read_bytes() == b"one"
    store.put("a/b.json", [b"two"])
    assert store.path("a/b.json").read_bytes() == b"two"


def test_empty_content_is_an_artifact_when_nothing_is_put(store: ArtifactStore) -> None:
    assert store.put("a/nothing", []) == 0
    assert read(store, "a/nothing") == b""
    assert store.path("a/nothing").read_bytes() == b""


@pytest.mark.server
def test_access_is_said_to_be_refused_when_the_secret_is_wrong(seaweed: SeaweedServer, tmp_path: Path) -> None:
    settings = s3_settings(seaweed, secret_key="not-the-secret")
    stranger = open_artifact_store(StorageSettings(data_dir=tmp_path, artifacts="s3://artifacts", s3=settings))
    with pytest.raises(StoreError, match="refuses access") as caught:
        stranger.put("a/b", [b"1"])
    assert "secret_key" in str(caught.value.hint)
    assert "not-the-secret" not in caught.value.message
    with pytest.raises(StoreError, match="refuses access"):
        stranger.list()


def test_the_address_is_named_when_no_store_answers_there(tmp_path: Path) -> None:
    settings = S3Settings(endpoint="http://127.0.0.1:9", access_key="a", secret_key="b")
    away = open_artifact_store(StorageSettings(data_dir=tmp_path, artifacts="s3://artifacts", s3=settings))
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:9, bucket artifacts") as caught:
        away.open("a/b")
    assert "storage.s3.endpoint" in str(caught.value.hint)
