"""The interpreters that functions and job runs have: found, installed, or replaced by that of this process."""

import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asya_infra.product import interpreters
from asya_infra.product.interpreters import interpreter_for

WANTED = "3.99"
Answer = subprocess.CompletedProcess[str]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of its own; what other tests have found is kept for them."""
    monkeypatch.setattr(interpreters, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(interpreters, "interpreter_for", interpreter_for)
    monkeypatch.delenv("UV_PYTHON_DOWNLOADS")  # which refuses all downloads in tests
    interpreter_for.cache_clear()
    yield tmp_path / "cache"
    interpreter_for.cache_clear()


class Uv:
    """Stands in for uv: finds a version once it was installed.

    Attributes:
        calls: the commands.
        problem: the error of an installation.
    """

    def __init__(self, python: Path, *, is_there: bool, problem: str = "") -> None:
        self.python, self.is_there, self.problem = python, is_there, problem
        self.calls: list[str] = []

    def __call__(self, arguments: list[str], seconds: float) -> Answer:
        if arguments[1] == "dir":
            return Answer(arguments, 0, f"{self.python.parent}\n", "")
        self.calls.append(arguments[1])
        if arguments[1] == "install":
            self.is_there = not self.problem
            return Answer(arguments, bool(self.problem), "", f"error: no\n  cause: {self.problem}\n")
        return Answer(arguments, not self.is_there, f"{self.python}\n" if self.is_there else "", "")


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A program that answers as an interpreter of the wanted version."""
    path = tmp_path / "python3.99"
    path.write_text(f"#!/bin/sh\necho {WANTED}.1\n")
    path.chmod(0o755)
    return path


def use(monkeypatch: pytest.MonkeyPatch, uv: Callable[[list[str], float], Answer]) -> None:
    monkeypatch.setattr(interpreters, "_uv", uv)


def test_the_version_of_this_process_needs_no_other() -> None:
    found = interpreter_for(".".join(platform.python_version_tuple()[:2]))
    assert found.is_own
    assert not found.problem
    assert found.path.exists()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_version_is_found_or_installed(python: Path, is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = Uv(python, is_there=is_there)
    use(monkeypatch, uv)
    found = interpreter_for(WANTED)
    assert (found.path, found.version, found.problem, found.is_own) == (python, f"{WANTED}.1", "", False)
    assert found.unchecked("functions") == ""
    assert uv.calls == (["find"] if is_there else ["find", "install", "find"])


def test_what_cannot_be_installed_is_tried_once_a_day(
    python: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = Uv(python, is_there=False, problem="no such host")
    use(monkeypatch, uv)
    found = interpreter_for(WANTED)
    assert found.is_own
    assert found.problem == "no such host"
    assert "Python 3.99, which functions have, is not on this machine" in found.unchecked("functions")
    assert "`uv python install 3.99` (no such host)" in found.unchecked("functions")
    interpreter_for.cache_clear()
    assert interpreter_for(WANTED) == found
    assert uv.calls == ["find", "install", "find"]
    os.utime(cache / f"no-python-{WANTED}", (0, 0))
    uv.problem = ""
    interpreter_for.cache_clear()
    assert interpreter_for(WANTED).path == python


def test_a_program_that_does_not_start_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    use(monkeypatch, Uv(broken, is_there=True))
    assert interpreter_for(WANTED).problem == "uv does not find the one that it installed"


def test_shims_of_version_managers_are_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "pyenv" / "versions" / "3.99.1" / "bin"
    own.mkdir(parents=True)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", f"{tmp_path}/pyenv/shims:/usr/bin")
    paths: list[str] = []

    def run(command: list[str], *, env: dict[str, str], **_options: object) -> Answer:
        paths.append(env["PATH"])
        return Answer(command, 1, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    interpreters._found(WANTED)
    assert paths == [f"/usr/bin:{own}"]


@pytest.mark.parametrize(("variable", "value"), [("UV_PYTHON_DOWNLOADS", "never"), ("UV_OFFLINE", "1")])
def test_nothing_is_downloaded_where_uv_may_not(
    python: Path, cache: Path, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    uv = Uv(python, is_there=False)
    use(monkeypatch, uv)
    found = interpreter_for(WANTED)
    assert found.is_own
    assert f"({variable} is " in found.unchecked("functions")
    assert uv.calls == ["find"]
    assert not cache.exists()  # the next command may download one


def test_without_uv_the_own_version_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_arguments: list[str], _seconds: float) -> Answer:
        raise ImportError("No module named 'uv'")

    use(monkeypatch, missing)
    found = interpreter_for(WANTED)
    assert found.is_own
    assert "code that only one of them runs is not found" in found.unchecked("functions")
    assert "`uv python install 3.99` (No module named 'uv')" in found.unchecked("functions")
