"""Builds the docs site: collects docs/ and the documents of the root in build/docs, then builds build/site with Zensical.

Fails if a link is broken or a page is missing in the navigation.
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
ROOT_DOCUMENTS = {name: f"project/{name.lower()}" for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")}
"""Documents of the repository's root, and their paths in the site."""
_LINK_TO_ROOT = re.compile(rf"\]\(((?:\.\./)*)\.\./({'|'.join(ROOT_DOCUMENTS)})\)")
"""A link from a page of docs/ to one of them, which is one folder further up than in the site."""
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")
_DARK_PICTURE = re.compile(r"(!\[[^\]]*\]\(\S+)-dark\.png\)")


def gather() -> None:
    """Collect all pages in one folder."""
    shutil.rmtree(GATHERED, ignore_errors=True)
    shutil.copytree(ROOT / "docs", GATHERED)
    shutil.copy(ROOT / "web/public/favicon.svg", GATHERED / "images")
    for page in GATHERED.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        text = _LINK_TO_ROOT.sub(lambda link: f"]({link[1]}{ROOT_DOCUMENTS[link[2]]})", text)
        # Pages link the dark picture; the site shows the one that matches the reader's theme.
        text = _DARK_PICTURE.sub(r"\1-dark.png#only-dark)\1-light.png#only-light)", text)
        page.write_text(text, encoding="utf-8")
    (GATHERED / "project").mkdir()
    for name, target in ROOT_DOCUMENTS.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        (GATHERED / target).write_text(_LINK.sub(_rewrite_link, text), encoding="utf-8")


def _rewrite_link(link: re.Match[str]) -> str:
    """Rewrite a link of a root document: to docs relative to its folder, to a root document by name, to code as plain text."""
    title, target = link[1], link[2]
    if target in ROOT_DOCUMENTS:
        return f"[{title}]({Path(ROOT_DOCUMENTS[target]).name})"
    if target.startswith("docs/") and target.endswith(".md"):
        return f"[{title}](../{target.removeprefix('docs/')})"
    return title


def find_unlisted() -> list[str]:
    """Pages that are missing in the navigation."""
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    pages = {str(path.relative_to(GATHERED)) for path in GATHERED.rglob("*.md")}
    return sorted(pages - set(_listed_pages(nav)))


def _listed_pages(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for entry in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from _listed_pages(entry)


def main() -> None:
    """Build; the exit status is Zensical's."""
    gather()
    if unlisted := find_unlisted():
        sys.exit(f"zensical.toml: nav lacks {', '.join(unlisted)}")
    program = Path(sys.executable).with_name("zensical")
    result = subprocess.run(
        [program, "build", "--strict", "--clean"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        check=False,
    )
    if result.returncode:
        # Omit the stack trace after the warnings.
        sys.exit((result.stdout + result.stderr).partition("Traceback")[0])


if __name__ == "__main__":
    main()
