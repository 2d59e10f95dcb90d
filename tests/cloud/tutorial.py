"""Follows the tutorial as a reader does: writes its files, types its commands, and compares what they print."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from uv import find_uv_bin

from asya.client.connection import read_local
from asya_cli.errors import ExitCode
from asya_local.account import read_keys
from tests.cloud.deployed_cloud import TIMEOUT_SECONDS, until
from tests.interrupts import restore_interrupts
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.installed import InstalledProduct

PAGE = PROJECT / "docs" / "tutorial" / "first-mesh.md"
_BLOCK = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# (\S+\.py)\n")
_END = "the command has ended with"
_NOWHERE = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
_WITHOUT_ACCOUNT = {
    "asya doctor": ExitCode.COMMAND_FAILED,
    "asya deploy": ExitCode.UNREACHABLE,
    "asya destroy": ExitCode.UNREACHABLE,
}
"""How the commands end that need an account: at their first call of AWS."""


@dataclass(frozen=True)
class Step:
    """One block of the page.

    Attributes:
        language: the language of the block, such as `sh`.
        kind: what it is for: `install`, `aws`, `excerpt`, `add`, `mistake`, or empty.
        file: the file that it writes or changes; empty for none.
        text: its text.
        expected: the lines below a block of commands that these print.
    """

    language: str
    kind: str
    file: str
    text: str
    expected: tuple[str, ...] = ()

    @property
    def commands(self) -> list[str]:
        """The lines of a block of commands."""
        return self.text.splitlines() if self.language == "sh" else []


def steps() -> list[Step]:
    """The blocks of the page in order; what commands print is part of their step."""
    found: list[Step] = []
    for match in _BLOCK.finditer(PAGE.read_text()):
        language, _, rest = match["info"].partition(" ")
        kind, _, file = rest.rpartition(" ") if "/" in rest or "." in rest else (rest, "", "")
        text = match["text"]
        if name := _NAME.match(text):
            file, text = name[1], text[name.end() :]
        if language == "text" and not rest:
            last = found.pop()
            assert last.language == "sh", text
            found.append(Step(last.language, last.kind, last.file, last.text, tuple(text.splitlines())))
        else:
            found.append(Step(language, kind, file, text))
    return found


[INSTALLATION] = next(step.commands for step in steps() if step.kind == "install")
"""The command that installs the product."""


@dataclass
class Reader:
    """A reader with two terminals in an empty folder.

    Attributes:
        folder: the folder.
        codes: the exit codes of the commands that do not end with 0, in the order of the page.
        product: the installed package; None for the command of this repository.
    """

    folder: Path
    codes: list[tuple[str, int]]
    product: InstalledProduct | None = None
    _second: subprocess.Popen[str] = field(init=False)
    _dev: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self._second = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=restore_interrupts,  # noqa: PLW1509 - no thread is running here
        )

    @property
    def shop(self) -> Path:
        """The folder of the mesh."""
        return self.folder / "shop"

    @property
    def _log(self) -> Path:
        """What the first terminal shows."""
        return self.folder / "dev.log"

    def follow(self, step: Step) -> None:
        """Do what a block says, and compare what its commands print."""
        if step.kind == "install":
            self._install(step)
        elif step.commands:
            if step.text.startswith("asya logs "):
                until(lambda: missing(self._output(step), step.expected) is None or None, step.text)
                return
            output = self._output(step)
            assert missing(output, step.expected) is None, "\n".join(
                (f"{missing(output, step.expected)!r} is not in:", *output)
            )
        elif step.kind == "excerpt":
            assert any(
                step.text in path.read_text() for path in self.shop.rglob("*.*") if path.suffix in (".py", ".yaml")
            )
        elif step.file:
            with self._loaded(step.file):
                self._write(step)

    def close(self) -> None:
        """End both terminals, and what runs in them."""
        self._end_dev()
        self._type_line("asya local down >/dev/null 2>&1")
        assert self._second.stdin is not None
        self._second.stdin.close()
        self._second.wait(timeout=TIMEOUT_SECONDS)

    def _install(self, step: Step) -> None:
        """Install packages as the page says, but from uv's cache; a reader with this repository has them all."""
        if self.product is None:
            programs = self.shop / ".venv" / "bin"
            if self.shop.is_dir() and not programs.exists():
                programs.mkdir(parents=True)
                (programs / "pytest").symlink_to(Path(sys.executable).parent / "pytest")
            return
        for command in step.commands:
            if command == INSTALLATION:
                continue  # the product is there
            installer = f"{shlex.quote(find_uv_bin())} pip install --python .venv/bin/python"
            output, code = self._type_line(command.replace(".venv/bin/pip install", installer))
            assert code == 0, "\n".join((command, *output))

    def _write(self, step: Step) -> None:
        path = self.shop / step.file
        before, after = path.read_text() if path.exists() else "", step.text
        if step.kind == "add":
            after = before.replace("\ntools:\n", f"\n{step.text}\ntools:\n")
        elif step.language == "diff":
            old, new = (line[1:] for line in step.text.splitlines())
            after = before.replace(f"{old}\n", f"{new}\n")
        assert after != before, step
        path.write_text(after)

    @contextmanager
    def _loaded(self, file: str) -> Iterator[None]:
        """Wait until the first terminal says that it has loaded a changed file."""
        part = "mesh" if file == "mesh.yaml" else file.partition("/")[0]
        if self._dev is None or part == "tests" or part == "samples":
            yield
            return
        since = len(self._log.read_text())
        yield
        loaded = re.compile(rf"\b{part}\b.* loaded in ")
        until(lambda: loaded.search(self._log.read_text()[since:]), f"{file} in the first terminal")

    def _output(self, step: Step) -> list[str]:
        return [line for command in step.commands for line in self._type(command, step)]

    def _type(self, command: str, step: Step) -> Iterator[str]:
        if command == "asya dev":
            yield from self._start_dev(step)
            return
        if command.startswith("asya local up"):
            self._end_dev()
        variables = self._aws(command) if step.kind == "aws" else ""
        expected = self.codes.pop(0)[1] if self.codes and self.codes[0][0] == command else 0
        if (name := " ".join(command.split()[:2])) in _WITHOUT_ACCOUNT:
            if self.product is None:
                command += " --help"
            else:
                variables = "".join(f"{key}={value} " for key, value in _NOWHERE.items())
                expected = _WITHOUT_ACCOUNT[name]
        with self._loaded("mesh.yaml" if command.startswith("asya new ") else "tests/"):
            output, code = self._type_line(variables + command)
        assert code == expected, f"{command}: {code}\n" + "\n".join(output)
        yield from output

    def _type_line(self, line: str) -> tuple[list[str], int]:
        assert self._second.stdin is not None
        assert self._second.stdout is not None
        self._second.stdin.write(f"{line} </dev/null\nprintf '\\n{_END} %s\\n' $?\n")
        self._second.stdin.flush()
        output: list[str] = []
        for text in self._second.stdout:
            if text.startswith(_END):
                return output, int(text.split()[-1])
            output.append(text.rstrip("\n"))
        raise AssertionError(f"the shell ended at {line}: {output}")

    def _start_dev(self, step: Step) -> Iterator[str]:
        with self._log.open("wb") as file:
            self._dev = subprocess.Popen(
                ["asya", "dev"],
                cwd=self.shop,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                preexec_fn=restore_interrupts,  # noqa: PLW1509 - no thread is running here
            )
        until(self._has_started, "the first terminal")
        yield from self._log.read_text().splitlines()

    def _has_started(self) -> bool | None:
        text = self._log.read_text()
        assert self._dev is not None
        assert self._dev.poll() is None, text
        return "Ctrl-C ends the mesh" in text or None

    def _end_dev(self) -> None:
        if self._dev is not None:
            self._dev.send_signal(signal.SIGINT)
            self._dev.wait(timeout=TIMEOUT_SECONDS)
            self._dev = None

    def _aws(self, command: str) -> str:
        """The variables of a command for AWS: it finds the mesh in the local cloud."""
        if "--namespace" not in command:
            return ""
        connection = read_local(self.shop / ".asya")
        deployer = read_keys(self.shop / ".asya" / "keys.json")["deployer"]
        variables = {"AWS_ENDPOINT_URL": connection.endpoint_url or "", **deployer.environment()}
        return "".join(f"{name}={value} " for name, value in variables.items())

    def _environment(self) -> dict[str, str]:
        """The variables of a terminal: the command, and packages from uv's cache, where this repository's setup has put them."""
        left_out = ("AWS_", "PYTEST_", "ASYA_", "COV_", "VIRTUAL_ENV", "PYTHONPATH")
        own = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(left_out)},
            **(
                own
                if self.product is None
                else self.product.variables | {"UV_FIND_LINKS": str(self.product.wheel.parent)}
            ),
            "COLUMNS": "80",
            "UV_OFFLINE": "1",
            "UV_CONSTRAINT": str(PROJECT / "requirements" / "dev.txt"),
        }


def missing(output: list[str], expected: tuple[str, ...]) -> str | None:
    """Return the first expected line that an output does not have, or has in another order; None if it has all.

    `…` stands for any text, and spaces may be fewer.
    """
    rest = iter(output)
    for line in expected:
        pattern = ".*".join(re.escape(part) for part in " ".join(line.split()).split("…"))
        if not any(re.fullmatch(pattern, " ".join(text.split())) for text in rest):
            return line
    return None
