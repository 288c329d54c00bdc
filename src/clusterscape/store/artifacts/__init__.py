"""Artifacts: files under a key (imported traces, job traces, reports), behind one contract.

``contract``: the interface of artifact stores, and valid keys.
``folder``: artifacts as files of a folder.
``quota``: limits of uploads.
``s3``: artifacts in an S3-compatible bucket.
``traces``: metadata of imported traces.
"""

from clusterscape.settings import StorageSettings
from clusterscape.store.artifacts.contract import ArtifactInfo, ArtifactStore
from clusterscape.store.artifacts.folder import FolderArtifactStore

__all__ = ["ArtifactInfo", "ArtifactStore", "FolderArtifactStore", "open_artifact_store"]

ARTIFACTS_FOLDER = "artifacts"
CACHE_FOLDER = "artifact-cache"
"""Both below ``storage.data_dir``."""


def open_artifact_store(storage: StorageSettings, *, min_free_bytes: int = 0) -> ArtifactStore:
    """The store of the settings, without connecting or writing yet.

    ``min_free_bytes``: disk space that local copies of remote artifacts leave free, if more than in the settings.
    """
    if storage.artifacts == "folder":
        return FolderArtifactStore(storage.data_dir / ARTIFACTS_FOLDER, min_free_bytes=storage.min_free_bytes)
    from clusterscape.store.artifacts.s3 import S3ArtifactStore  # its client is slow to import

    return S3ArtifactStore(
        storage.artifacts,
        storage.s3,
        cache=storage.data_dir / CACHE_FOLDER,
        min_free_bytes=max(min_free_bytes, storage.min_free_bytes),
    )
