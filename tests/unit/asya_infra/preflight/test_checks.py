"""The checks of `asya doctor`."""

from dataclasses import replace
from typing import Any

import pytest

from asya_infra.preflight.account import Account, Concurrency, DeployedStack, IamUsage, Identity, Unknown
from asya_infra.preflight.checks import check
from asya_infra.preflight.demand import Demand, NamedResource

TABLE = NamedResource("table", "asya-shop-tasks")
DEMAND = Demand(
    namespace="shop",
    stacks=("Asya-shop-state",),
    bootstrap_version=6,
    reserved={},
    source_concurrency=400,
    max_vcpu=16,
    roles=30,
    policies=5,
    resources=(TABLE,),
)
ACCOUNT = Account(
    identity=Identity("123456789012", "arn:aws:sts::123456789012:assumed-role/deploy/me", "eu-central-1"),
    bootstrap_version=30,
    concurrency=Concurrency(1000, 1000),
    spark_vcpu=16,
    iam=IamUsage(40, 1000, 20, 1500),
    stacks={},
    existing={"table": frozenset()},
)
DENIED = Unknown("AccessDenied", "service:Read")


def findings(account: Account = ACCOUNT, asked: Demand = DEMAND) -> dict[str, tuple[str, str]]:
    """The level and the message of each check that is not ok."""
    return {each.subject: (each.level, each.message) for each in check(asked, account) if each.level != "ok"}


def only(account: Account = ACCOUNT, asked: Demand = DEMAND) -> tuple[str, str]:
    [finding] = findings(account, asked).values()
    return finding


def test_a_fitting_account_has_a_line_for_each_check() -> None:
    assert [(each.level, each.subject) for each in check(DEMAND, ACCOUNT)] == [
        ("ok", "credentials"),
        ("ok", "cdk bootstrap"),
        ("ok", "stacks"),
        ("ok", "names"),
        ("ok", "Lambda concurrency"),
        ("ok", "SQS"),
        ("ok", "EMR Serverless vCPU"),
        ("ok", "IAM roles"),
        ("ok", "IAM policies"),
    ]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"account": "999999999999"},
            "the account of the stage is 999999999999, and that of the credentials 123456789012",
        ),
        ({"region": "us-east-1"}, "the region of the stage is us-east-1, and that of the credentials eu-central-1"),
    ],
)
def test_credentials_of_another_account_or_region_are_a_problem(asked: dict[str, Any], message: str) -> None:
    level, text = only(asked=replace(DEMAND, **asked))
    assert level == "problem"
    assert message in text


def test_the_root_user_is_a_warning() -> None:
    identity = Identity("123456789012", "arn:aws:iam::123456789012:root", "eu-central-1")
    assert only(replace(ACCOUNT, identity=identity))[0] == "warning"


@pytest.mark.parametrize(
    ("version", "message"), [(None, "has no bootstrap stack"), (5, "version 5; the stacks need 6")]
)
def test_a_missing_or_old_bootstrap_is_a_problem(version: int | None, message: str) -> None:
    level, text = only(replace(ACCOUNT, bootstrap_version=version))
    assert level == "problem"
    assert message in text
    assert "npx cdk bootstrap aws://123456789012/eu-central-1" in text


def test_a_mesh_with_a_qualifier_needs_a_bootstrap_of_its_own() -> None:
    qualified = replace(DEMAND, bootstrap_parameter="/cdk-bootstrap/data/version")
    _, text = only(replace(ACCOUNT, bootstrap_version=None), qualified)
    assert "--qualifier data --toolkit-stack-name CDKToolkit-data`" in text


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        ("UPDATE_IN_PROGRESS", "wait for its end"),
        ("UPDATE_ROLLBACK_FAILED", "continue-update-rollback"),
        ("DELETE_FAILED", "delete the stack"),
    ],
)
def test_a_stack_that_cannot_be_deployed_is_a_problem(status: str, advice: str) -> None:
    level, text = only(replace(ACCOUNT, stacks={"Asya-shop-state": DeployedStack(status)}))
    assert level == "problem"
    assert f"Asya-shop-state is {status}" in text
    assert advice in text


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "ROLLBACK_COMPLETE"])
def test_a_stack_at_rest_is_no_problem(status: str) -> None:
    assert findings(replace(ACCOUNT, stacks={"Asya-shop-state": DeployedStack(status)})) == {}


def test_a_kept_table_outside_the_stacks_is_a_problem() -> None:
    level, text = only(replace(ACCOUNT, existing={"table": frozenset({TABLE})}))
    assert level == "problem"
    assert "the table asya-shop-tasks exists outside the stacks" in text
    assert "docs/how-to/remove-and-restore.md" in text


