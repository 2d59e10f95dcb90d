"""The processes of a local cloud are recorded, found by their mark and stopped; others are not touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest

from asya_local.errors import LocalCloudError
from asya_local.processes import cloud_processes, end_all, end_orphans, read_records, start, write_records
from asya_local.state_folder import MARK, StateFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
# A server with a worker in its own session, which survives a kill of the server.
PARENT = [
    sys.executable,
    "-c",
    "import subprocess, sys, time\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
    "time.sleep(600)",
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[StateFolder]:
    state = StateFolder.at(tmp_path / "state")
    state.create()
    yield state
    end_all(state)


def wait_for_members(folder: StateFolder, count: int) -> list[psutil.Process]:
    import time

    deadline = time.monotonic() + 60
    while len(processes := cloud_processes(folder)) != count:
        assert time.monotonic() < deadline, f"{len(processes)} processes, not {count}"
        time.sleep(0.05)
    return processes


@pytest.mark.slow
def test_the_worker_of_a_killed_server_is_stopped(folder: StateFolder) -> None:
    record = start("server", PARENT, os.environ, folder, log=folder.logs / "log", port=0)
    assert read_records(folder) == [record]
    wait_for_members(folder, 2)

    psutil.Process(record.pid).kill()
    psutil.Process(record.pid).wait()
    assert record.process() is None
    assert len(cloud_processes(folder)) == 1

    assert end_all(folder) == 1
    assert not cloud_processes(folder)
    assert not read_records(folder)


def test_a_folder_that_was_deleted_meanwhile_is_no_error(folder: StateFolder) -> None:
    start("server", SLEEP, os.environ, folder, log=folder.logs / "log", port=0)
    shutil.rmtree(folder.root)
    assert end_all(folder) == 1
    assert not cloud_processes(folder)


def test_a_process_with_a_reused_id_is_not_stopped(folder: StateFolder) -> None:
    stranger = subprocess.Popen(SLEEP)
    try:
        record = start("server", SLEEP, os.environ, folder, log=folder.logs / "log", port=0)
        write_records(folder, [record, replace(record, name="old", pid=stranger.pid, started_at=1.0)])

        assert [each.process() is not None for each in read_records(folder)] == [True, False]
        assert end_all(folder) == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.slow
def test_orphans_are_stopped_and_servers_with_their_workers_keep_running(folder: StateFolder) -> None:
    record = start("server", PARENT, os.environ, folder, log=folder.logs / "log", port=0)
    wait_for_members(folder, 2)
    orphan = subprocess.Popen(SLEEP, env={**os.environ, MARK: str(folder.root)})
    wait_for_members(folder, 3)

    end_orphans(folder)

    assert orphan.poll() is not None
    assert record.process() is not None
    assert len(cloud_processes(folder)) == 2


def test_processes_of_another_cloud_keep_running(folder: StateFolder, tmp_path: Path) -> None:
    other = subprocess.Popen(SLEEP, env={**os.environ, MARK: str(tmp_path / "other")})
    try:
        assert end_all(folder) == 0
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_unreadable_records_count_as_missing(folder: StateFolder) -> None:
    folder.processes.write_text("{half")
    assert read_records(folder) == []
    assert end_all(folder) == 0


def test_one_command_at_a_time(folder: StateFolder) -> None:
    with (
        folder.locked(),
        pytest.raises(LocalCloudError, match="Another `asya local` or `asya dev` uses"),
        folder.locked(),
    ):
        pass
    with folder.locked():
        pass


@pytest.mark.parametrize(("place", "problem"), [("file", "file is a file"), ("file/state", "state cannot be made: .+")])
def test_a_place_where_no_folder_can_be_is_an_error_for_people(tmp_path: Path, place: str, problem: str) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(LocalCloudError, match=f"{problem}. Use another --state"),
        StateFolder.at(tmp_path / place).locked(),
    ):
        pytest.fail("it is locked")


def test_a_link_to_a_state_folder_is_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert StateFolder.at(tmp_path / "link") == StateFolder.at(tmp_path / "real")
