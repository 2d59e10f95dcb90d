"""The secrets in DynamoDB: that of the mesh, that of each actor, and that of tokens (`protocol §4.keys`, `§13.stream-token`)."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Key
from asya.function.nack import ServiceError
from asya.protocol.table_keys import KEY_PREFIX, TOKENS_KEY
from asya.protocol.task_key import actor_secret

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class MissingSecretError(ServiceError):
    """The table has no such secret: no deployment has listed the roles of the mesh yet."""


class KeyItems:
    """Items of the table `asya-{namespace}-sink`: pk = `KEY#`, `KEY#{actor}` or `KEY#x-tokens`, sk = `secret`.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._table = Table(dynamodb, table)

    def write(self, new_secret: Callable[[], bytes], functions: Iterable[str]) -> None:
        """Write the secrets of the mesh and of tokens, unless there are any, and those of functions.

        Args:
            new_secret: returns random bytes.
        """
        for own in (_key(), _TOKENS):
            self._table.write(put(own, {"secret": new_secret().hex()}).if_absent(), shows_present=True)
        secret = self.secret()
        for function in functions:
            self._table.write(put(_key(function), {"secret": actor_secret(secret, function).hex()}))

    def secret(self, actor: str = "") -> bytes:
        """The secret of an actor; of the mesh without one.

        Raises:
            MissingSecretError: there is none yet.
        """
        return self._read(_key(actor))

    def token_secret(self) -> bytes:
        """The secret of tokens. It derives from no other one, and no other one from it.

        Raises:
            MissingSecretError: there is none yet.
        """
        return self._read(_TOKENS)

    def _read(self, key: Key) -> bytes:
        text = self._table.get(key).text("secret", None)
        if text is None:
            raise MissingSecretError(f"the mesh has no secret {key.pk!r} yet; deploy it")
        return bytes.fromhex(text)


_TOKENS = Key(TOKENS_KEY, "secret")


def _key(actor: str = "") -> Key:
    return Key(KEY_PREFIX + actor, "secret")
