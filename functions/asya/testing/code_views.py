"""Gives the tests of a process the code of a mesh as a deployment holds it.

A view is a folder with the deployed files, in step with the author's folder. Modules are imported from it, also by tests that
have the author's folder on their path, so a file that is not deployed does not open. Their code names the author's files all
the same, for tracebacks, debuggers and measures of coverage.
"""

import atexit
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib import machinery
from pathlib import Path
from types import CodeType
from typing import Any

from asya_infra.build.code_files import CodeFile, CodeFilesError, deployable
from asya_infra.product.places import JOB_LIBRARY

_COMPILED = ((machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),)
_SOURCELESS = ((machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),)

test_files = ["conftest.py", "test_*.py", "*_test.py"]
"""The names of tests, which pytest imports from the author's folder if they lie in it."""


@dataclass
class CodeView:
    """The deployed files of one folder.

    Attributes:
        folder: the author's folder.
        content: the folder with the deployed files.
    """

    folder: Path
    content: Path
    _copied: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def refresh(self) -> bool:
        """Copy what has changed, and remove what is gone; returns whether there was anything.

        Raises:
            CodeFilesError: a file cannot be deployed.
        """
        found = deployable(self.folder, without=JOB_LIBRARY)
        gone = self._copied.keys() - found.targets
        for target in gone:
            (self.content / target).unlink(missing_ok=True)
            del self._copied[target]
        copied = [self._copy(file) for file in found.files]
        return bool(gone) or any(copied)

    def _copy(self, file: CodeFile) -> bool:
        status = file.source.stat()
        state = (status.st_size, status.st_mtime_ns, status.st_mode)
        if self._copied.get(file.target) == state:
            return False
        target = self.content / file.target
        if target.is_dir():
            shutil.rmtree(target)  # a module in place of a package
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.source, target)
        target.chmod(0o755 if file.is_executable else 0o644)
        self._copied[file.target] = state
        return True


_VIEWS: dict[Path, CodeView] = {}


def view_of(folder: Path) -> Path:
    """Return the folder with what is deployed of a folder of code, as it is now; it stays the same in this process.

    Raises:
        CodeFilesError: a file cannot be deployed.
    """
    folder = folder.resolve()
    view = _VIEWS.get(folder)
    if view is None:
        view = _VIEWS[folder] = CodeView(folder, _new_folder())
        if _hook not in sys.path_hooks:
            sys.path_hooks.insert(0, _hook)
        sys.path_importer_cache.pop(str(folder), None)
    if view.refresh():
        importlib.invalidate_caches()
    return view.content


def _new_folder() -> Path:
    """Make a folder that lives as long as this process; one that is forked from it removes nothing."""
    folder, process = Path(tempfile.mkdtemp(prefix="asya-testing-code-")).resolve(), os.getpid()

    def remove() -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _hook(path: str) -> Any:
    """Find modules in a view; see `sys.path_hooks`."""
    at = Path(path)
    for view in _VIEWS.values():
        if at in (view.folder, view.content):
            return _Top(view, is_authors=at == view.folder)
        if view.content in at.parents:
            return _finder(view)(path)
    raise ImportError(path)


def _finder(view: CodeView) -> Callable[[str], Any]:
    class Loader(machinery.SourceFileLoader):
        """Compiles a module of the view as that of the author's file."""

        def get_code(self, fullname: str) -> CodeType:
            path = self.get_filename(fullname)
            own = view.folder / Path(path).relative_to(view.content)
            code: CodeType = self.source_to_code(self.get_data(path), str(own))
            return code

    return machinery.FileFinder.path_hook(*_COMPILED, (Loader, machinery.SOURCE_SUFFIXES), *_SOURCELESS)


class _Top:
    """Finds the modules at the top of a view as they are now; in the author's folder tests come from itself."""

    def __init__(self, view: CodeView, *, is_authors: bool) -> None:
        self._view = view
        self._is_authors = is_authors
        self._content = _finder(view)(str(view.content))
        source = (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES)
        self._own = machinery.FileFinder.path_hook(source)(str(view.folder))

    def find_spec(self, fullname: str, target: Any = None) -> Any:
        """Find a module; see `importlib.abc.PathEntryFinder`."""
        name = fullname.rpartition(".")[2]
        is_test = name == JOB_LIBRARY.name or any(fnmatch(f"{name}.py", pattern) for pattern in test_files)
        if self._is_authors and is_test:
            return self._own.find_spec(fullname, target)
        try:
            if self._view.refresh():
                importlib.invalidate_caches()
        except CodeFilesError as error:
            raise ImportError(str(error)) from error
        return self._content.find_spec(fullname, target)

    def invalidate_caches(self) -> None:
        """Forget what the folders had."""
        self._content.invalidate_caches()
        self._own.invalidate_caches()
