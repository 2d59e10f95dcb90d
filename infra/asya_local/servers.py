"""The two servers of a local cloud: MiniStack and the EMR Serverless stand-in."""

from __future__ import annotations

import json
import os
import socket
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from asya.gateway.call_table import CALLS
from asya_infra.product.places import BUILD, FILES
from asya_local.account import ACCOUNT_ID, REGION, AccessKey, keep_secret, read_secret
from asya_local.authentication.admission import SECRET_HEADER, SECRET_VARIABLE
from asya_local.emr.drivers.job_environment import job_python, spark_home
from asya_local.emr.settings import ApplicationSettings, EmrSettings, WorkerSettings
from asya_local.errors import LocalCloudError
from asya_local.ministack.function_workers import LONG_POLLS_VARIABLE, PYTHON_VARIABLE
from asya_local.ministack.snapshot import RESTORE_VARIABLE
from asya_local.processes import ProcessRecord, read_records, start
from asya_local.state_folder import write_private
from asya_local.tools import Tools, function_python

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from asya_local.state_folder import StateFolder

MINISTACK = "ministack"
EMR = "emr-serverless"
LOOPBACK = "127.0.0.1"
LOOPBACK_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Opens URLs of this machine, past the proxy of the developer's environment."""
_START_SECONDS = 60.0
_ATTEMPTS = 3
_INHERITED = ("LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SYSTEMROOT")


@dataclass(frozen=True)
class Servers:
    """The ports of both servers."""

    ministack_port: int
    emr_port: int

    @property
    def endpoint(self) -> str:
        """The URL of all services except EMR Serverless."""
        return f"http://{LOOPBACK}:{self.ministack_port}"

    @property
    def emr_endpoint(self) -> str:
        """The URL of EMR Serverless."""
        return f"http://{LOOPBACK}:{self.emr_port}"

    @property
    def execute_api(self) -> str:
        """The prefix of HTTP API URLs; the id of the API and the stage follow."""
        return f"{self.endpoint}/_aws/execute-api"


@dataclass(frozen=True)
class ServerOptions:
    """The options of both servers."""

    event_queues: tuple[str, ...] = ()
    """Queues that receive the state change events of job runs."""
    has_jobs: bool = True
    """Whether the EMR Serverless stand-in starts."""
    application: ApplicationSettings = field(default_factory=ApplicationSettings)
    workers: WorkerSettings = field(default_factory=WorkerSettings)
    starts_per_second: float = 1.0
    start_burst: int = 25
    faults: str = ""
    """A Python module whose class `Faults` injects faults into the EMR Serverless stand-in (tests)."""
    aws_proxy: str = ""
    """The URL of a proxy in front of MiniStack, for the calls of functions, job runs and the stand-in (tests)."""


def start_servers(
    folder: StateFolder, tools: Tools, root: AccessKey, options: ServerOptions, *, restores: bool = False
) -> Servers:
    """Start both servers, on the ports of the last cloud in the folder if they are free, and wait until they answer.

    Args:
        restores: Whether MiniStack starts with the state of the snapshot, whose addresses have its ports.

    Raises:
        LocalCloudError: A server does not start; the detail is the end of its log.
    """
    keep_secret(folder.secret)
    for attempt in range(_ATTEMPTS):
        servers = previous_servers(folder) if attempt == 0 else None
        if servers is None and restores:
            raise _PortTakenError("The ports of the snapshot are taken.")
        servers = servers or Servers(*_free_ports(2))
        write_private(folder.ports, json.dumps(asdict(servers)))
        # They start at the same time, because each takes a second of a processor.
        started = [_start_ministack(folder, tools, root, options, servers, restores=restores)]
        if options.has_jobs:
            started.append(_start_emr(folder, tools, root, options, servers))
        try:
            for each in started:
                _wait_for(each, folder)
        except _PortTakenError:
            for each in started:
                each.kill()
            if attempt == _ATTEMPTS - 1 or restores:
                raise
            continue
        return servers
    raise AssertionError("unreachable")


def start_job_server(
    folder: StateFolder, tools: Tools, root: AccessKey, options: ServerOptions, servers: Servers
) -> None:
    """Start the EMR Serverless stand-in beside a running MiniStack, and wait until it answers.

    Raises:
        LocalCloudError: It does not start; the detail is the end of its log.
    """
    _wait_for(_start_emr(folder, tools, root, options, servers), folder)


