"""Reads the commands and files of README.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.paths import PROJECT

README = PROJECT / "README.md"
_BLOCK = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# (\S+\.(?:yaml|py))\n")


@dataclass(frozen=True)
class Block:
    """A fenced block: its info string, such as `sh` or `sh aws`, and its text."""

    info: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block, without comments."""
        return [line.split("  #")[0].rstrip() for line in self.text.splitlines() if line.strip()]


def blocks() -> list[Block]:
    """The fenced blocks of the README, in order."""
    return [Block(match["info"].strip(), match["text"]) for match in _BLOCK.finditer(README.read_text())]


def commands(info: str) -> list[str]:
    """The commands of all blocks with this info string: `sh` or `sh aws`."""
    return [command for block in blocks() if block.info == info for command in block.commands]


def write_files(folder: Path) -> list[Path]:
    """Writes the files of the README under the names in their first lines; the payload becomes `orders.json`."""
    paths = []
    for block in blocks():
        if block.info not in ("yaml", "python", "json"):
            continue
        name = _NAME.match(block.text)
        path = folder / (name[1] if name else "orders.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
        paths.append(path)
    return paths
