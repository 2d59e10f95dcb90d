"""Tests that the page has each command with its arguments and options."""

from docs_site.reference.commands import page
from tests.unit.repository.test_public_names import COMMANDS

PAGE = page()


def test_each_command_has_its_arguments_and_options() -> None:
    missing = []
    for command, words in COMMANDS.items():
        section = PAGE.partition(f"\n## asya {command}\n")[2].partition("\n## ")[0]
        missing += [f"{command} {word}" for word in words.split() if f"`{word}`" not in section]
        missing += [] if "Usage: asya " in section else [command]
    assert missing == []


def test_no_other_command_is_listed() -> None:
    assert PAGE.count("\n## ") == len(COMMANDS)