def previous_servers(folder: StateFolder) -> Servers | None:
    """Return the servers with the ports of the last cloud in the folder, if they are free."""
    try:
        servers = Servers(**json.loads(folder.ports.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return servers if is_free(servers.ministack_port) and is_free(servers.emr_port) else None


def is_free(port: int) -> bool:
    """Return whether a server can bind a port of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _free_ports(count: int) -> list[int]:
    """Return different free ports on loopback. Another process may take one before a server binds it."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]


@dataclass(frozen=True)
class _Started:
    """A server that has been started: its process, its health URL and its log."""

    record: ProcessRecord
    health: str
    log: Path

    def kill(self) -> None:
        """Kill its process, if it runs."""
        process = self.record.process()
        if process is not None:
            process.kill()


class _PortTakenError(LocalCloudError):
    """Another process took the port before the server bound it."""


def _start_ministack(
    folder: StateFolder, tools: Tools, root: AccessKey, options: ServerOptions, servers: Servers, *, restores: bool
) -> _Started:
    environment = {
        **_clean_environment(folder, tools),
        **root.environment(),
        "BIND_HOST": LOOPBACK,
        "GATEWAY_PORT": str(servers.ministack_port),
        # HTTP APIs answer at `{id}.execute-api.localhost`, which is this machine (RFC 6761).
        "MINISTACK_HOST": "localhost",
        "MINISTACK_ACCOUNT_ID": ACCOUNT_ID,
        "MINISTACK_REGION": REGION,
        "AUTH": "true",
        "STATE_DIR": str(folder.snapshot),
        RESTORE_VARIABLE: "1" if restores else "",
        PYTHON_VARIABLE: str(function_python(BUILD, Path(tools.cloud_python))),
        LONG_POLLS_VARIABLE: ",".join(call.route for call in CALLS if call.waits),
        "S3_DATA_DIR": str(folder.ministack / "s3"),
        # MiniStack would bind MQTT to port 8883 of every interface.
        "IOT_MTLS_ENABLED": "0",
        # Lambda workers inherit these, because the templates name no endpoint.
        "AWS_ENDPOINT_URL": options.aws_proxy or servers.endpoint,
        "AWS_ENDPOINT_URL_EMR_SERVERLESS": servers.emr_endpoint,
        "AWS_ENDPOINT_URL_EXECUTE_API": servers.execute_api,
    }
    command = [tools.cloud_python, "-P", str(Path(__file__).parent / "ministack" / "server.py")]
    log = folder.logs / "ministack.log"
    record = start(MINISTACK, command, environment, folder, log=log, port=servers.ministack_port)
    return _Started(record, f"{servers.endpoint}/_ministack/health", log)


def _start_emr(
    folder: StateFolder, tools: Tools, root: AccessKey, options: ServerOptions, servers: Servers
) -> _Started:
    settings = EmrSettings(
        port=servers.emr_port,
        state=str(folder.emr),
        mark=str(folder.root),
        aws_endpoint=options.aws_proxy or servers.endpoint,
        python=str(job_python(BUILD)),
        java_home=tools.java_home,
        spark_home=str(spark_home()),
        temporary=str(folder.temporary),
        cache=str(BUILD),
        region=REGION,
        account_id=ACCOUNT_ID,
        caller_endpoint=servers.endpoint,
        event_queues=options.event_queues,
        starts_per_second=options.starts_per_second,
        start_burst=options.start_burst,
        faults=options.faults,
        application=options.application,
        workers=options.workers,
    )
    settings.write(folder.emr / "settings.json")
    environment = {
        **_clean_environment(folder, tools),
        **root.environment(),
        "PYTHONPATH": str(FILES),
    }
    command = [tools.python, "-P", "-m", "asya_local.emr", str(folder.emr / "settings.json")]
    log = folder.logs / "emr-serverless.log"
    record = start(EMR, command, environment, folder, log=log, port=servers.emr_port)
    return _Started(record, f"{servers.emr_endpoint}/_local/health", log)


def _clean_environment(folder: StateFolder, tools: Tools) -> dict[str, str]:
    """Return an environment with the secret of the cloud, and without the developer's AWS profile, keys and settings."""
    return {
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        "PATH": tools.path,
        "HOME": str(folder.temporary),
        "TMPDIR": str(folder.temporary),
        "PYTHONUNBUFFERED": "1",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        SECRET_VARIABLE: read_secret(folder.secret),
    }


def _wait_for(started: _Started, folder: StateFolder) -> None:
    record, url, log = started.record, started.health, started.log

    def answers() -> bool:
        if record.process() is None:
            text = tail(log)
            is_taken = any(phrase in text.lower() for phrase in ("address already in use", "errno 98", "errno 48"))
            kind = _PortTakenError if is_taken else LocalCloudError
            raise kind(f"{record.name} ended during its start (port {record.port}); see its log {log}", text)
        return healthy(url, read_secret(folder.secret))

    if not wait_until(answers, _START_SECONDS):
        raise LocalCloudError(
            f"{record.name} does not answer at {url} after {_START_SECONDS:.0f} s; see its log {log}", tail(log)
        )


def running_servers(folder: StateFolder) -> Servers | None:
    """Return the servers of a running cloud; None if one of them is not running."""
    ports = {record.name: record.port for record in read_records(folder) if record.process() is not None}
    return Servers(ports[MINISTACK], ports[EMR]) if {MINISTACK, EMR} <= ports.keys() else None


def unproxied(environment: Mapping[str, str]) -> dict[str, str]:
    """Return both variables that except this machine from a proxy of this environment; the lower-case one counts first."""
    names = ("no_proxy", "NO_PROXY")
    hosts = ",".join([*filter(None, map(environment.get, names)), LOOPBACK, "localhost"])
    return dict.fromkeys(names, hosts)


def healthy(url: str, secret: str) -> bool:
    """Return whether the health URL answers 200 to the cloud's own secret."""
    request = urllib.request.Request(url, headers={SECRET_HEADER: secret})
    try:
        with LOOPBACK_OPENER.open(request, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float, pause: float = 0.05) -> bool:
    """Poll a condition until it holds; return False if it does not hold in time.

    Args:
        condition: Called until it returns True.
        seconds: The timeout.
        pause: Seconds between two polls.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def tail(log: Path, lines: int = 25) -> str:
    """Return the last lines of a log without blank ones; empty if the log is missing."""
    try:
        text = log.read_text(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])
