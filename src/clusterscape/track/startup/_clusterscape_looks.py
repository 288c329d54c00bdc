"""Lets the tracker look at this process when its run makes no steps any more. Until then it costs nothing.

On ``SIGNAL``, faulthandler writes all Python stacks, also while another thread holds the GIL. Ranks have a thread that sleeps
until the tracker writes into a pipe, and then saves what PyTorch's Flight Recorder recorded.
"""

import os
import sys

SIGNAL_BELOW_MAX = 9
"""The signal is SIGRTMAX − 9: libraries use the first and the last real-time signals."""
FIRST_FD = 250
"""Low file descriptors stay free for the script."""
RANK_VARIABLES = (
    ("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"),
)  # fmt: skip
"""Of a process's rank and of the number of ranks: of torchrun, mpirun and srun."""
FOLDER, STACKS = "looks", ".stacks"


def offer(run_folder: str) -> None:
    """Called once, when the process starts."""
    import faulthandler
    import signal

    folder = f"{run_folder}/{FOLDER}"
    os.makedirs(folder, 0o700, exist_ok=True)  # noqa: PTH103 – pathlib would take longer to import than all of this
    fd = _high(os.open(f"{folder}/{STACKS}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    faulthandler.register(signal.SIGRTMAX - SIGNAL_BELOW_MAX, file=fd, all_threads=True)
    if any(rank in os.environ and os.environ.get(size, "1") != "1" for rank, size in RANK_VARIABLES):
        import _thread

        _thread.start_new_thread(_answer, (folder,))


def _high(fd: int) -> int:
    import fcntl

    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_FD)
    os.close(fd)
    return high


def _answer(folder: str) -> None:
    """Save a dump for each name of a file that is written into the pipe."""
    pipe = f"{folder}/ask-{os.getpid()}"
    try:
        os.mkfifo(pipe, 0o600)
        fd = _high(os.open(pipe, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return
    while True:
        for name in os.read(fd, 4096).decode().split("\n"):
            if name:
                try:
                    _save(f"{folder}/{name}")
                except Exception as error:  # the script goes on, whatever its torch does
                    sys.stderr.write(f"clusterscape: cannot save what the recorder recorded: {error}\n")


def _save(file: str) -> None:
    """The dump of the backend that recorded most."""
    recorders = sys.modules.get("torch._C._distributed_c10d")
    dumps = []
    for name in ("_dump_nccl_trace_json", "_dump_fr_trace_json"):
        dump = getattr(recorders, name, None)
        if dump is not None:
            dumps.append(dump())
    whole = max(dumps, key=len, default=b"")
    whole = whole.encode() if isinstance(whole, str) else whole
    with open(f"{file}.part", "wb") as target:  # noqa: PTH123
        target.write(whole or b'{"version": "0.0", "entries": []}')
    os.replace(f"{file}.part", file)  # noqa: PTH105
