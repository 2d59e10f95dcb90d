"""protocol §13.a2a.push: a receiver holds the sender of notifications no longer than the limit, whatever it answers."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from asya.capabilities.a2a.aws import push_sender
from asya.capabilities.a2a.aws.push_sender import PushDeliveryError, PushSender
from asya.capabilities.a2a.push import PushTarget
from tests.doubles.certificates import self_signed_certificate

LIMIT = 0.3
# The server trickles this many times, so for a minute at least, and then answers as it should. The end of a test ends it.
STEPS, PAUSE = 3000, 0.02
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"

Pause = Callable[[], None]
"""Waits a moment, and ends the connection when the test is over."""

Behavior = Callable[[socket.socket, Pause], None]


@contextmanager
def receiver(behave: Behavior) -> Iterator[int]:
    """The port of a server that treats each connection in this way, until the client closes it."""
    listener = socket.create_server(("127.0.0.1", 0))
    # Buffers of the connections are small: a server that does not read is noticed soon.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    over = threading.Event()

    def pause() -> None:
        if over.wait(PAUSE):
            raise ConnectionAbortedError

    def serve() -> None:
        try:
            while True:
                connection, _ = listener.accept()
                with connection:
                    try:
                        behave(connection, pause)
                    except OSError:
                        """The client has closed the connection, or the test is over."""
        except OSError:
            """The test is over."""

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(timeout=10)
        assert not thread.is_alive()


def request_of(connection: socket.socket) -> bytes:
    """The headers of a request without a body, or with a small one."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    return received


def trickle(connection: socket.socket, pause: Pause, piece: bytes) -> None:
    """Send this piece again and again, with pauses."""
    for _ in range(STEPS):
        connection.sendall(piece)
        pause()


