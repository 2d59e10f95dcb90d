"""Lists the files of a folder of code that its deployed package holds, each with its path there, and what is left out.

Every mode takes this list: a deployment, the local modes and the checks of a mesh file.
"""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

MOST_FILES = 100_000
"""More files in a folder of code are a mistake, such as a link to the root of the disk."""

# What tools keep beside code for themselves. Nobody expects it in a package, so nothing is said about it.
_OF_TOOLS = frozenset(
    {
        *("__pycache__", ".git", ".gitattributes", ".gitignore", ".gitkeep", ".gitmodules", ".hg", ".keep", ".svn"),
        *(".cache", ".hypothesis", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".tox"),
        *(".DS_Store", ".coverage", ".editorconfig", ".idea", ".python-version", ".venv", ".vscode"),
    }
)
_EMPTY_BY = frozenset({".gitkeep", ".keep", ".gitignore", ".DS_Store"})

_HIDDEN = "its name begins with a dot; give it a name without one, or a link to it"
_VARIABLES = "it is a file of variables; set them with `env`, and secrets with `secrets`, of the actors"
_CIRCULAR = "it is a link to a folder that contains it; remove it, or link to a folder elsewhere"
_ENVIRONMENT = "it is an environment of Python; name its packages in the requirements.txt"
_OF_NODE = "it has packages of Node; give it another name if handlers read it"
_NO_FILE = "it is neither a file nor a folder"
_EMPTY = "it is an empty folder, which archives do not have; put a file into it"


@dataclass(frozen=True, order=True)
class CodeFile:
    """One deployed file.

    Attributes:
        target: its path in the package, with slashes.
        source: its path on this machine, below the folder of code. A part of it may be a link.
    """

    target: str
    source: Path

    @property
    def is_executable(self) -> bool:
        """Whether the owner may execute it, which its copy keeps."""
        return bool(self.source.stat().st_mode & stat.S_IXUSR)


@dataclass(frozen=True, order=True)
class NotDeployed:
    """A file or a folder that is not in the package.

    Attributes:
        path: relative to the folder of code.
        reason: why, and how to get it in.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class CodeFiles:
    """The files of one folder of code.

    Attributes:
        folder: the folder.
        files: what the package holds, by path.
        left_out: what it does not hold, but for what only tools read.
        problems: what cannot be deployed and is no choice of anyone, such as a broken link.
    """

    folder: Path
    files: tuple[CodeFile, ...]
    left_out: tuple[NotDeployed, ...]
    problems: tuple[NotDeployed, ...]

    @cached_property
    def targets(self) -> frozenset[str]:
        """The paths in the package."""
        return frozenset(file.target for file in self.files)

    def why_left_out(self, target: str) -> str | None:
        """Why a file of the folder is not in the package; None if it is."""
        if target in self.targets:
            return None
        above = (each for each in (*self.left_out, *self.problems) if f"{target}/".startswith(f"{each.path}/"))
        return next((each.reason for each in above), "only tools read it")


def code_files(folder: Path, without: Path | None = None) -> CodeFiles:
    """List the files of a folder of code. Links are followed, so the package has what they lead to.

    Args:
        folder: the folder. A missing one has no files.
        without: a folder that is no part of it, wherever it lies in it.
    """
    walk = _Walk(None if without is None else _identity(os.stat(without)))
    if folder.is_dir():
        walk.enter(folder, "", frozenset())
    return CodeFiles(folder, tuple(sorted(walk.files)), tuple(sorted(walk.left_out)), tuple(sorted(walk.problems)))


class CodeFilesError(Exception):
    """A folder of code has files that cannot be deployed; the message names each, and what to do."""


def deployable(folder: Path, without: Path | None = None) -> CodeFiles:
    """List the files of a folder of code that has no problems.

    Raises:
        CodeFilesError: it has some.
    """
    found = code_files(folder, without)
    if found.problems:
        raise CodeFilesError("\n".join(f"{folder / each.path} {each.reason}" for each in found.problems))
    return found


_Identity = tuple[int, int]


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino


@dataclass
class _Walk:
    """A walk through a folder and what it links to."""

    without: _Identity | None
    files: list[CodeFile] = field(default_factory=list)
    left_out: list[NotDeployed] = field(default_factory=list)
    problems: list[NotDeployed] = field(default_factory=list)

    def enter(self, folder: Path, prefix: str, above: frozenset[_Identity]) -> None:
        """List a folder, and those below it.

        Args:
            folder: the folder.
            prefix: its path in the package, with a slash at its end.
            above: the folders that this one is in, on the way of the walk.
        """
        try:
            with os.scandir(folder) as found:
                names = sorted(entry.name for entry in found)
            above |= {_identity(folder.stat())}
        except OSError as error:
            self.problems.append(NotDeployed(prefix.rstrip("/") or ".", f"cannot be read: {error.strerror}"))
            return
        if prefix and "pyvenv.cfg" in names:
            self.left_out.append(NotDeployed(prefix.rstrip("/"), _ENVIRONMENT))
            return
        if prefix and _EMPTY_BY.issuperset(names):
            self.left_out.append(NotDeployed(prefix.rstrip("/"), _EMPTY))
            return
        for name in names:
            if len(self.files) > MOST_FILES:
                return
            if name not in _OF_TOOLS:
                self._visit(folder / name, prefix + name, above)

    def _visit(self, path: Path, target: str, above: frozenset[_Identity]) -> None:
        if path.name.startswith("."):
            reason = _VARIABLES if path.name == ".env" or path.name.startswith(".env.") else _HIDDEN
            self.left_out.append(NotDeployed(target, reason))
        elif problem := _unusable_name(path.name):
            self.problems.append(NotDeployed(ascii(target), problem))
        else:
            try:
                status = path.stat()
            except OSError as error:
                self.problems.append(NotDeployed(target, _unreachable(path, error)))
            else:
                self._take(path, target, status, above)

    def _take(self, path: Path, target: str, status: os.stat_result, above: frozenset[_Identity]) -> None:
        if stat.S_ISDIR(status.st_mode):
            self._take_folder(path, target, _identity(status), above)
        elif not stat.S_ISREG(status.st_mode):
            self.left_out.append(NotDeployed(target, _NO_FILE))
        elif not os.access(path, os.R_OK):
            self.problems.append(NotDeployed(target, "cannot be read: Permission denied"))
        else:
            self.files.append(CodeFile(target, path))
            if len(self.files) == MOST_FILES + 1:
                reason = (
                    f"is one file too many: a folder of code has at most {MOST_FILES:,}; does a link lead elsewhere?"
                )
                self.problems.append(NotDeployed(target, reason))

    def _take_folder(self, path: Path, target: str, identity: _Identity, above: frozenset[_Identity]) -> None:
        if identity == self.without:
            return
        if identity in above:
            self.left_out.append(NotDeployed(target, _CIRCULAR))
        elif path.name == "node_modules":
            self.left_out.append(NotDeployed(target, _OF_NODE))
        else:
            self.enter(path, f"{target}/", above)


def _unusable_name(name: str) -> str | None:
    try:
        name.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8; rename it"
    return "has a backslash in its name, which archives take for a folder; rename it" if "\\" in name else None


def _unreachable(path: Path, error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "is a link that leads to itself; remove it"
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return f"is a link to {path.readlink()}, which does not exist; mend or remove it"
    return f"cannot be read: {error.strerror}"


def described(found: CodeFiles) -> Iterator[str]:
    """Describe what is left out, a line for each."""
    for each in found.left_out:
        yield f"{found.folder / each.path}: is not deployed: {each.reason}"
