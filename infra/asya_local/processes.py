"""The processes of a local cloud: started in sessions of their own, found again, and ended.

A process is known by its id *and* its start time (ids are reused), and every process of a cloud, workers and JVMs
included, inherits a mark in its environment: the path of the state folder. So whatever survives a crash is found by
the next `up` or `down`, and nothing that belongs to somebody else is ever signalled.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import psutil

from asya_local.state_folder import MARK, StateFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

START_TIME_SLACK = 0.05
"""Seconds by which two readings of one process's start time may differ (clock tick rounding)."""


@dataclass(frozen=True)
class ProcessRecord:
    """A process that was started: enough to say later whether a process of that id is still the same one."""

    name: str
    pid: int
    started_at: float
    """Seconds since the epoch, as the system reports the process's creation."""
    port: int

    def process(self) -> psutil.Process | None:
        """The running process, or None when it is gone, a zombie, or its id belongs to another process now."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started_at) <= START_TIME_SLACK
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def start(
    name: str, command: list[str], environment: Mapping[str, str], folder: StateFolder, *, log: Path, port: int
) -> ProcessRecord:
    """Start a marked process in a session of its own, its output appended to `log`, and note it in the folder."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env={**environment, MARK: str(folder.root)},
            cwd=folder.root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    record = ProcessRecord(name, process.pid, psutil.Process(process.pid).create_time(), port)
    write_records(folder, [*(known for known in read_records(folder) if known.name != name), record])
    return record


def read_records(folder: StateFolder) -> list[ProcessRecord]:
    """The processes noted in the folder; none when there is no readable note (the mark finds them then)."""
    try:
        return [ProcessRecord(**entry) for entry in json.loads(folder.processes.read_text())]
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return []


def write_records(folder: StateFolder, records: Iterable[ProcessRecord]) -> None:
    """Replace the note atomically."""
    draft = folder.processes.with_suffix(".draft")
    draft.write_text(json.dumps([asdict(record) for record in records], indent=2))
    draft.replace(folder.processes)


def cloud_processes(folder: StateFolder) -> list[psutil.Process]:
    """Every running process that carries the folder's mark, this process never among them."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == str(folder.root):
                found.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


def end_all(folder: StateFolder, patience: float = 5.0) -> int:
    """End every process of the cloud: asked first, killed after `patience` seconds, until none is left.

    Returns the number of processes that were found.
    """
    recorded = [process for record in read_records(folder) if (process := record.process())]
    found = {process.pid: process for process in [*recorded, *cloud_processes(folder)]}
    for process in recorded:  # the servers first: they start no more workers, and end their own
        _send(process, signal.SIGTERM)
    psutil.wait_procs(recorded, timeout=patience)
    while left := cloud_processes(folder):
        found.update((process.pid, process) for process in left)
        for process in left:
            _send(process, signal.SIGKILL)
        psutil.wait_procs(left, timeout=patience)
    for process in recorded:
        _send(process, signal.SIGKILL)
    write_records(folder, [])
    return len(found)


def end_orphans(folder: StateFolder) -> None:
    """End what carries the mark and belongs to no server that was started: the deployment of an `up` that was killed."""
    servers = [process for record in read_records(folder) if (process := record.process())]
    kept = {process.pid for server in servers for process in (server, *server.children(recursive=True))}
    orphans = [process for process in cloud_processes(folder) if process.pid not in kept]
    for process in orphans:
        _send(process, signal.SIGKILL)
    psutil.wait_procs(orphans)


def _send(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)  # psutil compares the start time first: a reused id is never signalled
    except psutil.NoSuchProcess:
        return
