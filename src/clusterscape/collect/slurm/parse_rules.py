"""Parses reservations and preemption rules, from JSON or lines of ``KEY=VALUE``. Malformed entries are skipped."""

import re
from collections.abc import Iterable, Mapping

from clusterscape.collect.slurm.values import (
    as_list,
    as_object,
    expand_hostlist,
    read_int,
    read_names,
    read_text,
    read_time,
    read_words,
)
from clusterscape.model import NodeId, PreemptionRules, Reservation

RESERVATION_FIELDS: Mapping[str, str] = {
    "ReservationName": "name",
    "StartTime": "start_time",
    "EndTime": "end_time",
    "Nodes": "node_list",
    "Flags": "flags",
    "TRES": "tres",
    "PartitionName": "partition",
    "Users": "users",
    "Accounts": "accounts",
}
"""Fields of ``scontrol --oneliner show reservation`` by their names in JSON."""

_OFF = "OFF"


def parse_fields(line: str) -> dict[str, str]:
    """Parse the ``KEY=VALUE`` fields of one line of ``scontrol --oneliner``."""
    return dict(field.split("=", 1) for field in line.split() if "=" in field)


def parse_reservation_lines(text: str) -> dict[str, object]:
    """Parse the lines of ``scontrol --oneliner show reservation`` into the format of slurmrestd v0.0.38."""
    entries: list[object] = []
    for line in text.splitlines():
        fields = parse_fields(line)
        if "ReservationName" in fields:
            entry: dict[str, object] = {
                RESERVATION_FIELDS[key]: fields[key] for key in RESERVATION_FIELDS if key in fields
            }
            entry["flags"] = fields.get("Flags", "").split(",")
            entries.append(entry)
    return {"reservations": entries}


def parse_reservations(document: Mapping[str, object]) -> list[Reservation]:
    """Parse the reservations that have nodes and times, sorted by start."""
    reservations = [_parse_reservation(as_object(entry)) for entry in as_list(document.get("reservations"))]
    valid = (reservation for reservation in reservations if reservation is not None)
    return sorted(valid, key=lambda reservation: (reservation.starts_at, reservation.name))


def _parse_reservation(entry: Mapping[str, object]) -> Reservation | None:
    name, start, end = (
        read_text(entry.get("name")),
        read_time(entry.get("start_time")),
        read_time(entry.get("end_time")),
    )
    try:
        nodes = tuple(NodeId(node) for node in expand_hostlist(read_text(entry.get("node_list")) or ""))
    except ValueError:
        return None
    if name is None or start is None or end is None or end <= start or not nodes:
        return None
    flags = read_words(entry.get("flags"))
    tres = _parse_tres(read_text(entry.get("tres")) or "")
    return Reservation(
        name=name,
        starts_at=start,
        ends_at=end,
        nodes=nodes,
        is_maintenance="MAINT" in flags,
        is_flexible="FLEX" in flags,
        partition=read_text(entry.get("partition")),
        users=read_names(entry.get("users")),
        accounts=read_names(entry.get("accounts")),
        cpus=tres.get("cpu"),
        gpus=tres.get("gres/gpu"),
    )


def _parse_tres(text: str) -> dict[str, int]:
    """Parse the integer amounts of ``cpu=128,gres/gpu=8``."""
    amounts = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        number = read_int(value)
        if number is not None:
            amounts[key] = number
    return amounts


def parse_preemption(config: str, partitions: str, qos: str) -> PreemptionRules:
    """Parse ``scontrol show config``, ``scontrol --oneliner show partitions`` and ``sacctmgr -nP show qos``.

    The QOS lines (none without accounting) have name, preempted QOS and preemption mode, separated by ``|``.
    """
    values = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in config.splitlines())}
    kind, mode = values.get("PreemptType", ""), values.get("PreemptMode", _OFF).upper()
    rows = [parse_fields(line) for line in partitions.splitlines()]
    rows = [row for row in rows if "PartitionName" in row]
    qos_rows = [line.split("|") for line in qos.splitlines() if line.count("|") >= 2]
    return PreemptionRules(
        by_partition=kind == "preempt/partition_prio",
        by_qos=kind == "preempt/qos",
        tiers={row["PartitionName"]: read_int(row.get("PriorityTier")) or 1 for row in rows},
        protected_partitions=frozenset(
            row["PartitionName"] for row in rows if row.get("PreemptMode", mode).upper() == _OFF
        ),
        displaces={name: tuple(filter(None, names.split(","))) for name, names, *_ in qos_rows if names},
        protected_qos=frozenset(_protected(qos_rows, mode)),
        exempt_s=_parse_span_s(values.get("PreemptExemptTime", "")),
    )


def _protected(qos_rows: Iterable[list[str]], cluster_mode: str) -> Iterable[str]:
    for name, _, mode, *_ in qos_rows:
        effective = cluster_mode if mode.lower() in ("", "cluster") else mode.upper()
        if effective == _OFF:
            yield name


def _parse_span_s(text: str) -> int:
    """Seconds of ``1-02:03:04``; 0 for anything else."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,6}):(\d\d):(\d\d)", text, re.ASCII)
    if match is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
