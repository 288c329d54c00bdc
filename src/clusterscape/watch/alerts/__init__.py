"""Sends messages when violations start and stop: spooled on disk, grouped, held, rate-limited, and delivered in order.

``alerts``: the entry point: spools turns of violations and runs the deliveries.
``channels``: one file per kind of channel.
``condense``: reduces turns to counts when too many wait.
``contract``: the interface of a channel: policies, messages and delivery results.
``database``: the spool file: schema, lock, transactions and errors.
``delivery``: sends one channel's messages from the spool, in order; decides when a failed one is sent again.
``plan``: groups waiting turns into messages, and decides when they are sent.
``spool``: the queue on disk: turns, messages and deliveries.
``states``: the state of each channel, read from the spool, also by other processes.
``turns``: a turn of violations as alerts store and send it.
"""

from clusterscape.watch.alerts.alerts import Alerts
from clusterscape.watch.alerts.channels.build import build_channels
from clusterscape.watch.alerts.contract import (
    Channel,
    ChannelState,
    DeliveryResult,
    Message,
    MessageKind,
    SendingPolicy,
)
from clusterscape.watch.alerts.states import read_spool

SPOOL_FILE = "alerts.db"
"""The name of the spool file below ``storage.data_dir``."""

__all__ = [
    "SPOOL_FILE",
    "Alerts",
    "Channel",
    "ChannelState",
    "DeliveryResult",
    "Message",
    "MessageKind",
    "SendingPolicy",
    "build_channels",
    "read_spool",
]
