"""The errors of an actor with secrets (`protocol §6`)."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from asya.function.nack import BlockedError
from asya.protocol.errors import ErrorInfo
from asya.runtime.secret_values import redact


class SecretError(BlockedError):
    """A secret cannot be read. The message names the variable, the secret and the cause, but never a value."""


def redact_error(error: ErrorInfo, values: Mapping[str, AbstractSet[str]]) -> ErrorInfo:
    """Return an error of user code without the values of secrets.

    Args:
        error: the error.
        values: the values of each variable, also earlier ones.
    """
    return replace(error, message=redact(error.message, values), traceback=redact(error.traceback, values))
