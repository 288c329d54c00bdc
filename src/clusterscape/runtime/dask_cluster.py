"""A Dask cluster that others run, as a place to work: connecting to it, and what to say where that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from clusterscape.errors import ConfigError, QueryError


@contextmanager
def dask_client(scheduler: str) -> Iterator[Any]:
    """A client of the scheduler; its ``get_executor`` is an executor like any other."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ConfigError(
            "a Dask cluster needs the package distributed", hint="pip install 'clusterscape[dask]'"
        ) from error
    try:
        connect: Any = Client  # the package has no types
        client = connect(scheduler, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise QueryError(f"no Dask scheduler answers at {scheduler}", hint=str(error)) from error
    try:
        yield client
    finally:
        client.close()
