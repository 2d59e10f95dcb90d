"""Finds what an installation of packages reads on this machine, so that none with other inputs takes its place.

uv reads the requirements and what they name, its variables, and its settings. The content of a package index is not among them:
`requirements_hashes: required` pins that.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from asya_infra.build.requirements_file import LocalRequirements, read_requirements

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
