"""Installs the servers and the browser that tests need, if it has the permission; else prints the command."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

REQUIRED_PROGRAMS = {
    # program: Debian package
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmrestd": "slurmrestd",
    "slurmdbd": "slurmdbd",
    "squeue": "slurm-client",
    "munged": "munge",
    "mariadbd": "mariadb-server",
    "victoria-metrics": "victoria-metrics",
    "prometheus": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "pg_ctl": "postgresql",
    "chromium": "chromium",
    "openssl": "openssl",
    "gcc": "gcc",
    "mmdebstrap": "mmdebstrap",
}
LIBRARIES = {
    # file below /usr/lib: Debian package
    "*/libc.so": "libc6-dev",
    "*/slurm-wlm/auth_jwt.so": "slurm-wlm-jwt-plugin",
    "*/slurm-wlm/accounting_storage_mysql.so": "slurm-wlm-mysql-plugin",
}


def missing_packages() -> list[str]:
    """Debian packages whose program or library is not on this machine."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/sbin", "/sbin"]
    folders += [str(path) for path in Path("/usr/lib/postgresql").glob("*/bin")]
    path = os.pathsep.join(folders)
    programs = {package for program, package in REQUIRED_PROGRAMS.items() if shutil.which(program, path=path) is None}
    libraries = {package for name, package in LIBRARIES.items() if not any(Path("/usr/lib").glob(name))}
    return sorted(programs | libraries)


def main() -> int:
    """Install missing packages, or print how; tests that need them are skipped, or fail in CI."""
    missing = missing_packages()
    if not missing:
        return 0
    install = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    can_install = shutil.which("apt-get") and (
        not sudo or subprocess.run([*sudo, "true"], capture_output=True, check=False).returncode == 0
    )
    if can_install:
        print(f"Installing {', '.join(missing)} …", flush=True)
        # Run level 1 prevents the packages from starting their services: tests start their own.
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        for command in (["apt-get", "update", "-qq"], install):
            result = subprocess.run([*sudo, *command], env=environment, stdout=subprocess.DEVNULL, check=False)
            if result.returncode:
                break
        missing = missing_packages()
    if missing:
        print(
            f"Not installed: {', '.join(missing)}. Tests that need them are skipped (in CI they fail).\n"
            f"On Debian or Ubuntu: sudo apt-get install {' '.join(missing)}",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
