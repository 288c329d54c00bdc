"""A MIG instance that a run was given."""

from typing import NamedTuple


class MigInstance(NamedTuple):
    """An instance on a GPU. ``uuid`` is what CUDA_VISIBLE_DEVICES takes."""

    gpu: int
    instance: int
    profile: str
    uuid: str
