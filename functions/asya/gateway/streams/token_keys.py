"""Keys for stream tokens, told by a key in KMS that nobody ever sees (`protocol §13`, stream-token).

KMS makes a MAC of what a key is for; that MAC is the key. So there is one call a day and process, and whoever brings
a forged token costs none.
"""

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient

_REMEMBERED = 4


class TokenKeyError(Exception):
    """KMS did not answer; the same call may work later."""


class TokenKeys:
    """The keys of a mesh.

    Args:
        key_id: of an HMAC key in KMS (`HMAC_256`).
    """

    def __init__(self, client: "KMSClient", key_id: str) -> None:
        self._client = client
        self._key_id = key_id
        self._keys: dict[bytes, bytes] = {}

    def of(self, label: bytes) -> bytes:
        """The key for what the label names.

        Raises:
            TokenKeyError: if KMS cannot be asked.
        """
        if label not in self._keys:
            if len(self._keys) >= _REMEMBERED:
                self._keys.clear()
            self._keys[label] = self._made(label)
        return self._keys[label]

    def _made(self, label: bytes) -> bytes:
        try:
            answer = self._client.generate_mac(KeyId=self._key_id, MacAlgorithm="HMAC_SHA_256", Message=label)
        except (ClientError, BotoCoreError) as error:
            raise TokenKeyError(f"cannot make a key for stream tokens: {error}") from error
        return answer["Mac"]
