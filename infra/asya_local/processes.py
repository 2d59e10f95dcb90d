"""Starts, finds and stops the processes of a local cloud, and removes what has no meaning without them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import psutil

from asya_local.state_folder import MARK, StateFolder, write_private

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

START_TIME_SLACK = 0.05
"""Seconds by which two readings of one start time may differ, because clock ticks are rounded."""


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class ProcessRecord:
    """The identity of a started process."""

    name: str
    pid: int
    started_at: float
    """Seconds since the epoch, from the operating system."""
    port: int

    def process(self) -> psutil.Process | None:
        """Return the running process; None if it ended, is a zombie, or its id was reused."""
        try:
            process = psutil.Process(self.pid)
            is_same = abs(process.create_time() - self.started_at) <= START_TIME_SLACK
            return process if is_same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def start(
    name: str, command: list[str], environment: Mapping[str, str], folder: StateFolder, *, log: Path, port: int
) -> ProcessRecord:
    """Start a marked process in its own session, append its output to `log`, and record it in the folder."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env={**environment, MARK: str(folder.root)},
            cwd=folder.root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=0o077,
        )
    record = ProcessRecord(name, process.pid, psutil.Process(process.pid).create_time(), port)
    write_records(folder, [*(other for other in read_records(folder) if other.name != name), record])
    return record


def read_records(folder: StateFolder) -> list[ProcessRecord]:
    """Read the records of the folder; return none if they are missing or unreadable."""
    try:
        return [ProcessRecord(**entry) for entry in json.loads(folder.processes.read_text())]
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return []


def write_records(folder: StateFolder, records: Iterable[ProcessRecord]) -> None:
    """Replace the records atomically."""
    write_private(folder.processes, json.dumps([asdict(record) for record in records], indent=2))


def cloud_processes(folder: StateFolder) -> list[psutil.Process]:
    """Return all running processes with the folder's mark, except this process."""
    processes = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == str(folder.root):
                processes.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return processes


def end_all(folder: StateFolder, grace_seconds: float = 5.0) -> int:
    """Stop all processes of the cloud: terminate the servers, and kill the rest after `grace_seconds`.

    Returns the number of processes.
    """
    recorded = [process for record in read_records(folder) if (process := record.process())]
    stopped = {process.pid for process in [*recorded, *cloud_processes(folder)]}
    for process in recorded:  # first, so that they stop their workers and start no more
        _send(process, signal.SIGTERM)
    psutil.wait_procs(recorded, timeout=grace_seconds)
    while survivors := cloud_processes(folder):
        stopped.update(process.pid for process in survivors)
        for process in survivors:
            _send(process, signal.SIGKILL)
        psutil.wait_procs(survivors, timeout=grace_seconds)
    for process in recorded:
        _send(process, signal.SIGKILL)
    with suppress(FileNotFoundError):  # a person has deleted the folder while they ran
        write_records(folder, [])
    return len(stopped)


def end_orphans(folder: StateFolder) -> None:
    """Kill marked processes that belong to no recorded server, such as the deployment of a killed `up`."""
    servers = [process for record in read_records(folder) if (process := record.process())]
    recorded = {process.pid for server in servers for process in (server, *server.children(recursive=True))}
    orphans = [process for process in cloud_processes(folder) if process.pid not in recorded]
    for process in orphans:
        _send(process, signal.SIGKILL)
    psutil.wait_procs(orphans)


def _send(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)  # psutil compares the start time first, so a reused id gets no signal
    except psutil.NoSuchProcess:
        return


@contextmanager
def signals_ignored() -> Iterator[None]:
    """Ignore Ctrl-C, and the signals of a terminal that closes, so that a second one does not interrupt the cleanup."""
    try:
        previous = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDING}
    except ValueError:  # only the main thread receives signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def clean_up(folder: StateFolder) -> int:
    """Stop all processes of the folder, also after a crash, and remove their files; return the number of processes.

    Logs, keys, the snapshot and foreign files stay.
    """
    count = end_all(folder)
    for path in (folder.connection, folder.deployed, folder.processes, folder.outputs, folder.dev):
        path.unlink(missing_ok=True)
    for path in (folder.temporary, folder.ministack, folder.cdk_home, folder.emr / "drivers"):
        shutil.rmtree(path, ignore_errors=True)
    return count
