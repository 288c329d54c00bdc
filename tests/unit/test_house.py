"""Every folder says what it is for, and no file is too long to read."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/clusterscape"
CLIENT = ROOT / "web/src"
MOST_LINES = 800
GENERATED = {CLIENT / "api/generated.ts"}
NOT_OURS = {"__pycache__", "static", "__snapshots__", "output", "snapshots"}


def folders_below(root: Path) -> Iterator[Path]:
    """Folders that contain source files."""
    for folder in sorted(path for path in root.rglob("*") if path.is_dir()):
        if not NOT_OURS & set(folder.relative_to(root).parts) and any(path.is_file() for path in folder.iterdir()):
            yield folder


def says_its_purpose(folder: Path) -> bool:
    """Whether its ``__init__``, a README, or the docstring of the parent package describes the folder."""
    if (folder / "README.md").is_file():
        return True
    own, around = (read_docstring(path / "__init__.py") for path in (folder, folder.parent))
    return bool(own) or f"``{folder.name}``" in around


def read_docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "" if file.is_file() else ""


def test_every_folder_of_the_package_says_its_purpose_when_it_is_opened() -> None:
    assert not [str(folder.relative_to(ROOT)) for folder in folders_below(PACKAGE) if not says_its_purpose(folder)]


def test_every_package_has_a_map_of_its_modules_when_they_are_many() -> None:
    """A line ```` ``module``: what it owns ```` for each; where modules are alike ("one file per …"), only for the others."""
    wrong = []
    for init in sorted(PACKAGE.rglob("*/__init__.py")):
        text, folder = read_docstring(init), init.parent
        modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
        modules |= {path.parent.name for path in folder.glob("*/__init__.py")}
        lines = text.splitlines()
        mapped = {match[1] for line in lines if (match := re.match(r"``(\w+)``: .", line))}
        about = " ".join(line for line in lines if not line.startswith("``"))
        is_whole = len(modules) < 4 or re.search("one file (or folder )?(each|per)", about, flags=re.IGNORECASE)
        wrong += [f"{folder.relative_to(ROOT)}: {name} is not there" for name in sorted(mapped - modules)]
        wrong += [
            f"{folder.relative_to(ROOT)}: {name} is not mapped" for name in sorted(modules - mapped) if not is_whole
        ]
    assert not wrong, "\n".join(wrong)


def test_every_folder_of_the_client_is_in_its_readme_when_it_is_opened() -> None:
    text = (ROOT / "web/README.md").read_text(encoding="utf-8")
    names = [folder.relative_to(CLIENT).as_posix() for folder in folders_below(CLIENT)]
    assert "views/overview/picture" in names
    assert not [name for name in names if f"`{name}`" not in text]


def test_every_folder_outside_the_package_is_in_a_readme_when_it_is_opened() -> None:
    for root in (ROOT / "tests", ROOT / "benchmarks", ROOT / "tools"):
        text = (root / "README.md").read_text(encoding="utf-8")
        names = {folder.relative_to(root).parts[0] for folder in folders_below(root)}
        assert not [name for name in names if f"`{name}`" not in text]


def test_no_file_is_too_long_when_it_is_read() -> None:
    sources = [
        path
        for root, ending in ((PACKAGE, "py"), (CLIENT, "ts*"), (ROOT / "tests", "py"), (ROOT / "benchmarks", "py"))
        for path in root.rglob(f"*.{ending}")
        if path not in GENERATED
    ]
    assert len(sources) > 500
    long = [path for path in sources if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES]
    assert not [str(path.relative_to(ROOT)) for path in long]


def test_public_class_names_mean_one_thing_when_they_are_searched_for() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
