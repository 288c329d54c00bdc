"""Imports follow the table of ARCHITECTURE.md."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/clusterscape"
ANYWHERE = {"errors", "settings", "executors", "supervision", "warm_up"}  # everywhere but in the model


def read_table() -> dict[str, set[str]]:
    """package → packages it may import, from the table under "Who may import whom"."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.split("## Who may import whom", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `([a-z_.]+)` \|[^|]*\| ([^|]*) \|$", section, flags=re.MULTILINE)
    return {name.removesuffix(".py"): set(re.findall(r"`([a-z_]+)`", allowed)) for name, allowed in rows}


def imports_of(path: Path) -> set[str]:
    """First-level packages of clusterscape that a file imports."""
    packages = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        packages |= {name.split(".")[1] for name in names if name.startswith("clusterscape.")}
    return packages - {"__version__"}


def test_every_package_is_in_the_table_when_it_exists() -> None:
    existing = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    existing |= {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert existing == set(read_table())


def test_imports_follow_the_table_when_any_file_is_read() -> None:
    table = read_table()
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        home = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if home == "__init__":
            continue
        allowed = table[home] | {home} | (ANYWHERE if home != "model" else set())
        wrong += [f"{path.relative_to(ROOT)} imports {name}" for name in sorted(imports_of(path) - allowed)]
    assert not wrong, "\n".join(wrong)


def test_files_stay_short_when_the_tree_is_read() -> None:
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "web/src").rglob("*.ts*")]
    too_long = [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for path in files
        if "generated" not in path.name and (lines := len(path.read_text(encoding="utf-8").splitlines())) > 800
    ]
    assert not too_long
