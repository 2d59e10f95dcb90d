"""Folders of code for tests: with links, hidden files, data, blanks and letters of other alphabets in their names."""

import os
import string
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

_PLAIN = st.sampled_from(
    [
        "a",
        "b.py",
        "data.csv",
        "model.pkl",
        "my table.json",
        "größe.txt",
        "数据",
        "tests",
        "x.zip",
        "run.sh",
        "__init__.py",
    ]
)
_OTHER = st.text(string.ascii_letters + string.digits + " _-+~äß€", min_size=1, max_size=12)
_HIDDEN = st.sampled_from(
    [".env", ".env.local", ".config.json", ".git", ".venv", ".hidden", "__pycache__", "node_modules"]
)
_NAMES = st.one_of(_PLAIN, _PLAIN, _OTHER.filter(lambda name: name.strip(" .") != ""), _HIDDEN)
FILE, FOLDER, LINK, BROKEN, CIRCULAR = "file", "folder", "link", "broken", "circular"


@dataclass(frozen=True)
class Entry:
    """A part of a folder.

    Attributes:
        parts: its path.
        kind: what it is.
        content: of a file.
        is_executable: of a file.
        leads_to: the number of the entry that a link leads to; one past the last one is outside of the folder.
    """

    parts: tuple[str, ...]
    kind: str
    content: bytes
    is_executable: bool
    leads_to: int


def entries(
    kinds: tuple[str, ...] = (FILE, FILE, FOLDER, LINK, LINK, BROKEN, CIRCULAR),
) -> st.SearchStrategy[list[Entry]]:
    """Descriptions of folders with entries of these kinds."""
    entry = st.builds(
        Entry,
        st.lists(_NAMES, min_size=1, max_size=3).map(tuple),
        st.sampled_from(kinds),
        st.binary(max_size=20),
        st.booleans(),
        st.integers(0, 8),
    )
    return st.lists(entry, max_size=10)


def make(folder: Path, described: list[Entry]) -> Path:
    """Make a folder `code` from a description, beside a folder `shared` that its links may lead to."""
    code, shared = folder / "code", folder / "shared"
    for each in (code, shared / "deep"):
        each.mkdir(parents=True)
    (shared / "deep" / "table.csv").write_text("1,2\n")
    (shared / ".secret").write_text("secret\n")
    made = [code]
    for entry in described:
        path = code.joinpath(*entry.parts)
        if any(parent.is_symlink() or parent.is_file() for parent in (path, *path.parents) if parent != code.parent):
            continue
        if os.path.lexists(path):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        _make_one(path, entry, made, shared)
        made.append(path)
    return code


def _make_one(path: Path, entry: Entry, made: list[Path], shared: Path) -> None:
    match entry.kind:
        case "file":
            path.write_bytes(entry.content)
            path.chmod(0o755 if entry.is_executable else 0o640)
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(os.path.relpath([*made, shared][entry.leads_to % (len(made) + 1)], path.parent))
        case "broken":
            path.symlink_to("nothing-here")
        case _:
            path.symlink_to(path.name)
