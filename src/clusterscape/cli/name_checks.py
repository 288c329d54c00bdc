"""What ``clusterscape doctor`` says of names: whether exporters and schedulers mean the same nodes, and who lacks the other."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from clusterscape.cli.check import Check
from clusterscape.collect.contract import Collector
from clusterscape.ingest.drops import Drops
from clusterscape.ingest.ledger import EXPORTERS, Ledger
from clusterscape.ingest.node_ties import NodeTies
from clusterscape.ingest.normalize import Normalizer
from clusterscape.model import InventoryObserved, NodeId, ScrapeObserved, UnixMs
from clusterscape.model.exporter_names import NameQuestion

NAMED_NODES = 12

Seen = InventoryObserved | ScrapeObserved


async def look_at_hardware(collector: Collector, now_ms: UnixMs) -> list[Seen]:
    """One look at what a source names. Of a scheduler the rest of its poll is left out."""
    seen: list[Seen] = []
    stream = cast(Any, collector.poll(now_ms))  # an async generator, which the contract does not promise
    async with aclosing(stream):
        async for each in stream:
            if isinstance(each, ScrapeObserved):
                seen.append(each)
            elif isinstance(each, InventoryObserved):
                seen.append(each)
                break
    return seen


def check_names(
    seen: Sequence[Seen], node_names: Mapping[str, str], clock: Callable[[], UnixMs], *, has_exporters: bool
) -> list[Check]:
    """Ties exporters to nodes as the server does, and says what remains open. ``has_exporters``: some are configured."""
    ties = NodeTies(node_names)
    ledger = Ledger()
    normalizer = Normalizer(Drops(), ties=ties, uuid_nodes=ledger.uuid_nodes)
    for inventory in (each for each in seen if isinstance(each, InventoryObserved)):
        ledger.see_inventory(inventory)
        ties.learn_nodes(ledger.scheduled_nodes(), inventory.host_names)
    for scrape in (each for each in seen if isinstance(each, ScrapeObserved)):
        for status in scrape.statuses:
            if status.address is not None:
                ties.note_asked(status.address, status.node if status.is_named else None)
        facts = normalizer.normalize(scrape.scrapes, now_ms=clock()).facts
        if facts is not None:
            ledger.see_hardware(facts, source=EXPORTERS, at=scrape.at)
    questions = normalizer.find_questions()
    lacking = ties.nodes_without_exporter()
    checks = [*map(_describe_question, questions), *_describe_lacking(lacking, ties, has_exporters=has_exporters)]
    gpus = sum(unit.mig_profile is None for unit in ledger.units.values())
    summary = f"{gpus:,} GPUs on {len(ledger.nodes):,} nodes"
    if ties.nodes and has_exporters and not checks:
        summary += "; every node with GPUs has an exporter, every exporter its node"
    return [Check(what="names of nodes", is_ok=True, message=summary), *checks]


def _describe_question(question: NameQuestion) -> Check:
    counted = "" if question.is_counted else f"; its {question.gpus} GPUs are not counted"
    right = f"If it is {question.proposed}, write" if question.proposed else "Write, with the node it is on,"
    return Check(
        what=f"exporter {question.exporter}",
        is_ok=False,
        message=f"{question.problem}{counted}",
        hint=f"{right} under [collect.node_names]: {question.setting}",
    )


def _describe_lacking(lacking: Sequence[NodeId], ties: NodeTies, *, has_exporters: bool) -> list[Check]:
    if not lacking:
        return []
    with_gpus = sum(node.gpu_count > 0 for node in ties.nodes.values())
    gpus = sum(ties.nodes[node].gpu_count for node in lacking)
    if not has_exporters:
        message = f"no exporter is configured: {with_gpus:,} nodes with {gpus:,} GPUs are shown without measurements"
        return [Check(what="nodes without an exporter", is_ok=True, message=message)]
    more = f" and {len(lacking) - NAMED_NODES:,} more" if len(lacking) > NAMED_NODES else ""
    return [
        Check(
            what="nodes without an exporter",
            is_ok=False,
            message=f"{', '.join(lacking[:NAMED_NODES])}{more}: {len(lacking):,} of {with_gpus:,} nodes with GPUs, "
            f"{gpus:,} GPUs of which nothing is measured",
            hint="Start dcgm-exporter there and name it in collect.dcgm.targets; where one is listed above under another "
            "name, answer that first.",
        )
    ]
