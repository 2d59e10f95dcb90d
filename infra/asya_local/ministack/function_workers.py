"""The processes of functions: limited in number, and replaced as on AWS when a deployment changes their function.

Limit: MiniStack starts a process for each call that finds all processes busy. New processes slow the busy ones down, and more
calls find them busy. Here a function has `MAX_PROCESSES` at most, and further calls wait. Calls of the gateway that may wait for
tasks (long polls) have as many of their own, so they hold no other call out.

Replacement: MiniStack kills all processes of a function whose code or configuration changes, also in the middle of a call. On
AWS a call ends with the code that it started with. So a busy process is retired here: it ends after its call. A call that has
waited starts no process with the code of its beginning for later calls.

Interpreter: MiniStack runs functions on its own interpreter, which has MiniStack's packages. Here it is one with the packages of
Lambda's runtime.

Runs in MiniStack's process, in `.venv-cloud`. It imports nothing of this project.
"""

import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

PYTHON_VARIABLE = "ASYA_LOCAL_FUNCTION_PYTHON"
"""In MiniStack's environment: the interpreter of functions."""
LONG_POLLS_VARIABLE = "ASYA_LOCAL_LONG_POLLS"
"""In MiniStack's environment: the routes of HTTP APIs whose calls may wait for tasks, such as `POST /mcp`, with commas."""
MAX_PROCESSES = max(4, 2 * (os.cpu_count() or 1))
"""Of one function, and again for its long polls. No function waits for a call of itself, so waiting calls cannot deadlock."""
_POLL_SECONDS = 1.0


class FunctionWorkers:
    """MiniStack's pool of workers, each with one process, behind the functions that MiniStack calls."""

    def __init__(self, runtime: ModuleType) -> None:
        self._acquire = runtime.acquire_worker
        self._release = runtime.release_worker
        self._invalidate = runtime.invalidate_worker
        self._kill = runtime.kill_workers
        self._changed = threading.Condition()
        self._retired: set[int] = set()
        self._busy: dict[int, tuple[str, str, bool]] = {}
        self._long_polls = frozenset(os.environ.get(LONG_POLLS_VARIABLE, "").split(","))
        self._thread = threading.local()

    def executing(self, execute: Callable[..., Any]) -> Callable[..., Any]:
        """Return MiniStack's function that executes a call, which tells the pool whether the call is a long poll."""

        def executed(func: Any, event: Any, *more: Any) -> Any:
            self._thread.is_long_poll = isinstance(event, dict) and event.get("routeKey") in self._long_polls
            try:
                return execute(func, event, *more)
            finally:
                self._thread.is_long_poll = False

        return executed

    def acquire_worker(self, name: str, config: Any, code: bytes, qualifier: str = "$LATEST", **_: Any) -> Any:
        """Acquire a worker with this code; wait while `MAX_PROCESSES` calls of the same kind are at work in the function."""
        while True:
            worker, how = self._wait_for_worker(name, config, code, qualifier)
            if worker.code_zip == code:
                self._thread.worker = worker
                return worker, how
            # The function has changed while a call waited.
            self._invalidate(name, qualifier=qualifier)
            self.release_worker(worker)

    def release_worker(self, worker: Any) -> None:
        """Release a worker, or end it if it is retired; wake the waiting calls.

        After a call that has failed, MiniStack releases None instead of the worker.
        """
        worker = worker or self._thread.worker
        self._release(worker)
        with self._changed:
            self._busy.pop(id(worker), None)
            is_retired = id(worker) in self._retired
            self._retired.discard(id(worker))
            self._changed.notify_all()
        if is_retired:
            self._kill([worker])

    def kill_workers(self, workers: Any) -> None:
        """Kill workers that MiniStack has taken out of its pool: idle ones now, busy ones after their call."""
        with self._changed:
            idle = [worker for worker in workers if not worker.in_use]
            retired = {id(worker) for worker in workers if worker.in_use}
            self._retired |= retired
            # They leave the pool, so they take no place of the next code.
            self._busy = {worker: kind for worker, kind in self._busy.items() if worker not in retired}
            self._changed.notify_all()
        self._kill(idle)

    def _wait_for_worker(self, name: str, config: Any, code: bytes, qualifier: str) -> Any:
        kind = name, qualifier, getattr(self._thread, "is_long_poll", False)
        with self._changed:
            while True:
                if sum(each == kind for each in self._busy.values()) < MAX_PROCESSES:
                    worker, how = self._acquire(
                        name, config, code, qualifier=qualifier, max_concurrency=2 * MAX_PROCESSES
                    )
                    if worker is not None:
                        self._busy[id(worker)] = kind
                        return worker, how
                self._changed.wait(_POLL_SECONDS)  # a crashed worker is never released


def install(runtime: ModuleType, service: ModuleType) -> None:
    """Make MiniStack's Lambda runtime and its Lambda service use these functions, and the interpreter of functions."""
    workers = FunctionWorkers(runtime)
    detect = runtime._detect_runtime_binary

    def detect_runtime_binary(name: str) -> tuple[str, str]:
        binary, script = detect(name)
        return (os.environ[PYTHON_VARIABLE] if name.startswith("python") else binary), script

    runtime._detect_runtime_binary = detect_runtime_binary  # type: ignore[attr-defined]
    runtime.kill_workers = workers.kill_workers  # type: ignore[attr-defined]
    service.acquire_worker, service.release_worker = workers.acquire_worker, workers.release_worker  # type: ignore[attr-defined]
    service._execute_function_warm = workers.executing(service._execute_function_warm)  # type: ignore[attr-defined]
