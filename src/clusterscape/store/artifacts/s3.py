"""Artifacts in a bucket of an S3-compatible store, with local copies for readers that need a file. Large artifacts are
multipart uploads, which become visible when complete.

Maps the contract to the bucket, and its errors to ours. Local copies are a cache of limited size: least recently used go first.
"""

import hashlib
import io
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from clusterscape.errors import ConfigError, NotFoundError, StoreError, StoreFullError
from clusterscape.model import UnixMs
from clusterscape.settings import S3Settings
from clusterscape.store.artifacts.contract import ArtifactInfo, check_key, missing_artifact
from clusterscape.store.files import check_free_space, storage_errors

IN_USE_S = 3600.0
"""A copy that was requested this recently may still be in use, and is kept."""


class LocalCopies:
    """Cached copies in ``folder``: a folder per key, with a file per version."""

    def __init__(self, folder: Path, *, max_bytes: int, min_free_bytes: int = 0) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._min_free_bytes = min_free_bytes

    def find(self, key: str, version: str, *, size: int, content: Callable[[], Iterator[bytes]]) -> Path:
        """The copy of this version of ``key``, created from ``content`` if missing."""
        name = hashlib.sha256(version.encode()).hexdigest()[:16]
        path = self._home(key) / name / key.rpartition("/")[2]
        if path.is_file() and path.stat().st_size == size:
            with suppress(OSError):
                os.utime(path)
            return path
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._make_room(size)
            check_free_space(path.parent, min_free_bytes=self._min_free_bytes + size)
            temporary = path.with_name(f".copying-{uuid.uuid4().hex}")
            try:
                with temporary.open("wb") as file:
                    for piece in content():
                        file.write(piece)
                    copied = file.tell()
                if copied != size:
                    raise StoreError(f"{key} ended after {copied:,} of {size:,} bytes", hint="Try again.")
                temporary.rename(path)
            finally:
                temporary.unlink(missing_ok=True)
        return path

    def forget(self, key: str) -> None:
        """Remove the copies of a deleted artifact."""
        for path in self._home(key).glob("*/*"):
            path.unlink(missing_ok=True)

    def _home(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()[:16]

    def _make_room(self, size: int) -> None:
        files = [(path, path.stat()) for path in self._folder.glob("*/*/*") if path.is_file()]
        held = sum(about.st_size for _, about in files)
        for path, about in sorted(files, key=lambda item: item[1].st_mtime):
            if held + size <= self._max_bytes or time.time() - about.st_mtime < IN_USE_S:
                return
            path.unlink(missing_ok=True)
            held -= about.st_size


try:
    import obstore
    from obstore.exceptions import (
        BaseError,
        PermissionDeniedError,
        PreconditionError,
        UnauthenticatedError,
    )
    from obstore.exceptions import NotFoundError as NoSuchObjectError
    from obstore.store import S3Store
except ModuleNotFoundError:
    raise ConfigError(
        "storage.artifacts names an S3 store, but its client is not installed", hint="pip install 'clusterscape[s3]'"
    ) from None

if TYPE_CHECKING:
    from obstore import ObjectMeta

READ_BYTES = 1 << 20
CONNECT_TIMEOUT = timedelta(seconds=5)
REQUEST_TIMEOUT = timedelta(seconds=120)
RETRY = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}


