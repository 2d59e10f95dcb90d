"""The keys of webhooks, from Secrets Manager or Systems Manager (`protocol §16.webhooks.keys`)."""

from collections.abc import Callable
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.triggers.webhooks import UnusableSecretError, read_keys
from asya.function.aws import clients
from asya.protocol.triggers import Webhook
from asya.runtime.secret_values import PARAMETER_PREFIX
from asya.runtime.time_limit import Timer

MAX_AGE_SECONDS = 60.0
"""How long keys are used without a question."""
MAX_STALE_SECONDS = 3600.0
"""How long they are used while the service gives no answer."""
PAUSE_SECONDS = 5.0
"""Between two questions for one secret: strangers with wrong signatures cause no more of them."""
# The service answers that it will not give the value, so an earlier one must not be used any more.
_REFUSALS = frozenset(
    {
        "AccessDeniedException",
        "DecryptionFailure",
        "InvalidRequestException",
        "ParameterNotFound",
        "ResourceNotFoundException",
    }
)


class KeysUnavailableError(Exception):
    """A secret cannot be read, or has no keys. The message has the name of the secret and the cause, never a value."""


def read_secret(reference: str) -> str:
    """Read a secret, or a parameter after `ssm:`.

    Raises:
        ClientError, BotoCoreError: the service does not give it.
        UnusableSecretError: the secret is binary.
    """
    if reference.startswith(PARAMETER_PREFIX):
        answer = clients.ssm().get_parameter(Name=reference.removeprefix(PARAMETER_PREFIX), WithDecryption=True)
        return str(answer["Parameter"]["Value"])
    text = clients.secrets_manager().get_secret_value(SecretId=reference).get("SecretString")
    if text is None:
        raise UnusableSecretError("it is binary; store it as text")
    return str(text)


@dataclass(slots=True)
class _Held:
    """The keys of one webhook.

    Attributes:
        read_at: when they were read.
        asked_at: when the service was asked last.
    """

    keys: tuple[bytes, ...]
    read_at: float
    asked_at: float


class WebhookKeys:
    """The keys of the webhooks of a mesh, cached for a minute.

    Args:
        read: reads the text of a secret.
        timer: the clock of the ages.
        warn: logs a warning.
    """

    def __init__(self, read: Callable[[str], str], timer: Timer, warn: Callable[[str], None]) -> None:
        self._read = read
        self._timer = timer
        self._warn = warn
        self._held: dict[Webhook, _Held] = {}
        self._failed: dict[Webhook, tuple[float, KeysUnavailableError]] = {}

    def get(self, webhook: Webhook) -> tuple[bytes, ...]:
        """The keys of a webhook.

        Raises:
            KeysUnavailableError: the secret cannot be read, or has no keys.
        """
        held, moment = self._held.get(webhook), self._timer.monotonic()
        if held is not None and (moment - held.read_at < MAX_AGE_SECONDS or moment - held.asked_at < PAUSE_SECONDS):
            return held.keys
        failed_at, failure = self._failed.get(webhook, (moment, None))
        if failure is not None and moment - failed_at < PAUSE_SECONDS:
            raise failure
        return self._renew(webhook, held, moment)

    def renewed(self, webhook: Webhook) -> tuple[bytes, ...]:
        """The keys after a signature did not fit: read again, unless they were a moment ago. Then there are none to try.

        Raises:
            KeysUnavailableError: the secret cannot be read, or has no keys.
        """
        held, moment = self._held.get(webhook), self._timer.monotonic()
        if held is None or moment - held.asked_at < PAUSE_SECONDS:
            return ()
        return self._renew(webhook, held, moment)

    def _renew(self, webhook: Webhook, held: _Held | None, moment: float) -> tuple[bytes, ...]:
        try:
            keys = read_keys(self._read(webhook.secret), webhook.signature)
        except (ClientError, BotoCoreError, UnusableSecretError) as error:
            problem = f"the secret {webhook.secret!r} of a webhook cannot be used: {_cause(error)}"
            if held is None or _is_final(error) or moment - held.read_at >= MAX_STALE_SECONDS:
                self._held.pop(webhook, None)
                failure = KeysUnavailableError(problem)
                self._failed[webhook] = (moment, failure)
                raise failure from None
            held.asked_at = moment
            self._warn(f"{problem}; its earlier keys are used")
            return held.keys
        self._held[webhook] = _Held(keys, moment, moment)
        return keys


def _is_final(error: Exception) -> bool:
    return isinstance(error, UnusableSecretError) or (isinstance(error, ClientError) and _cause(error) in _REFUSALS)


def _cause(error: Exception) -> str:
    """The code of an error of AWS, whose text may have more; the text of others."""
    match error:
        case ClientError():
            return error.response["Error"]["Code"]
        case UnusableSecretError():
            return str(error)
        case _:
            return type(error).__name__
