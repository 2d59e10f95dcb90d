"""Loads and calls a handler whose actor has secrets (`protocol §6`)."""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from msgspec import Raw
from msgspec.structs import replace

from asya.protocol.envelope import Frame
from asya.protocol.numbers import Digits
from asya.runtime.abi import EnvelopeView
from asya.runtime.call import HandlerFailed, HandlerInvoker, Invoker, ReadPayload
from asya.runtime.load import Handler, LoadError, load
from asya.runtime.secret_values import redact
from asya.sidecar.lambdas.services import Services
from asya.sidecar.secret_errors import redact_error

if TYPE_CHECKING:
    from asya.sidecar.aws.secrets import Secrets


class SecretInvoker:
    """Refreshes the secrets before each call, and keeps their values out of the handler's errors."""

    def __init__(self, invoker: Invoker, secrets: "Secrets") -> None:
        self._invoker = invoker
        self._secrets = secrets

    def read(self, payload: Raw) -> ReadPayload:
        """See `Invoker`."""
        return self._invoker.read(payload)

    def frames(
        self, payload: Any, open_view: Callable[[], EnvelopeView], seconds: float, digits: Digits | None = None
    ) -> Generator[Frame, None, None]:
        """See `Invoker`.

        Raises:
            SecretError: a secret cannot be read, and the handler was not called.
        """
        self._secrets.refresh()
        try:
            yield from self._invoker.frames(payload, open_view, seconds, digits)
        except HandlerFailed as failure:
            raise type(failure)(redact_error(failure.error, self._secrets.known_values)) from None


def load_handler(services: Services, name: str) -> Handler:
    """Load a handler after the secrets of its actor: its module may read the variables when it is imported.

    Raises:
        LoadError: the handler cannot be loaded.
        SecretError: a secret cannot be read.
    """
    secrets = services.secrets
    if secrets is None:
        return load(name)
    secrets.refresh()
    try:
        return load(name)
    except LoadError as error:
        raise LoadError(redact(str(error), secrets.known_values)) from None


def with_secrets(services: Services, invoker: HandlerInvoker) -> Invoker:
    """Return the invoker of a handler with the secrets of its actor, if it has any."""
    secrets = services.secrets
    if secrets is None:
        return invoker
    return SecretInvoker(replace(invoker, redact=lambda text: redact(text, secrets.known_values)), secrets)
