"""The worker of a folder of handlers: `python -P handler_worker.py SOCKET`.

It runs in the environment of functions, so it imports the library and the user's packages alone. It imports the library once, and
forks a process for each connection to its socket: a new process imports the handlers as they are now, within milliseconds. A
connection has one call at a time, in the main thread of its process. The process ends with its connection, and the worker with its
standard input.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

from msgspec import Raw, structs

from asya.ends.lambdas.wiring import build_end_actor
from asya.function.aws import clients
from asya.function.aws.settings import load_settings
from asya.light.lambdas.sidecar import Sidecar, build_sidecar
from asya.protocol.envelope import Frame
from asya.protocol.numbers import Digits
from asya.protocol.text import one_line
from asya.runtime.abi import EnvelopeView
from asya.runtime.call import HandlerFailed, HandlerTimedOut, Invoker, ReadPayload
from asya.runtime.load import LoadError
from asya.sidecar.lambdas.services import Services
from asya.sidecar.secret_errors import SecretError

_DevTelemetry = runpy.run_path(str(Path(__file__).with_name("telemetry.py")))["DevTelemetry"]
_PrintedLines = runpy.run_path(str(Path(__file__).with_name("printed_lines.py")))["PrintedLines"]
Write = Callable[[str, str], None]


class _EntryPoint(Protocol):
    def process(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Process a batch."""


@dataclass(frozen=True)
class DevServices(Services):
    """The services of one actor."""

    write: Write = print

    @cached_property
    def telemetry(self) -> Any:
        """See `Services`."""
        return _DevTelemetry(self.settings.actor, self._only_news)

    def _only_news(self, level: str, text: str) -> None:
        # The author has the traceback of a failed handler already.
        if ": handler failed (" not in text:
            self.write(level, text)


@dataclass(frozen=True)
class TellingInvoker:
    """Tells the author about each call: how long it took, and why it failed."""

    invoker: Invoker
    actor: str
    write: Write

    def read(self, payload: Raw) -> ReadPayload:
        """See `Invoker`."""
        return self.invoker.read(payload)

    def frames(
        self, payload: Any, open_view: Callable[[], EnvelopeView], seconds: float, digits: Digits | None = None
    ) -> Generator[Frame, None, None]:
        """See `Invoker`."""
        name, began = f"{self.actor}: {one_line(open_view().id)}", time.monotonic()
        try:
            yield from self.invoker.frames(payload, open_view, seconds, digits)
        except HandlerTimedOut:
            self.write("error", f"{name} was ended after {seconds:g} s, the time limit")
            raise
        except HandlerFailed as failure:
            error = failure.error
            # The last line of a traceback is the error.
            told = f"\n{error.traceback.rstrip()}" if error.traceback else one_line(f" {error.type}: {error.message}")
            self.write("error", f"{name} failed:{told}")
            raise
        self.write("call", f"{name} took {(time.monotonic() - began) * 1000:.0f} ms")


@dataclass
class Process:
    """The process of one connection."""

    write: Write
    _actors: dict[str, _EntryPoint] = field(default_factory=dict)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request: load actors, or process a batch."""
        if "load" in request:
            problems = {actor: self._problem(actor, variables) for actor, variables in request["load"].items()}
            return {"problems": {actor: problem for actor, problem in problems.items() if problem}}
        actor = request["actor"]
        with _variables(request["variables"]):
            try:
                entry_point = self._entry_point(actor)
            except LoadError as error:
                return {"failed": None, "problem": str(error)}
            with _PrintedLines.of(actor):
                answer = entry_point.process(request["event"])
        return {"failed": [each["itemIdentifier"] for each in answer["batchItemFailures"]]}

    def _problem(self, actor: str, variables: Mapping[str, str]) -> str:
        """Load an actor; returns why that fails."""
        try:
            with _variables(variables):
                self._entry_point(actor)
        except (LoadError, SecretError) as error:
            return str(error) if error.__cause__ is None else "".join(traceback.format_exception(error.__cause__))
        except BaseException:  # noqa: BLE001 - an import runs any code
            return traceback.format_exc()
        return ""

    def _entry_point(self, actor: str) -> _EntryPoint:
        if actor not in self._actors:
            services = DevServices(load_settings(os.environ), write=self.write)
            self._actors[actor] = self._build(actor, services)
        return self._actors[actor]

    def _build(self, actor: str, services: Services) -> _EntryPoint:
        if services.settings.table.actors[actor].kind == "end":
            return build_end_actor(services)
        sidecar: Sidecar = build_sidecar(services)
        return structs.replace(sidecar, call=TellingInvoker(sidecar.call, actor, self.write))


class _variables:  # noqa: N801 - reads as a statement
    """Sets the environment variables of an actor for a while."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> None:
        self._before = {name: os.environ.get(name) for name in self._values}
        os.environ.update(self._values)

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def main(path: str) -> None:
    """Serve until the standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system reaps the processes of connections
    for client in (clients.sqs, clients.s3, clients.dynamodb, clients.dynamodb_without_waiting):
        client()  # a forked process has them, and they have no connection yet
    with listening(path) as server:
        while True:
            ready, _, _ = select.select([server, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                _serve(connection)
            connection.close()


def listening(path: str) -> socket.socket:
    """Return a socket that listens at a path. The path appears once connections are taken: a bound socket refuses them."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    draft = f"{path}.draft"
    server.bind(draft)
    server.listen()
    os.rename(draft, path)
    return server


def _serve(connection: socket.socket) -> None:
    """Serve one connection, and end this process."""
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.chdir(os.environ["LAMBDA_TASK_ROOT"])  # as in a function
    importlib.invalidate_caches()  # the folder of the code may be another one than when this worker started
    os.setsid()  # the processes of a handler end with it, if it is killed
    # A process that a handler forks answers nothing, and does not keep the connection open when the handler's process ends.
    os.register_at_fork(after_in_child=partial(os.close, connection.fileno()))
    channel = connection.makefile("rwb")
    lock = threading.Lock()  # senders and reporters write log entries from their own threads

    def send(message: dict[str, Any]) -> None:
        with lock:
            channel.write(json.dumps(message).encode() + b"\n")
            channel.flush()

    send({"pid": os.getpid()})

    def write(level: str, text: str) -> None:
        send({"level": level, "text": text})

    process = Process(write)
    _PrintedLines.replace_streams(write)
    try:
        for line in channel:
            request = json.loads(line)
            try:
                answer = process.answer(request)
            except Exception:  # noqa: BLE001 - as a function that raises: its whole batch stays on the queue
                answer = {"error": traceback.format_exc()}
            send({**answer, "number": request["number"]})
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
