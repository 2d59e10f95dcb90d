"""Starts the worker of handlers, in the environment that functions have and with their code as it is now."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from asya_infra.build.code_tree import CodeTree, handler_tree
from asya_infra.build.functions import build_layer
from asya_infra.build.packages import Target
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for
from asya_infra.product.places import BUILD
from asya_local.dev.printed_lines import LEVEL, LONGEST
from asya_local.errors import LocalCloudError
from asya_local.servers import wait_until
from asya_local.state_folder import MARK
from asya_local.tools import function_python

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import IO

    from asya_infra.mesh_file import LoadedMesh
    from asya_local.state_folder import StateFolder

_PROGRAM = Path(__file__).with_name("handler_worker.py")
_START_SECONDS = 30.0
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")


@dataclass
class LiveCode:
    """The tree of the handlers, with their packages and the actor table.

    Attributes:
        root: a link to the newest tree. Each new process of handlers imports from there.
    """

    root: Path
    _tree: CodeTree | None = None

    def update(self, loaded: LoadedMesh, table: bytes) -> None:
        """Let new processes have the code and the packages as they are now.

        Raises:
            PackagesError: A required package cannot be installed.
        """
        target, hashed = Target(interpreter=interpreter_for(FUNCTION_PYTHON).path), loaded.mesh.requires_hashes
        self._tree = handler_tree(BUILD, target, loaded.code_folder, table, hashed=hashed)
        draft = self.root.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        draft.symlink_to(self._tree.content)
        draft.replace(self.root)

    def as_written(self, text: str) -> str:
        """Return a text with the paths of the author's own files."""
        if self._tree is None:
            return text
        return CodeTree(self._tree.folder, self.root).as_written(self._tree.as_written(text))


@dataclass(frozen=True)
class WorkerProcess:
    """One worker.

    Attributes:
        socket: Where it takes connections.
    """

    socket: Path
    _process: subprocess.Popen[bytes]
    _output: threading.Thread

    def is_alive(self) -> bool:
        """Return whether the worker runs."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the worker; its processes end with their connections."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.join(timeout=1)  # a process that a handler has left may print on
        shutil.rmtree(self.socket.parent, ignore_errors=True)


_WHOSE = "a handler"
"""Of lines whose actor is unknown: those of imports, and of processes that handlers start. It is no name of an actor."""


def tell_lines(output: IO[bytes], tell: Callable[[str, str], None]) -> None:
    """Tell each line of an output until it ends; of a longer line, pieces."""
    while line := output.readline(LONGEST):
        if line.strip():
            tell(LEVEL, f"{_WHOSE}: {line.decode(errors='backslashreplace').removesuffix(chr(10))}")


def start_worker(
    folder: StateFolder,
    code: Path,
    cloud_python: Path,
    variables: Mapping[str, str],
    tell: Callable[[str, str], None],
) -> WorkerProcess:
    """Start the worker of the handlers of a mesh, and wait until it takes connections.

    Args:
        folder: The state folder, which marks the process.
        code: The folder of the handlers with their packages; it may change, for processes that start then.
        cloud_python: The interpreter of MiniStack's environment.
        variables: The environment variables of all functions.
        tell: Takes the level and the text of each line that handlers print outside of calls.

    Raises:
        LocalCloudError: The worker does not start.
    """
    layer = build_layer(BUILD, Target(interpreter=interpreter_for(FUNCTION_PYTHON).path))
    # The order of Lambda: the user's code with its packages, then the layer.
    path = [code, layer / "python"]
    environment = {
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        **variables,
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        # Python compares whole seconds of a file with those of its compiled form, so a quick change could run as it was.
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        MARK: str(folder.root),
    }
    # A path of a socket has 107 bytes at most, so it is not in the state folder.
    socket = Path(tempfile.mkdtemp(prefix="asya-dev-")) / "handlers"
    process = subprocess.Popen(
        [str(function_python(BUILD, cloud_python)), "-P", str(_PROGRAM), str(socket)],
        env=environment,
        cwd=folder.temporary,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C ends the command, which ends the worker
    )
    assert process.stdout is not None
    output = threading.Thread(target=tell_lines, args=(process.stdout, tell), name="handlers' output", daemon=True)
    output.start()
    worker = WorkerProcess(socket, process, output)
    if not wait_until(lambda: socket.exists() or not worker.is_alive(), _START_SECONDS, pause=0.01) or (
        not worker.is_alive()
    ):
        worker.end()
        raise LocalCloudError("The worker of the handlers does not start; its output is above.")
    return worker
