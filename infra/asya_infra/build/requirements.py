"""Finds what an installation of packages reads on this machine: none with other inputs takes its place.

These are requirements files, local wheels, local projects and settings.
"""

import configparser
import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from asya.protocol.text import decode_text

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


# Variables that say how uv works, and not what it installs. Credentials change more often than what they open.
_OTHER_VARIABLES = re.compile(
    r"UV_(CACHE_DIR|COLOR|CONCURRENT_|HTTP_|INTERNAL_|LINK_MODE|LOCK_TIMEOUT|NATIVE_TLS|NO_CACHE|NO_COLOR|NO_PROGRESS|OFFLINE|"
    r"PUBLISH_|PYTHON_|REQUEST_|RUN_|SYSTEM_CERTS|TOOL_|UPLOAD_)|.*(USERNAME|PASSWORD|TOKEN)$"
)
_REQUIREMENTS_VARIABLES = frozenset({"UV_CONSTRAINT", "UV_OVERRIDE", "UV_BUILD_CONSTRAINT", "UV_EXCLUDE"})
_CREDENTIALS = re.compile(r"//[^/@\s\"]+@")
# No build reads them. A build may write `build` and `*.egg-info` into the folder of a project.
_NO_SOURCES = frozenset(
    {"__pycache__", "node_modules", ".git", ".venv", ".tox", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
)


def installation_inputs(requirements: Path) -> Iterator[str | bytes | Path]:
    """Yield what an installation depends on beside its target, as parts of a digest.

    Args:
        requirements: the requirements file. uv runs in its folder.
    """
    folder = requirements.parent.resolve()
    named = read_requirements(requirements)
    variables = {name: value for name, value in os.environ.items() if name.startswith("UV_")}
    variables = {name: value for name, value in variables.items() if not _OTHER_VARIABLES.match(name)}
    set_up = LocalRequirements(folder)
    for name, value in variables.items():
        words = re.split(r"[\s,]+", value)
        set_up.add_named(words)
        for file in words if name in _REQUIREMENTS_VARIABLES else ():
            set_up.include(folder / file)
    settings = {file: table for file in _settings_files(folder) if (table := _settings(file))}
    for file, table in settings.items():
        set_up.add_named(_texts(table), file.parent)
    told = [sorted((variables | named.variables).items()), list(settings.values())]
    yield f"uv {version('uv')}"
    yield _CREDENTIALS.sub("//", json.dumps(told, sort_keys=True, default=str))
    yield from _contents(named, folder)
    yield from _contents(set_up, folder)


def _contents(named: LocalRequirements, folder: Path) -> Iterator[str | bytes | Path]:
    for file in named.files:
        yield os.path.relpath(file, folder)
        yield file
    for each in named.wheel_folders:
        # A folder of wheels may have gigabytes, and uv goes by the times of its files too.
        yield os.path.relpath(each, folder)
        yield json.dumps(_listed(each))
    for project in named.projects:
        for file in project_files(project.folder):
            yield os.path.relpath(file, folder)
            yield file


def project_files(folder: Path) -> Iterator[Path]:
    """Yield the files that the build of a local project may read. Links are followed."""
    entered: set[str] = set()
    for parent, folders, files in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(parent)) in entered:
            folders.clear()
            continue
        entered.add(real)
        folders[:] = sorted(name for name in folders if not _is_no_source(Path(parent, name)))
        paths = (Path(parent, name) for name in sorted(files) if not name.endswith(".pyc"))
        yield from (path for path in paths if path.is_file())


def _is_no_source(folder: Path) -> bool:
    is_output = folder.name == "build" and any(folder.glob("bdist.*"))
    return folder.name in _NO_SOURCES or folder.name.endswith(".egg-info") or is_output


def _listed(folder: Path) -> list[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        files = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
    return sorted((name, status.st_size, status.st_mtime_ns) for name, status in files)


def _settings_files(folder: Path) -> Iterator[Path]:
    """Yield the files that uv may take settings from when it runs in a folder."""
    places = [each / name for each in (folder, *folder.parents) for name in ("uv.toml", "pyproject.toml")]
    user = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
    system = [Path(each) for each in os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep) if each]
    places += [each / "uv" / "uv.toml" for each in (user, *system, Path("/etc"))]
    yield from (place for place in places if place.is_file())


def _settings(file: Path) -> Any:
    """Return the settings of uv in a file: of a project's file the table `tool.uv` alone."""
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return str(error)
    return values if file.name == "uv.toml" else values.get("tool", {}).get("uv", {})


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
