"""MIG instances for the runs of a workload: created by profile name, used by UUID, and removed in any case.

Never changes a GPU's MIG mode or instances that it did not create. Its instances are listed on disk, so that the next
plan can remove those of a killed plan.
"""

import contextlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from clusterscape.errors import ConfigError, SourceError
from clusterscape.track.devices import MigInstance
from clusterscape.track.places import make_private_folder

_PROFILE = re.compile(r"^(mig[ -])?(\d+[cg](\.\d+g)?\.\d+gb(\+[a-z.]+)?)$")
_REMOVE_WITHIN_S = 10.0
_WHOLE = 0  # engine profile: shared engines


class MigDriver(Protocol):
    """Creates and removes instances. All methods raise SourceError with the driver's message."""

    def profiles(self, gpu: int) -> list[str]:
        """Names of the profiles that the GPU offers; empty if MIG is disabled."""
        ...

    def create(self, gpu: int, profile: str) -> MigInstance:
        """Create an instance with one compute instance that covers it."""
        ...

    def remove(self, gpu: int, instance: int) -> None:
        """Delete an instance; a missing one is not an error."""
        ...

    def close(self) -> None:
        """Release the driver."""
        ...


def parse_profile(word: str) -> str | None:
    """``3g.20gb``, also as ``mig-3g.20gb``; None if it is not a profile name."""
    match = _PROFILE.match(word.strip().lower())
    return match[2] if match else None


def check_profiles(wanted: Sequence[tuple[int, str]], driver: MigDriver) -> None:
    """Raise ConfigError if a GPU does not offer a profile."""
    for gpu, profile in dict.fromkeys(wanted):
        offered = driver.profiles(gpu)
        if not offered:
            raise ConfigError(
                f"MIG is switched off on GPU {gpu}", hint=f"An operator switches it on: nvidia-smi -i {gpu} -mig 1."
            )
        if profile not in offered:
            raise ConfigError(f"GPU {gpu} has no MIG profile {profile}", hint=f"It has: {', '.join(offered)}.")


@contextmanager
def hold_instances(
    wanted: Sequence[Sequence[tuple[int, str]]], state: Path, driver: MigDriver
) -> Iterator[list[list[MigInstance]]]:
    """Create instances for each run, by (GPU, profile); all are removed at the end, even if creating one fails."""
    gpus = sorted({gpu for run in wanted for gpu, _ in run})
    journal = Journal(state)
    remove_leftovers(gpus, state, driver)
    with ExitStack() as held:
        by_run = []
        for run in wanted:
            instances = []
            for gpu, profile in run:
                instance = driver.create(gpu, profile)
                held.callback(_remove, instance, driver, journal)
                journal.add(instance)
                instances.append(instance)
            by_run.append(instances)
        yield by_run


def remove_leftovers(gpus: Sequence[int], state: Path, driver: MigDriver) -> int:
    """Remove instances of killed plans from GPUs that this plan holds; returns their number."""
    journal = Journal(state)
    left = [instance for gpu in gpus for instance in journal.read(gpu)]
    for instance in left:
        _remove(instance, driver, journal)
    return len(left)


