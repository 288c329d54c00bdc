"""Commands shown in the docs exist, with the options they are shown with."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup, TyperOption

from clusterscape.cli.entry import app
from clusterscape.cli.run import build_parser

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "deploy/README.md")
    if path.name not in ("CHANGELOG.md", "commands.md")
]


def find_shown(text: str) -> Iterator[str]:
    """Arguments of ``clusterscape`` in code blocks and inline code; continued lines are joined."""
    for block in re.findall(r"^```(?:sh|console|text|)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        yield from find_in_lines(block)
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from find_in_lines("\n".join(line for line in outside.splitlines() if line.startswith("    ")))
    yield from re.findall(r"`clusterscape ([a-z][^`]*)`", outside)


def find_in_lines(block: str) -> Iterator[str]:
    for line in block.replace("\\\n", " ").splitlines():
        match = re.match(r"\s*\$? ?clusterscape ([a-z].*)", re.split(r"\s#|\s{2,}\(", line)[0])
        if match:
            yield match[1]


def find_fault(shown: str) -> str | None:
    """The subcommand or options that do not exist; None if all exist."""
    words = split_words(shown)
    command = typer.main.get_command(app)
    while isinstance(command, TyperGroup):
        name = words.pop(0) if words else None
        if name is None or "|" in name or "…" in name:
            return None
        if name not in command.commands:
            return f"there is no {name}"
        command = command.commands[name]
    options = {
        option
        for parameter in command.params
        if isinstance(parameter, TyperOption)
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    if command.name == "run":
        options = {option for action in build_parser()._actions for option in action.option_strings}
        words = words[: next((at for at, word in enumerate(words) if word == "--" or not is_for_run(words, at)), None)]
    unknown = [
        word for word in words if word.startswith("--") and word.partition("=")[0] not in options | {"--help", "--"}
    ]
    return f"{command.name} does not take {', '.join(unknown)}" if unknown else None


def is_for_run(words: list[str], at: int) -> bool:
    """Whether a word is an option of ``run`` or its value, rather than the script or its arguments."""
    return words[at].startswith("-") or (at > 0 and words[at - 1].startswith("-"))


def split_words(shown: str) -> list[str]:
    plain = re.sub(r"[\[\]]", " ", shown).replace("|", " | ")
    if " | " in plain:
        plain = re.sub(r"(\S+) \| .*", r"\1", plain)
    try:
        return shlex.split(plain)
    except ValueError:
        return plain.split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist_with_their_options_when_a_page_shows_them(page: Path) -> None:
    shown = list(find_shown(page.read_text(encoding="utf-8")))
    faults = {command: fault for command in shown if (fault := find_fault(command)) is not None}
    assert not faults


def test_commands_are_found_and_judged_when_they_are_wrong() -> None:
    assert list(find_shown("see `clusterscape stat --josn`")) == ["stat --josn"]
    assert find_fault("stat --json") == "there is no stat"
    assert find_fault("status --josn") == "status does not take --josn"
    assert find_fault("run -l nvml=10 model.py --batch-size 256") is None
    assert find_fault("sched what-if --policy size-priority") is None
    shown = [command for page in PAGES for command in find_shown(page.read_text(encoding="utf-8"))]
    assert len(shown) > 100
