"""Reads what a requirements file names on this machine: files that it includes, local wheels and local projects.

The names of packages are left to uv, and so is a mistake in the file: its error says more. A file too many is harmless here: it
only decides when packages are installed again.
"""

import configparser
import os
import re
import shlex
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from asya.protocol.text_encoding import decode_text

_INCLUDED = re.compile(r"(?:-r|-c|--requirements?|--constraints?)(?:\s*=\s*|\s+|(?=[^-=\s]))(.+)")
_OPTION = re.compile(r"-[ef](?=.)")
_COMMENT = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)
_CONTINUED = re.compile(r"\\\r?\n")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*@\s")
_EXTRAS = re.compile(r"\[[^\]]*\]$")
_FILE_URL = re.compile(r"file:(?://(?:localhost)?(?=/))?")


@dataclass(frozen=True)
class LocalProject:
    """A folder that a package is built from.

    Attributes:
        name: the name of the package; None if only its build would tell.
    """

    folder: Path
    name: str | None


@dataclass
class LocalRequirements:
    """What a requirements file names on this machine.

    Attributes:
        folder: the folder of the file, where the paths of packages begin. Those of included files begin where they are named.
        files: the file itself, those that it includes, and wheels.
        wheel_folders: folders of wheels.
        projects: the folders that packages are built from.
        variables: the environment variables in the text of the files.
    """

    folder: Path
    files: list[Path] = field(default_factory=list)
    wheel_folders: list[Path] = field(default_factory=list)
    projects: list[LocalProject] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)

    def include(self, path: Path) -> None:
        """Add a requirements file, and all that it names."""
        if path.resolve() in (file.resolve() for file in self.files):
            return
        self.files.append(path)
        try:
            text = decode_text(path.read_bytes())
        except (OSError, UnicodeDecodeError):
            return
        for line in _COMMENT.sub("", _CONTINUED.sub(" ", text)).splitlines():
            self._add_line(line.strip(), path.parent)

    def add_named(self, words: Iterable[str], folder: Path | None = None) -> None:
        """Add the files and folders among some words, such as those of a variable."""
        for word in words:
            path = (folder or self.folder) / _as_path(word)
            if not _may_be_path(word) or not path.exists():
                continue
            if path.is_dir():
                self.wheel_folders.append(path)
            else:
                self.files.append(path)

    def _add_line(self, line: str, folder: Path) -> None:
        self.variables |= {name: os.environ.get(name, "") for name in _VARIABLE.findall(line)}
        line = _VARIABLE.sub(lambda match: os.environ.get(match[1], match[0]), line)
        if included := _INCLUDED.fullmatch(line):
            self.include(folder / _as_path(included[1]))
            return
        others = []
        for word in _words(line):
            path = self.folder / _as_path(word)
            if _may_be_path(word) and _is_project(path):
                named = _NAMED.match(line)
                self.projects.append(LocalProject(path, named[1] if named else _project_name(path)))
            else:
                others.append(word)
        self.add_named(others)


def read_requirements(path: Path) -> LocalRequirements:
    """Read a requirements file and those that it includes."""
    found = LocalRequirements(path.parent)
    found.include(path)
    return found


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    return [word.split("=", 1)[-1] if word.startswith("--") else _OPTION.sub("", word) for word in words]


def _may_be_path(word: str) -> bool:
    """Whether a word may be a path: a plain name is one of a package."""
    return "/" in word or os.sep in word or word.startswith((".", "file:")) or word.endswith((".whl", ".gz", ".zip"))


def _as_path(word: str) -> Path:
    return Path(_EXTRAS.sub("", _FILE_URL.sub("", word.strip().strip("\"'"), count=1)))


def _is_project(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("pyproject.toml", "setup.cfg", "setup.py"))


def _project_name(folder: Path) -> str | None:
    """Return the name of a project by its files; uv says what is wrong with those that cannot be read."""
    with suppress(OSError, ValueError):
        name = tomllib.loads(decode_text((folder / "pyproject.toml").read_bytes())).get("project", {}).get("name")
        if isinstance(name, str):
            return name
    settings = configparser.ConfigParser(interpolation=None)
    with suppress(configparser.Error, UnicodeDecodeError):
        settings.read(folder / "setup.cfg", encoding="utf-8")
    return settings.get("metadata", "name", fallback=None)
