"""What `asya doctor` says of the customer managed key."""

import json
from dataclasses import replace

import pytest

from asya_infra.permissions.encryption import account_statement, allowed_principals, service_statements
from asya_infra.preflight.account import Account, Concurrency, CustomerKey, IamUsage, Identity, Unknown
from asya_infra.preflight.checks import check_key
from asya_infra.preflight.demand import Demand

KEY = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROOT, LOGS, EVENTS = "arn:aws:iam::123456789012:root", "logs.eu-central-1.amazonaws.com", "events.amazonaws.com"
GOOD = CustomerKey("Enabled", "ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT", frozenset({ROOT, LOGS, EVENTS}))
DEMAND = Demand(namespace="shop", reserved={}, kms_key=KEY, sends_events=True)
ACCOUNT = Account(
    identity=Identity("123456789012", "arn:aws:iam::123456789012:user/me", "eu-central-1"),
    bootstrap_version=30,
    concurrency=Concurrency(1000, 1000),
    spark_vcpu=16,
    iam=IamUsage(40, 1000, 20, 1500),
    stacks={},
    kms_key=GOOD,
)


def findings(
    key: CustomerKey | Unknown | None = GOOD, account: Account = ACCOUNT, demand: Demand = DEMAND
) -> list[tuple[str, str]]:
    return [(each.level, each.message) for each in check_key(demand, replace(account, kms_key=key))]


def only(key: CustomerKey | Unknown | None) -> tuple[str, str]:
    [finding] = findings(key)
    return finding


def test_a_usable_key() -> None:
    assert only(GOOD) == ("ok", f"{KEY} is enabled, and its policy allows the services of the mesh")


def test_without_a_key_there_is_no_check() -> None:
    assert findings(None, demand=replace(DEMAND, kms_key=None)) == []


def test_a_key_that_does_not_exist() -> None:
    assert only(None) == ("problem", f"{KEY} does not exist. Correct `storage.kms_key`, or create the key")


@pytest.mark.parametrize(
    ("state", "advice"),
    [
        ("Disabled", "aws kms enable-key"),
        ("PendingDeletion", "aws kms cancel-key-deletion"),
        ("PendingImport", "import its key material"),
        ("Creating", "wait until it is enabled"),
    ],
)
def test_a_key_that_is_not_enabled(state: str, advice: str) -> None:
    level, message = only(replace(GOOD, state=state))
    assert level == "problem"
    assert message.startswith(f"its state is {state}; ")
    assert advice in message


def test_a_key_of_another_kind() -> None:
    level, message = only(replace(GOOD, usage="GENERATE_VERIFY_MAC", spec="HMAC_256"))
    assert (level, "use a symmetric key" in message) == ("problem", True)


def test_a_key_of_another_region() -> None:
    there = replace(ACCOUNT, identity=replace(ACCOUNT.identity, region="us-east-1"))
    for key in (GOOD, None):  # KMS does not find keys of another region
        [(level, message)] = findings(key, account=there)
        assert level == "problem"
        assert "is in eu-central-1, and the mesh in us-east-1" in message


def test_a_missing_statement_is_printed() -> None:
    level, message = only(replace(GOOD, principals=frozenset({ROOT, EVENTS})))
    assert level == "problem"
    assert message.startswith(f"its policy does not allow {LOGS}. Add the statement ")
    statement = json.loads(message[message.index("{") : message.rindex("}") + 1])
    assert statement["Principal"] == {"Service": LOGS}
    assert statement["Condition"] == {
        "ArnLike": {
            "kms:EncryptionContext:aws:logs:arn": "arn:aws:logs:eu-central-1:123456789012:log-group:/aws/*/asya-shop-*"
        }
    }


def test_eventbridge_needs_the_key_only_if_it_sends_to_queues_or_topics() -> None:
    key = replace(GOOD, principals=frozenset({ROOT, LOGS}))
    level, message = only(key)
    assert (level, message.startswith(f"its policy does not allow {EVENTS}. ")) == ("problem", True)
    assert [level for level, _ in findings(key, demand=replace(DEMAND, sends_events=False))] == ["ok"]


def test_a_policy_that_ignores_the_iam_policies_of_the_account() -> None:
    level, message = only(replace(GOOD, principals=frozenset({LOGS, EVENTS, "arn:aws:iam::123456789012:role/admin"})))
    assert level == "warning"
    assert "it must name each role of the mesh" in message


def test_what_may_not_be_read_is_a_warning() -> None:
    denied = Unknown("AccessDenied", "kms:DescribeKey")
    assert only(denied) == ("warning", f"cannot read {KEY} (AccessDenied); allow kms:DescribeKey to check it")
    level, message = only(replace(GOOD, principals=Unknown("AccessDenied", "kms:GetKeyPolicy")))
    assert (level, message.startswith("cannot read its policy (AccessDenied); allow kms:GetKeyPolicy")) == (
        "warning",
        True,
    )


def test_the_principals_of_a_policy() -> None:
    services = service_statements(
        namespace="shop",
        partition="aws",
        region="eu-central-1",
        account="123456789012",
        suffix="amazonaws.com",
        events=True,
    )
    statements = [account_statement(partition="aws", account="123456789012"), *(each for _, each in services)]
    assert allowed_principals({"Statement": statements}) == {ROOT, LOGS, EVENTS}
    denied = {"Effect": "Deny", "Principal": {"Service": EVENTS}, "Action": "kms:*", "Resource": "*"}
    everyone = {"Effect": "Allow", "Principal": "*", "Action": "kms:*", "Resource": "*"}
    assert allowed_principals({"Statement": denied}) == frozenset()
    assert allowed_principals({"Statement": [everyone, {**everyone, "Principal": {"AWS": [ROOT, "b"]}}]}) == {
        "*",
        ROOT,
        "b",
    }
