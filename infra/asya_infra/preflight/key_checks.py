"""Compares the customer managed key of a mesh with what its services and roles need of it. Pure."""

import json
from collections.abc import Iterator

from asya_infra.permissions.key_policy import account_statement, service_statements
from asya_infra.preflight.account import Account, CustomerKey, Unknown
from asya_infra.preflight.demand import Demand
from asya_infra.preflight.finding import Finding

_SUBJECT = "KMS key"
_GUIDE = "docs/how-to/encrypt-with-your-key.md"
_STATES = {
    "Disabled": "enable it with `aws kms enable-key`",
    "PendingDeletion": "cancel with `aws kms cancel-key-deletion`, then enable it",
    "PendingImport": "import its key material",
}


def check_key(demand: Demand, account: Account) -> Iterator[Finding]:
    """Yield a finding for each defect of the key, or one that it is usable; nothing without a key."""
    arn, key = demand.kms_key, account.kms_key
    if arn is None:
        return
    if isinstance(key, Unknown):
        yield Finding("warning", _SUBJECT, f"cannot read {arn} ({key.reason}); allow {key.action} to check it")
        return
    # KMS knows no keys of another region, so the wrong place comes first.
    problems = list(_place(arn, account)) or list(_metadata(arn, key))
    for problem in problems:
        yield Finding("problem", _SUBJECT, problem)
    if problems or key is None:
        return
    if isinstance(key.principals, Unknown):
        reason, action = key.principals.reason, key.principals.action
        yield Finding(
            "warning", _SUBJECT, f"cannot read its policy ({reason}); allow {action}, or compare it with {_GUIDE}"
        )
        return
    findings = list(_policy(arn, key.principals, demand, account))
    yield from findings or [
        Finding("ok", _SUBJECT, f"{arn} is enabled, and its policy allows the services of the mesh")
    ]


def _place(arn: str, account: Account) -> Iterator[str]:
    region = arn.split(":")[3]
    if region != account.identity.region:
        yield f"{arn} is in {region}, and the mesh in {account.identity.region}; services use keys of their own region only"


def _metadata(arn: str, key: CustomerKey | None) -> Iterator[str]:
    if key is None:
        yield f"{arn} does not exist. Correct `storage.kms_key`, or create the key"
        return
    if key.state != "Enabled":
        yield f"its state is {key.state}; {_STATES.get(key.state, 'wait until it is enabled')}"
    if (key.usage, key.spec) != ("ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT"):
        yield f"it is for {key.usage} with {key.spec}; use a symmetric key that encrypts and decrypts"


def _policy(arn: str, principals: frozenset[str], demand: Demand, account: Account) -> Iterator[Finding]:
    partition, owner = arn.split(":")[1], account.identity.account
    statements = service_statements(
        namespace=demand.namespace,
        partition=partition,
        region=account.identity.region,
        account=owner,
        suffix="amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com",
        events=demand.sends_events,
        objects=demand.sends_objects,
    )
    for service, statement in statements:
        if service not in principals and "*" not in principals:
            text = json.dumps(statement)
            yield Finding(
                "problem", _SUBJECT, f"its policy does not allow {service}. Add the statement {text} ({_GUIDE})"
            )
    root = account_statement(partition=partition, account=owner)["Principal"]["AWS"]
    if not {root, owner, "*"} & principals:
        yield Finding(
            "warning",
            _SUBJECT,
            f"its policy does not let the IAM policies of the account count ({root}), so it must name each role of the mesh: "
            f"{_GUIDE}",
        )
