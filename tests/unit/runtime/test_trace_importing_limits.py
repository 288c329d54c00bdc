"""The process that reads an uploaded trace is ended when it exceeds the limits of memory or time."""

from pathlib import Path

import pytest

from clusterscape.errors import TooLargeError
from clusterscape.runtime.trace_importing import find_machine_memory, import_in_subprocess, read_tree_bytes
from clusterscape.settings.limits import UploadLimits

EVENT = '{"ph":"X","cat":"kernel","name":"gemm%d","ts":%d,"dur":5,"pid":0,"tid":7,"args":{"stream":7}}'


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "rank0.json"
    with path.open("w") as file:
        file.write('{"schemaVersion":1,"traceEvents":[')
        file.write(",".join(EVENT % (number, number) for number in range(600_000)))
        file.write("]}")
    return path


def test_an_import_is_ended_when_it_takes_too_much_memory(tmp_path: Path, trace: Path) -> None:
    with pytest.raises(TooLargeError, match="GiB of memory") as raised:
        import_in_subprocess([trace], tmp_path, lambda _: None, limits=UploadLimits(import_memory_bytes=2**28))
    assert raised.value.setting == "limits.uploads.import_memory_bytes"


def test_an_import_is_ended_when_it_takes_too_long(tmp_path: Path, trace: Path) -> None:
    with pytest.raises(TooLargeError, match="takes more than") as raised:
        import_in_subprocess([trace], tmp_path, lambda _: None, limits=UploadLimits(import_timeout_s=0.01))
    assert raised.value.setting == "limits.uploads.import_timeout_s"


def test_memory_of_this_process_is_within_that_of_the_machine() -> None:
    import os

    assert 10**6 < read_tree_bytes(os.getpid()) < find_machine_memory()
