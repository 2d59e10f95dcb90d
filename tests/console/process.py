"""`asya ui` as a process of its own, as a user runs it."""

from __future__ import annotations

import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@contextmanager
def running_ui(program: Path | str, state: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run the command until the block ends; yields the address of the page, with the secret."""
    command = [str(program), "ui", "--no-browser", "--state", str(state)]
    with subprocess.Popen(
        command, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), process.stderr.read()
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
