"""The test kit: nothing of a test reaches AWS."""

import asyncio
import http.server
import multiprocessing
import os
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws

from asya.testing import EndpointRefusedError, Mesh, isolation

ONCE = Config(retries={"total_max_attempts": 1})


@dataclass
class Aws:
    """What stands for AWS: the endpoint that the shell names.

    Attributes:
        calls: the paths that were called, with the access key of each.
    """

    url: str
    calls: list[tuple[str, str]] = field(default_factory=list)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    """An AWS that the shell has the credentials of."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            running.calls.append((self.path, self.headers.get("authorization", "")))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_PUT = do_POST  # noqa: N815 - the names of the base class

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    running = Aws(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    for name, value in (("ACCESS_KEY_ID", "AKIADEVELOPER"), ("SECRET_ACCESS_KEY", "s"), ("ENDPOINT_URL", running.url)):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    yield running
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def mesh_file(tmp_path: Path) -> Path:
    """A mesh whose handlers make the call that is named in the payload."""
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "calls.py").write_text(
        "import builtins\n\ndef call(payload):\n    return builtins.asya_test_calls[payload['how']]()\n"
    )
    path = tmp_path / "mesh.yaml"
    path.write_text("namespace: shop\ncode: handlers\nactors:\n  call: {handler: calls.call}\n")
    return path


@pytest.fixture
def in_handler(mesh_file: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Let a handler do something, and return its run."""
    calls: dict[str, Callable[[], Any]] = {}
    monkeypatch.setattr("builtins.asya_test_calls", calls, raising=False)

    def run(do: Callable[[], Any], **options: Any) -> Any:
        calls["do"] = do
        return Mesh(mesh_file, **options).send("call", {"how": "do"})

    return run


def client(service: Any) -> Any:
    return boto3.client(service, config=ONCE)


def powertools_parameter() -> Any:
    from aws_lambda_powertools.utilities import parameters

    return parameters.SSMProvider(boto_config=ONCE).get("name")


# One call of each of many services, in the protocols that botocore has.
CALLS: dict[str, Callable[[], Any]] = {
    "sqs": lambda: client("sqs").list_queues(),
    "dynamodb": lambda: client("dynamodb").list_tables(),
    "s3": lambda: client("s3").list_buckets(),
    "s3 of a bucket": lambda: client("s3").put_object(Bucket="a-bucket", Key="key", Body=b""),
    "ssm": lambda: client("ssm").get_parameter(Name="name"),
    "secretsmanager": lambda: client("secretsmanager").get_secret_value(SecretId="name"),
    "sts": lambda: client("sts").get_caller_identity(),
    "events": lambda: client("events").list_rules(),
    "sns": lambda: client("sns").list_topics(),
    "lambda": lambda: client("lambda").list_functions(),
    "emr-serverless": lambda: client("emr-serverless").list_applications(),
    "cloudwatch": lambda: client("cloudwatch").put_metric_data(Namespace="n", MetricData=[]),
    "a resource": lambda: list(boto3.resource("s3").buckets.all()),
    "a session of its own": lambda: boto3.Session("AKIAOTHER", "s").client("sqs", "us-east-1").list_queues(),
    "an endpoint of its own": lambda: boto3.client("sqs", endpoint_url="http://minio.example:9000").list_queues(),
    "powertools": powertools_parameter,
    "urllib": lambda: urllib.request.urlopen("https://sqs.eu-west-1.amazonaws.com"),
    "a socket": lambda: socket.create_connection(("bucket.s3.dualstack.eu-west-1.amazonaws.com", 443)),
}


