"""Runs handlers in the process of a test, each with the variables of its actor."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, TypeVar
from unittest import mock

from asya.runtime.time_limit import run_within
from asya.testing import isolation
from asya.testing.planned_faults import PlannedFaults
from asya.testing.services.functions import REGION
from asya.testing.services.process import Process

T = TypeVar("T")


@dataclass
class UserProcess(Process):
    """A process that calls real handlers: their time is that of the machine, and virtual time stands still meanwhile.

    Attributes:
        variables: the environment variables of the actor, beside those of AWS.
        folder: the folder of its code.
        working_folder: the one in which it works, as a function in that of its code; None for that of the test.
        faults: the failures that the test has planned.
        allowed_endpoints: the endpoints that code of the mesh may call.
        exit_code: that of the process, once user code has ended it.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()
    working_folder: Path | None = None
    faults: PlannedFaults | None = None
    allowed_endpoints: tuple[str, ...] = ()
    exit_code: int = 137

    def entry_point(self, name: str) -> Any:
        """See `Process`; capabilities that the mesh file names have their code in its folder."""
        with CODE_FOLDERS.using(self.folder):
            return super().entry_point(name)

    def run_within(self, seconds: float, run: Callable[[], T]) -> T:
        """See `Environment`; a call with a planned fault fails instead."""
        self.raise_planned_fault()
        with self.as_actor(), self.ending_alone():
            return run_within(seconds, run)

    def raise_planned_fault(self) -> None:
        """Let the call that begins fail, or kill this process, if the test has planned it."""
        actor = self.name.partition("/")[0]
        if self.faults is None:
            return
        if self.faults.interrupts(actor):
            self.crash("during a call")
        failure = self.faults.next_failure(actor)
        if failure is not None:
            raise failure

    @contextmanager
    def as_actor(self) -> Iterator[None]:
        """Run user code with the variables and the modules of the actor."""
        aws = isolation.variables(REGION, self.allowed_endpoints)
        with CODE_FOLDERS.using(self.folder), variables({**aws, **self.variables}), working_in(self.working_folder):
            yield

    @contextmanager
    def ending_alone(self) -> Iterator[None]:
        """Let `os._exit` end this process, and not that of the test. No other process may work meanwhile."""
        test, real = os.getpid(), os._exit

        def end(code: int) -> NoReturn:
            if os.getpid() != test:
                real(code)  # a child process of the user code
            self.exit_code = code
            self.crash(f"by os._exit({code})")

        with mock.patch.object(os, "_exit", end):
            yield


@contextmanager
def working_in(folder: Path | None) -> Iterator[None]:
    """Work in a folder for a while. The one before may have been removed, so it is held open."""
    if folder is None:
        yield
        return
    before = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


@contextmanager
def variables(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables for a while, and remove those without a value."""
    before = {name: os.environ.get(name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


class CodeFolders:
    """The code folders of the meshes in this process. Modules of the same name in two folders do not mix.

    A mesh has one for handlers and one for jobs, which are deployed apart from each other. Here one interpreter has all of them,
    so a folder that is used takes its modules of such names, and the other folder keeps its own for later.
    """

    def __init__(self) -> None:
        self._names: dict[Path, frozenset[str]] = {}
        self._kept: dict[Path, dict[str, ModuleType]] = {}
        self._active: Path | None = None

    @contextmanager
    def using(self, folder: Path) -> Iterator[None]:
        """Import from this folder first. Modules of the same names that others have imported are back afterwards."""
        if folder not in self._names:
            self._names[folder] = _top_level_names(folder)
        foreign = self._taken_away(folder, self._names[folder], is_inside=False)
        self._use(folder)
        try:
            yield
        finally:
            if foreign:
                self._keep(folder, frozenset(name.partition(".")[0] for name in foreign))
                sys.modules.update(foreign)
                self._active = None

    def _use(self, folder: Path) -> None:
        if folder == self._active:
            return
        for other, names in self._names.items():
            if other != folder:
                self._keep(other, names & self._names[folder])
        sys.modules.update(self._kept.pop(folder, {}))
        text = str(folder)
        if text in sys.path:
            sys.path.remove(text)
        sys.path.insert(0, text)
        importlib.invalidate_caches()
        self._active = folder

    def _keep(self, folder: Path, names: frozenset[str]) -> None:
        """Take the modules of these names in a folder away until it is used again."""
        self._kept.setdefault(folder, {}).update(self._taken_away(folder, names, is_inside=True))

    @staticmethod
    def _taken_away(folder: Path, names: frozenset[str], *, is_inside: bool) -> dict[str, ModuleType]:
        """Take the modules of these top-level names away that are inside, or outside, of a folder."""
        tops = {name for name in names if name in sys.modules and _is_inside(sys.modules[name], folder) == is_inside}
        if not tops:
            return {}
        inside = tuple(f"{name}." for name in tops)
        return {name: sys.modules.pop(name) for name in list(sys.modules) if name in tops or name.startswith(inside)}


def _is_inside(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and folder in Path(file).resolve().parents


def _top_level_names(folder: Path) -> frozenset[str]:
    """The names of a folder's modules. Those of the standard library are never the user's, as in a function."""
    names = {path.stem for path in folder.iterdir()} if folder.is_dir() else set()
    return frozenset(names - sys.stdlib_module_names)


CODE_FOLDERS = CodeFolders()
