"""Finds the interpreters that functions and job runs have on AWS; uv installs one that this machine lacks.

Another version reads another syntax and has other modules: 3.13 has no `cgi`, and 3.11 refuses `f"{x["y"]}"`. So local modes and
checks run user code by the version of AWS. Where none is to be had, the Python of this process stands in, and says so.
"""

import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from asya_infra.product.meters import Meter, metered, to_stderr
from asya_infra.product.places import CACHE

FUNCTION_PYTHON = "3.13"
"""The version of Lambda functions."""

_TRIED_SECONDS = 86400
_START_SECONDS = 20
_INSTALL_SECONDS = 300
_MEGABYTES = 110
_VERSION = "import ctypes, ssl, platform; print(platform.python_version())"


@dataclass(frozen=True)
class Interpreter:
    """An interpreter of user code.

    Attributes:
        path: the program, outside of any virtual environment.
        version: its version, such as `3.13.1`.
        wanted: the version on AWS, such as `3.13`.
        problem: why another version stands in; empty if none does.
    """

    path: Path
    version: str
    wanted: str
    problem: str = ""

    @property
    def is_own(self) -> bool:
        """Whether its version is that of this process."""
        return self.version == platform.python_version()

    def unchecked(self, users: str) -> str:
        """Return what nobody has checked if another version stands in, and what to do; empty if none does.

        Args:
            users: what has the version on AWS, such as `functions`.
        """
        if not self.problem:
            return ""
        return (
            f"Python {self.wanted}, which {users} have, is not on this machine, so Python {self.version} stands in: code that only "
            f"one of them runs is not found. Install it with `uv python install {self.wanted}` ({self.problem})"
        )


@cache
def interpreter_for(wanted: str) -> Interpreter:
    """Return the interpreter of a version: that of this process, one on this machine, one that uv installs, or a stand-in."""
    own = Path(getattr(sys, "_base_executable", sys.executable))
    if platform.python_version().startswith(f"{wanted}."):
        return Interpreter(own, platform.python_version(), wanted)
    problem = ""
    found = _found(wanted)
    if found is None:
        problem = _install(wanted)
        found = None if problem else _found(wanted)
    if found is None:
        return Interpreter(
            own, platform.python_version(), wanted, problem or "uv does not find the one that it installed"
        )
    return Interpreter(*found, wanted)


def _found(wanted: str) -> tuple[Path, str] | None:
    """Return an interpreter on this machine and its version, if it starts."""
    arguments = ["python", "find", "--no-project", "--system", "--no-python-downloads", f"cpython-{wanted}"]
    try:
        result = _uv(arguments, _START_SECONDS)
        if result.returncode:
            return None
        path = Path(result.stdout.strip())
        started = subprocess.run(
            [path, "-I", "-c", _VERSION], capture_output=True, text=True, check=False, timeout=_START_SECONDS
        )
    except (ImportError, OSError, subprocess.SubprocessError):
        return None
    version = started.stdout.strip()
    return (path, version) if version.startswith(f"{wanted}.") else None


def _install(wanted: str) -> str:
    """Let uv install a version; returns why it could not. What failed is tried again a day later."""
    if problem := _refused_downloads():
        return problem
    tried = CACHE / f"no-python-{wanted}"
    if tried.is_file() and 0 <= time.time() - tried.stat().st_mtime < _TRIED_SECONDS:
        return tried.read_text(encoding="utf-8")
    to_stderr(f"installing Python {wanted}, which code of the mesh runs on")
    try:
        folder = Path(_uv(["python", "dir"], _START_SECONDS).stdout.strip() or os.devnull)
        with metered(folder, Meter(f"Python {wanted}", _MEGABYTES, to_stderr)):
            result = _uv(["python", "install", "--no-progress", wanted], _INSTALL_SECONDS)
        lines = result.stderr.strip().splitlines() if result.returncode else []
        problem = lines[-1].strip().removeprefix("cause: ") if lines else ""
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        problem = str(error)
    if problem:
        CACHE.mkdir(parents=True, exist_ok=True)
        tried.write_text(problem, encoding="utf-8")
        now = time.time()
        os.utime(tried, (now, now))  # one clock for both; a file server may have another
    return problem


def _refused_downloads() -> str:
    """Say which variable of uv refuses downloads; empty if none does."""
    if os.environ.get("UV_PYTHON_DOWNLOADS", "").lower() == "never":
        return "UV_PYTHON_DOWNLOADS is never"
    return "UV_OFFLINE is set" if os.environ.get("UV_OFFLINE", "").lower() in {"1", "true", "yes", "on"} else ""


def _uv(arguments: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    # An environment of a part of this product has no uv; only those that find interpreters have it.
    from uv import find_uv_bin

    # pyenv and asdf put programs on the path that only tell which version to choose, and uv stops at the first of them.
    places = [each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(each).name != "shims"]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser())
    places += sorted(map(str, pyenv.glob("versions/*/bin")), reverse=True)
    environment = {**os.environ, "PATH": os.pathsep.join(places)}
    return subprocess.run(
        [find_uv_bin(), *arguments], env=environment, capture_output=True, text=True, check=False, timeout=seconds
    )
