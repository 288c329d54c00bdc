"""The help of every command: a summary, a text for every option, and examples that the command accepts."""

import re
import shlex
from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from clusterscape.cli.entry import app
from clusterscape.cli.run import build_parser


def iter_commands(group: TyperGroup, path: str) -> Iterator[tuple[str, TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from iter_commands(command, f"{path} {name}")
        elif isinstance(command, TyperCommand):
            yield f"{path} {name}", command


def root() -> TyperGroup:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


COMMANDS = dict(iter_commands(root(), "clusterscape"))


def examples_of(command: TyperCommand) -> list[str]:
    heading, *lines = (command.epilog or "").splitlines()
    assert heading in ("Example:", "Examples:")
    return [line.strip() for line in lines]


def option_names(path: str, command: TyperCommand) -> set[str]:
    if path == "clusterscape run":
        return {name for action in build_parser()._actions for name in action.option_strings}
    options = (parameter for parameter in command.params if isinstance(parameter, TyperOption))
    return {name for option in options for name in (*option.opts, *option.secondary_opts)}


@pytest.mark.parametrize("path", COMMANDS)
def test_help_has_a_summary_and_a_text_for_every_parameter(path: str) -> None:
    command = COMMANDS[path]
    summary = (command.help or "").splitlines()[0]
    assert re.fullmatch(r"[A-Z].*\.", summary), summary
    for parameter in command.params:
        assert isinstance(parameter, TyperArgument | TyperOption)
        assert re.search(r"[.…]$", parameter.help or ""), parameter.name


@pytest.mark.parametrize("path", COMMANDS)
def test_help_has_an_example_with_options_that_the_command_accepts(path: str) -> None:
    command = COMMANDS[path]
    examples = examples_of(command)
    assert examples
    for example in examples:
        assert f"{example} ".startswith(f"{path} ")
        words = shlex.split(example)
        if path == "clusterscape run":  # arguments after the script belong to it
            end = next(at for at, word in enumerate(words) if word == "--" or word.endswith(".py"))
            words = words[:end]
        unknown = {word for word in words if word.startswith("--")} - option_names(path, command)
        assert not unknown, example


def test_every_command_is_in_a_named_panel_of_the_top_level_help() -> None:
    panels = {name: getattr(command, "rich_help_panel", None) for name, command in root().commands.items()}
    assert all(isinstance(panel, str) for panel in panels.values()), panels


def test_run_help_has_examples_when_printed() -> None:
    assert "clusterscape run train.py" in build_parser().format_help()
