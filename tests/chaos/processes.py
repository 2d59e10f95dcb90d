"""The processes of a local cloud under chaos: Lambda workers by function, and the memory of each kind."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from asya_local.processes import cloud_processes, read_records

if TYPE_CHECKING:
    from asya_local.state_folder import StateFolder


@dataclass(frozen=True)
class Worker:
    """A running process of a Lambda function."""

    function: str
    process: psutil.Process

    def kill(self) -> None:
        """Kill it; psutil compares the start time first, so no other process is killed."""
        self.process.kill()


@dataclass(frozen=True)
class MemorySample:
    """The memory of one process."""

    at: float
    """Seconds after the beginning of the load."""
    part: str
    """`worker`, or the name of a server."""
    function: str
    """Of a worker."""
    pid: int
    age: float
    """Seconds since the process started."""
    bytes: int


def workers(folder: StateFolder) -> list[Worker]:
    """The running Lambda workers, oldest first."""
    running = []
    for process in cloud_processes(folder):
        try:
            function = process.environ().get("AWS_LAMBDA_FUNCTION_NAME")
            if function and process.status() != psutil.STATUS_ZOMBIE:
                running.append((process.create_time(), process.pid, Worker(function, process)))
        except psutil.Error:
            continue
    return [worker for _, _, worker in sorted(running, key=lambda each: each[:2])]


def sample_memory(folder: StateFolder, proxy_pid: int, at: float) -> list[MemorySample]:
    """Measure the memory of the workers, the servers and the proxy. Shared pages count once for each process."""
    processes = [("worker", worker.function, worker.process) for worker in workers(folder)]
    records = {record.name: process for record in read_records(folder) if (process := record.process())}
    processes += [(name, "", process) for name, process in records.items()]
    processes += [("fault proxy", "", psutil.Process(proxy_pid)), ("this process", "", psutil.Process(os.getpid()))]
    samples = []
    for part, function, process in processes:
        try:
            age = time.time() - process.create_time()
            samples.append(MemorySample(at, part, function, process.pid, age, process.memory_info().rss))
        except psutil.Error:
            continue
    return samples
