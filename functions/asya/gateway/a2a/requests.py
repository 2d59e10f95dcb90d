"""What Agent2Agent clients ask for: the parameters of their calls, and what a call may fail of (`protocol §13`, `/a2a`)."""

from typing import TypeVar

import msgspec

from asya.gateway.a2a.types import Message, Metadata, PushConfig
from asya.gateway.json_rpc import INVALID_PARAMS, RpcMessage

# Beside those of JSON-RPC.
TASK_NOT_FOUND = -32001
TASK_NOT_CANCELABLE = -32002
PUSH_NOT_SUPPORTED = -32003
UNSUPPORTED_OPERATION = -32004
CONTENT_TYPE_NOT_SUPPORTED = -32005
NO_EXTENDED_CARD = -32007
VERSION_NOT_SUPPORTED = -32009


class A2AError(Exception):
    """A request that is answered by an error.

    Attributes:
        code: of JSON-RPC or of Agent2Agent; never changes.
        field: what of the parameters is at fault.
        fields: what is wrong, field by field, where several may be.
    """

    def __init__(
        self, code: int, message: str, field: str | None = None, *, fields: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.fields = fields or {}


class SendConfiguration(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a message is to be answered: at once, or when there is something to tell.

    `blocking` and `pushNotificationConfig` are 0.3's; `returnImmediately` and `taskPushNotificationConfig` are 1.0's.
    """

    blocking: bool | None = None
    return_immediately: bool | None = None
    push_notification_config: PushConfig | None = None
    task_push_notification_config: PushConfig | None = None

    @property
    def waits(self) -> bool:
        """Whether the answer may wait for the task to end."""
        return self.blocking is not False and not self.return_immediately

    @property
    def push(self) -> PushConfig | None:
        """Where the task's push notifications go."""
        return self.push_notification_config or self.task_push_notification_config


class SendParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A message, and how it is to be answered."""

    message: Message
    configuration: SendConfiguration | None = None
    metadata: Metadata | None = None

    @property
    def settings(self) -> SendConfiguration:
        """How it is to be answered, said or not."""
        return self.configuration or SendConfiguration()


class TaskIdParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which task is meant."""

    id: str


class ListTasksParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which tasks are meant, and which page of them."""

    context_id: str | None = None
    status: str | None = None
    page_size: int | None = None
    page_token: str | None = None
    status_timestamp_after: str | None = None
    include_artifacts: bool = False


class PushParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which configuration of which task is meant: `id` is the task's in 0.3 and the configuration's in 1.0."""

    id: str | None = None
    task_id: str | None = None
    push_notification_config_id: str | None = None


class SetPushParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """0.3's way to give a configuration."""

    task_id: str
    push_notification_config: PushConfig


Params = TypeVar("Params", bound=msgspec.Struct)


def read_params(call: RpcMessage, kind: type[Params]) -> Params:
    """Read the parameters of a call.

    Raises:
        A2AError: if they are not of this kind.
    """
    try:
        return msgspec.json.decode(call.params, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise A2AError(INVALID_PARAMS, f"the params of {call.method} are not understood: {error}") from None
