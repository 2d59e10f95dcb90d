"""Installs Python packages into a folder, for the interpreter that will import them.

An installation is the same on every machine: what names this one is removed.
Nothing that code may import goes.
"""

import csv
import os
import platform
import re
import shutil
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from asya.protocol.text import decode_text
from asya_infra.build.folder import build_once
from asya_infra.build.requirements import installation_inputs, read_requirements
from asya_infra.product.interpreters import FUNCTION_PYTHON

_COMPILED = "__pycache__"
_RECORD = "RECORD"
# They name folders, times and versions of the machine that installed. Metadata about packages are the other files.
_NAMES_THIS_MACHINE = frozenset({"direct_url.json", "uv_cache.json", "uv_build.json"})
# The first line of a script names the interpreter that installed; for a long path, the second line does.
_OWN_INTERPRETER = re.compile(rb"#!(?:/[^\n]*/python[^/\n]*\n|/bin/sh\n'''exec' \"?/)")
_LONGEST_START = 4096


def normalize(folder: Path) -> None:
    """Normalize what uv has installed into a folder.

    Files may be links into the cache of uv, so none is written in place.
    """
    for compiled in sorted(folder.rglob(_COMPILED)):
        shutil.rmtree(compiled)
    for metadata in sorted(folder.glob("*.dist-info")):
        for name in _NAMES_THIS_MACHINE:
            (metadata / name).unlink(missing_ok=True)
    _remove_scripts(folder / "bin")
    (folder / ".lock").unlink(missing_ok=True)
    for metadata in sorted(folder.glob("*.dist-info")):
        _list_present_files(metadata / _RECORD, folder)


def _remove_scripts(folder: Path) -> None:
    """Remove the scripts that start by an interpreter of this machine; programs and the modules of a package `bin` stay."""
    if not folder.is_dir() or (folder / "__init__.py").exists():
        return
    for file in sorted(folder.iterdir()):
        if file.is_file():
            with file.open("rb") as content:
                start = content.read(_LONGEST_START)
            if _OWN_INTERPRETER.match(start):
                file.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


def _list_present_files(record: Path, folder: Path) -> None:
    if not record.is_file():
        return
    with record.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    present = sorted(row for row in rows if row and (folder / row[0]).exists())
    record.unlink()
    with record.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(present)


REQUIREMENTS = "requirements.txt"
"""The file in the user's folders that names packages."""

MAKE_HASHES = "uv pip compile --universal --generate-hashes requirements.in -o requirements.txt"
_HASHES_ADVICE = f"The mesh file says requirements_hashes: required. Pin every package with its hashes: {MAKE_HASHES}"

# uv names the package before these phrases: `Because x==1 has no wheels with a matching Python ABI tag`.
_NO_WHEEL = re.compile(r"([A-Za-z0-9][^\s,]*)\s+ha(?:s|ve)\s+no\s+(?:usable\s+)?wheels")


class PackagesError(Exception):
    """Packages cannot be installed for their target."""


@dataclass(frozen=True)
class Target:
    """The target interpreter: on AWS by version and platform, or on this machine by path."""

    python_version: str | None = None
    python_platform: str | None = None
    interpreter: Path | None = None

    def arguments(self) -> list[str]:
        """Return the target as arguments of uv."""
        if self.interpreter is not None:
            return ["--python", str(self.interpreter)]
        return ["--python-version", str(self.python_version), "--python-platform", str(self.python_platform)]

    def title(self) -> str:
        """Return the target as people call it."""
        if self.interpreter is not None:
            return f"the Python {platform.python_version()} of this machine ({platform.machine()})"
        return f"Python {self.python_version} on {self.python_platform}"

    def key(self) -> str:
        """Return a text that identifies the target in hashes."""
        if self.interpreter is None:
            return f"{self.python_version} {self.python_platform}"
        # An update replaces an interpreter at its path.
        file = self.interpreter.resolve()
        status = file.stat()
        return f"{file} {status.st_size} {status.st_mtime_ns} {sysconfig.get_platform()}"


LAMBDA = Target(python_version=FUNCTION_PYTHON, python_platform="aarch64-manylinux_2_28")


