"""The socket of the worker of handlers."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from asya_local.dev.handler_worker import listening


@pytest.fixture
def path() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="asya-test-"))  # a path of a socket has 107 bytes at most
    yield folder / "handlers"
    shutil.rmtree(folder)


def test_the_path_appears_when_connections_are_taken(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Watched(socket.socket):
        def listen(self, *arguments: int) -> None:
            assert not path.exists(), "a client that sees the path now is refused"
            super().listen(*arguments)

    monkeypatch.setattr(socket, "socket", Watched)
    with listening(str(path)), Watched(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(path))
    assert [each.name for each in path.parent.iterdir()] == [path.name]