def test_a_table_of_the_stack_is_no_problem() -> None:
    stack = DeployedStack("UPDATE_COMPLETE", frozenset({TABLE}))
    assert findings(replace(ACCOUNT, existing={"table": frozenset({TABLE})}, stacks={"Asya-shop-state": stack})) == {}


def test_a_new_account_cannot_hold_a_reservation() -> None:
    reserving = replace(DEMAND, reserved={"asya-shop-x-gateway-live": 50}, source_concurrency=5)
    level, text = only(replace(ACCOUNT, concurrency=Concurrency(10, 10)), reserving)
    assert level == "problem"
    assert "reserves 50 concurrent executions (asya-shop-x-gateway-live: 50), and the account can give 0" in text
    assert "L-B99A9384" in text


def test_aws_keeps_100_concurrent_executions_unreserved() -> None:
    account = replace(ACCOUNT, concurrency=Concurrency(1000, 500))
    assert findings(account, replace(DEMAND, reserved={"live": 400}, source_concurrency=10)) == {}
    assert only(account, replace(DEMAND, reserved={"live": 401}, source_concurrency=10))[0] == "problem"
    # Provisioned concurrency is taken from the same part.
    assert only(account, replace(DEMAND, reserved={"live": 400}, provisioned=1, source_concurrency=10))[0] == "problem"


def test_the_reservation_of_the_deployed_mesh_counts_once() -> None:
    account = replace(ACCOUNT, concurrency=Concurrency(1000, 150, own=400))
    assert findings(account, replace(DEMAND, reserved={"live": 400}, source_concurrency=10)) == {}


def test_queues_that_may_use_more_than_the_account_has_are_a_warning() -> None:
    level, text = only(replace(ACCOUNT, concurrency=Concurrency(10, 10)))
    assert level == "warning"
    assert "the queues with a limit may use 400 at once; the account has 10 of 10 unreserved" in text


def test_more_messages_in_flight_than_sqs_allows_are_a_warning() -> None:
    assert findings(asked=replace(DEMAND, in_flight={"asya-shop-bill": 120_000})) == {}
    level, text = only(asked=replace(DEMAND, in_flight={"asya-shop-bill": 120_001, "asya-shop-ship": 500}))
    assert level == "warning"
    assert "asya-shop-bill may have 120,001 messages in flight" in text


def test_an_application_larger_than_the_quota_is_a_problem() -> None:
    level, text = only(asked=replace(DEMAND, max_vcpu=64))
    assert level == "problem"
    assert "`spark.application.max_vcpu` is 64, and the account may use 16 at once" in text
    assert "L-D05C8A75" in text


def test_without_an_own_application_its_quota_is_not_checked() -> None:
    made = check(replace(DEMAND, max_vcpu=None), replace(ACCOUNT, spark_vcpu=DENIED))
    assert "EMR Serverless vCPU" not in {finding.subject for finding in made}


@pytest.mark.parametrize(("used", "level"), [(870, None), (871, "warning"), (970, "warning"), (971, "problem")])
def test_the_roles_of_the_mesh_must_fit_into_the_account(used: int, level: str | None) -> None:
    made = findings(replace(ACCOUNT, iam=IamUsage(used, 1000, 20, 1500)))
    assert [finding[0] for finding in made.values()] == ([level] if level else [])


def test_the_roles_of_the_deployed_mesh_count_once() -> None:
    stack = DeployedStack("UPDATE_COMPLETE", roles=30, policies=5)
    assert findings(replace(ACCOUNT, iam=IamUsage(900, 1000, 20, 1500), stacks={"Asya-shop-state": stack})) == {}


def test_what_may_not_be_read_is_a_warning_that_names_the_permission() -> None:
    account = replace(
        ACCOUNT,
        bootstrap_version=DENIED,
        concurrency=DENIED,
        spark_vcpu=DENIED,
        iam=DENIED,
        existing={"table": DENIED},
    )
    made = findings(account)
    assert set(made) == {"cdk bootstrap", "names", "Lambda concurrency", "EMR Serverless vCPU", "IAM"}
    assert all(level == "warning" and "allow service:Read" in text for level, text in made.values())


def test_without_the_stacks_nobody_knows_whose_a_table_is() -> None:
    made = findings(replace(ACCOUNT, stacks=DENIED, existing={"table": frozenset({TABLE})}))
    assert {subject: level for subject, (level, _) in made.items()} == {"stacks": "warning", "names": "warning"}
