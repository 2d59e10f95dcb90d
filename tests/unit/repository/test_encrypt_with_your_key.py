"""Tests the statements in `docs/how-to/encrypt-with-your-key.md` against those that `asya doctor` asks for."""

import json
import re
from typing import Any

from asya_infra.permissions.encryption import account_statement, service_statements
from asya_infra.timings import DATA_KEY_REUSE_MINUTES, DLQ_RETENTION_DAYS, QUEUE_RETENTION_DAYS
from tests.paths import PROJECT

PAGE = (PROJECT / "docs" / "how-to" / "encrypt-with-your-key.md").read_text()


def blocks() -> list[Any]:
    return [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)]


def test_the_policy_of_the_key_is_that_of_the_doctor() -> None:
    statements = service_statements(
        namespace="shop-prod",
        partition="aws",
        region="eu-central-1",
        account="123456789012",
        suffix="amazonaws.com",
        events=True,
        topics=True,
        redrives=True,
        objects=True,
    )
    account = account_statement(partition="aws", account="123456789012")
    assert blocks()[0] == [account, *(statement for _, statement in statements)]


def test_the_statement_for_a_transition_is_limited_to_the_account_and_its_services() -> None:
    statement = blocks()[1]
    assert statement["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    condition = statement["Condition"]["StringEquals"]
    assert condition["kms:CallerAccount"] == "123456789012"
    assert [service.split(".")[0] for service in condition["kms:ViaService"]] == ["dynamodb", "s3", "sqs"]


def test_the_numbers_of_the_page_are_those_of_the_queues() -> None:
    assert f"SQS reuses a data key for {DATA_KEY_REUSE_MINUTES} minutes" in PAGE
    assert f"messages for up to {QUEUE_RETENTION_DAYS} days and dead\nletters for {DLQ_RETENTION_DAYS}" in PAGE
