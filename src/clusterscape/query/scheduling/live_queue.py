"""Reads the live queue from the stores, with the reservations and preemption rules that the scheduler last reported."""

import msgspec

from clusterscape.model import PreemptionRules, Reservation
from clusterscape.model.observations import SCHEDULER_RULES
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.queue_state import LiveQueue, read_queue
from clusterscape.store.records.contract import RecordStore


def read_live_queue(context: QueryContext) -> LiveQueue:
    """The queue as the stores hold it now."""
    records = context.records
    reservations, preemption = read_scheduler_rules(records)
    return read_queue(
        now_s=context.clock() // 1000,
        nodes=records.nodes(),
        partitions=records.partitions(),
        units=records.units(),
        workloads=records.active_workloads(),
        allocations=records.open_allocations(),
        reservations=reservations,
        preemption=preemption,
    )


def read_scheduler_rules(records: RecordStore) -> tuple[list[Reservation], PreemptionRules | None]:
    """What all sources reported last; no rules of preemption where none of them could say."""
    reservations: list[Reservation] = []
    preemption: PreemptionRules | None = None
    for document in records.documents(SCHEDULER_RULES):
        reservations += msgspec.convert(document.body["reservations"], list[Reservation])
        if document.body["preemption"] is not None:
            preemption = msgspec.convert(document.body["preemption"], PreemptionRules)
    return reservations, preemption
