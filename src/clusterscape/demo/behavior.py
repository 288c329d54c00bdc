"""How a job's GPUs behave while it runs: its life cut into phases, each a recorded shape with a size and a color of its own."""

from typing import NamedTuple

from clusterscape.demo.recorded import Mode
from clusterscape.demo.work import Behavior, DemoJob

MINUTE_S = 60.0
FULL_RATIO = 0.985  # of the memory: here an allocation fails


class Phase(NamedTuple):
    """From ``start_s`` after the job's start to the next phase. Rates are for a GPU that is fully active."""

    start_s: float
    mode: Mode
    cycle_s: float = 0.0  # one pass through a cyclic shape
    level: float = 1.0  # of the recorded utilization
    jitter: float = 0.0  # how much utilization wanders, relative
    power: float = 1.0  # of the recorded dynamic power
    memory_ratio: float = 0.0  # of the GPU's memory, at the start of the phase
    memory_per_s: float = 0.0  # growth of that ratio
    sm: float = 0.85  # SM activity at full utilization
    tensor: float = 0.45  # tensor activity at full power
    nvlink: float = 0.0  # share of the link's bandwidth
    pcie_rx_bytes_per_s: float = 1.5e9
    pcie_tx_bytes_per_s: float = 0.4e9


IDLE = Phase(
    start_s=0.0, mode=Mode.IDLE, level=0.0, sm=0.0, tensor=0.0, pcie_rx_bytes_per_s=2e4, pcie_tx_bytes_per_s=5e4
)
# Holds its GPUs and computes nothing.
_WAITING = IDLE._replace(mode=Mode.CONTEXT, level=1.0, pcie_rx_bytes_per_s=3e6, pcie_tx_bytes_per_s=1e6)


def plan_phases(demo: DemoJob) -> tuple[Phase, ...]:
    """The phases of most of the job's GPUs, in order; the first starts at 0."""
    run_s = float(min(demo.job.run_s, demo.job.limit_s))
    is_leaking = demo.behavior is Behavior.MEMORY_LEAK
    memory_ratio = 0.3 + 0.2 * demo.draws[0] if is_leaking else 0.35 + 0.6 * demo.draws[0] ** 0.6
    loading_s = min(MINUTE_S * (1.0 + 3.0 * demo.draws[1]), 0.2 * run_s)
    loading = _WAITING._replace(
        memory_ratio=0.01, memory_per_s=(memory_ratio - 0.01) / loading_s, pcie_rx_bytes_per_s=4e9
    )
    main = _main_phase(demo)._replace(start_s=loading_s, memory_ratio=memory_ratio)
    turning_s = loading_s + (0.1 + 0.3 * demo.draws[2]) * (run_s - loading_s)
    match demo.behavior:
        case Behavior.STALLED:
            return loading, main, _stall(main, turning_s)
        case Behavior.IDLE_TAIL:
            return loading, main, _WAITING._replace(start_s=turning_s, memory_ratio=memory_ratio)
        case Behavior.MEMORY_LEAK:
            return loading, main._replace(memory_per_s=(FULL_RATIO - memory_ratio) / (run_s - loading_s))
        case Behavior.INTERACTIVE:
            return (loading, *_bursts(demo, main, run_s))
        case _:
            return loading, main


def plan_master_phases(demo: DemoJob) -> tuple[Phase, ...] | None:
    """The phases of the first GPU of each node, where it behaves differently; else None."""
    if demo.behavior is not Behavior.NODE_MASTER:
        return None
    loading, main = plan_phases(demo)
    busy = main._replace(
        level=0.79,
        power=0.85,
        memory_ratio=min(0.97, main.memory_ratio + 0.12),
        tensor=0.5,
        pcie_rx_bytes_per_s=7e9,
        pcie_tx_bytes_per_s=3e9,
    )
    return loading, busy


def _main_phase(demo: DemoJob) -> Phase:
    """The work itself. Draws 3–6: whether the GPU is kept fully busy, how hard, how often it pauses, which mix of kernels."""
    _, _, _, busy, hard, pause, kernels, _ = demo.draws
    nvlink = 0.0 if demo.job.gpus == 1 else 0.06 + 0.16 * kernels
    level = 1.0 if busy < 0.6 else 0.45 + 0.5 * hard
    main = Phase(
        start_s=0.0,
        mode=Mode.HEALTHY,
        level=level,
        jitter=0.0 if level == 1.0 else 0.08,
        power=level * (0.72 + 0.28 * hard),
        sm=0.7 + 0.25 * kernels,
        tensor=0.25 + 0.4 * kernels,
        nvlink=nvlink,
        pcie_rx_bytes_per_s=(0.5 + 3.0 * kernels) * 1e9,
        pcie_tx_bytes_per_s=(0.2 + 0.8 * kernels) * 1e9,
    )
    cycle_s = MINUTE_S * (60.0 + 200.0 * pause)  # four recorded cycles
    match demo.behavior:
        case Behavior.VALIDATION:
            mode = Mode.MIXED if pause < 0.4 else Mode.MIXED_LIGHT
            return main._replace(mode=mode, cycle_s=cycle_s)
        case Behavior.NODE_MASTER:
            return main._replace(
                mode=Mode.MIXED_LIGHT, cycle_s=cycle_s, level=0.48, jitter=0.12, power=0.58, nvlink=0.2
            )
        case Behavior.INPUT_BOUND:
            level = 1.0 + 4.0 * hard
            return main._replace(
                mode=Mode.INPUT_BOUND, level=level, jitter=0.1, power=0.8 + 0.4 * level, nvlink=0.1 * nvlink
            )
        case _:
            return main


def _stall(main: Phase, start_s: float) -> Phase:
    """A collective that never completes: some kernel spins on every GPU, and nothing moves."""
    return main._replace(
        start_s=start_s,
        mode=Mode.HANG,
        cycle_s=0.0,
        level=1.0,
        jitter=0.0,
        power=1.0,
        sm=0.07,
        tensor=0.0,
        nvlink=0.0,
        pcie_rx_bytes_per_s=2e6,
        pcie_tx_bytes_per_s=1e6,
    )


def _bursts(demo: DemoJob, main: Phase, run_s: float) -> list[Phase]:
    """Someone at a notebook: short runs between long pauses."""
    count = 2 + int(3 * demo.draws[5])
    slot_s = (run_s - main.start_s) / count
    phases = []
    for slot in range(count):
        start_s = main.start_s + slot * slot_s
        share = 0.15 + 0.35 * ((demo.draws[6] + slot * 0.618) % 1.0)
        phases.append(main._replace(start_s=start_s))
        phases.append(_WAITING._replace(start_s=start_s + share * slot_s, memory_ratio=main.memory_ratio))
    return phases
