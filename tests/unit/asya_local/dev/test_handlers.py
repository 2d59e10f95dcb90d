"""The client of the worker of handlers, against a worker that is scripted."""

import json
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from asya_local.dev.handlers import Handlers, NotLoadedError, WorkerDiedError, WorkerFailedError, described

Answer = Callable[[int, dict[str, Any]], list[dict[str, Any]] | None]


class ScriptedWorker:
    """Answers requests by a function of the number of the connection and the request; None ends the connection."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.path = Path(tempfile.mkdtemp(prefix="asya-test-")) / "worker"
        self.open: set[int] = set()
        self.changed = threading.Condition()
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(self.path))
        self._server.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        for number in range(1_000):
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(number, connection), daemon=True).start()

    def _serve(self, number: int, connection: socket.socket) -> None:
        self._note(self.open.add, number)
        with connection, connection.makefile("rwb") as channel:
            channel.write(json.dumps({"pid": 2**22 + 1}).encode() + b"\n")
            channel.flush()
            for line in channel:
                request = json.loads(line)
                messages = self.answer(number, request)
                if messages is None:
                    break
                for message in messages:
                    numbered = message if "level" in message else {"number": request["number"], **message}
                    channel.write(json.dumps(numbered).encode() + b"\n")
                channel.flush()
        self._note(self.open.discard, number)

    def _note(self, do: Callable[[int], None], number: int) -> None:
        with self.changed:
            do(number)
            self.changed.notify_all()

    def waits_for(self, connections: set[int]) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.open == connections, timeout=60), self.open

    def close(self) -> None:
        self._server.close()
        self.path.unlink()
        self.path.parent.rmdir()


@pytest.fixture
def worker() -> Iterator[ScriptedWorker]:
    found = ScriptedWorker(lambda _number, request: [{"problems": {}} if "load" in request else {"failed": []}])
    yield found
    found.close()


def handlers(worker: ScriptedWorker) -> tuple[Handlers, list[str]]:
    told: list[str] = []
    return Handlers(worker.path, lambda _level, text: told.append(text)), told


def call(client: Handlers, actor: str = "check") -> set[str]:
    return client.process(actor, {"ASYA_ACTOR": actor}, {"Records": []}, 60.0)


def test_an_answer_names_the_failed_messages_and_tells_come_first(worker: ScriptedWorker) -> None:
    client, told = handlers(worker)
    client.load({"check": {}})
    worker.answer = lambda _number, request: [{"level": "call", "text": f"{request['actor']} ran"}, {"failed": ["m1"]}]
    assert call(client) == {"m1"}
    assert told == ["check ran"]


def test_new_code_has_a_new_process_and_a_busy_one_ends_after_its_call(worker: ScriptedWorker) -> None:
    client, _ = handlers(worker)
    client.load({"check": {}})
    began, go_on = threading.Event(), threading.Event()

    def slow(number: int, request: dict[str, Any]) -> list[dict[str, Any]]:
        if "load" in request:
            return [{"problems": {}}]
        if number == 0:
            began.set()
            assert go_on.wait(60)
        return [{"failed": [str(number)]}]

    worker.answer = slow
    answers: list[set[str]] = []
    thread = threading.Thread(target=lambda: answers.append(call(client)))
    thread.start()
    assert began.wait(60)
    client.load({"check": {}})
    assert call(client) == {"1"}
    worker.waits_for({0, 1})
    go_on.set()
    thread.join()
    assert answers == [{"0"}]
    worker.waits_for({1})
    client.close()
    worker.waits_for(set())


def test_a_process_that_ends_fails_its_batch_alone(worker: ScriptedWorker) -> None:
    client, _ = handlers(worker)
    client.load({"check": {}})
    worker.answer = lambda number, _request: None if number == 0 else [{"failed": []}]
    with pytest.raises(WorkerDiedError):
        call(client)
    assert call(client) == set()


def test_a_function_that_raises_is_told_with_its_traceback(worker: ScriptedWorker) -> None:
    client, _ = handlers(worker)
    client.load({"check": {}})
    worker.answer = lambda _number, _request: [{"error": "Traceback: no table"}]
    with pytest.raises(WorkerFailedError, match="no table"):
        call(client)


def test_messages_wait_for_a_handler_that_cannot_be_loaded(worker: ScriptedWorker) -> None:
    client, _ = handlers(worker)
    worker.answer = lambda _number, _request: [{"problems": {"check": "SyntaxError"}}]
    assert client.load({"check": {}, "bill": {}}) == {"check": "SyntaxError"}
    client.wait_until_loaded("bill")
    with pytest.raises(NotLoadedError):
        call(client)
    waiting = threading.Thread(target=client.wait_until_loaded, args=("check",))
    waiting.start()
    worker.answer = lambda _number, request: [{"problems": {}} if "load" in request else {"failed": []}]
    client.load({"check": {}, "bill": {}})
    waiting.join(60)
    assert not waiting.is_alive()
    assert call(client) == set()


def test_messages_wait_for_a_file_that_a_further_process_cannot_read(worker: ScriptedWorker) -> None:
    client, told = handlers(worker)
    client.load({"check": {}, "bill": {}})
    worker.answer = lambda _number, _request: [{"failed": None, "problem": "SyntaxError"}]
    for _ in range(2):
        with pytest.raises(NotLoadedError):
            call(client)
    assert told == ["check cannot be loaded in a further process, and its messages wait:\nSyntaxError"]
    assert client.has_problems
    worker.answer = lambda _number, request: [{"problems": {}} if "load" in request else {"failed": []}]
    assert call(client, "bill") == set()
    client.load({"check": {}, "bill": {}})
    assert (client.has_problems, call(client)) == (False, set())


def test_an_answer_to_another_request_is_none(worker: ScriptedWorker) -> None:
    client, _ = handlers(worker)
    client.load({"check": {}})
    worker.answer = lambda _number, _request: [{"failed": [], "number": 17}]
    with pytest.raises(WorkerDiedError):
        call(client)


def test_a_call_and_an_import_end_at_their_limits(worker: ScriptedWorker) -> None:
    client, _ = handlers(worker)
    client.load({"check": {}})
    worker.answer = lambda _number, _request: []
    with pytest.raises(WorkerDiedError):
        client.process("check", {}, {"Records": []}, 0.05)
    assert "took longer than 0.05 s" in client.load({"check": {}}, 0.05)["check"]
    with pytest.raises(NotLoadedError):
        call(client)


def test_messages_wait_for_a_new_worker(worker: ScriptedWorker) -> None:
    client, _ = handlers(worker)
    client.load({"check": {}})
    client.close()
    client.socket = worker.path.with_name("gone")
    with pytest.raises(NotLoadedError):
        call(client)
    waiting = threading.Thread(target=client.wait_until_loaded, args=("check",))
    waiting.start()
    with pytest.raises(OSError, match="No such file"):
        client.load({"check": {}})
    client.socket = worker.path
    client.load({"check": {}})
    waiting.join(60)
    assert not waiting.is_alive()


def test_an_import_that_ends_the_process_is_a_problem_of_all(worker: ScriptedWorker) -> None:
    client, _ = handlers(worker)
    worker.answer = lambda _number, _request: None
    assert client.load({"check": {}, "bill": {}}).keys() == {"check", "bill"}


def test_a_shared_problem_is_described_once() -> None:
    problems = {"check": "SyntaxError\n", "bill": "SyntaxError\n", "ship": "KeyError"}
    assert list(described(problems)) == [
        "check, bill cannot be loaded, and their messages wait:\nSyntaxError",
        "ship cannot be loaded, and its messages wait:\nKeyError",
    ]


def test_the_worker_tells_why_it_cannot_load(tmp_path: Path) -> None:
    from asya_local.dev.handler_worker import Process

    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    problem = Process(lambda *_: None)._problem("check", {"LAMBDA_TASK_ROOT": str(tmp_path), "ASYA_ACTOR": "check"})
    assert "mesh.json" in problem
