"""The modules of a PyTorch model: what they are, how their parameters lie over the ranks, and their names in the trace."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch.utils.hooks import RemovableHandle

UNCALLED = ("ModuleList", "ModuleDict", "ParameterList", "ParameterDict")
"""Containers without a forward: they never appear in a trace by themselves."""
MAX_MODULES = 20_000


def describe_modules(model: "torch.nn.Module") -> list[dict[str, Any]]:
    """One entry per module, outer before inner: path, class, and its own parameters with shape and placement."""
    found: list[dict[str, Any]] = []
    for path, module in model.named_modules():
        parameters = [
            {"name": name, **describe_parameter(parameter)}
            for name, parameter in module.named_parameters(recurse=False)
        ]
        found.append({"path": path, "class": type(module).__name__, "parameters": parameters})
        if len(found) == MAX_MODULES:
            break
    return found


def describe_parameter(parameter: "torch.Tensor") -> dict[str, Any]:
    """Global shape and type; of a sharded one also the local shape, the mesh's dimensions and the placement on each."""
    made: dict[str, Any] = {"shape": list(parameter.shape), "dtype": str(parameter.dtype).removeprefix("torch.")}
    placements = getattr(parameter, "placements", None)
    mesh = getattr(parameter, "device_mesh", None)
    if placements is not None and mesh is not None:  # DTensor: tensor parallel, FSDP2
        local = parameter.to_local()  # type: ignore[attr-defined]
        names = mesh.mesh_dim_names or tuple(str(number) for number in range(mesh.ndim))
        made["local_shape"] = list(local.shape)
        made["placements"] = [
            {"mesh_dim": name, **_describe_placement(placement)}
            for name, placement in zip(names, placements, strict=True)
        ]
    elif getattr(parameter, "tensor_model_parallel", False):  # Megatron marks its shards so
        dim = int(getattr(parameter, "partition_dim", 0))
        made["local_shape"] = made["shape"]
        made["placements"] = [{"mesh_dim": "tp", "kind": "shard", "dim": dim}]
        made.pop("shape")
    elif type(parameter).__name__ == "FlatParameter":  # FSDP1: flattened, one piece a rank
        made["local_shape"] = made.pop("shape")
        made["placements"] = [{"mesh_dim": "dp", "kind": "shard", "dim": 0}]
    return made


def _describe_placement(placement: object) -> dict[str, Any]:
    dim = getattr(placement, "dim", None)
    if dim is not None:
        return {"kind": "shard", "dim": int(dim)}
    return {"kind": "partial" if "Partial" in type(placement).__name__ else "replicate"}


def name_modules(model: "torch.nn.Module") -> "list[RemovableHandle]":
    """Hooks that put every call of a module into the trace, under its name within the module that calls it."""
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
