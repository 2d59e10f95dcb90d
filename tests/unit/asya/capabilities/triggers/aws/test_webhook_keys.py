"""The keys of webhooks: how long they are used, when they are read again, and outages of the services."""

import pytest
from botocore.exceptions import EndpointConnectionError

from asya.capabilities.triggers.aws.webhook_keys import (
    MAX_AGE_SECONDS,
    MAX_STALE_SECONDS,
    PAUSE_SECONDS,
    KeysUnavailableError,
    WebhookKeys,
    read_secret,
)
from asya.protocol.triggers import Webhook
from tests.doubles.secret_stores import SecretStores, install_secret_stores, service_error
from tests.doubles.streams import FakeClock

HOOK = Webhook(secret="hooks/github", signature="github")
OLD, NEW = "an-old-key-1234567", "a-new-key-12345678"


class Keys:
    """The keys over a store of secrets, with a clock."""

    def __init__(self, stores: SecretStores) -> None:
        self.stores = stores
        self.clock = FakeClock()
        self.warnings: list[str] = []
        self.keys = WebhookKeys(read_secret, self.clock, self.warnings.append)

    def get(self, webhook: Webhook = HOOK) -> list[str]:
        return [key.decode() for key in self.keys.get(webhook)]

    def renewed(self) -> list[str]:
        return [key.decode() for key in self.keys.renewed(HOOK)]

    def wait(self, seconds: float) -> None:
        self.clock.seconds += seconds


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Keys:
    stores = install_secret_stores(monkeypatch)
    stores.secrets["hooks/github"] = OLD
    return Keys(stores)


@pytest.mark.rule("16.webhooks.keys")
def test_16_keys_are_read_once_a_minute(keys: Keys) -> None:
    assert [keys.get() for _ in range(3)] == [[OLD]] * 3
    keys.stores.secrets["hooks/github"] = f"{NEW}\n{OLD}"
    keys.wait(MAX_AGE_SECONDS - 1)
    assert keys.get() == [OLD]
    keys.wait(1)
    assert keys.get() == [NEW, OLD]
    assert keys.stores.calls == ["hooks/github"] * 2


@pytest.mark.rule("16.webhooks.keys")
def test_16_a_wrong_signature_reads_the_keys_again_but_not_each_time(keys: Keys) -> None:
    """So a rotated key counts at once, and strangers cause few calls."""
    keys.get()
    keys.stores.secrets["hooks/github"] = NEW
    assert [keys.renewed() for _ in range(100)] == [[]] * 100
    keys.wait(PAUSE_SECONDS)
    assert [keys.renewed() for _ in range(100)] == [[NEW]] + [[]] * 99
    assert keys.get() == [NEW]
    assert len(keys.stores.calls) == 2


@pytest.mark.rule("16.webhooks.keys")
def test_16_keys_are_used_while_the_service_does_not_answer(keys: Keys) -> None:
    keys.get()
    keys.stores.error = EndpointConnectionError(endpoint_url="https://secretsmanager")
    keys.wait(MAX_AGE_SECONDS)
    assert [keys.get() for _ in range(100)] == [[OLD]] * 100
    assert len(keys.stores.calls) == 2
    assert keys.warnings == [
        "the secret 'hooks/github' of a webhook cannot be used: EndpointConnectionError; its earlier keys are used"
    ]
    keys.wait(MAX_STALE_SECONDS)
    with pytest.raises(KeysUnavailableError):
        keys.get()


@pytest.mark.rule("16.webhooks.keys")
def test_16_keys_that_the_service_refuses_are_not_used_any_more(keys: Keys) -> None:
    """The secret was deleted, or access to it was taken away."""
    keys.get()
    keys.stores.error = service_error("AccessDeniedException")
    keys.wait(MAX_AGE_SECONDS)
    with pytest.raises(KeysUnavailableError, match="AccessDeniedException"):
        keys.get()


@pytest.mark.rule("16.webhooks.keys")
@pytest.mark.parametrize("value", ["", '{"key": "a-key-in-json-1234"}', b"binary-key-1234567"])
def test_16_a_secret_without_keys_is_asked_for_every_few_seconds(keys: Keys, value: str | bytes) -> None:
    """A call of a stranger costs no call of the service."""
    keys.stores.secrets["hooks/github"] = value
    for _ in range(100):
        with pytest.raises(KeysUnavailableError) as caught:
            keys.get()
    assert not value or str(value) not in str(caught.value)
    assert len(keys.stores.calls) == 1
    keys.stores.secrets["hooks/github"] = NEW
    keys.wait(PAUSE_SECONDS)
    assert keys.get() == [NEW]


@pytest.mark.rule("16.webhooks.keys")
def test_16_a_parameter_may_have_the_key(keys: Keys) -> None:
    keys.stores.parameters["/hooks/github"] = OLD
    assert keys.get(Webhook(secret="ssm:/hooks/github", signature="github")) == [OLD]
