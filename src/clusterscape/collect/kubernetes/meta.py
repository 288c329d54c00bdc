"""Reads what every object has: names, owner, and from labels and annotations who it belongs to, as the settings name them."""

from collections.abc import Sequence

from clusterscape.collect.kubernetes.facts import Meta, OwnerRef
from clusterscape.collect.kubernetes.values import Json, as_object, iter_objects, read_text, read_texts, read_time
from clusterscape.settings import KubernetesSettings

_SESSIONS = frozenset({"Notebook", "Workspace"})
_SESSION_LABELS = ("hub.jupyter.org/username", "notebook-name")
_GROUPS = ("kueue.x-k8s.io/pod-group-name", "scheduling.k8s.io/group-name", "pod-group.scheduling.sigs.k8s.io")


def read_meta(item: Json, settings: KubernetesSettings, *, kind: str) -> Meta:
    """Parse the metadata. ``kind`` is an argument because objects in a list do not repeat it."""
    metadata = as_object(item.get("metadata"))
    labels = read_texts(metadata.get("annotations")) | read_texts(metadata.get("labels"))

    def find(names: Sequence[str]) -> str | None:
        return next((text for name in names if (text := read_text(labels.get(name)))), None)

    return Meta(
        kind=kind,
        name=read_text(metadata.get("name")) or "",
        namespace=read_text(metadata.get("namespace")) or "",
        uid=read_text(metadata.get("uid")) or "",
        created_at=read_time(metadata.get("creationTimestamp")),
        deleted_at=read_time(metadata.get("deletionTimestamp")),
        owner=_read_owner(metadata.get("ownerReferences")),
        user=find(settings.user_labels),
        project=find(settings.project_labels),
        experiment=find(settings.experiment_labels),
        queue=find(settings.queue_labels),
        group=find(_GROUPS),
        is_session=kind in _SESSIONS or find(_SESSION_LABELS) is not None,
    )


def _read_owner(value: object) -> OwnerRef | None:
    """The controller, else the first of all."""
    references = sorted(iter_objects(value), key=lambda reference: reference.get("controller") is not True)
    for reference in references:
        kind, name, uid = (read_text(reference.get(key)) for key in ("kind", "name", "uid"))
        if kind and name and uid:
            return OwnerRef(kind, name, uid)
    return None
