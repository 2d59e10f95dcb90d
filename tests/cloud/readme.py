"""What the README tells a reader to type and to write."""

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
    """A fenced block: its language, with `aws` added where AWS is meant, and its text."""

    info: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block, without comments."""
        return [line.split("  #")[0].rstrip() for line in self.text.splitlines() if line.strip()]


def blocks() -> list[Block]:
    """All fenced blocks, in order."""
    return [Block(match["info"].strip(), match["text"]) for match in _BLOCK.finditer(README.read_text())]


def commands(info: str) -> list[str]:
    """All commands of the blocks of this kind: `sh` or `sh aws`."""
    return [command for block in blocks() if block.info == info for command in block.commands]


def write_files(folder: Path) -> list[Path]:
    """Write the files that the README shows: code and mesh under the name in their first line, the payload as `orders.json`."""
    written = []
    for block in blocks():
        if block.info not in ("yaml", "python", "json"):
            continue
        name = _NAME.match(block.text)
        path = folder / (name[1] if name else "orders.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
        written.append(path)
    return written
