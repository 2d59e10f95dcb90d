"""The capabilities that a mesh file names (`capabilities`): packages in its `code` folder, each with a `manifest.py`.

A manifest is data, so reading a mesh file imports it, and what it imports. Its functions are imported where they run.
"""

import hashlib
import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from asya import registry
from asya.gateway.lambdas.openapi import described
from asya.manifest import Capability
from asya.protocol.mesh_table import OwnCalls
from asya.registry import PRODUCT, Registry
from asya_infra.mesh_file.capability_checks import findings
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.sections import keys_of, prepare
from asya_infra.mesh_file.source import Problem, Source

KEY = "capabilities"


@dataclass(frozen=True)
class NamedCapabilities:
    """The capabilities of a mesh: the product's, and those that the mesh file names.

    Attributes:
        registry: what they declare.
        digests: the packages of the named ones, each with the digest of its manifest.
        calls: their calls of the gateway.
        code: the folder with their packages.
        problems: what is wrong with those that are missing.
    """

    registry: Registry = PRODUCT
    digests: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[OwnCalls, ...] = ()
    code: Path = Path()
    problems: tuple[Problem, ...] = ()

    def calls_of(self, functions: Set[str]) -> OwnCalls:
        """Return the calls that these functions answer."""
        calls = tuple(call for own in self.calls for call in own.calls if call["function"] in functions)
        return OwnCalls(calls=calls, schemas={name: each for own in self.calls for name, each in own.schemas.items()})


ONLY_THE_PRODUCTS = NamedCapabilities()
"""Those of a mesh that names none."""


class _CapabilityError(Exception):
    """A package that declares no capability; the message says why."""


def named_capabilities(source: Source, folder: Path) -> NamedCapabilities:
    """Read the capabilities that a mesh file names.

    Args:
        source: the values of the mesh file.
        folder: the folder of the mesh file.
    """
    names = source.values.get(KEY)
    if not isinstance(names, list):
        return ONLY_THE_PRODUCTS
    code = folder / str(source.values.get("code", keys_of(MeshFile)["code"].default))
    found, loaded, problems = PRODUCT, dict[str, _Loaded](), list[Problem]()
    for index, package in enumerate(names):
        if not isinstance(package, str):
            continue  # validation reports it
        try:
            own = _load(code, package)
            is_again = [f"{package!r} is named twice; keep one of them"] if package in loaded else []
            wrong = is_again or [*findings(own.capability, package, code, found)]
        except _CapabilityError as error:
            own, wrong = None, [str(error)]
        problems += [source.problem((KEY, index), text) for text in wrong]
        if own is not None and not wrong:
            registry.remember(package, own.digest, own.capability)
            loaded[package] = own
            found = Registry((*found.capabilities, own.capability))
    digests = {package: own.digest for package, own in loaded.items()}
    return NamedCapabilities(found, digests, tuple(own.calls for own in loaded.values()), code, tuple(problems))


@dataclass(frozen=True)
class _Loaded:
    """A capability, its calls, and the files that declare it."""

    capability: Capability
    calls: OwnCalls
    files: tuple[Path, ...]
    digest: str


_LOADED: dict[tuple[Path, str], _Loaded] = {}


def _load(code: Path, package: str) -> _Loaded:
    """Import the capability of a package, unless the files that declare it are as they were.

    Raises:
        _CapabilityError: there is none.
    """
    parts = package.split(".")
    if not all(part.isidentifier() for part in parts):
        raise _CapabilityError(f"should be the name of a package in the `code` folder, such as audit; got {package!r}")
    manifest = code.joinpath(*parts, "manifest.py")
    if not manifest.is_file():
        raise _CapabilityError(f"there is no {manifest}, which declares the capability")
    key = (code.resolve(), package)
    if key not in _LOADED or _LOADED[key].digest != _digest(code, _LOADED[key].files):
        _LOADED[key] = _imported(code, package, manifest)
    return _LOADED[key]


def _imported(code: Path, package: str, manifest: Path) -> _Loaded:
    with _importing(code, package.partition(".")[0]):
        try:
            capability = _declared(importlib.import_module(f"{package}.manifest"))
            for option in capability.options:
                prepare(option.type)
            calls = described(capability.calls)
        except (Exception, SystemExit) as error:
            line = _line(error, code, manifest)
            raise _CapabilityError(f"{line} cannot be read: {type(error).__name__}: {error}") from error
        files = tuple(_files(code))
        return _Loaded(capability, calls, files, _digest(code, files))


def _declared(manifest: ModuleType) -> Capability:
    capability: Any = getattr(manifest, "CAPABILITY", None)
    if not isinstance(capability, Capability):
        raise TypeError("it has no CAPABILITY = Capability(…) (`asya.manifest`)")
    return capability


def _line(error: BaseException, code: Path, manifest: Path) -> str:
    """Return the file and line of an error, the last one in the folder of code."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if code.resolve() in Path(frame.filename).resolve().parents]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else str(manifest)


def _digest(code: Path, files: tuple[Path, ...]) -> str:
    """Return a digest of files: their places in the folder of code, and their content."""
    total = hashlib.sha256()
    for file in files:
        content = file.read_bytes() if file.is_file() else b""
        total.update(f"{file.relative_to(code.resolve())} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()[:12]


def _files(code: Path) -> Iterator[Path]:
    """Yield the files of the modules of a folder that are imported."""
    folder = f"{code.resolve()}{os.sep}"
    files = {_resolved(file) for module in [*sys.modules.values()] if (file := _file(module)) is not None}
    yield from sorted(Path(file) for file in files if file.startswith(folder))


@cache  # a process has thousands of modules, and a command may load many mesh files
def _resolved(file: str) -> str:
    return os.path.realpath(file)


def _file(module: ModuleType) -> str | None:
    return getattr(module, "__file__", None)


@contextmanager
def _importing(code: Path, top: str) -> Iterator[None]:
    """Import the package with this top name from a folder. Modules of this name that others have imported are back afterwards."""
    folder, writes = str(code.resolve()), sys.dont_write_bytecode
    others = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == top}
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(folder)
        for name in [each for each in sys.modules if each.partition(".")[0] == top]:
            del sys.modules[name]
        sys.modules.update(others)
