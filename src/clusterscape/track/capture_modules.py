"""The modules of a PyTorch model: what they are, how their parameters and what goes through them lie over the ranks, and their
names in the trace.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch.utils.hooks import RemovableHandle

UNCALLED = ("ModuleList", "ModuleDict", "ParameterList", "ParameterDict")
"""Containers without a forward: they never appear in a trace by themselves."""
MAX_MODULES = 20_000
MAX_TENSORS = 4
"""Of a call's inputs or outputs, so many are described."""

Calls = dict[int, dict[str, Any]]
"""What went into and came out of each module's first call, by the module's identity."""


def describe_modules(
    model: "torch.nn.Module", calls: Mapping[int, dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """One entry per module, outer before inner: path, class, its own parameters with shape and placement, and its call's
    tensors where it was called.
    """
    found: list[dict[str, Any]] = []
    for path, module in model.named_modules():
        parameters = [
            {"name": name, **describe_parameter(parameter)}
            for name, parameter in module.named_parameters(recurse=False)
        ]
        entry = {"path": path, "class": type(module).__name__, "parameters": parameters}
        found.append(entry | (calls or {}).get(id(module), {}))
        if len(found) == MAX_MODULES:
            break
    return found


def describe_parameter(parameter: "torch.Tensor") -> dict[str, Any]:
    """Global shape and type; of a sharded one also the local shape, the mesh's dimensions and the placement on each."""
    made: dict[str, Any] = {"shape": list(parameter.shape), "dtype": str(parameter.dtype).removeprefix("torch.")}
    if _is_distributed(parameter):  # DTensor: tensor parallel, FSDP2
        made |= _describe_layout(parameter)
    elif getattr(parameter, "tensor_model_parallel", False):  # Megatron marks its shards so
        dim = int(getattr(parameter, "partition_dim", 0))
        made["local_shape"] = made["shape"]
        made["placements"] = [{"mesh_dim": "tp", "kind": "shard", "dim": dim}]
        made.pop("shape")
    elif type(parameter).__name__ == "FlatParameter":  # FSDP1: flattened, one piece a rank
        made["local_shape"] = made.pop("shape")
        made["placements"] = [{"mesh_dim": "dp", "kind": "shard", "dim": 0}]
    return made


def _is_distributed(tensor: object) -> bool:
    return getattr(tensor, "placements", None) is not None and getattr(tensor, "device_mesh", None) is not None


def _describe_layout(tensor: Any) -> dict[str, Any]:
    """How a DTensor lies over the ranks."""
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
    inside the hooks by which a parallel style lays them out anew.
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

    found: list[dict[str, Any]] = []
    for value in values:
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
        for tensor in inside:
            if isinstance(tensor, torch.Tensor) and len(found) < MAX_TENSORS:
                made = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}
                found.append(made | _describe_layout(tensor) if _is_distributed(tensor) else made)
    return found


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
