"""What runs that execute together need held while they do: their devices, the MPS daemon, their MIG instances."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from clusterscape.track.devices import reserve
from clusterscape.track.mig_instance import MigInstance
from clusterscape.track.plans.collocation import MIG, MPS, Collocation, collocate
from clusterscape.track.plans.mig import MigDriver, NvmlMig, check_profiles, hold_instances


class Seat(NamedTuple):
    """What one run asks for. The runs of a workload share in one way: all collocations are of one kind."""

    devices: tuple[str, ...]
    collocation: Collocation


class HeldSeat(NamedTuple):
    """What one run was given: variables it must be told, and MIG instances that stand for its devices."""

    environ: dict[str, str]
    instances: tuple[MigInstance, ...]


@contextlib.contextmanager
def hold_seats(
    seats: Sequence[Seat],
    state: Path,
    *,
    wait_s: float | None,
    on_wait: Callable[[str], None],
    make_driver: Callable[[], MigDriver] = NvmlMig,
) -> Iterator[list[HeldSeat]]:
    """Hold everything, and let go of it whatever happens. Waits for devices that other plans use."""
    devices = sorted({device for seat in seats for device in seat.devices})
    with contextlib.ExitStack() as stack:
        stack.enter_context(reserve(devices, state, wait_s=wait_s, on_wait=on_wait))
        environ = stack.enter_context(collocate(seats[0].collocation.kind, devices, state))
        wanted = [wanted_instances(seat) for seat in seats]
        held: list[list[MigInstance]] = [[] for _ in seats]
        if any(wanted):
            driver = stack.enter_context(contextlib.closing(make_driver()))
            held = stack.enter_context(hold_instances(wanted, state, driver))
        yield [HeldSeat(environ | _share(seat.collocation), tuple(own)) for seat, own in zip(seats, held, strict=True)]


def wanted_instances(seat: Seat) -> list[tuple[int, str]]:
    """GPU and MIG profile of each instance that a run asks for."""
    if seat.collocation.kind != MIG or seat.collocation.profile is None:
        return []
    return [(int(device), seat.collocation.profile) for device in seat.devices if device.isdigit()]


def check_instances(seats: Sequence[Seat]) -> None:
    """Raise ConfigError where a GPU does not offer a profile that a run wants; asks the driver only where one is wanted."""
    wanted = [pair for seat in seats for pair in wanted_instances(seat)]
    if wanted:
        with contextlib.closing(NvmlMig()) as driver:
            check_profiles(wanted, driver)


def _share(collocation: Collocation) -> dict[str, str]:
    if collocation.kind != MPS or collocation.share_percent is None:
        return {}
    return {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(collocation.share_percent)}