def in_a_thread(do: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(do).result()


def in_a_coroutine(do: Callable[[], Any]) -> Any:
    return asyncio.run(asyncio.to_thread(do))


def in_a_fork(do: Callable[[], Any]) -> Any:
    _FORKED.append(do)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as processes:
        return processes.submit(_call_forked).result()


_FORKED: list[Callable[[], Any]] = []


def _call_forked() -> None:
    try:
        _FORKED[-1]()
    except EndpointRefusedError as error:
        raise RuntimeError(str(error)) from None  # a pool passes on what it can pickle


def is_refused(run: Any) -> bool:
    message = run.errors[0].message  # a library may raise an error of its own with it
    return (
        run.status == "failed"
        and "the test kit lets no call of AWS out" in message
        and "allowed_endpoints=['" in message
    )


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("shell_names_an_endpoint", [True, False])
def test_a_call_of_a_handler_is_refused(
    name: str,
    shell_names_an_endpoint: bool,
    in_handler: Callable[..., Any],
    aws: Aws,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not shell_names_an_endpoint:
        monkeypatch.delenv("AWS_ENDPOINT_URL")
    run = in_handler(CALLS[name])
    assert is_refused(run), run.errors
    assert aws.calls == []


@pytest.mark.parametrize("where", [in_a_thread, in_a_coroutine, in_a_fork])
@pytest.mark.parametrize("name", ["sqs", "s3", "an endpoint of its own"])
def test_a_call_from_another_thread_or_process_is_refused(
    where: Callable[[Callable[[], Any]], Any], name: str, in_handler: Callable[..., Any], aws: Aws
) -> None:
    run = in_handler(lambda: where(CALLS[name]))
    assert is_refused(run), run.errors
    assert aws.calls == []


@pytest.mark.parametrize("where", [lambda do: do(), in_a_thread, in_a_fork])
def test_a_client_from_before_the_mesh_is_refused(
    where: Callable[[Callable[[], Any]], Any], in_handler: Callable[..., Any], aws: Aws
) -> None:
    before = client("sqs")
    assert before.meta.endpoint_url == aws.url
    run = in_handler(lambda: where(before.list_queues))
    assert is_refused(run), run.errors
    assert aws.calls == []


def test_what_a_handler_left_behind_reaches_this_machine_at_most(in_handler: Callable[..., Any], aws: Aws) -> None:
    at_aws = boto3.client("sqs", endpoint_url="https://sqs.eu-west-1.amazonaws.com", config=ONCE)
    go_on, errors = threading.Event(), list[Exception]()

    def late() -> None:
        go_on.wait()
        try:
            at_aws.list_queues()
        except EndpointRefusedError as error:
            errors.append(error)

    thread = threading.Thread(target=late)
    in_handler(thread.start)
    go_on.set()
    thread.join()
    assert len(errors) == 1
    client("sqs").list_queues()  # a test may use a local cloud beside the mesh
    assert len(aws.calls) == 1


def test_a_double_answers_within_a_handler(in_handler: Callable[..., Any], aws: Aws, monkeypatch: Any) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    with mock_aws():
        client("sqs").create_queue(QueueName="orders")
        run = in_handler(lambda: client("sqs").list_queues()["QueueUrls"])
    assert run.result[0].endswith("/orders")


def test_an_allowed_endpoint_is_called_with_the_credentials_of_the_shell(
    in_handler: Callable[..., Any], aws: Aws
) -> None:
    host = aws.url.removeprefix("http://")
    run = in_handler(lambda: client("sqs").list_queues() and None, allowed_endpoints=[host])
    assert run.status == "succeeded", run.errors
    [(_, authorization)] = aws.calls
    assert "AKIADEVELOPER" in authorization
    assert is_refused(in_handler(CALLS["an endpoint of its own"], allowed_endpoints=[host]))


def test_handlers_have_no_credentials(in_handler: Callable[..., Any], aws: Aws, monkeypatch: Any) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    seen = in_handler(lambda: {name: value for name, value in os.environ.items() if name.startswith("AWS_")}).result
    assert seen["AWS_ACCESS_KEY_ID"] == "asya-testing"
    assert seen["AWS_DEFAULT_REGION"] == "eu-west-1"
    assert not {"AWS_PROFILE", "AWS_ENDPOINT_URL"} & seen.keys()
    assert os.environ["AWS_PROFILE"] == "production"
    with_own = in_handler(lambda: os.environ["AWS_ENDPOINT_URL"], env={"AWS_ENDPOINT_URL": "http://own"})
    assert with_own.result == "http://own"


@pytest.mark.parametrize("suffix", isolation.aws_suffixes())
def test_every_partition_of_aws_is_known(suffix: str) -> None:
    isolation.guard()
    for host in (f"sqs.some-region-1{suffix}", f"BUCKET.s3.some-region-1{suffix}."):
        with pytest.raises(EndpointRefusedError, match="allowed_endpoints"):
            socket.getaddrinfo(host, 443)


def test_credentials_of_the_machine_may_be_asked_for() -> None:
    isolation.check_call("GET", "http://169.254.169.254/latest/meta-data/")
