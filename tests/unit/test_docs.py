"""The docs are complete: what the code offers has its place there, and what they link to exists."""

import re
from pathlib import Path

import pytest

from clusterscape.settings import CollectSettings

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_every_source_has_a_heading_when_it_can_be_configured() -> None:
    guide = (ROOT / "docs/guide/sources.md").read_text(encoding="utf-8")
    assert set(CollectSettings.model_fields) <= set(re.findall(r"^## (\w+)$", guide, flags=re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_local_links_lead_somewhere_when_a_page_is_read(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)", text)
    missing = [link for link in links if "://" not in link and not leads_somewhere(page.parent / link)]
    assert not missing


def leads_somewhere(target: Path) -> bool:
    """A file, or a page that ``tools/site.py`` gathers from beside the docs: project/architecture.md is ARCHITECTURE.md."""
    folder, name = target.parent.resolve(), target.stem.upper()
    return target.exists() or (folder == ROOT / "docs/project" and (ROOT / f"{name}.md").is_file())


def test_files_named_by_the_architecture_exist_when_it_is_read() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("## Where do I change X?", 1)[1]
    names = re.findall(r"`((?:[a-z_]+/)+[a-z_.-]+)`", table)
    roots = (ROOT, ROOT / "src/clusterscape")
    assert names
    assert not [name for name in names if not any((root / name).exists() for root in roots)]


def test_readme_stays_short_when_it_grows() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
