"""Runs handlers in the process of a test, each with the variables of its actor."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from asya.runtime.time_limit import run_within
from asya.testing.planned_faults import PlannedFaults
from asya.testing.services.process import Process

T = TypeVar("T")

# The folders of the meshes of this process; modules of the same name may come from another mesh.
_folders: list[Path] = []


@dataclass
class UserProcess(Process):
    """A process that calls real handlers: their time is that of the machine, and virtual time stands still meanwhile.

    Attributes:
        variables: the environment variables of the actor.
        faults: the failures that the test has planned.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    faults: PlannedFaults | None = None

    def run_within(self, seconds: float, run: Callable[[], T]) -> T:
        """See `Environment`; the first call of a planned failure raises it instead."""
        failure = self.faults.next_failure(self.name.partition("/")[0]) if self.faults is not None else None
        if failure is not None:
            raise failure
        with variables(self.variables):
            return run_within(seconds, run)


@contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def use_folders(folders: list[Path]) -> None:
    """Put the code folders of a mesh first on the path, and forget modules that another mesh has under the same names."""
    for folder in folders:
        text = str(folder)
        if text in sys.path:
            sys.path.remove(text)
        sys.path.insert(0, text)
        if folder not in _folders:
            _folders.append(folder)
    own = {path.stem for folder in folders if folder.is_dir() for path in folder.iterdir()}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] not in own or file is None:
            continue
        is_of_a_mesh = any(folder in Path(file).parents for folder in _folders)
        if is_of_a_mesh and not any(folder in Path(file).parents for folder in folders):
            del sys.modules[name]
    importlib.invalidate_caches()
