"""`asya ui`: starts without a call of the mesh, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from asya_cli.errors import ExitCode
from tests.doubles.command_line import assert_two_lines, asya


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder of a local cloud that does not run."""
    names = ("namespace", "region", "access_key", "secret_key", "data_bucket", "data_prefix", "results_bucket")
    local = dict.fromkeys((*names, "results_prefix"), "us-east-1")
    local |= dict.fromkeys(("gateway_url", "endpoint_url", "emr_endpoint_url"), "http://127.0.0.1:1")
    (tmp_path / "local.json").write_text(json.dumps(local))
    return tmp_path


def test_without_a_mesh_it_says_how_to_start_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_two_lines(asya("ui"), ExitCode.UNREACHABLE, "no mesh is running here", "`asya dev`")


def test_a_port_that_is_taken_is_told(state: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        outcome = asya("ui", "--state", str(state), "--port", port, "--no-browser")
    assert_two_lines(outcome, ExitCode.COMMAND_FAILED, f"port {port} cannot be used", "another --port")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_the_page_is_served_until_a_signal_and_the_secret_goes_with_it(
    state: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [str(Path(sys.executable).parent / "asya"), "ui", "--no-browser", "--state", str(state)]
    with subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(temporary)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address, _, secret = process.stdout.readline().strip().partition("#secret=")
        assert "runs until Ctrl-C" in process.stderr.readline()
        assert len(secret) >= 43  # 256 bits
        [file] = temporary.rglob("*.html")
        assert secret in file.read_text()
        assert secret not in Path(f"/proc/{process.pid}/cmdline").read_text() if sys.platform == "linux" else True
        with urllib.request.urlopen(address, timeout=30) as response:
            assert b"Asya console" in response.read()
        process.send_signal(number)
        assert process.wait(timeout=30) == code
    assert list(temporary.iterdir()) == []
