"""Installs Python packages into a folder, for the interpreter that will import them."""

import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

REQUIREMENTS = "requirements.txt"
"""The file in the user's folders that names packages."""

MAKE_HASHES = "uv pip compile --universal --generate-hashes requirements.in -o requirements.txt"
_HASHES_ADVICE = f"The mesh file says requirements_hashes: required. Pin every package with its hashes: {MAKE_HASHES}"

# uv names the package before these phrases: `Because x==1 has no wheels with a matching Python ABI tag`.
_NO_WHEEL = re.compile(r"([A-Za-z0-9][^\s,]*)\s+ha(?:s|ve)\s+no\s+(?:usable\s+)?wheels")

# Records of the installation. They differ between machines and are not needed at run time.
_INSTALL_RECORDS = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json")


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
        return f"{self.interpreter.resolve()} {platform.machine()}"


LAMBDA = Target(python_version="3.13", python_platform="aarch64-manylinux_2_28")


def install(requirements: Path, folder: Path, target: Target, *, hashed: bool = False) -> None:
    """Install a requirements file into a folder, wheels only.

    Raises:
        PackagesError: a package is not available for this target; the message names it and has the output of uv.
    """
    command = [find_uv_bin(), "pip", "install", "--quiet", "--target", str(folder), "--only-binary", ":all:"]
    command += ["-r", str(requirements)]
    command += [*target.arguments(), *(["--require-hashes"] if hashed else [])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise PackagesError(_problem(requirements, target, result.stderr.strip()))
    _remove_unneeded(folder)


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


def hashed_key(*, hashed: bool) -> list[str]:
    """Return what identifies a build with required hashes: one without them does not take its place."""
    return ["hashed"] if hashed else []


def names_packages(requirements: Path) -> bool:
    """Whether a requirements file exists and names packages."""
    if not requirements.is_file():
        return False
    lines = requirements.read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.strip() and not line.strip().startswith("#") for line in lines)


def _remove_unneeded(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and (path.name in {"__pycache__", "tests"} or path == folder / "bin"):
            shutil.rmtree(path)
        elif path.name in _INSTALL_RECORDS and path.parent.suffix == ".dist-info":
            path.unlink()
    (folder / ".lock").unlink(missing_ok=True)
