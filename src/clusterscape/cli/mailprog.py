"""``clusterscape-mail``: the MailProg of Slurm. Writes what it is called with into a folder, and returns at once.

Only the standard library: Slurm waits for it, and starts one for every mail. `services/job_mail` reads the folder. If the folder
cannot be written (a full disk), the call is kept in memory (/dev/shm) until a later call can move it.
"""

import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SPOOL = "CLUSTERSCAPE_MAIL_SPOOL"
DEFAULT_SPOOL = "/var/spool/clusterscape/mail"
MEMORY = "CLUSTERSCAPE_MAIL_MEMORY"
_KEPT_VARIABLES = ("SLURM_JOB_USER", "SLURM_JOB_MAIL_TYPE", "SLURM_JOB_ID", "SLURM_JOB_STATE", "SLURM_CLUSTER_NAME")
_MAX_CHARS = 4000


def main(words: Sequence[str] | None = None) -> int:
    """Spool one mail: ``clusterscape-mail -s SUBJECT ADDRESS``. Exit status 1 if it could be kept nowhere."""
    subject, address = _read_words(sys.argv[1:] if words is None else words)
    if not address:
        sys.stderr.write("usage: clusterscape-mail -s SUBJECT ADDRESS\n")
        return 2
    variables = {name: os.environ[name][:_MAX_CHARS] for name in _KEPT_VARIABLES if name in os.environ}
    request = {
        "at": time.time_ns() // 1_000_000,
        "address": address[:_MAX_CHARS],
        "subject": subject[:_MAX_CHARS],
        "variables": variables,
    }
    data = json.dumps(request).encode("ascii") + b"\n"
    name = f"{time.time_ns():020d}-{os.getpid()}-{secrets.token_hex(4)}"
    spool, memory = Path(os.environ.get(SPOOL, DEFAULT_SPOOL)), _memory_folder()
    try:
        _write(spool, name, data)
    except OSError as error:
        try:
            memory.mkdir(mode=0o700, exist_ok=True)
            _check_own(memory)
            _write(memory, name, data)
        except OSError:
            sys.stderr.write(f"clusterscape-mail: cannot write to {spool}: {error}\n")
            return 1
        return 0
    _empty(memory, spool)
    return 0


def _read_words(words: Sequence[str]) -> tuple[str, str]:
    subject, addresses, rest = "", [], list(words)
    while rest:
        word = rest.pop(0)
        if word == "-s" and rest:
            subject = rest.pop(0)
        elif not word.startswith("-"):
            addresses.append(word)
    return subject, addresses[-1] if addresses else ""


def _memory_folder() -> Path:
    return Path(os.environ.get(MEMORY, "/dev/shm")) / f"clusterscape-mail-{os.geteuid()}"  # noqa: S108  # checked below


def _check_own(folder: Path) -> None:
    """Raise OSError if somebody else made the folder: everybody may write where it lies."""
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise PermissionError(f"{folder} belongs to somebody else")


def _write(folder: Path, name: str, data: bytes) -> None:
    """Write durably: a crash leaves the whole file or a ``.part``, which is read if it is whole."""
    part = folder / f"{name}.part"
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(number, rest) :]
            os.fsync(number)
        finally:
            os.close(number)
        part.rename(folder / f"{name}.json")
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _empty(memory: Path, spool: Path) -> None:
    """Move what an earlier call could only keep in memory; what fails stays for the next call."""
    try:
        _check_own(memory)
        for path in sorted(memory.glob("*.json")):
            _write(spool, path.stem, path.read_bytes())
            path.unlink()
    except OSError:
        return


if __name__ == "__main__":
    sys.exit(main())
