"""The requests of CloudFormation, and what they change in the list of roles (`protocol §4.roles`)."""

from typing import Any

import pytest

from asya.senders.roles import ListChange, list_change, read_request, role_id_of


def request(kind: str, roles: dict[str, str], old: dict[str, str] | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "RequestType": kind,
        "ResponseURL": "https://cloudformation.example/answer",
        "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/Asya-shop-functions-0/1",
        "RequestId": "r-1",
        "LogicalResourceId": "ListedRoles",
        "ResourceType": "Custom::AsyaRoles",
        "ResourceProperties": {"ServiceToken": "arn", "ServiceTimeout": "120", "Roles": roles},
    }
    return made if old is None else made | {"OldResourceProperties": {"ServiceToken": "arn", "Roles": old}}


@pytest.mark.rule("4.roles")
@pytest.mark.parametrize(
    ("event", "listed", "expiring"),
    [
        (request("Create", {"infer": "AROA1"}), {"AROA1": "infer"}, set()),
        (request("Update", {"infer": "AROA1", "post": "AROA2"}, {"infer": "AROA1"}), {"AROA1": "infer", "AROA2": "post"}, set()),
        (request("Update", {"post": "AROA2"}, {"infer": "AROA1", "post": "AROA2"}), {"AROA2": "post"}, {"AROA1"}),
        # A role with another name is another role.
        (request("Update", {"infer": "AROA9"}, {"infer": "AROA1"}), {"AROA9": "infer"}, {"AROA1"}),
        (request("Delete", {"infer": "AROA1"}), {}, {"AROA1"}),
        # A stack whose last function is gone.
        (request("Update", {}, {"infer": "AROA1"}), {}, {"AROA1"}),
    ],
)  # fmt: skip
def test_the_present_roles_are_listed_and_the_former_ones_expire(
    event: dict[str, Any], listed: dict[str, str], expiring: set[str]
) -> None:
    assert list_change(read_request(event)) == ListChange(listed, frozenset(expiring))


@pytest.mark.parametrize("event", [{}, {"RequestType": "Create"}, {"Records": []}])
def test_another_event_is_no_request(event: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no request of CloudFormation"):
        read_request(event)


@pytest.mark.parametrize(
    ("sender", "role"), [("AROA1:asya-shop-infer", "AROA1"), ("AIDAUSER", "AIDAUSER"), ("AROA1:a:b", "AROA1"), ("", "")]
)
def test_the_session_name_says_nothing_about_the_role(sender: str, role: str) -> None:
    assert role_id_of(sender) == role
