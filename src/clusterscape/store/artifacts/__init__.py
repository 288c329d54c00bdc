"""Artifacts: whole files under a key (imported traces, job traces, reports), behind one contract."""

from clusterscape.store.artifacts.contract import ArtifactInfo, ArtifactStore
from clusterscape.store.artifacts.folder import FolderArtifactStore

__all__ = ["ArtifactInfo", "ArtifactStore", "FolderArtifactStore"]
