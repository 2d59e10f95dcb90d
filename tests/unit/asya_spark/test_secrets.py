"""The secrets of a job run: the variables of its driver, and errors without values (`protocol §10`)."""

import sys

import pytest

from asya_spark.attempt import Result
from asya_spark.calls.errors import JobError
from asya_spark.journal import Journal
from asya_spark.secrets import SecretError, Secrets, connector
from tests.doubles.secret_stores import SecretStores, service_error

VALUE = "sk-4f9c81d2e6"
REFERENCES = {"SHOP_KEY": "shop/key", "SHOP_TOKEN": "ssm:/shop/token"}


@pytest.fixture
def stores() -> SecretStores:
    return SecretStores(secrets={"shop/key": VALUE}, parameters={"/shop/token": "token-77aa01"})


@pytest.mark.rule("10.secrets")
def test_10_the_variables_have_the_values(stores: SecretStores) -> None:
    services, variables = [], {"OTHER": "kept"}
    secrets = Secrets(REFERENCES, lambda service: (services.append(service), stores)[1], variables)
    secrets.set_variables()
    assert variables == {"OTHER": "kept", "SHOP_KEY": VALUE, "SHOP_TOKEN": "token-77aa01"}
    assert services == ["secretsmanager", "ssm"]


def test_without_secrets_nothing_is_read() -> None:
    def connect(service: str) -> None:
        raise AssertionError(service)

    variables: dict[str, str] = {}
    Secrets({}, connect, variables).set_variables()
    assert variables == {}


@pytest.mark.rule("10.secrets.unreadable")
@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        (
            "shop/missing",
            "the secret 'shop/missing' for the variable SHOP_KEY cannot be read (ResourceNotFoundException); check that it "
            "exists in the region of the mesh and that the actor may decrypt it",
        ),
        (
            "ssm:/missing",
            "the secret 'ssm:/missing' for the variable SHOP_KEY cannot be read (ParameterNotFound); check that it exists "
            "in the region of the mesh and that the actor may decrypt it",
        ),
        ("shop/bytes", "the secret 'shop/bytes' for the variable SHOP_KEY is binary; store it as text"),
        ("shop/null", "the secret 'shop/null' for the variable SHOP_KEY is binary; store it as text"),
    ],
)
def test_10_an_unreadable_secret_is_named_and_no_variable_is_set(
    stores: SecretStores, reference: str, problem: str
) -> None:
    stores.secrets |= {"shop/bytes": b"\x00", "shop/null": "a\0b"}
    variables: dict[str, str] = {}
    secrets = Secrets({"FIRST": "shop/key", "SHOP_KEY": reference}, lambda _: stores, variables)
    with pytest.raises(SecretError) as caught:
        secrets.set_variables()
    assert str(caught.value) == problem
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert variables == {}


@pytest.mark.rule("10.secrets.unreadable")
def test_10_the_errors_of_the_service_and_the_network_are_named(stores: SecretStores) -> None:
    secrets = Secrets({"SHOP_KEY": "shop/key"}, lambda _: stores, {})
    for error, name in (
        (service_error("AccessDeniedException"), "AccessDeniedException"),
        (TimeoutError(), "TimeoutError"),
    ):
        stores.error = error
        with pytest.raises(SecretError, match=rf"cannot be read \({name}\)"):
            secrets.set_variables()


@pytest.mark.rule("10.secrets.unreadable")
def test_10_a_python_without_boto3_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(
        SecretError, match="the Python of the run has no boto3; the archive of the mesh's packages brings it"
    ):
        Secrets({"SHOP_KEY": "shop/key"}, connector("eu-west-1"), {}).set_variables()


@pytest.mark.parametrize(("service", "host"), [("secretsmanager", "secretsmanager"), ("ssm", "ssm")])
def test_the_clients_are_in_the_region_of_the_mesh(service: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    client = connector("eu-west-1")(service)
    assert client.meta.endpoint_url == f"https://{host}.eu-west-1.amazonaws.com"
    assert client.meta.config.retries["total_max_attempts"] == 8


class MemoryFiles:
    """The files that a job wrote."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def write(self, uri: str, content: bytes) -> None:
        self.content[uri] = content


@pytest.mark.rule("10.secrets.redacted")
def test_10_results_and_control_files_have_no_values(stores: SecretStores) -> None:
    secrets = Secrets({"SHOP_KEY": "shop/key"}, lambda _: stores, {})
    secrets.set_variables()
    error = JobError("ValueError", f"401: {VALUE}", ("Exception",), f"Traceback\nValueError: 401: {VALUE}\n")
    result = Result(0, secrets)
    result.end("failed", error=error)
    files = MemoryFiles()
    journal = Journal(files, "attempt/", "a", secrets=secrets)  # type: ignore[arg-type]
    journal.commit(error)
    journal.write_error(error)
    written = [result.head, result.summary.encode(), *files.content.values()]
    assert len(written) == 4
    assert all(b"401: [secret SHOP_KEY]" in content for content in written)
    assert not any(VALUE.encode() in content for content in written)
