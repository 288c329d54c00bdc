"""Describes a PyTorch run while it is profiled: the position of a rank (its mesh, its process groups with their
kinds, its pipeline stage) and the modules of the model, with the layout of their tensors over ranks.
"""

import json
import math
import re
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.utils.hooks import RemovableHandle


UNCALLED = ("ModuleList", "ModuleDict", "ParameterList", "ParameterDict")
"""Containers without a forward method: they do not appear in traces."""
MAX_MODULES = 20_000
MAX_TENSORS = 4
"""The most inputs or outputs of a call that are described."""

Calls = dict[int, dict[str, Any]]
"""Inputs and outputs of each module's first call, by the module's ``id()``."""


def describe_modules(
    model: "torch.nn.Module", calls: Mapping[int, dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """One entry per module, outer before inner: path, class, its own parameters with shape and placement, and its call's
    tensors where it was called.
    """
    modules: list[dict[str, Any]] = []
    for path, module in model.named_modules():
        parameters = [
            {"name": name, **describe_parameter(parameter)}
            for name, parameter in module.named_parameters(recurse=False)
        ]
        entry = {"path": path, "class": type(module).__name__, "parameters": parameters}
        modules.append(entry | (calls or {}).get(id(module), {}))
        if len(modules) == MAX_MODULES:
            break
    return modules


def describe_parameter(parameter: "torch.Tensor") -> dict[str, Any]:
    """Global shape and type; of a sharded one also the local shape, the mesh's dimensions and the placement on each."""
    description: dict[str, Any] = {"shape": list(parameter.shape), "dtype": str(parameter.dtype).removeprefix("torch.")}
    if _is_distributed(parameter):  # DTensor: tensor parallel, FSDP2
        description |= _describe_layout(parameter)
    elif getattr(parameter, "tensor_model_parallel", False):  # Megatron marks its shards so
        dim = int(getattr(parameter, "partition_dim", 0))
        description["local_shape"] = description["shape"]
        description["placements"] = [{"mesh_dim": "tp", "kind": "shard", "dim": dim}]
        description.pop("shape")
    elif type(parameter).__name__ == "FlatParameter":  # FSDP1: flattened, one piece a rank
        description["local_shape"] = description.pop("shape")
        description["placements"] = [{"mesh_dim": "dp", "kind": "shard", "dim": 0}]
    return description


def _is_distributed(tensor: object) -> bool:
    return getattr(tensor, "placements", None) is not None and getattr(tensor, "device_mesh", None) is not None


def _describe_layout(tensor: Any) -> dict[str, Any]:
    """The layout of a DTensor over ranks."""
    mesh = tensor.device_mesh
    names = mesh.mesh_dim_names or tuple(str(number) for number in range(mesh.ndim))
    return {
        "local_shape": list(tensor.to_local().shape),
        "placements": [
            {"mesh_dim": name, "parts": int(mesh.size(number)), **_describe_placement(placement)}
            for number, (name, placement) in enumerate(zip(names, tensor.placements, strict=True))
        ],
    }


def _describe_placement(placement: object) -> dict[str, Any]:
    dim = getattr(placement, "dim", None)
    if dim is not None:
        return {"kind": "shard", "dim": int(dim)}
    return {"kind": "partial" if "Partial" in type(placement).__name__ else "replicate"}


def record_calls(model: "torch.nn.Module") -> "tuple[list[RemovableHandle], Calls]":
    """Hooks that describe the tensors of every module's first call: as others hand and get them, and as the module itself does,
    inside the hooks with which a parallel style redistributes them.
    """
    hooks: list[RemovableHandle] = []
    calls: Calls = {}

    def note(module: object, what: str, values: tuple[object, ...]) -> None:
        call = calls.setdefault(id(module), {})
        if what not in call:
            call[what] = _describe_tensors(values)

    def enter(what: str) -> Callable[..., None]:
        return lambda module, inputs, named: note(module, what, (*inputs, *named.values()))

    def leave(what: str) -> Callable[..., None]:
        return lambda module, _inputs, output: note(module, what, (output,))

    for _, module in _called(model):
        hooks.append(module.register_forward_pre_hook(enter("inputs"), prepend=True, with_kwargs=True))
        hooks.append(module.register_forward_pre_hook(enter("inner_inputs"), with_kwargs=True))
        hooks.append(module.register_forward_hook(leave("inner_outputs"), prepend=True))
        hooks.append(module.register_forward_hook(leave("outputs")))
    return hooks, calls


def _describe_tensors(values: tuple[object, ...]) -> list[dict[str, Any]]:
    """The tensors among the values and one level inside them."""
    import torch

    tensors: list[dict[str, Any]] = []
    for value in values:
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
        for tensor in inside:
            if isinstance(tensor, torch.Tensor) and len(tensors) < MAX_TENSORS:
                description = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}
                tensors.append(description | _describe_layout(tensor) if _is_distributed(tensor) else description)
    return tensors


def name_modules(model: "torch.nn.Module") -> "list[RemovableHandle]":
    """Hooks that add every call of a module to the trace, with its name within the calling module."""
    from torch.autograd.profiler import record_function

    hooks: list[RemovableHandle] = []
    for name, module in _called(model):
        running: list[record_function] = []  # a module may call itself

        def enter(_module: object, _inputs: object, name: str = name, running: list[Any] = running) -> None:
            mark: AbstractContextManager[Any] = record_function(name)
            mark.__enter__()
            running.append(mark)

        def leave(_module: object, _inputs: object, _output: object, running: list[Any] = running) -> None:
            if running:
                running.pop().__exit__(None, None, None)

        hooks.append(module.register_forward_pre_hook(enter, prepend=True))
        hooks.append(module.register_forward_hook(leave, always_call=True))
    return hooks


def _called(model: "torch.nn.Module") -> "Iterator[tuple[str, torch.nn.Module]]":
    """Modules that have a forward, named from the nearest such module above: ``blocks.0`` in the model, then ``mlp``."""
    called: set[str] = set()
    for number, (path, module) in enumerate(model.named_modules()):
        if number == MAX_MODULES:
            return
        if type(module).__name__ in UNCALLED:
            continue
        called.add(path)
        parts = path.split(".")
        above = next((own for end in range(len(parts) - 1, 0, -1) if (own := ".".join(parts[:end])) in called), "")
        yield (path.removeprefix(above).removeprefix(".") or type(module).__name__), module


SCHEMA = "clusterscape_capture"
VERSION = 1
KINDS = {
    "tp": ("tp", "tensor", "model"), "pp": ("pp", "pipe", "pipeline", "stage"), "ep": ("ep", "expert"),
    "cp": ("cp", "context", "sp", "sequence"), "dp": ("dp", "data", "ddp", "fsdp", "shard", "replicate"),
}  # fmt: skip
"""Kinds of parallelism by words in the names of mesh dimensions."""
WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel")
MEGATRON = "megatron.core.parallel_state"


def describe_run(
    models: "Sequence[torch.nn.Module]",
    *,
    mesh: "DeviceMesh | None" = None,
    stage: int | None = None,
    calls: Sequence[Calls] = (),
) -> dict[str, Any]:
    """The content of the capture file, except the name of its trace."""
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
    """tp, pp, dp, ep or cp, derived from the name of a mesh dimension or group; None if the name does not tell."""
    words = set(re.findall(r"[a-z]+", (name or "").lower()))
    return next((kind for kind, words_of_kind in KINDS.items() if words & set(words_of_kind)), None)


def _find_mesh(models: "Sequence[torch.nn.Module]") -> "DeviceMesh | None":
    """The largest mesh of a parameter, including parent meshes."""
    largest: DeviceMesh | None = None
    for model in models:
        for parameter in model.parameters():
            own = getattr(parameter, "device_mesh", None)
            if own is None:
                continue
            root = getattr(own, "_get_root_mesh", lambda own=own: own)()
            if largest is None or root.size() > largest.size():
                largest = root
    return largest


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
    groups = []
    own = distributed_c10d.get_rank()
    for group, ranks in world.pg_group_ranks.items():
        if own not in ranks:
            continue
        name = str(world.pg_names.get(group, ""))
        description = str(getattr(group, "group_desc", "") or "")
        kind = name_kind(by_mesh.get(name)) or by_megatron.get(name) or by_wrapper.get(name)
        kind = kind or name_kind(description)
        groups.append({"name": name, "ranks": sorted(ranks), "kind": kind, "description": description})
    return groups


def _recorded_communications() -> list[dict[str, Any]]:
    """The last calls of collectives in torch's flight recorder, oldest first.

    Needed to match gloo's collectives across ranks: the profiler does not record their process group.
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
            "name": entry["profiling_name"],
            "group": str(entry["process_group"][0]),
            "sequence": entry["p2p_seq_id"] if entry.get("is_p2p") else entry["collective_seq_id"],
            "elements": sum(math.prod(shape) for shape in entry.get("input_sizes") or []),
        }
        for entry in sorted(entries, key=lambda entry: int(entry["record_id"]))
    ]


def _wrapper_groups(models: "Sequence[torch.nn.Module]") -> dict[str, str]:
    """DistributedDataParallel and FullyShardedDataParallel reduce gradients over their own process group."""
    kinds = {}
    for model in models:
        for module in model.modules():
            if type(module).__name__ in WRAPPERS and (group := getattr(module, "process_group", None)) is not None:
                kinds[str(group.group_name)] = "dp"
    return kinds


def _megatron_groups() -> dict[str, str]:
    state = sys.modules.get(MEGATRON)
    if state is None or not state.model_parallel_is_initialized():
        return {}
    getters = {
        "dp": "get_data_parallel_group", "tp": "get_tensor_model_parallel_group", "cp": "get_context_parallel_group",
        "pp": "get_pipeline_model_parallel_group", "ep": "get_expert_model_parallel_group",
    }  # fmt: skip
    kinds = {}
    for kind, ask in getters.items():
        try:
            kinds[str(getattr(state, ask)().group_name)] = kind
        except (AssertionError, AttributeError, TypeError):  # a kind this run or this version does not have
            continue
    return kinds
