"""The parameters and errors of Agent2Agent calls (`protocol §13`, `/a2a`)."""

from typing import TypeVar

import msgspec

from asya.capabilities.a2a.types import A2AMessage, Metadata, PushConfig
from asya.gateway.json_rpc import INVALID_PARAMS, RpcMessage

# Error codes of Agent2Agent; those of JSON-RPC are in asya.gateway.json_rpc.
TASK_NOT_FOUND = -32001
TASK_NOT_CANCELABLE = -32002
PUSH_NOT_SUPPORTED = -32003
UNSUPPORTED_OPERATION = -32004
CONTENT_TYPE_NOT_SUPPORTED = -32005
NO_EXTENDED_CARD = -32007
VERSION_NOT_SUPPORTED = -32009


class A2AError(Exception):
    """An error that a call is answered with.

    Attributes:
        code: An error code of JSON-RPC or Agent2Agent.
        field: The parameter at fault, if it is one.
        fields: The problem of each field, if several may be at fault.
        reason: The reason, if it is more exact than the code.
        retry_after: Seconds after which the same call may succeed; None if a retry does not help.
    """

    def __init__(
        self,
        code: int,
        message: str,
        field: str | None = None,
        *,
        fields: dict[str, str] | None = None,
        reason: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.fields = fields or {}
        self.reason = reason
        self.retry_after = retry_after


class SendConfiguration(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether the answer to a message waits for the task, and where notifications go."""

    return_immediately: bool | None = None
    task_push_notification_config: PushConfig | None = None


class SendParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The parameters of a message."""

    message: A2AMessage
    configuration: SendConfiguration | None = None
    metadata: Metadata | None = None

    @property
    def settings(self) -> SendConfiguration:
        """The configuration, or the default one."""
        return self.configuration or SendConfiguration()


class TaskIdParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The parameters of a call about one task."""

    id: str


class ListTasksParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The filters and the page of a list of tasks."""

    context_id: str | None = None
    status: str | None = None
    page_size: int | None = None
    page_token: str | None = None
    status_timestamp_after: str | None = None
    include_artifacts: bool = False


class PushParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The task and the push configuration of a call."""

    task_id: str | None = None
    id: str | None = None


Params = TypeVar("Params", bound=msgspec.Struct)


def read_params(call: RpcMessage, kind: type[Params]) -> Params:
    """Decode the parameters of a call.

    Raises:
        A2AError: -32602 if they do not fit the method.
    """
    try:
        return msgspec.json.decode(call.params, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise A2AError(INVALID_PARAMS, f"the params of {call.method} are invalid: {error}") from None
