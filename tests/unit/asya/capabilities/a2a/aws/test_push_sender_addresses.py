"""protocol §13.a2a.push.address: where notifications go, and what they carry."""

import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from asya.capabilities.a2a.aws.push_sender import PushDeliveryError, PushSender
from asya.capabilities.a2a.push import PushTarget
from tests.doubles.certificates import self_signed_certificate
from tests.doubles.notified_clients import client


@pytest.mark.rule("13.a2a.push.address")
def test_a_notification_carries_the_clients_token_and_nothing_of_the_mesh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "secret-of-the-mesh")
    with client() as receiver:
        target = PushTarget(url=receiver.url, token="t", scheme="Bearer", credentials="c")
        PushSender(["127.0.0.1"]).send(target, b'{"n": 1}')
    [(headers, body)] = receiver.notifications
    by_name = {name.lower(): value for name, value in headers.items()}
    assert body == {"n": 1}
    assert (by_name["x-a2a-notification-token"], by_name["authorization"]) == ("t", "Bearer c")
    assert "secret-of-the-mesh" not in str(headers)


@pytest.mark.rule("13.a2a.push.address")
@pytest.mark.parametrize("status", [302, 400, 404, 500])
def test_other_responses_fail_and_redirects_are_not_followed(status: int) -> None:
    with client() as receiver:
        receiver.status = status
        with pytest.raises(PushDeliveryError, match=str(status)):
            PushSender(["127.0.0.1"]).send(PushTarget(url=receiver.url), b"{}")
    assert len(receiver.notifications) == 1


@pytest.mark.rule("13.a2a.push.address")
@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("http://127.0.0.1:9/", ["127.0.0.1"]),
        ("https://client.example/", ["10.0.0.7"]),
        ("https://client.example/", ["203.0.114.7", "127.0.0.1"]),
        ("http://client.example/", ["203.0.114.7"]),
    ],
)
def test_a_name_with_a_private_address_gets_no_request(url: str, addresses: list[str]) -> None:
    sender = PushSender(["other.example"], lambda _host, _port: addresses)
    with pytest.raises(PushDeliveryError, match="not public"):
        sender.send(PushTarget(url=url), b"{}")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a self-signed certificate of client.example."""
    return self_signed_certificate(tmp_path_factory.mktemp("tls") / "client.pem", "client.example")


@pytest.mark.rule("13.a2a.push.address")
def test_the_certificate_must_be_for_the_host_of_the_url(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes to the resolved address; the certificate must be for the host name."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with client(context) as receiver:
        port = urlsplit(receiver.url).port
        sender = PushSender(["client.example", "other.example"], lambda _host, _port: ["127.0.0.1"])
        sender.send(PushTarget(url=f"https://client.example:{port}/notify"), b"{}")
        with pytest.raises(PushDeliveryError, match="no answer"):
            sender.send(PushTarget(url=f"https://other.example:{port}/notify"), b"{}")
    [(headers, _)] = receiver.notifications
    assert headers["host"] == f"client.example:{port}"


def test_a_refused_connection_is_a_failure() -> None:
    with client() as receiver:
        pass
    with pytest.raises(PushDeliveryError, match="no answer"):
        PushSender(["127.0.0.1"]).send(PushTarget(url=receiver.url), b"{}")
