"""Where a rank stands in a distributed PyTorch run: its mesh, its process groups with their kinds, its pipeline stage."""

import json
import math
import re
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clusterscape.track.capture_modules import Calls, describe_modules

if TYPE_CHECKING:
    import torch
    from torch.distributed.device_mesh import DeviceMesh

SCHEMA = "clusterscape_capture"
VERSION = 1
KINDS = {
    "tp": ("tp", "tensor", "model"), "pp": ("pp", "pipe", "pipeline", "stage"), "ep": ("ep", "expert"),
    "cp": ("cp", "context", "sp", "sequence"), "dp": ("dp", "data", "ddp", "fsdp", "shard", "replicate"),
}  # fmt: skip
"""What a mesh dimension shares out, by the words it is called."""
WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel")
MEGATRON = "megatron.core.parallel_state"


def describe_run(
    models: "Sequence[torch.nn.Module]",
    *,
    mesh: "DeviceMesh | None" = None,
    stage: int | None = None,
    calls: Sequence[Calls] = (),
) -> dict[str, Any]:
    """The capture file's contents, but for the name of the trace beside it."""
    import torch
    from torch import distributed

    is_distributed = distributed.is_available() and distributed.is_initialized()
    mesh = mesh or _find_mesh(models)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "rank": distributed.get_rank() if is_distributed else 0,
        "world_size": distributed.get_world_size() if is_distributed else 1,
        "backend": str(distributed.get_backend()) if is_distributed else None,
        "host": socket.gethostname(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "torch": str(torch.__version__),
        "stage": stage if stage is not None else _find_stage(mesh),
        "mesh": None if mesh is None else _describe_mesh(mesh),
        "process_groups": _describe_groups(mesh, models) if is_distributed else [],
        "communications": _recorded_communications() if is_distributed else [],
        "modules": [
            entry
            for number, model in enumerate(models)
            for entry in describe_modules(model, calls[number] if number < len(calls) else {})
        ],
    }


def name_kind(name: str | None) -> str | None:
    """tp, pp, dp, ep or cp of a mesh dimension's or a group's name; None where it says nothing."""
    words = set(re.findall(r"[a-z]+", (name or "").lower()))
    return next((kind for kind, known in KINDS.items() if words & set(known)), None)


def _find_mesh(models: "Sequence[torch.nn.Module]") -> "DeviceMesh | None":
    """The largest mesh that a parameter lies on, up to the one it was cut from."""
    found: DeviceMesh | None = None
    for model in models:
        for parameter in model.parameters():
            own = getattr(parameter, "device_mesh", None)
            if own is None:
                continue
            root = getattr(own, "_get_root_mesh", lambda own=own: own)()
            if found is None or root.size() > found.size():
                found = root
    return found


def _describe_mesh(mesh: "DeviceMesh") -> dict[str, Any]:
    return {
        "dims": list(mesh.mesh_dim_names or [str(number) for number in range(mesh.ndim)]),
        "shape": list(mesh.mesh.shape),
        "coordinate": list(mesh.get_coordinate() or []),
    }


def _find_stage(mesh: "DeviceMesh | None") -> int | None:
    if mesh is not None and mesh.mesh_dim_names and (place := mesh.get_coordinate()) is not None:
        for number, name in enumerate(mesh.mesh_dim_names):
            if name_kind(name) == "pp":
                return int(place[number])
    state = sys.modules.get(MEGATRON)
    if state is not None and state.model_parallel_is_initialized():
        return int(state.get_pipeline_model_parallel_rank())
    return None


def _describe_groups(mesh: "DeviceMesh | None", models: "Sequence[torch.nn.Module]") -> list[dict[str, Any]]:
    """Every process group this rank is in, named as the profiler names it."""
    from torch.distributed import distributed_c10d

    world = distributed_c10d._world  # what the profiler itself reads: there is no public list
    by_mesh: dict[str, str] = {}
    if mesh is not None and mesh.mesh_dim_names:
        for name in mesh.mesh_dim_names:
            by_mesh[str(mesh.get_group(name).group_name)] = name
    by_megatron = _megatron_groups()
    by_wrapper = _wrapper_groups(models)
    found = []
    own = distributed_c10d.get_rank()
    for group, ranks in world.pg_group_ranks.items():
        if own not in ranks:
            continue
        name = str(world.pg_names.get(group, ""))
        description = str(getattr(group, "group_desc", "") or "")
        kind = name_kind(by_mesh.get(name)) or by_megatron.get(name) or by_wrapper.get(name)
        kind = kind or name_kind(description)
        found.append({"name": name, "ranks": sorted(ranks), "kind": kind, "description": description})
    return found


def _recorded_communications() -> list[dict[str, Any]]:
    """The last calls of collectives, oldest first, as torch's flight recorder has them.

    The profiler does not write the process group of gloo's collectives: without this, which belong together is not known.
    """
    from torch._C import _distributed_c10d

    dump = getattr(_distributed_c10d, "_dump_fr_trace_json", None)
    if dump is None:  # not every build of torch records
        return []
    try:
        entries = json.loads(dump()).get("entries") or []
    except (RuntimeError, ValueError):
        return []
    return [
        {
            "name": each["profiling_name"],
            "group": str(each["process_group"][0]),
            "sequence": each["p2p_seq_id"] if each.get("is_p2p") else each["collective_seq_id"],
            "elements": sum(math.prod(shape) for shape in each.get("input_sizes") or []),
        }
        for each in sorted(entries, key=lambda each: int(each["record_id"]))
    ]


def _wrapper_groups(models: "Sequence[torch.nn.Module]") -> dict[str, str]:
    """DistributedDataParallel and FullyShardedDataParallel reduce gradients over their own process group."""
    found = {}
    for model in models:
        for module in model.modules():
            if type(module).__name__ in WRAPPERS and (group := getattr(module, "process_group", None)) is not None:
                found[str(group.group_name)] = "dp"
    return found


def _megatron_groups() -> dict[str, str]:
    state = sys.modules.get(MEGATRON)
    if state is None or not state.model_parallel_is_initialized():
        return {}
    asked = {
        "dp": "get_data_parallel_group", "tp": "get_tensor_model_parallel_group", "cp": "get_context_parallel_group",
        "pp": "get_pipeline_model_parallel_group", "ep": "get_expert_model_parallel_group",
    }  # fmt: skip
    found = {}
    for kind, ask in asked.items():
        try:
            found[str(getattr(state, ask)().group_name)] = kind
        except (AssertionError, AttributeError, TypeError):  # a kind this run or this version does not have
            continue
    return found
