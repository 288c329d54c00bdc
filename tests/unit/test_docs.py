"""The docs are complete: features have a heading, and links lead to existing files."""

import re
from pathlib import Path

import pytest

from clusterscape.settings import CollectSettings

ROOT = Path(__file__).parents[2]
MOST_ROWS = 40
"""What needs more rows needs a layout that says it: names of modules, and the maps in packages' docstrings."""

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
    """A file, or a page that ``tools/site.py`` copies from outside the docs: project/architecture.md is ARCHITECTURE.md."""
    folder, name = target.parent.resolve(), target.stem.upper()
    return target.exists() or (folder == ROOT / "docs/project" and (ROOT / f"{name}.md").is_file())


def find_file(name: str) -> Path | None:
    """The file or folder of a name on a page, relative to the root, the package, the docs or the tests."""
    roots = (ROOT, ROOT / "src/clusterscape", ROOT / "docs", ROOT / "tests")
    return next((root / name for root in roots if (root / name).exists()), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist_when_a_page_is_read(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|tsx?|toml|md|css))`", text)
    assert not [name for name in names if find_file(name) is None]


def test_folders_named_by_the_architecture_exist_when_it_is_read() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("## Where do I change X?", 1)[1]
    names = re.findall(r"`((?:[a-z_]+/)+[a-z_.-]+)`", table)
    assert names
    assert not [name for name in names if find_file(name) is None]


def test_table_of_changes_stays_short_when_its_rows_are_counted() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("## Where do I change X?", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert 20 < len(rows) <= MOST_ROWS


def test_walks_name_existing_functions_when_the_architecture_is_read() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:4] for line in text.split("## One sample", 1)[1].splitlines() if line.startswith("| `")]
    named = [(path, name) for path, function, _ in rows for name in re.findall(r"`([\w.]+)`", function)]
    named += [
        (path, name)
        for *_, description in rows
        for name, path in re.findall(r"`([\w.]+)` [^`|]*in (`[^`]+`)", description)
    ]
    assert len(named) > 50
    assert not [(name, path) for path, name in named if not is_defined(name, find_file(path.strip(" `")))]


def is_defined(name: str, file: Path | None) -> bool:
    """Whether each part of ``Class.method`` is defined in the file, in Python or TypeScript syntax."""
    text = file.read_text(encoding="utf-8") if file else ""
    defining = r"\b(?:def|class|function|const) {0}\b|^  (?:async )?{0}\("
    return all(re.search(defining.format(part), text, flags=re.MULTILINE) for part in name.split("."))


PROSE = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "web").glob("*.md"),
    *(page for folder in ("benchmarks", "deploy", "tests", "tools") for page in (ROOT / folder).rglob("README.md")),
]


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_have_at_most_160_characters_when_a_page_is_read(page: Path) -> None:
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    assert not [number for number, line in lines if len(line) > 160 and not is_generated(page, line)]


def is_generated(page: Path, line: str) -> bool:
    """Rows of generated tables and of maps of the code, and generated lines of code, which cannot be wrapped."""
    if page.parent in (ROOT, ROOT / "web") and line.startswith("| "):
        return True
    first = page.read_text(encoding="utf-8").partition("\n")[0]
    is_written_by_tool = first.startswith("<!-- Written by `make") or line.startswith("| `limits.")
    return is_written_by_tool and line.startswith(("|", "    "))


def test_readme_stays_short_when_it_grows() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
