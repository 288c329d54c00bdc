"""Speaks as slurmrestd's ``/slurm/…/nodes``, ``partitions``, ``reservations`` and ``ping``."""

from clusterscape.demo.hardware import PARTITION_SHARES, SMALL, DemoNode, Hardware
from clusterscape.demo.lives import Outage
from clusterscape.demo.moment import Moment
from clusterscape.demo.slurm_values import Json, envelope, host_list, index_list, number
from clusterscape.simulate.faults import FaultKind

MAX_TIME_MINUTES = 5 * 1440
BOOTED_AGO_S = 40 * 86_400


def ping_answer() -> Json:
    """The answer to ``ping``."""
    return envelope("pings", [{"hostname": "slurmctl", "pinged": "UP", "latency": 104, "mode": "primary"}], "slurmctld")


def nodes_answer(moment: Moment, hardware: Hardware) -> Json:
    """The answer to ``nodes``."""
    held: dict[str, list[int]] = {}
    cpus: dict[str, int] = {}
    for life, attempt in moment.running:
        for grant in attempt.grants:
            held.setdefault(grant.node, []).extend(grant.gpus)
            cpus[grant.node] = cpus.get(grant.node, 0) + life.demo.cpus_per_node
    entries = [
        _node(node, moment.outages.get(place), sorted(held.get(node.name, ())), cpus.get(node.name, 0), moment.time_s)
        for place, node in enumerate(hardware.nodes)
    ]
    return envelope("nodes", entries, "slurmctld") | {"last_update": number(moment.time_s)}


def _node(node: DemoNode, outage: Outage | None, held: list[int], cpus: int, time_s: int) -> Json:
    machine = node.machine
    gpus_used = f"gpu:{machine.gres_type}:{len(held)}(IDX:{index_list(held) or 'N/A'})"
    is_down = outage is not None and outage.kind is FaultKind.FAIL
    return {
        "name": node.name,
        "hostname": node.name,
        "address": node.name,
        "state": _state(outage, len(held), node.gpu_count),
        "next_state_after_reboot": ["INVALID"],
        "reason": outage.reason if outage else "",
        "reason_changed_at": number(outage.from_s if outage else 0),
        "reason_set_by_user": ("slurm" if is_down else "ops") if outage else "",
        "partitions": [node.partition],
        "features": [machine.gres_type, f"{machine.gres_type}-{machine.memory_mib // 1024}gb", f"rack-{node.rack}"],
        "active_features": [
            machine.gres_type,
            f"{machine.gres_type}-{machine.memory_mib // 1024}gb",
            f"rack-{node.rack}",
        ],
        "gres": f"gpu:{machine.gres_type}:{node.gpu_count}(S:0-1)",
        "gres_used": gpus_used,
        "gres_drained": "N/A",
        "cpus": machine.cpus,
        "effective_cpus": machine.cpus,
        "alloc_cpus": min(cpus, machine.cpus),
        "alloc_idle_cpus": max(0, machine.cpus - cpus),
        "boards": 1,
        "sockets": 2,
        "cores": machine.cpus // 2,
        "threads": 1,
        "cpu_load": 0 if is_down else 100 * cpus // 2,
        "real_memory": machine.node_memory_mib,
        "free_mem": number(None if is_down else machine.node_memory_mib // 3),
        "tres": f"cpu={machine.cpus},mem={machine.node_memory_mib}M,billing={machine.cpus},gres/gpu={node.gpu_count}",
        "tres_used": f"cpu={cpus},gres/gpu={len(held)}" if held else "",
        "architecture": "x86_64",
        "operating_system": "Linux 6.1.0",
        "boot_time": number(time_s - time_s % 86_400 - BOOTED_AGO_S),
        "last_busy": number(time_s),
        "version": "" if is_down else "23.11.10",
        "weight": 1,
        "comment": "",
        "extra": "",
    }


def _state(outage: Outage | None, held: int, gpu_count: int) -> list[str]:
    if outage is not None and outage.kind is FaultKind.FAIL:
        return ["DOWN", "NOT_RESPONDING"] if "responding" in outage.reason else ["DOWN"]
    base = "IDLE" if not held else "ALLOCATED" if held == gpu_count else "MIXED"
    return [base, "DRAIN"] if outage is not None else [base]


def reservations_answer() -> Json:
    """The answer to ``reservations``: there are none."""
    return envelope("reservations", [], "slurmctld")


def partitions_answer(hardware: Hardware) -> Json:
    """The answer to ``partitions``."""
    return envelope("partitions", [_partition(name, hardware) for name, _ in PARTITION_SHARES], "slurmctld")


def _partition(name: str, hardware: Hardware) -> Json:
    nodes = hardware.partition(name)
    cpus = sum(node.machine.cpus for node in nodes)
    gpus = sum(node.gpu_count for node in nodes)
    return {
        "name": name,
        "alternate": "",
        "cluster": "demo",
        "nodes": {
            "configured": host_list([node.name for node in nodes]),
            "allowed_allocation": "",
            "total": len(nodes),
        },
        "accounts": {"allowed": "", "deny": ""},
        "groups": {"allowed": ""},
        "qos": {"allowed": "", "deny": "", "assigned": ""},
        "tres": {"billing_weights": "", "configured": f"cpu={cpus},node={len(nodes)},billing={cpus},gres/gpu={gpus}"},
        "cpus": {"task_binding": 0, "total": cpus},
        "defaults": {"time": number(60)},
        "maximums": {"time": number(MAX_TIME_MINUTES), "nodes": number(None)},
        "minimums": {"nodes": 1},
        "priority": {"job_factor": 1, "tier": 1},
        "partition": {"state": ["UP"]},
        "flags": ["DEFAULT"] if name == SMALL else [],
    }