class S3ArtifactStore:
    """Implements ``ArtifactStore`` in ``address``, s3://BUCKET or s3://BUCKET/PREFIX."""

    def __init__(self, address: str, settings: S3Settings, *, cache: Path, min_free_bytes: int = 0) -> None:
        bucket, _, prefix = address.removeprefix("s3://").strip("/").partition("/")
        self._where = f"{settings.endpoint or 'Amazon S3'}, bucket {bucket}"
        self._part_bytes = settings.part_bytes
        self._copies = LocalCopies(cache, max_bytes=settings.cache_bytes, min_free_bytes=min_free_bytes)
        options: dict[str, Any] = {"region": settings.region, "checksum_algorithm": "SHA256"}
        if settings.endpoint is not None:
            options |= {"endpoint": settings.endpoint.rstrip("/"), "virtual_hosted_style_request": False}
        if settings.access_key is not None:
            options["access_key_id"] = settings.access_key
        if settings.secret_key is not None:
            options["secret_access_key"] = settings.secret_key
        self._store = S3Store(
            bucket,
            prefix=prefix or None,
            config=cast(Any, options),
            client_options={"allow_http": True, "connect_timeout": CONNECT_TIMEOUT, "timeout": REQUEST_TIMEOUT},
            retry_config=cast(Any, RETRY),
        )

    def put(self, key: str, chunks: Iterable[bytes]) -> int:
        """Store an artifact atomically; every part has a SHA-256 checksum."""
        check_key(key)
        parts = _gather(chunks, self._part_bytes)
        first = next(parts, b"")
        second = next(parts, None)
        if second is None:
            with self._s3_errors(key):
                obstore.put(self._store, key, first, use_multipart=False)
            self._check_size(key, len(first))
            return len(first)
        counted = _Counted([first, second], parts)
        with self._s3_errors(key):
            try:
                obstore.put(self._store, key, counted, use_multipart=True, chunk_size=self._part_bytes)
            except Exception:
                if counted.failure is not None:  # the source of the bytes failed, not the store
                    raise counted.failure from None
                raise
        self._check_size(key, counted.size)
        return counted.size

    def open(self, key: str) -> BinaryIO:
        """The content, read on demand in pieces."""
        about = self._head(key)
        if not about["size"]:
            return io.BytesIO()
        return cast(BinaryIO, io.BufferedReader(_Content(self, key, about), READ_BYTES))

    def path(self, key: str) -> Path:
        """A local copy."""
        about = self._head(key)

        def content() -> Iterator[bytes]:
            with self._s3_errors(key):
                if about["size"]:
                    yield from obstore.get(self._store, key, options={"if_match": about["e_tag"]})

        return self._copies.find(key, str(about["e_tag"]), size=about["size"], content=content)

    def list(self, prefix: str = "") -> list[ArtifactInfo]:
        """Artifacts whose key starts with ``prefix``, by key."""
        folder = prefix.rpartition("/")[0]  # the client lists whole folders only
        artifacts = []
        with self._s3_errors(prefix):
            for batch in obstore.list(self._store, prefix=folder or None):
                for about in batch:
                    if about["path"].startswith(prefix):
                        at = UnixMs(int(about["last_modified"].timestamp() * 1000))
                        artifacts.append(ArtifactInfo(about["path"], about["size"], at))
        return sorted(artifacts, key=lambda artifact: artifact.key)

    def folders(self, prefix: str) -> Sequence[str]:
        """The folders in a folder, by name."""
        check_key(prefix.removesuffix("/"))
        with self._s3_errors(prefix):
            listing = obstore.list_with_delimiter(self._store, prefix=prefix.removesuffix("/"))
        return sorted(path.rstrip("/").rpartition("/")[2] for path in listing["common_prefixes"])

    def delete(self, key: str) -> bool:
        """Remove an artifact."""
        try:
            self._head(key)
        except NotFoundError:
            return False
        with self._s3_errors(key):
            obstore.delete(self._store, key)
        self._copies.forget(key)
        return True

    def remove_unfinished(self) -> None:
        """Does nothing: a lifecycle rule of the bucket removes incomplete multipart uploads."""

    def read_range(self, key: str, e_tag: str | None, start: int, end: int) -> bytes:
        """Bytes [start, end) of an artifact; raises StoreError if it was replaced meanwhile."""
        with self._s3_errors(key):
            content = obstore.get(self._store, key, options={"range": (start, end), "if_match": e_tag})
            return bytes(content.bytes())

    def _head(self, key: str) -> "ObjectMeta":
        check_key(key)
        with self._s3_errors(key):
            return obstore.head(self._store, key)

    def _check_size(self, key: str, size: int) -> None:
        held = self._head(key)["size"]
        if held != size:
            raise StoreError(
                f"{key} has {held:,} bytes in {self._where}, but {size:,} were sent", hint="See that store's log."
            )

    @contextmanager
    def _s3_errors(self, key: str) -> Iterator[None]:
        try:
            yield
        except (NoSuchObjectError, FileNotFoundError) as error:
            if "NoSuchBucket" in str(error):
                raise StoreError(
                    f"the bucket does not exist: {self._where}", hint="Create it, or correct `storage.artifacts`."
                ) from error
            raise missing_artifact(key) from None
        except PreconditionError as error:
            raise StoreError(f"{key} was replaced while it was read", hint="Read it again.") from error
        except BaseError as error:
            raise self._translate(error) from error

    def _translate(self, error: BaseError) -> StoreError:
        text = _summary(error)
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or "403 Forbidden" in text:
            return StoreError(
                f"{self._where} refuses access: {text}",
                hint="Check `storage.s3.access_key`, `secret_key` and their permissions on the bucket.",
            )
        if "507 " in text or "QuotaExceeded" in text or "InsufficientStorage" in text:
            return StoreFullError(f"{self._where} is full: {text}", hint="Free space there.")
        return StoreError(
            f"request to {self._where} failed: {text}",
            hint="Check `storage.s3.endpoint` and that the store runs there.",
        )


class _Content(io.RawIOBase):
    """An artifact as a file that is read in ranges."""

    def __init__(self, store: S3ArtifactStore, key: str, about: "ObjectMeta") -> None:
        self._store = store
        self._key = key
        self._e_tag = about["e_tag"]
        self._size = about["size"]
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, origin: int = io.SEEK_SET) -> int:
        self._position = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[origin])
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        end = min(self._size, self._position + len(buffer))
        if end <= self._position:
            return 0
        content = self._store.read_range(self._key, self._e_tag, self._position, end)
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)


class _Counted:
    """Iterates over parts to send; records their size and the error of their source."""

    def __init__(self, first: Iterable[bytes], rest: Iterator[bytes]) -> None:
        self._first = list(first)
        self._rest = rest
        self.size = 0
        self.failure: Exception | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            part = self._first.pop(0) if self._first else next(self._rest)
        except StopIteration:
            raise
        except Exception as error:
            self.failure = error
            raise
        self.size += len(part)
        return part


def _gather(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Join chunks to pieces of at least ``size`` bytes, except the last."""
    waiting = bytearray()
    for chunk in chunks:
        waiting += chunk
        if len(waiting) >= size:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


def _summary(error: Exception) -> str:
    """The first lines of an error: the client appends the whole response."""
    return " ".join(str(error).split("\n\n")[0].split())[:300]
