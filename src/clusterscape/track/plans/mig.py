"""MIG instances for the runs of a workload: made by profile name, used by UUID, removed whatever happens.

Never changes a GPU's MIG mode, and never touches instances that it did not make. What it made is noted on disk, so that the next
plan removes what a killed one left.
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
from clusterscape.track.mig_instance import MigInstance
from clusterscape.track.places import make_private_folder

_PROFILE = re.compile(r"^(mig[ -])?(\d+[cg](\.\d+g)?\.\d+gb(\+[a-z.]+)?)$")
_REMOVE_WITHIN_S = 10.0
_WHOLE = 0  # engine profile: shared engines


class MigDriver(Protocol):
    """Makes and removes instances. All raise SourceError with the driver's words."""

    def profiles(self, gpu: int) -> list[str]:
        """Names that the GPU offers; empty where its MIG mode is off."""
        ...

    def create(self, gpu: int, profile: str) -> MigInstance:
        """A new instance with one compute instance over all of it."""
        ...

    def remove(self, gpu: int, instance: int) -> None:
        """Away with it; one that is gone already is no error."""
        ...

    def close(self) -> None:
        """Release the driver."""
        ...


def parse_profile(word: str) -> str | None:
    """``3g.20gb``, also as ``mig-3g.20gb``; None where it is no profile's name."""
    match = _PROFILE.match(word.strip().lower())
    return match[2] if match else None


def check_profiles(wanted: Sequence[tuple[int, str]], driver: MigDriver) -> None:
    """Raise ConfigError where a GPU does not offer a profile."""
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
    """Instances for each run, by (GPU, profile); all are removed at the end, also where making one of them fails."""
    gpus = sorted({gpu for run in wanted for gpu, _ in run})
    journal = Journal(state)
    remove_leftovers(gpus, state, driver)
    with ExitStack() as held:
        found = []
        for run in wanted:
            made = []
            for gpu, profile in run:
                instance = driver.create(gpu, profile)
                held.callback(_remove, instance, driver, journal)
                journal.add(instance)
                made.append(instance)
            found.append(made)
        yield found


def remove_leftovers(gpus: Sequence[int], state: Path, driver: MigDriver) -> int:
    """Remove what a killed plan left on GPUs that this one holds now; returns how many there were."""
    journal = Journal(state)
    left = [instance for gpu in gpus for instance in journal.read(gpu)]
    for instance in left:
        _remove(instance, driver, journal)
    return len(left)


class Journal:
    """What was made and not removed yet, one small file for each GPU."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "mig"

    def read(self, gpu: int) -> list[MigInstance]:
        """Instances on ``gpu``."""
        try:
            return [MigInstance(*one) for one in json.loads(self._file(gpu).read_text())]
        except (OSError, ValueError, TypeError):
            return []

    def add(self, instance: MigInstance) -> None:
        """It is there now."""
        self._write(instance.gpu, [*self.read(instance.gpu), instance])

    def drop(self, instance: MigInstance) -> None:
        """It is gone."""
        self._write(instance.gpu, [one for one in self.read(instance.gpu) if one != instance])

    def _write(self, gpu: int, instances: Sequence[MigInstance]) -> None:
        make_private_folder(self._folder)
        temporary = self._file(gpu).with_suffix(".new")
        temporary.write_text(json.dumps(list(instances)))
        temporary.replace(self._file(gpu))

    def _file(self, gpu: int) -> Path:
        return self._folder / f"{gpu}.json"


def _remove(instance: MigInstance, driver: MigDriver, journal: Journal) -> None:
    """A process that has just ended may hold it for a moment."""
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
    """MIG through the driver's library; needs the rights to change instances (mostly root)."""

    def __init__(self) -> None:
        try:
            import pynvml

            pynvml.nvmlInit()
        except Exception as error:
            raise SourceError(f"no NVIDIA driver answers: {error}", hint="MIG needs one.") from None
        self._nvml: Any = pynvml

    def profiles(self, gpu: int) -> list[str]:
        """Names that the GPU offers; empty where its MIG mode is off."""
        return [name for name, _, _ in self._profiles(gpu)]

    def create(self, gpu: int, profile: str) -> MigInstance:
        """A new instance with one compute instance over all of it."""
        nvml = self._nvml
        number, slices = next((rest for name, *rest in self._profiles(gpu) if name == profile), (None, 0))
        if number is None:
            raise SourceError(f"GPU {gpu} has no MIG profile {profile}", hint="`nvidia-smi mig -lgip` lists them.")
        with self._told(f"no MIG instance {profile} on GPU {gpu}"):
            device = nvml.nvmlDeviceGetHandleByIndex(gpu)
            made = nvml.nvmlDeviceCreateGpuInstance(device, number)
            try:
                nvml.nvmlGpuInstanceCreateComputeInstance(made, self._compute_profile(made, slices))
                identity = int(nvml.nvmlGpuInstanceGetInfo(made).id)
                return MigInstance(gpu, identity, profile, self._uuid(device, identity))
            except BaseException:
                self._destroy(made)
                raise

    def remove(self, gpu: int, instance: int) -> None:
        """Away with it; one that is gone already is no error."""
        nvml = self._nvml
        with self._told(f"MIG instance {instance} of GPU {gpu} stays"):
            try:
                found = nvml.nvmlDeviceGetGpuInstanceById(nvml.nvmlDeviceGetHandleByIndex(gpu), instance)
            except nvml.NVMLError as error:
                if error.value == nvml.NVML_ERROR_NOT_FOUND:
                    return
                raise
            self._destroy(found)

    def close(self) -> None:
        """Release the driver."""
        self._nvml.nvmlShutdown()

    def _profiles(self, gpu: int) -> list[tuple[str, int, int]]:
        """Name, number and slices."""
        nvml = self._nvml
        found = []
        with self._told(f"GPU {gpu} does not tell its MIG profiles"):
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
                    told = nvml.nvmlDeviceGetGpuInstanceProfileInfo(device, place)
                    name = told.name.decode() if isinstance(told.name, bytes) else str(told.name)
                    found.append((name.removeprefix("MIG ").strip().lower(), int(told.id), int(told.sliceCount)))
        return found

    def _compute_profile(self, made: Any, slices: int) -> int:
        nvml = self._nvml
        for place in range(nvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
            with contextlib.suppress(nvml.NVMLError):
                told = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(made, place, _WHOLE)
                if int(told.sliceCount) == slices:
                    return int(told.id)
        raise SourceError(f"no compute instance has {slices} slices", hint="Is the driver older than the GPU?")

    def _uuid(self, device: Any, identity: int) -> str:
        nvml = self._nvml
        for place in range(nvml.nvmlDeviceGetMaxMigDeviceCount(device)):
            with contextlib.suppress(nvml.NVMLError):
                part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, place)
                if int(nvml.nvmlDeviceGetGpuInstanceId(part)) == identity:
                    return str(nvml.nvmlDeviceGetUUID(part))
        raise SourceError(f"MIG instance {identity} has no device", hint="`nvidia-smi -L` lists them.")

    def _destroy(self, made: Any) -> None:
        nvml = self._nvml
        for identity in range(nvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
            try:
                inner = nvml.nvmlGpuInstanceGetComputeInstanceById(made, identity)
            except nvml.NVMLError:
                continue
            nvml.nvmlComputeInstanceDestroy(inner)
        nvml.nvmlGpuInstanceDestroy(made)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._nvml.NVMLError as error:
            hint = "`nvidia-smi mig -lgi` shows what is there; changing it mostly needs root."
            raise SourceError(f"{what}: {error}", hint=hint) from None
