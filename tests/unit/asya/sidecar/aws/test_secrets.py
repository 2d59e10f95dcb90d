"""protocol §6: reading secrets, their age, and what happens while a service does not answer."""

import pytest
from botocore.exceptions import EndpointConnectionError

from asya.function.lambdas.environment import RealEnvironment
from asya.sidecar.aws.secrets import MAX_AGE_SECONDS, MAX_STALE_SECONDS, RETRY_SECONDS, Secrets
from asya.sidecar.secret_errors import SecretError
from tests.doubles.secret_stores import SecretStores, install_secret_stores, service_error

UNREACHABLE = EndpointConnectionError(endpoint_url="https://secretsmanager")


class Clock(RealEnvironment):
    seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


class World:
    def __init__(self, stores: SecretStores, **references: str) -> None:
        self.stores = stores
        self.clock = Clock()
        self.variables: dict[str, str] = {}
        self.stale: list[str] = []
        self.secrets = Secrets(references, self.variables, self.clock, lambda error: self.stale.append(str(error)))

    def later(self, seconds: float) -> None:
        self.clock.seconds += seconds
        self.secrets.refresh()


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> SecretStores:
    stores = install_secret_stores(monkeypatch)
    stores.secrets["openai/key"] = "sk-first"
    stores.parameters["/shop/token"] = "to-first"
    return stores


@pytest.fixture
def world(stores: SecretStores) -> World:
    found = World(stores, KEY="openai/key")
    found.secrets.refresh()
    return found


@pytest.mark.rule("6.secrets")
def test_6_secrets_and_parameters_become_variables(stores: SecretStores) -> None:
    world = World(stores, KEY="openai/key", TOKEN="ssm:/shop/token")
    world.secrets.refresh()
    assert world.variables == {"KEY": "sk-first", "TOKEN": "to-first"}


@pytest.mark.rule("6.secrets")
def test_6_a_rotated_secret_replaces_the_variable_after_five_minutes(world: World) -> None:
    world.stores.secrets["openai/key"] = "sk-second"
    world.later(MAX_AGE_SECONDS - 1)
    assert world.variables == {"KEY": "sk-first"}
    assert world.stores.calls == ["openai/key"]
    world.later(1)
    assert world.variables == {"KEY": "sk-second"}


@pytest.mark.rule("6.secrets.redacted")
def test_6_every_value_of_the_process_is_known(stores: SecretStores) -> None:
    world = World(stores, KEY="openai/key", TOKEN="ssm:/shop/token")
    assert not any(world.secrets.known_values.values())
    world.later(0)
    for value in ("sk-second", "sk-third"):
        stores.secrets["openai/key"] = value
        world.later(MAX_AGE_SECONDS)
    assert world.secrets.known_values == {"KEY": {"sk-first", "sk-second", "sk-third"}, "TOKEN": {"to-first"}}


@pytest.mark.rule("6.secrets.unreadable")
@pytest.mark.parametrize(
    ("reference", "error", "code"),
    [
        ("missing", None, "ResourceNotFoundException"),
        ("ssm:/missing", None, "ParameterNotFound"),
        ("openai/key", service_error("AccessDeniedException"), "AccessDeniedException"),
        ("openai/key", service_error("InternalServiceError", 500), "InternalServiceError"),
        ("openai/key", UNREACHABLE, "EndpointConnectionError"),
    ],
)
def test_6_an_unreadable_secret_is_named(
    stores: SecretStores, reference: str, error: Exception | None, code: str
) -> None:
    stores.error = error
    world = World(stores, KEY=reference)
    with pytest.raises(SecretError) as caught:
        world.secrets.refresh()
    assert str(caught.value) == (
        f"the secret {reference!r} for the variable KEY cannot be read ({code}); check that it exists in the region of "
        "the mesh and that the actor may decrypt it"
    )
    assert world.variables == {}


def test_6_a_binary_secret_is_refused(stores: SecretStores) -> None:
    stores.secrets["key"] = b"\x00\x01"
    with pytest.raises(SecretError, match="is binary; store it as text"):
        World(stores, KEY="key").secrets.refresh()


def test_6_one_unreadable_secret_sets_no_variable(stores: SecretStores) -> None:
    world = World(stores, KEY="openai/key", OTHER="missing")
    with pytest.raises(SecretError):
        world.secrets.refresh()
    assert world.variables == {}
    world.stores.secrets["missing"] = "there-now"
    world.secrets.refresh()
    assert world.variables == {"KEY": "sk-first", "OTHER": "there-now"}


@pytest.mark.rule("6.secrets.unreadable")
@pytest.mark.parametrize("error", [UNREACHABLE, service_error("ThrottlingException"), service_error("X", 503)])
def test_6_an_earlier_value_outlasts_an_outage(world: World, error: Exception) -> None:
    world.stores.error = error
    world.later(MAX_AGE_SECONDS)
    assert world.variables == {"KEY": "sk-first"}
    assert len(world.stale) == 1
    world.later(RETRY_SECONDS - 1)
    assert len(world.stores.calls) == 2
    world.stores.error = None
    world.stores.secrets["openai/key"] = "sk-second"
    world.later(1)
    assert world.variables == {"KEY": "sk-second"}


@pytest.mark.rule("6.secrets.unreadable")
def test_6_an_earlier_value_is_not_used_forever(world: World) -> None:
    world.stores.error = UNREACHABLE
    world.later(MAX_STALE_SECONDS - 1)
    with pytest.raises(SecretError):
        world.later(RETRY_SECONDS)


@pytest.mark.rule("6.secrets.unreadable")
@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "InvalidRequestException"])
def test_6_a_revoked_secret_is_not_used_any_more(world: World, code: str) -> None:
    world.stores.error = service_error(code)
    with pytest.raises(SecretError):
        world.later(MAX_AGE_SECONDS)
    assert world.stale == []


def test_6_errors_carry_no_values(world: World) -> None:
    world.stores.error = service_error("AccessDeniedException")
    with pytest.raises(SecretError) as caught:
        world.later(MAX_AGE_SECONDS)
    assert caught.value.__suppress_context__
    assert "sk-first" not in f"{caught.value} {caught.value.__cause__}"