class Journal:
    """Instances that were created and not removed yet, one small file per GPU."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "mig"

    def read(self, gpu: int) -> list[MigInstance]:
        """Instances on ``gpu``."""
        try:
            return [MigInstance(*fields) for fields in json.loads(self._file(gpu).read_text())]
        except (OSError, ValueError, TypeError):
            return []

    def add(self, instance: MigInstance) -> None:
        """Record an instance."""
        self._write(instance.gpu, [*self.read(instance.gpu), instance])

    def drop(self, instance: MigInstance) -> None:
        """Remove an instance from the record."""
        self._write(instance.gpu, [other for other in self.read(instance.gpu) if other != instance])

    def _write(self, gpu: int, instances: Sequence[MigInstance]) -> None:
        make_private_folder(self._folder)
        temporary = self._file(gpu).with_suffix(".new")
        temporary.write_text(json.dumps(list(instances)))
        temporary.replace(self._file(gpu))

    def _file(self, gpu: int) -> Path:
        return self._folder / f"{gpu}.json"


def _remove(instance: MigInstance, driver: MigDriver, journal: Journal) -> None:
    """Remove an instance, with retries: a process that has just ended may still hold it."""
    deadline = time.monotonic() + _REMOVE_WITHIN_S
    while True:
        try:
            driver.remove(instance.gpu, instance.instance)
        except SourceError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.2)
        else:
            journal.drop(instance)
            return


class NvmlMig:
    """MIG through the driver's library; needs permission to change instances (usually root)."""

    def __init__(self) -> None:
        try:
            import pynvml

            pynvml.nvmlInit()
        except Exception as error:
            raise SourceError(f"no NVIDIA driver answers: {error}", hint="MIG needs one.") from None
        self._nvml: Any = pynvml

    def profiles(self, gpu: int) -> list[str]:
        """Names of the profiles that the GPU offers; empty if MIG is disabled."""
        return [name for name, _, _ in self._profiles(gpu)]

    def create(self, gpu: int, profile: str) -> MigInstance:
        """Create an instance with one compute instance that covers it."""
        nvml = self._nvml
        number, slices = next((rest for name, *rest in self._profiles(gpu) if name == profile), (None, 0))
        if number is None:
            raise SourceError(f"GPU {gpu} has no MIG profile {profile}", hint="`nvidia-smi mig -lgip` lists them.")
        with self._translated_errors(f"no MIG instance {profile} on GPU {gpu}"):
            device = nvml.nvmlDeviceGetHandleByIndex(gpu)
            handle = nvml.nvmlDeviceCreateGpuInstance(device, number)
            try:
                nvml.nvmlGpuInstanceCreateComputeInstance(handle, self._compute_profile(handle, slices))
                identity = int(nvml.nvmlGpuInstanceGetInfo(handle).id)
                return MigInstance(gpu, identity, profile, self._uuid(device, identity))
            except BaseException:
                self._destroy(handle)
                raise

    def remove(self, gpu: int, instance: int) -> None:
        """Delete an instance; a missing one is not an error."""
        nvml = self._nvml
        with self._translated_errors(f"MIG instance {instance} of GPU {gpu} stays"):
            try:
                handle = nvml.nvmlDeviceGetGpuInstanceById(nvml.nvmlDeviceGetHandleByIndex(gpu), instance)
            except nvml.NVMLError as error:
                if error.value == nvml.NVML_ERROR_NOT_FOUND:
                    return
                raise
            self._destroy(handle)

    def close(self) -> None:
        """Release the driver."""
        self._nvml.nvmlShutdown()

    def _profiles(self, gpu: int) -> list[tuple[str, int, int]]:
        """Name, number and slices."""
        nvml = self._nvml
        profiles = []
        with self._translated_errors(f"GPU {gpu} does not report its MIG profiles"):
            device = nvml.nvmlDeviceGetHandleByIndex(gpu)
            try:
                if nvml.nvmlDeviceGetMigMode(device)[0] != nvml.NVML_DEVICE_MIG_ENABLE:
                    return []
            except nvml.NVMLError as error:
                if error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
                    return []
                raise
            for place in range(nvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
                with contextlib.suppress(nvml.NVMLError):  # this kind of GPU does not have it
                    info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(device, place)
                    name = info.name.decode() if isinstance(info.name, bytes) else str(info.name)
                    profiles.append((name.removeprefix("MIG ").strip().lower(), int(info.id), int(info.sliceCount)))
        return profiles

    def _compute_profile(self, instance: Any, slices: int) -> int:
        nvml = self._nvml
        for place in range(nvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
            with contextlib.suppress(nvml.NVMLError):
                info = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, place, _WHOLE)
                if int(info.sliceCount) == slices:
                    return int(info.id)
        raise SourceError(f"no compute instance has {slices} slices", hint="Is the driver older than the GPU?")

    def _uuid(self, device: Any, identity: int) -> str:
        nvml = self._nvml
        for place in range(nvml.nvmlDeviceGetMaxMigDeviceCount(device)):
            with contextlib.suppress(nvml.NVMLError):
                part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, place)
                if int(nvml.nvmlDeviceGetGpuInstanceId(part)) == identity:
                    return str(nvml.nvmlDeviceGetUUID(part))
        raise SourceError(f"MIG instance {identity} has no device", hint="`nvidia-smi -L` lists them.")

    def _destroy(self, instance: Any) -> None:
        nvml = self._nvml
        for identity in range(nvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
            try:
                inner = nvml.nvmlGpuInstanceGetComputeInstanceById(instance, identity)
            except nvml.NVMLError:
                continue
            nvml.nvmlComputeInstanceDestroy(inner)
        nvml.nvmlGpuInstanceDestroy(instance)

    @contextmanager
    def _translated_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._nvml.NVMLError as error:
            hint = "`nvidia-smi mig -lgi` shows what is there; changing it mostly needs root."
            raise SourceError(f"{what}: {error}", hint=hint) from None