def header_bytes(connection: socket.socket, pause: Pause) -> None:
    """Answer with a header that comes byte by byte."""
    request_of(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nx-slow: ")
    trickle(connection, pause, b"a")
    connection.sendall(b"\r\ncontent-length: 0\r\n\r\n")


def interim_answers(connection: socket.socket, pause: Pause) -> None:
    """Answer with `100 Continue` again and again."""
    request_of(connection)
    trickle(connection, pause, b"HTTP/1.1 100 Continue\r\n\r\n")
    connection.sendall(ANSWER)


def silence(connection: socket.socket, _pause: Pause) -> None:
    """Do not answer."""
    request_of(connection)
    connection.settimeout(STEPS * PAUSE)
    connection.recv(1)


def slow_reads(connection: socket.socket, pause: Pause) -> None:
    """Read the request slowly."""
    for _ in range(STEPS):
        if not connection.recv(1024):
            return
        pause()
    connection.sendall(ANSWER)


def handshake_bytes(connection: socket.socket, pause: Pause) -> None:
    """Begin a TLS record of 16 KiB, whose bytes come one by one."""
    connection.sendall(b"\x16\x03\x03\x40\x00")
    trickle(connection, pause, b"\x02")


@pytest.mark.rule("13.a2a.push")
@pytest.mark.parametrize(
    ("scheme", "behave"),
    [
        ("http", header_bytes),
        ("http", interim_answers),
        ("http", silence),
        ("http", slow_reads),
        ("https", handshake_bytes),
    ],
)
def test_no_receiver_holds_the_sender_beyond_the_limit(scheme: str, behave: Behavior) -> None:
    body = b"{}" if behave is not slow_reads else b"1" * 16 * 1024 * 1024
    with receiver(behave) as port:
        target = PushTarget(url=f"{scheme}://127.0.0.1:{port}/notify")
        started = time.monotonic()
        with pytest.raises(PushDeliveryError, match="no answer from 127"):
            PushSender(["127.0.0.1"], seconds=LIMIT).send(target, body)
        assert time.monotonic() - started < STEPS * PAUSE / 2


@pytest.mark.rule("13.a2a.push")
def test_a_tls_record_that_comes_byte_by_byte_does_not_hold_the_sender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = self_signed_certificate(tmp_path / "client.pem", "client.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    requests: list[bytes] = []

    def record_bytes(connection: socket.socket, pause: Pause) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        while not requests:
            incoming.write(connection.recv(65536))
            with suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                requests.append(tls.read(65536))
            connection.sendall(outgoing.read())
        tls.write(ANSWER)
        for byte in outgoing.read():
            connection.sendall(bytes([byte]))
            for _ in range(5):
                pause()

    with receiver(record_bytes) as port:
        sender = PushSender(["client.example"], lambda _host, _port: ["127.0.0.1"], seconds=1.0)
        started = time.monotonic()
        with pytest.raises(PushDeliveryError, match="no answer from client"):
            sender.send(PushTarget(url=f"https://client.example:{port}/notify"), b"{}")
        assert requests  # the handshake is done
        assert time.monotonic() - started < STEPS * PAUSE


@pytest.mark.rule("13.a2a.push")
def test_the_status_decides_and_the_body_of_an_answer_is_not_read() -> None:
    def body_bytes(connection: socket.socket, pause: Pause) -> None:
        request_of(connection)
        connection.sendall(b"HTTP/1.1 202 Accepted\r\ncontent-length: 1000\r\n\r\n")
        trickle(connection, pause, b"a")

    with receiver(body_bytes) as port:
        started = time.monotonic()
        PushSender(["127.0.0.1"]).send(PushTarget(url=f"http://127.0.0.1:{port}/"), b"{}")
        assert time.monotonic() - started < STEPS * PAUSE / 2


@pytest.mark.rule("13.a2a.push")
@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\n" + b"x: 1\r\n" * 200 + b"\r\n"])
def test_an_answer_that_is_not_http_is_a_failure(answer: bytes) -> None:
    def other(connection: socket.socket, _pause: Pause) -> None:
        request_of(connection)
        connection.sendall(answer)

    with receiver(other) as port, pytest.raises(PushDeliveryError, match="no answer from 127"):
        PushSender(["127.0.0.1"]).send(PushTarget(url=f"http://127.0.0.1:{port}/"), b"{}")


@pytest.mark.rule("13.a2a.push.address")
@pytest.mark.parametrize(
    ("rest", "target"),
    [
        ("", "/"),
        ("?token=x", "/?token=x"),
        ("/n?a=/b&c=%2F#part", "/n?a=/b&c=%2F"),
        ("//n", "//n"),
        ("/{id}", "/%7Bid%7D"),
    ],
)
def test_the_request_names_path_and_query_of_the_url(rest: str, target: str) -> None:
    requests: list[bytes] = []

    def note(connection: socket.socket, _pause: Pause) -> None:
        requests.append(request_of(connection))
        connection.sendall(ANSWER)

    with receiver(note) as port:
        PushSender(["127.0.0.1"]).send(PushTarget(url=f"http://127.0.0.1:{port}{rest}"), b"{}")
    assert [request.partition(b"\r\n")[0] for request in requests] == [f"POST {target} HTTP/1.1".encode()]


@pytest.mark.rule("13.a2a.push")
def test_a_name_server_that_does_not_answer_does_not_hold_the_sender() -> None:
    over = threading.Event()

    def resolve(_host: str, _port: int) -> list[str]:
        over.wait(STEPS * PAUSE)
        return ["127.0.0.1"]

    started = time.monotonic()
    try:
        with pytest.raises(PushDeliveryError, match=r"host slow\.example was not resolved in time"):
            PushSender([], resolve, seconds=LIMIT).send(PushTarget(url="https://slow.example/"), b"{}")
        assert time.monotonic() - started < STEPS * PAUSE / 2
    finally:
        over.set()


@pytest.mark.rule("13.a2a.push")
def test_the_time_of_the_resolver_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [0.0]
    monkeypatch.setattr(push_sender, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    connections: list[socket.socket] = []

    def resolve(_host: str, _port: int) -> list[str]:
        seconds[0] += 61.0
        return ["127.0.0.1"]

    with (
        receiver(lambda connection, _pause: connections.append(connection)) as port,
        pytest.raises(PushDeliveryError, match="the exchange takes more than 60 s"),
    ):
        PushSender(["slow.example"], resolve, seconds=60.0).send(PushTarget(url=f"http://slow.example:{port}/"), b"{}")
    assert connections == []


def test_an_error_of_the_resolver_is_the_error_of_the_notification() -> None:
    def resolve(_host: str, _port: int) -> list[str]:
        raise PushDeliveryError("host gone.example cannot be resolved")

    with pytest.raises(PushDeliveryError, match=r"host gone\.example cannot be resolved"):
        PushSender([], resolve).send(PushTarget(url="https://gone.example/"), b"{}")
