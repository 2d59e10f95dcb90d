"""When a driver asks for a push or a pull. The clients are botocore's, without requests."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import botocore
import botocore.client
import pytest

from asya_local.emr.drivers.s3_sync import S3Sync, S3SyncError, synchronizing

if TYPE_CHECKING:
    from pathlib import Path

PUSH = {"sync": "push", "names": None}
PULL = {"sync": "pull", "names": None}


class Runner:
    """Records the requests; answers with `error`."""

    def __init__(self, folder: Path) -> None:
        self.requests: list[dict[str, Any]] = []
        self.error = ""
        self.sync = S3Sync(str(folder), self.ask)

    def ask(self, request: dict[str, Any]) -> str:
        self.requests.append(request)
        return self.error

    def call(self, action: str, status: int = 200, key: str = "data/1", **more: Any) -> None:
        """Make a call of S3 with a response of this status."""
        parameters = {"Bucket": "b", "Key": key, **more}
        self.sync.before(action, parameters)
        self.sync.after(action, parameters, status)

    def asked(self) -> list[dict[str, Any]]:
        """Return the requests since the latest call, those for the next command of Spark included."""
        self.sync.refresh()
        requests, self.requests = self.requests, []
        return requests


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_polls_cost_nothing(runner: Runner) -> None:
    for status in (404, 403, 304, 0):
        runner.call("GetObject", status)
    assert runner.asked() == []


def test_spark_sees_what_a_read_found_from_its_next_command_on(runner: Runner) -> None:
    for _ in range(3):
        runner.call("GetObject")
    assert runner.requests == []
    assert runner.asked() == [PULL]
    assert runner.asked() == []


def test_a_read_of_an_object_that_spark_has_pushes_first(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "b/data").mkdir(parents=True)
    (tmp_path / "b/data/1").touch()
    runner.call("GetObject", 404)
    assert runner.asked() == [PUSH]
    runner.call("ListObjectsV2")
    assert runner.asked() == [PUSH, PULL]


def test_a_write_pushes_first_and_spark_sees_its_objects(runner: Runner) -> None:
    runner.call("PutObject")
    runner.call("DeleteObjects", Delete={"Objects": [{"Key": "data/2"}, {"Key": "data/3"}]})
    runner.call("CopyObject", 0, key="data/4")  # no response, but it may have an effect
    assert runner.asked() == [
        *([PUSH] * 3),
        {"sync": "pull", "names": ["b/data/1", "b/data/2", "b/data/3", "b/data/4"]},
    ]


def test_a_conflict_tells_of_the_writes_of_others(runner: Runner) -> None:
    runner.call("PutObject", 412)
    assert runner.asked() == [PUSH, PULL]


def test_a_failed_pull_fails_each_command_until_it_works(runner: Runner) -> None:
    runner.call("GetObject")
    runner.error = "SlowDown"
    for _ in range(2):
        with pytest.raises(S3SyncError, match="SlowDown"):
            runner.sync.refresh()
    runner.error = ""
    assert runner.asked() == [PULL] * 3


def test_what_is_written_during_a_pull_is_pulled_next(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    runner.call("PutObject")

    def ask_during_a_write(request: dict[str, Any]) -> str:
        runner.sync.after("PutObject", {"Bucket": "b", "Key": "data/1"}, 200)
        runner.sync.refresh()  # by code that runs in the middle of the request, such as a finalizer
        return runner.ask(request)

    with monkeypatch.context() as patch:
        patch.setattr(runner.sync, "_ask", ask_during_a_write)
        runner.sync.refresh()
    one = {"sync": "pull", "names": ["b/data/1"]}
    assert runner.asked() == [PUSH, one, one]


def test_nobody_asks_after_the_job(runner: Runner) -> None:
    runner.sync.close()
    runner.call("PutObject")
    runner.call("GetObject")
    assert runner.asked() == []


def test_a_fork_of_the_driver_does_not_ask(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getpid", lambda: -1)
    runner.call("PutObject")
    assert runner.asked() == []


@pytest.mark.parametrize("is_loaded", [True, False])
def test_clients_and_spark_are_watched_during_the_job(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_loaded: bool
) -> None:
    commands: list[str] = []
    java = SimpleNamespace(send_command=commands.append)
    monkeypatch.setattr(botocore, "client", botocore.client)
    if not is_loaded:
        monkeypatch.delitem(sys.modules, "botocore.client")
    finders = list(sys.meta_path)

    with synchronizing(str(tmp_path), SimpleNamespace(_gateway_client=java), runner.ask):
        module = importlib.import_module("botocore.client")
        wrapped = module.BaseClient._make_api_call
        clients = [_client(service) for service in ("s3", "sqs")]
        for client in clients:
            with pytest.raises(_SentError):
                wrapped(client, "PutObject", {"Bucket": "b", "Key": "data/1"})
        java.send_command("m\nd\no1")
        assert runner.requests == [PUSH]
        java.send_command("c\no1\n")

    assert runner.requests == [PUSH, {"sync": "pull", "names": ["b/data/1"]}]
    assert commands == ["m\nd\no1", "c\no1\n"]
    assert sys.meta_path == finders
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__
    assert module.BaseClient._make_api_call is not wrapped


class _SentError(Exception):
    """The request is on its way."""


def _client(service: str) -> Any:
    class Meta:
        """The part of a client that botocore asks first after the service."""

        service_model = SimpleNamespace(service_name=service)

    class Client:
        meta = Meta()

        @property
        def _service_model(self) -> Any:
            raise _SentError

    return Client()
