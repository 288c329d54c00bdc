"""Builds the docs site: gathers docs/ and the documents beside it in build/docs, then has Zensical make build/site of them.

Fails where a link leads nowhere or a page is missing in the navigation.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GATHERED = ROOT / "build/docs"
BESIDE = {name: f"project/{name.lower()}" for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")}
"""Documents of the repository's root, by where they lie in the site."""
_LINK_BESIDE = re.compile(rf"\]\(((?:\.\./)*)\.\./({'|'.join(BESIDE)})\)")
"""From a page of docs/ to one of them: a folder further up than in the site."""
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")
_DARK_PICTURE = re.compile(r"(!\[[^\]]*\]\(\S+)-dark\.png\)")


def gather() -> None:
    """All pages in one folder."""
    shutil.rmtree(GATHERED, ignore_errors=True)
    shutil.copytree(ROOT / "docs", GATHERED)
    shutil.copy(ROOT / "web/public/favicon.svg", GATHERED / "images")
    for page in GATHERED.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        text = _LINK_BESIDE.sub(lambda link: f"]({link[1]}{BESIDE[link[2]]})", text)
        # Pages name the dark one of two pictures; the site shows the one that fits the reader's theme.
        text = _DARK_PICTURE.sub(r"\1-dark.png#only-dark)\1-light.png#only-light)", text)
        page.write_text(text, encoding="utf-8")
    (GATHERED / "project").mkdir()
    for name, place in BESIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        (GATHERED / place).write_text(_LINK.sub(_turn_link, text), encoding="utf-8")


def _turn_link(link: re.Match[str]) -> str:
    """Into docs: from the folder of these pages; to one of them: beside it; to source code: only its name."""
    title, target = link[1], link[2]
    if target in BESIDE:
        return f"[{title}]({Path(BESIDE[target]).name})"
    if target.startswith("docs/") and target.endswith(".md"):
        return f"[{title}](../{target.removeprefix('docs/')})"
    return title


def find_unlisted() -> list[str]:
    """Pages that the navigation does not name."""
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    pages = {str(path.relative_to(GATHERED)) for path in GATHERED.rglob("*.md")}
    return sorted(pages - set(_named(nav)))


def _named(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for entry in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from _named(entry)


def main() -> None:
    """Build; the exit status is Zensical's."""
    gather()
    if unlisted := find_unlisted():
        sys.exit(f"zensical.toml: nav does not name {', '.join(unlisted)}")
    program = Path(sys.executable).with_name("zensical")
    done = subprocess.run(
        [program, "build", "--strict", "--clean"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        check=False,
    )
    if done.returncode:
        # What follows the warnings is a stack trace of no use.
        sys.exit((done.stdout + done.stderr).partition("Traceback")[0])


if __name__ == "__main__":
    main()
