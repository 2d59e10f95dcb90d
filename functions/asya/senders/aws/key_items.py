"""The secrets of keys in DynamoDB: that of the mesh, and that of each actor (`protocol §4.keys`)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Key
from asya.function.nack import ServiceError
from asya.protocol.table_keys import KEY_PREFIX
from asya.protocol.task_key import actor_secret

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class MissingSecretError(ServiceError):
    """The table has no such secret: no deployment has listed the roles of the mesh yet."""


class KeyItems:
    """Items of the table `asya-{namespace}-sink`: pk = `KEY#` for the mesh and `KEY#{actor}` for an actor, sk = `secret`.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._table = Table(dynamodb, table)

    def write(self, new_secret: bytes, functions: Iterable[str]) -> None:
        """Write the secret of the mesh, unless it has one, and those of functions.

        Args:
            new_secret: random bytes.
        """
        self._table.write(put(_key(), {"secret": new_secret.hex()}).if_absent(), shows_present=True)
        secret = self.secret()
        for function in functions:
            self._table.write(put(_key(function), {"secret": actor_secret(secret, function).hex()}))

    def secret(self, actor: str = "") -> bytes:
        """The secret of an actor; of the mesh without one.

        Raises:
            MissingSecretError: there is none yet.
        """
        text = self._table.get(_key(actor)).text("secret", None)
        if text is None:
            raise MissingSecretError(f"the mesh has no secret {KEY_PREFIX + actor!r} yet; deploy it")
        return bytes.fromhex(text)


def _key(actor: str = "") -> Key:
    return Key(KEY_PREFIX + actor, "secret")
