"""A small captured training run on the processor: 2 pipeline stages of 2 tensor-parallel ranks; one may sleep in its forward.

Run as a script: port, folder, the delayed rank (-1 for none), seconds of delay a forward. Traces go to
``ranks`` in the folder; afterwards one process trains alone, into ``alone``.
"""

import multiprocessing
import os
import sys
import time
from pathlib import Path

import torch
import torch._dynamo  # DTensor loads it: once here, not in each of the ranks
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module
from torch.profiler import ProfilerActivity, profile, record_function

import clusterscape

STEPS, MICRO_BATCHES, WIDTH, ROWS = 4, 4, 64, 16


class Block(nn.Module):
    def __init__(self, delay_s: float) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.delay_s = delay_s

    def forward(self, data: Tensor) -> Tensor:
        time.sleep(self.delay_s)
        out: Tensor = data + self.down(torch.relu(self.up(data)))
        return out


class Stage(nn.Module):
    def __init__(self, delay_s: float, *, has_head: bool = False) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(delay_s), Block(0.0)])
        self.head = nn.Linear(WIDTH, WIDTH) if has_head else None

    def forward(self, data: Tensor) -> Tensor:
        for block in self.blocks:
            data = block(data)
        return data if self.head is None else self.head(data)


def run_forward(model: Stage, stage: int, peer: int, number: int) -> tuple[Tensor, Tensor]:
    data = torch.randn(ROWS, WIDTH)
    if stage:
        with record_function(f"recv forward mb{number}"):
            distributed.recv(data, peer)
    data.requires_grad_(bool(stage))
    with record_function(f"forward mb{number}"):
        out = model(data)
    if not stage:
        with record_function(f"send forward mb{number}"):
            distributed.send(out.detach(), peer)
    return data, out


def run_backward(data: Tensor, out: Tensor, stage: int, peer: int, number: int) -> None:
    gradient = torch.full_like(out, 1 / out.numel())
    if not stage:
        with record_function(f"recv backward mb{number}"):
            distributed.recv(gradient, peer)
    with record_function(f"backward mb{number}"):
        torch.autograd.backward(out, gradient)
    if stage:
        assert data.grad is not None
        with record_function(f"send backward mb{number}"):
            distributed.send(data.grad, peer)


def train(rank: int, port: int, folder: str, delay_s: float) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=4)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "tp"))
    stage, peer = rank // 2, (rank + 2) % 4
    model = Stage(delay_s, has_head=stage == 1)
    styles = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    plan: dict[str, ParallelStyle] = {
        f"blocks.{number}.{name}": style for number in range(2) for name, style in styles.items()
    }
    if stage:  # gathered parts are laid out again
        plan["head"] = ColwiseParallel(output_layouts=Replicate())
    parallelize_module(model, mesh["tp"], plan)
    with clusterscape.trace.capture(model, steps=STEPS, folder=folder) as capture:
        for _ in range(STEPS + 1):  # the first warms up
            kept = [run_forward(model, stage, peer, number) for number in range(MICRO_BATCHES)]
            for number, (data, out) in enumerate(kept):
                run_backward(data, out, stage, peer, number)
            with record_function("optimizer"), torch.no_grad():
                for parameter in model.parameters():
                    assert parameter.grad is not None
                    parameter.sub_(parameter.grad, alpha=1e-3)
                    parameter.grad = None
            capture.step()
    distributed.barrier()
    distributed.destroy_process_group()


def train_alone(folder: Path) -> None:
    """No process groups: one capture that the steps outlast, one around a profiler of one's own."""
    model = Stage(0.0)
    with clusterscape.trace.capture(model, steps=2, folder=folder / "captured") as capture:
        for _ in range(5):
            model(torch.randn(ROWS, WIDTH)).mean().backward()
            capture.step()
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        model(torch.randn(ROWS, WIDTH))
    clusterscape.trace.write_capture(model, profiler, folder / "own", stage=1)


def main() -> int:
    port, folder, delayed, delay_s = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    context = multiprocessing.get_context("fork")
    ranks = [
        context.Process(
            target=train, args=(rank, port, f"{folder}/ranks", delay_s if rank == delayed else 0.0), daemon=True
        )
        for rank in range(4)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    train_alone(Path(folder) / "alone")
    return max(abs(process.exitcode or 0) for process in ranks)


if __name__ == "__main__":
    sys.exit(main())
