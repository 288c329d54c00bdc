"""Tells people and programs when violations start and stop: kept on disk, grouped, held, limited, and delivered in order."""

from clusterscape.watch.alerts.alerts import Alerts
from clusterscape.watch.alerts.channels.build import build_channels
from clusterscape.watch.alerts.contract import Answer, Channel, ChannelState, Message, MessageKind, Policy
from clusterscape.watch.alerts.states import read_spool

SPOOL_FILE = "alerts.db"
"""Below ``storage.data_dir``."""

__all__ = [
    "SPOOL_FILE",
    "Alerts",
    "Answer",
    "Channel",
    "ChannelState",
    "Message",
    "MessageKind",
    "Policy",
    "build_channels",
    "read_spool",
]
