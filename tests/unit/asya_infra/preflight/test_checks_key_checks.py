"""What `asya doctor` says of the customer managed key."""

import json
from dataclasses import replace

import pytest

from asya_infra.permissions.encryption import (
    SOURCE_KEYS,
    account_statement,
    allowed_principals,
    service_statements,
)
from asya_infra.preflight.account import Account, CodeKey, Concurrency, CustomerKey, IamUsage, Identity, Unknown
from asya_infra.preflight.checks import check_code_key, check_key
from asya_infra.preflight.demand import Demand

KEY = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROOT, LOGS, EVENTS = "arn:aws:iam::123456789012:root", "logs.eu-central-1.amazonaws.com", "events.amazonaws.com"
SNS = "sns.amazonaws.com"
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


def test_a_condition_on_the_source_keeps_eventbridge_out_of_encrypted_topics() -> None:
    """SNS does not support `aws:SourceArn` there: rules would notify nobody, and no call would fail."""
    notifying = replace(DEMAND, sends_to_topics=True, redrives=True)
    with_sns = frozenset({ROOT, LOGS, EVENTS, SNS})
    [(level, message)] = findings(replace(GOOD, principals=with_sns, unsourced=with_sns - {EVENTS}), demand=notifying)
    assert (level, "which SNS does not support for encrypted topics" in message) == ("problem", True)
    assert "Condition" not in json.loads(message[message.index("{") : message.rindex("}") + 1])
    assert [
        level for level, _ in findings(replace(GOOD, principals=with_sns, unsourced=with_sns), demand=notifying)
    ] == ["ok"]
    [(level, message)] = findings(replace(GOOD, unsourced=with_sns), demand=notifying)
    assert (level, message.startswith(f"its policy does not allow {SNS}. ")) == ("problem", True)


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
    assert allowed_principals({"Statement": statements}, without=SOURCE_KEYS) == {ROOT, LOGS}
    by_account = {**statements[-1], "Condition": {"StringEquals": {"AWS:SourceAccount": "123456789012"}}}
    assert allowed_principals({"Statement": by_account}, without=SOURCE_KEYS) == frozenset()
    denied = {"Effect": "Deny", "Principal": {"Service": EVENTS}, "Action": "kms:*", "Resource": "*"}
    everyone = {"Effect": "Allow", "Principal": "*", "Action": "kms:*", "Resource": "*"}
    assert allowed_principals({"Statement": denied}) == frozenset()
    assert allowed_principals({"Statement": [everyone, {**everyone, "Principal": {"AWS": [ROOT, "b"]}}]}) == {
        "*",
        ROOT,
        "b",
    }


def of_code(key: CodeKey | Unknown | None) -> list[tuple[str, str]]:
    return [(each.level, each.message) for each in check_code_key(replace(ACCOUNT, code_key=key))]


@pytest.mark.parametrize("principals", [{ROOT}, {"*"}, {"123456789012"}])
def test_job_runs_may_use_a_key_of_the_bootstrap_bucket_that_lets_iam_policies_count(principals: set[str]) -> None:
    [(level, message)] = of_code(CodeKey(KEY, frozenset(principals)))
    assert (level, message.startswith(KEY)) == ("ok", True)


def test_without_jobs_or_with_a_key_of_aws_their_code_is_readable() -> None:
    assert of_code(None) == []
    assert [level for level, _ in of_code(CodeKey())] == ["ok"]
    assert [level for level, _ in of_code(Unknown("AccessDenied", "s3:GetEncryptionConfiguration"))] == ["warning"]


def test_a_key_that_ignores_iam_policies_keeps_job_runs_from_their_code() -> None:
    [(level, message)] = of_code(CodeKey(KEY, frozenset({"arn:aws:iam::123456789012:role/admin"})))
    assert (level, "no job run could read its code" in message) == ("problem", True)
    statement = json.loads(message[message.index("{") : message.rindex("}") + 1])
    assert statement["Condition"]["StringEquals"]["kms:ViaService"] == "s3.eu-central-1.amazonaws.com"
