"""The status of each part of the API, with hints. Sends nothing."""

from collections.abc import Iterable, Mapping, Sequence

from clusterscape.collect.kubernetes.facts import QueueFacts
from clusterscape.collect.kubernetes.grouping import NAME
from clusterscape.collect.kubernetes.reflector import Reflector
from clusterscape.collect.kubernetes.resources import RESOURCES
from clusterscape.collect.kubernetes.snapshot import Snapshot
from clusterscape.errors import SourceError
from clusterscape.model import SourceStatus, UnixMs
from clusterscape.settings import KubernetesSettings

MAX_SKEW_MS = 30_000
SHOWN_QUEUES = 6


def source_status(
    part: str, at: UnixMs, error: SourceError | None, *, message: str | None = None, hint: str | None = None
) -> SourceStatus:
    """The status of one part; ok without an error."""
    return SourceStatus(
        source=f"{NAME} {part}",
        kind=NAME,
        is_ok=error is None,
        at=at,
        message=error.message if error else message,
        hint=error.hint if error else hint,
    )


def part_statuses(
    watches: Mapping[str, Reflector[object]], snapshot: Snapshot, settings: KubernetesSettings, at: UnixMs
) -> list[SourceStatus]:
    """One for each part that is installed; a part's first failing kind speaks for it."""
    parts: dict[str, list[Reflector[object]]] = {}
    for resource in RESOURCES:
        if resource.key in watches:
            parts.setdefault(resource.part, []).append(watches[resource.key])
    messages = {
        "kueue": describe_queues(snapshot.cluster_queues),
        "volcano": describe_queues(snapshot.volcano_queues),
    }
    return [
        source_status(part, at, find_error(kinds, settings), message=message, hint=hint)
        for part, kinds in parts.items()
        for message, hint in [_find_note(kinds) or (messages.get(part), None)]
    ]


def _find_note(watches: Iterable[Reflector[object]]) -> tuple[str, str] | None:
    full = next((watch.path for watch in watches if watch.is_full), None)
    if full is None:
        return None
    return f"{full} has more objects than the limit: new ones are dropped", "Raise limits.sources.objects."


def find_error(watches: Iterable[Reflector[object]], settings: KubernetesSettings) -> SourceError | None:
    """Of the first that fails or has not answered in time."""
    for watch in watches:
        if watch.error is not None:
            return watch.error
        if not watch.has_listed:
            return SourceError(
                f"{watch.path} was not read within {settings.timeout_s:g} s",
                hint="It is still being read. If that does not finish, raise collect.kubernetes.timeout_s.",
            )
    return None


def describe_queues(queues: Sequence[QueueFacts]) -> str | None:
    """``team-a 12 of 16 GPUs, 3 waiting; …``."""
    texts = []
    for queue in queues[:SHOWN_QUEUES]:
        limit = sum(queue.quotas.values())
        usage = f"{queue.used} of {limit} GPUs" if limit else f"{queue.used} GPUs"
        waiting = f", {queue.waiting} waiting" if queue.waiting else ""
        closed = "" if queue.is_open else ", closed"
        texts.append(f"{queue.name} {usage}{waiting}{closed}")
    more = f" and {len(queues) - SHOWN_QUEUES} more" if len(queues) > SHOWN_QUEUES else ""
    return "; ".join(texts) + more if texts else None


def skew_status(skew_ms: int, at: UnixMs) -> SourceStatus:
    """Whether the API server's clock is ours. HTTP tells whole seconds, and an answer takes its time."""
    if abs(skew_ms) <= MAX_SKEW_MS:
        return source_status("clock", at, None)
    way = "ahead of" if skew_ms > 0 else "behind"
    return source_status(
        "clock",
        at,
        SourceError(
            f"the API server's clock is about {abs(skew_ms) / 1000:.0f} s {way} this machine's: times are off by that",
            hint="Let both follow a time server (chrony, systemd-timesyncd).",
        ),
    )
