"""Where the data comes from and how the sources are."""

from collections.abc import Sequence
from typing import Protocol

from clusterscape.model import CATALOGUE, SourceStatus
from clusterscape.query.answers import DropAnswer, MetricAnswer, SourceAnswer, SourceGroup, Sources, StoreAnswer
from clusterscape.query.context import QueryContext

MAX_FAILURES = 50


class DropRow(Protocol):
    """Rows that shared one fate."""

    @property
    def kind(self) -> str:
        """Of source."""
        ...

    @property
    def reason(self) -> str:
        """Stable and machine-readable."""
        ...

    @property
    def count(self) -> int:
        """Rows since the start."""
        ...

    @property
    def is_stored(self) -> bool:
        """Whether they were stored all the same."""
        ...

    @property
    def meaning(self) -> str | None:
        """The reason in words."""
        ...


class IngestState(Protocol):
    """What ingest can tell of itself; a server without collectors has none."""

    @property
    def statuses(self) -> Sequence[SourceStatus]:
        """The last state of every source."""
        ...

    @property
    def samples_total(self) -> int:
        """Samples stored since the start."""
        ...

    def drop_table(self) -> Sequence[DropRow]:
        """Rows not stored, or stored though odd, by kind and reason."""
        ...


class SourceQuery:
    """Questions about the data's origin."""

    def __init__(self, context: QueryContext, ingest: IngestState | None) -> None:
        self._context = context
        self._ingest = ingest

    def sources(self) -> Sources:
        """Sources by kind, drops by reason, and what the store holds."""
        ingest = self._ingest
        statuses = ingest.statuses if ingest else self._context.records.sources()
        info = self._context.metrics.info()
        return Sources(
            groups=_group(statuses),
            samples_total=ingest.samples_total if ingest else 0,
            dropped=[
                DropAnswer(
                    kind=row.kind, reason=row.reason, count=row.count, is_stored=row.is_stored, meaning=row.meaning
                )
                for row in (ingest.drop_table() if ingest else ())
            ],
            paused=self._context.changes.versions.paused,
            store=StoreAnswer(
                engine=info.engine,
                samples=info.samples,
                bytes_on_disk=info.bytes_on_disk,
                oldest_at=info.oldest_at,
                newest_at=info.newest_at,
                waiting_samples=info.spooled_samples,
                lost_samples=info.lost_samples,
                trouble=info.trouble,
            ),
        )

    def catalogue(self) -> list[MetricAnswer]:
        """Every metric, the ones to offer first in front."""
        return [
            MetricAnswer(
                name=metric.name,
                label=metric.label,
                unit=metric.unit,
                kind=metric.kind,
                help=metric.help,
                is_summary=metric.summary,
                aliases=list(metric.aliases),
            )
            for metric in sorted(CATALOGUE, key=lambda metric: not metric.summary)
        ]


def _group(statuses: Sequence[SourceStatus]) -> list[SourceGroup]:
    kinds: dict[str, list[SourceStatus]] = {}
    for status in statuses:
        kinds.setdefault(status.kind, []).append(status)
    return [
        SourceGroup(
            kind=kind,
            total=len(members),
            failing=sum(not member.is_ok for member in members),
            last_at=max((member.at for member in members if member.is_ok), default=None),
            failures=[
                SourceAnswer(source=m.source, node=m.node, is_ok=m.is_ok, at=m.at, message=m.message, hint=m.hint)
                for m in members
                if not m.is_ok
            ][:MAX_FAILURES],
        )
        for kind, members in sorted(kinds.items())
    ]
