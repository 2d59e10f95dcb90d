"""Keys of stream tokens and of callbacks, derived from a key that never leaves KMS (`protocol §13`, stream-token; `§11`).

The key for a label is the MAC that KMS computes of the label. Each process calls KMS once for each label; forged tokens cause
no further calls.
"""

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.nack import ServiceError

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient

_CACHE_SIZE = 4


class TokenKeyError(ServiceError):
    """KMS did not answer; the same call may succeed later."""


class TokenKeys:
    """The token keys of a mesh, cached.

    Args:
        key_id: The id of an HMAC key in KMS (`HMAC_256`).
    """

    def __init__(self, client: "KMSClient", key_id: str) -> None:
        self._client = client
        self._key_id = key_id
        self._keys: dict[bytes, bytes] = {}

    def get(self, label: bytes) -> bytes:
        """Return the key for a label.

        Raises:
            TokenKeyError: If the call of KMS fails.
        """
        if label not in self._keys:
            if len(self._keys) >= _CACHE_SIZE:
                self._keys.clear()
            self._keys[label] = self._derive(label)
        return self._keys[label]

    def _derive(self, label: bytes) -> bytes:
        try:
            response = self._client.generate_mac(KeyId=self._key_id, MacAlgorithm="HMAC_SHA_256", Message=label)
        except (ClientError, BotoCoreError) as error:
            raise TokenKeyError(f"cannot derive a key for tokens from KMS key {self._key_id!r}: {error}") from error
        return response["Mac"]
