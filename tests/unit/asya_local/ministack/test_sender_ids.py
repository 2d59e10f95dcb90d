"""The senders that the local cloud's SQS names."""

from types import SimpleNamespace
from typing import Any

import pytest

from asya_local.ministack.sender_ids import SenderIds, install, name_senders

ROLES = {("123456789012", "asya-shop-infer-us-east-1"): {"RoleId": "AROA1"}}


def credential(kind: str, arn: str, principal_id: str) -> Any:
    return SimpleNamespace(principal_type=kind, principal_arn=arn, principal_id=principal_id, account_id="123456789012")


SESSION = "arn:aws:sts::123456789012:assumed-role/{}/asya-shop-infer"
CALLERS = [
    (credential("AssumedRole", SESSION.format("asya-shop-infer-us-east-1"), "role:s"), "AROA1:asya-shop-infer"),
    (credential("AssumedRole", SESSION.format("unknown"), "AROA9:s"), "AROA9:s"),
    (credential("User", "arn:aws:iam::123456789012:user/alice", "AIDAALICE"), "AIDAALICE"),
    (credential("Root", "arn:aws:iam::123456789012:root", "123456789012"), "123456789012"),
    (None, None),
]


@pytest.mark.parametrize(("caller", "sender"), CALLERS)
def test_a_role_is_named_by_its_id_and_its_session(caller: Any, sender: str | None) -> None:
    senders = SenderIds(lambda: caller, lambda account, name: ROLES.get((account, name)))
    assert senders.sender_id() == sender
    kept = {"SenderId": "000000000000", "SentTimestamp": "1"}
    assert senders.with_sender(kept) == kept | ({"SenderId": sender} if sender else {})


def test_a_function_reads_the_senders_of_its_messages() -> None:
    messages = [{"id": "m-1", "sys": {"SenderId": "AROA1:a"}}, {"id": "m-2", "sys": {"SenderId": "AIDAALICE"}}]
    # A filter may have left out some of the batch.
    event = {"Records": [{"messageId": "m-2", "attributes": {"SenderId": "000000000000"}}]}
    name_senders(event, messages)
    assert event["Records"][0]["attributes"]["SenderId"] == "AIDAALICE"


class Resolved(SimpleNamespace):
    """The class of MiniStack's credentials."""


def test_the_functions_of_ministack_are_replaced() -> None:
    alice = Resolved(**vars(CALLERS[2][0]))
    queues: Any = SimpleNamespace(
        _build_send_sys_attrs=lambda now, _: {"SenderId": "000000000000", "SentTimestamp": str(now)},
        get_account_id=lambda: "123456789012",
    )
    functions: Any = SimpleNamespace(_run_sqs_batch=lambda esm, _function, event, *_: (esm, event))
    keys = {"AKIAALICE": alice}
    callers: Any = SimpleNamespace(
        ResolvedCredential=Resolved,
        _verified_key=SimpleNamespace(get=lambda: "AKIAALICE"),
        resolve_credential=lambda key, _: keys.get(key),
    )
    accounts: Any = SimpleNamespace(_roles=SimpleNamespace(get_scoped=lambda *_: None))
    install(queues, functions, callers, accounts)
    assert queues._build_send_sys_attrs(7, {}) == {"SenderId": "AIDAALICE", "SentTimestamp": "7"}
    keys.clear()
    assert queues._build_send_sys_attrs(7, {})["SenderId"] == "000000000000"
    event = {"Records": [{"messageId": "m", "attributes": {}}]}
    _, seen = functions._run_sqs_batch("esm", None, event, [{"id": "m", "sys": {"SenderId": "AIDA"}}], "url", "name")
    assert seen["Records"][0]["attributes"] == {"SenderId": "AIDA"}
