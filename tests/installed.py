"""The product as a user installs it: the wheel, in an environment of its own, with its cache in a folder."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from tests.paths import PROJECT


@dataclass(frozen=True)
class InstalledProduct:
    """An installation.

    Attributes:
        programs: the folder with the command `asya`.
        python: the interpreter of its environment.
        variables: the variables under which it runs.
        wheel: its distribution.
    """

    programs: Path
    python: Path
    variables: dict[str, str]
    wheel: Path


def build_wheel(folder: Path) -> Path:
    """Builds the wheel as `make wheel` does."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def install(command: str, folder: Path) -> InstalledProduct:
    """Runs a command that installs `asya-mesh` with uv, for the wheel of this tree, and without network.

    The packages have the versions of this repository, whose setup has put them into uv's cache.
    """
    wheel = build_wheel(folder / "dist")
    words = [str(wheel) if word == "asya-mesh" else word for word in shlex.split(command)]
    assert words[0] == "uv"
    assert str(wheel) in words
    tools = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    offline = {
        "UV_OFFLINE": "1",
        "UV_CONSTRAINT": str(PROJECT / "requirements" / "dev.txt"),
        "UV_PYTHON": sys.executable,
    }
    result = subprocess.run(
        [find_uv_bin(), *words[1:]],
        env={**os.environ, **tools, **offline},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{result.stderr}\nRun `make setup`, which puts the packages into uv's cache."
    python = folder / "tools" / "asya-mesh" / "bin" / "python"
    return InstalledProduct(folder / "bin", python, _variables(folder), wheel)


def _variables(folder: Path) -> dict[str, str]:
    """The product's cache is empty; uv and npm keep theirs, so that nothing is fetched again."""
    uv_cache = subprocess.run(
        [find_uv_bin(), "cache", "dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return {
        "XDG_CACHE_HOME": str(folder / "cache"),
        "UV_CACHE_DIR": uv_cache,
        "npm_config_prefer_offline": "true",
        "PATH": os.pathsep.join([str(folder / "bin"), *_path_without_checkout()]),
    }


def _path_without_checkout() -> list[str]:
    """The folders of PATH but those of this repository, so that no program of its setup is found instead."""
    return [part for part in os.environ["PATH"].split(os.pathsep) if not Path(part).is_relative_to(PROJECT)]
