"""Keys of stream tokens and of links that answer pauses (`protocol §13.stream-token`).

The key for a label is the HMAC of the label under the secret of tokens. Each process reads the secret once; forged tokens cause
no further reads.
"""

import hmac
from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.nack import ServiceError
from asya.senders.aws.key_items import KeyItems, MissingSecretError


class TokenKeyError(ServiceError):
    """The secret cannot be read; the same call may succeed later."""


class TokenKeys:
    """The token keys of a mesh.

    Args:
        read_secret: Returns the secret of tokens.
    """

    def __init__(self, read_secret: Callable[[], bytes]) -> None:
        self._read_secret = read_secret
        self._secret: bytes | None = None

    def get(self, label: bytes) -> bytes:
        """Return the key for a label.

        Raises:
            TokenKeyError: If the secret cannot be read.
        """
        if self._secret is None:
            try:
                self._secret = self._read_secret()
            except (ClientError, BotoCoreError, MissingSecretError) as error:
                raise TokenKeyError(f"cannot read the secret of tokens: {error}") from error
        return hmac.digest(self._secret, label, "sha256")


def build_token_keys(settings: Settings) -> TokenKeys:
    """Build the token keys of a mesh, for one process."""
    return TokenKeys(KeyItems(clients.dynamodb(), settings.table_name("sink")).token_secret)