def install(requirements: Path, folder: Path, target: Target, *, hashed: bool = False) -> None:
    """Install a requirements file into a folder: wheels, and local projects that the file names.

    Paths of packages begin at the folder of the file, as `./wheels/x.whl` and `../shared/lib` do.

    Raises:
        PackagesError: a package is not available for this target; the message names it and has the output of uv.
    """
    command = [find_uv_bin(), "pip", "install", "--quiet", "--target", str(folder.resolve())]
    command += ["--only-binary", ":all:", *_building(requirements), "-r", requirements.name]
    command += [*target.arguments(), *(["--require-hashes"] if hashed else [])]
    with tempfile.TemporaryDirectory() as temporary:
        # Without this, setuptools packs what a deleted module has left in the folder `build` of a project.
        settings = Path(temporary, "setup.cfg")
        settings.write_text(f"[build]\nbuild_base = {temporary}/build\n", encoding="utf-8")
        result = subprocess.run(
            command,
            cwd=requirements.parent,
            env={**os.environ, "DIST_EXTRA_CONFIG": str(settings)},
            capture_output=True,
            text=True,
            check=False,
        )
    if result.returncode:
        raise PackagesError(_problem(requirements, target, result.stderr.strip()))
    normalize(folder)


def _building(requirements: Path) -> list[str]:
    """Return the arguments of uv for the local projects of a file: their sources are built, each time as they are now."""
    arguments = ["--no-editable"]
    for project in read_requirements(requirements).projects:
        if project.name is None:
            raise PackagesError(
                f"{requirements}: the name of the package in {project.folder} is not known before it is built; require it "
                f"by its name too: NAME @ {os.path.relpath(project.folder, requirements.parent)}"
            )
        arguments += ["--no-binary", project.name, "--reinstall-package", project.name]
    return arguments


def packages_key(requirements: Path, target: Target, *, hashed: bool = False) -> list[str | bytes | Path]:
    """Return what identifies an installation: all that decides its content, but for the package index.

    Args:
        hashed: whether packages without hashes are refused; what was installed without does not take its place.
    """
    return [target.key(), *(["hashed"] if hashed else []), *installation_inputs(requirements)]


def install_required(code: Path, folder: Path, target: Target, *, hashed: bool) -> bool:
    """Install what the `requirements.txt` of a user's folder names; returns whether there is one.

    Args:
        hashed: refuse a package without a hash in the file, as `requirements_hashes: required` of the mesh file says.

    Raises:
        PackagesError: a package is not available for this target, or not pinned with hashes.
    """
    requirements = code / REQUIREMENTS
    if not requirements.is_file():
        return False
    try:
        install(requirements, folder, target, hashed=hashed)
    except PackagesError as error:
        raise PackagesError(f"{error}\n{_HASHES_ADVICE}" if hashed else str(error)) from None
    return True


def _problem(requirements: Path, target: Target, output: str) -> str:
    """Return the message for a failed installation: the package without a wheel, if that is the cause, and uv's output."""
    missing = _NO_WHEEL.search(output)
    if missing is None:
        return f"{requirements}: cannot be installed for {target.title()}:\n{output}"
    return (
        f"{requirements}: cannot be installed: {missing[1]} has no wheel for {target.title()}. Require a version that has "
        "one, or build the wheel there, put it beside the requirements.txt and require it by its path (./wheels/x.whl)."
        f"\n{output}"
    )


def names_packages(requirements: Path) -> bool:
    """Whether a requirements file exists and names packages."""
    if not requirements.is_file():
        return False
    try:
        lines = decode_text(requirements.read_bytes()).splitlines()
    except UnicodeDecodeError:
        return True  # uv says what is wrong with it
    return any(line.strip() and not line.strip().startswith("#") for line in lines)


def build_folder_packages(root: Path, folder: Path, target: Target, *, hashed: bool = False) -> Path | None:
    """Return a folder with the packages of the folder's `requirements.txt`; None without any.

    Args:
        root: the folder for builds.
        folder: the folder of user code.
        target: the interpreter that imports the packages.
        hashed: refuse required packages without hashes.

    Raises:
        PackagesError: a required package cannot be installed.
    """
    requirements = folder / REQUIREMENTS
    if not names_packages(requirements):
        return None

    def build(draft: Path) -> None:
        install_required(folder, draft, target, hashed=hashed)

    return build_once(root, "folder-packages", packages_key(requirements, target, hashed=hashed), build)


def package_inputs(folder: Path) -> list[str | bytes | Path]:
    """Return what the packages of a folder depend on beside their target, as parts of a digest."""
    return [*installation_inputs(folder / REQUIREMENTS)]
