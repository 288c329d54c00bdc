"""Data sources and their health."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import msgspec

from clusterscape.model import CATALOGUE, SourceStatus
from clusterscape.model.inventory import EXPORTER_QUESTIONS, NameQuestion
from clusterscape.query.answers import DropAnswer, MetricAnswer, SourceAnswer, SourceGroup, Sources, StoreAnswer
from clusterscape.query.context import QueryContext
from clusterscape.store.records.contract import RecordReader

MAX_FAILURES = 50


class DropRow(Protocol):
    """Rows that were dropped, or stored although odd, for one reason."""

    @property
    def kind(self) -> str:
        """The kind of source."""
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
        """Whether they were stored."""
        ...

    @property
    def meaning(self) -> str | None:
        """The reason as a sentence."""
        ...


class IngestState(Protocol):
    """The state of ingest; a server without collectors has none."""

    @property
    def statuses(self) -> Sequence[SourceStatus]:
        """The last state of every source."""
        ...

    @property
    def samples_total(self) -> int:
        """Samples stored since the start."""
        ...

    def drop_table(self) -> Sequence[DropRow]:
        """Rows that were dropped, or stored although odd, by kind and reason."""
        ...


@dataclass(frozen=True, slots=True)
class OpenNames:
    """Exporters and nodes that the collectors of all shards could not match."""

    questions: list[NameQuestion]
    nodes_without_exporter: list[str]

    def __len__(self) -> int:
        return len(self.questions) + len(self.nodes_without_exporter)


def read_open_names(records: RecordReader) -> OpenNames:
    """Open questions of all collectors; a node has no exporter if no collector found one."""
    documents = records.documents(EXPORTER_QUESTIONS)
    questions: list[NameQuestion] = []
    lacking: list[set[str]] = []
    for document in documents:
        try:
            body = msgspec.convert(document.body, _OpenNamesDocument)
        except msgspec.ValidationError:  # of another version of ClusterScape
            continue
        questions += body.questions
        lacking.append(set(body.nodes_without_exporter))
    return OpenNames(questions, sorted(set.intersection(*lacking)) if lacking else [])


class _OpenNamesDocument(msgspec.Struct):
    questions: list[NameQuestion]
    nodes_without_exporter: list[str]


class SourceQuery:
    """Queries on data sources."""

    def __init__(self, context: QueryContext, ingest: IngestState | None) -> None:
        self._context = context
        self._ingest = ingest

    def sources(self) -> Sources:
        """Sources by kind, dropped rows by reason, and what the store holds."""
        ingest = self._ingest
        statuses = ingest.statuses if ingest else self._context.records.sources()
        info = self._context.metrics.info()
        names = read_open_names(self._context.records)
        return Sources(
            groups=_group(statuses),
            awaited=self._context.awaited(),
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
            questions=names.questions,
            nodes_without_exporter=names.nodes_without_exporter,
            background=list(self._context.loops.states()),
        )

    def catalogue(self) -> list[MetricAnswer]:
        """Every metric, summary metrics first."""
        return [
            MetricAnswer(
                name=metric.name,
                label=metric.label,
                unit=metric.unit,
                kind=metric.kind,
                help=metric.help,
                subject=metric.subject,
                is_summary=metric.summary,
                aliases=list(metric.aliases),
            )
            for metric in sorted(CATALOGUE, key=lambda metric: not metric.summary)
        ]


def _describe_first(statuses: Iterable[SourceStatus]) -> list[SourceAnswer]:
    return [
        SourceAnswer(
            source=status.source,
            node=status.node,
            is_ok=status.is_ok,
            at=status.at,
            message=status.message,
            hint=status.hint,
        )
        for status in islice(statuses, MAX_FAILURES)
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
            limited=sum(member.is_limited for member in members),
            last_at=max((member.at for member in members if member.is_ok), default=None),
            failures=_describe_first(member for member in members if not member.is_ok),
            notes=_describe_first(member for member in members if member.is_limited),
        )
        for kind, members in sorted(kinds.items())
    ]
