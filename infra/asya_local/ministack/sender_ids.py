"""The senders of messages: SQS writes the principal that signed the call into `SenderId`, and MiniStack writes the account.

A role is named by its id and the name of its session, a user by its id, root by the account. A function reads it in its event, as
a program does that receives messages itself.

Runs in MiniStack's process, in `.venv-cloud`. It imports nothing of this project.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

_ATTRIBUTE = "SenderId"


class SenderIds:
    """Names the senders of messages.

    Args:
        caller: Returns the credential that signed the present request; None without one.
        role: Returns a role by its name; None without one.
    """

    def __init__(self, caller: Callable[[], Any], role: Callable[[str, str], Mapping[str, Any] | None]) -> None:
        self._caller = caller
        self._role = role

    def sender_id(self) -> str | None:
        """Return the sender of the present request; None if it is not signed, as MiniStack's own sends are."""
        credential = self._caller()
        if credential is None:
            return None
        if credential.principal_type != "AssumedRole":
            return str(credential.principal_id)
        # arn:aws:sts::{account}:assumed-role/{role}/{session}
        _, role_name, session = credential.principal_arn.rsplit("/", 2)
        role = self._role(credential.account_id, role_name)
        return f"{role['RoleId']}:{session}" if role is not None else str(credential.principal_id)

    def with_sender(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Put the sender into the attributes of a new message."""
        sender = self.sender_id()
        return attributes if sender is None else attributes | {_ATTRIBUTE: sender}


def name_senders(event: Mapping[str, Any], messages: list[Mapping[str, Any]]) -> None:
    """Put the senders of messages into the event of a function; MiniStack writes the account there."""
    senders = {message["id"]: message["sys"][_ATTRIBUTE] for message in messages}
    for record in event["Records"]:
        record["attributes"][_ATTRIBUTE] = senders[record["messageId"]]


def install(queues: ModuleType, functions: ModuleType, callers: ModuleType, accounts: ModuleType) -> None:
    """Make MiniStack's SQS and its Lambda service name senders."""

    def caller() -> Any:
        key = callers._verified_key.get()
        if not key:
            return None
        found = callers.resolve_credential(key, queues.get_account_id())
        return found if isinstance(found, callers.ResolvedCredential) else None

    def role(account: str, name: str) -> Any:
        return accounts._roles.get_scoped(account, None, name)

    names = SenderIds(caller, role)
    build_attributes, run_batch = queues._build_send_sys_attrs, functions._run_sqs_batch

    def build_send_sys_attrs(*arguments: Any) -> dict[str, Any]:
        return names.with_sender(build_attributes(*arguments))

    def run_sqs_batch(esm: Any, function: Any, event: Any, batch: Any, *more: Any) -> Any:
        name_senders(event, batch)
        return run_batch(esm, function, event, batch, *more)

    queues._build_send_sys_attrs = build_send_sys_attrs  # type: ignore[attr-defined]
    functions._run_sqs_batch = run_sqs_batch  # type: ignore[attr-defined]
