"""Compares what a mesh asks with what an account has. Pure.

This includes the customer managed key of the mesh, and buckets and event buses of its triggers.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from asya_infra.limits.aws_limits import IN_FLIGHT, UNRESERVED_CONCURRENCY
from asya_infra.permissions.encryption import account_statement, service_statements
from asya_infra.preflight.account import Account, Concurrency, CustomerKey, DeployedStack, Unknown
from asya_infra.preflight.demand import Demand, Kind

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        level: `problem` if the deployment would fail, or the mesh would not work; `warning` if it may run badly, or if the
            check was not possible.
        subject: what was checked, in one word or two.
        message: what is so, and what to do.
    """

    level: Level
    subject: str
    message: str


_KEY = "KMS key"
_EVENTS = "events.amazonaws.com"
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
        yield Finding("warning", _KEY, f"cannot read {arn} ({key.reason}); allow {key.action} to check it")
        return
    # KMS knows no keys of another region, so the wrong place comes first.
    problems = list(_key_place(arn, account)) or list(_metadata(arn, key))
    for problem in problems:
        yield Finding("problem", _KEY, problem)
    if problems or key is None:
        return
    if isinstance(key.principals, Unknown):
        reason, action = key.principals.reason, key.principals.action
        yield Finding(
            "warning", _KEY, f"cannot read its policy ({reason}); allow {action}, or compare it with {_GUIDE}"
        )
        return
    findings = list(_policy(arn, key.principals, key.unsourced, demand, account))
    yield from findings or [Finding("ok", _KEY, f"{arn} is enabled, and its policy allows the services of the mesh")]


def _key_place(arn: str, account: Account) -> Iterator[str]:
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


def _policy(
    arn: str, principals: frozenset[str], unsourced: frozenset[str], demand: Demand, account: Account
) -> Iterator[Finding]:
    partition, owner = arn.split(":")[1], account.identity.account
    statements = service_statements(
        namespace=demand.namespace,
        partition=partition,
        region=account.identity.region,
        account=owner,
        suffix="amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com",
        events=demand.sends_events,
        topics=demand.sends_to_topics,
        redrives=demand.redrives,
        objects=demand.sends_objects,
    )
    for service, statement in statements:
        text = json.dumps(statement)
        if not {service, "*"} & principals:
            yield Finding("problem", _KEY, f"its policy does not allow {service}. Add the statement {text} ({_GUIDE})")
        elif service == _EVENTS and demand.sends_to_topics and not {service, "*"} & unsourced:
            yield Finding(
                "problem",
                _KEY,
                f"its policy allows {service} only with a condition on the source, which SNS does not support for encrypted "
                f"topics: paused tasks would notify nobody. Add the statement {text} ({_GUIDE})",
            )
    root = account_statement(partition=partition, account=owner)["Principal"]["AWS"]
    if not {root, owner, "*"} & principals:
        yield Finding(
            "warning",
            _KEY,
            f"its policy does not let the IAM policies of the account count ({root}), so it must name each role of the mesh: "
            f"{_GUIDE}",
        )


_CODE = "code of jobs"


def check_code_key(account: Account) -> Iterator[Finding]:
    """Yield a finding about the key of the code of jobs; nothing without jobs."""
    key = account.code_key
    if key is None:
        return
    if isinstance(key, Unknown):
        yield _unknown(_CODE, "the encryption of the bucket of `cdk bootstrap`", key)
        return
    owner = account.identity.account
    if key.arn is None or any(each in {"*", owner} or each.endswith(f":{owner}:root") for each in key.principals):
        name = key.arn or "the key of AWS"
        yield Finding("ok", _CODE, f"{name} encrypts the bucket of `cdk bootstrap`; job runs may use it for their code")
        return
    yield Finding(
        "problem",
        _CODE,
        f"{key.arn} encrypts the bucket of `cdk bootstrap`, and its policy does not let the IAM policies of the account count, so "
        f"no job run could read its code. Add the statement {json.dumps(_code_statement(account))} to its policy",
    )


def _code_statement(account: Account) -> dict[str, object]:
    """Return the statement that lets the principals of an account use a key through S3, as `cdk bootstrap` writes it."""
    identity = account.identity
    condition = {
        "StringEquals": {
            "kms:CallerAccount": identity.account,
            "kms:ViaService": f"s3.{identity.region}.amazonaws.com",
        }
    }
    return {
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
        "Resource": "*",
        "Condition": condition,
    }


_TRIGGERS = "triggers"
_TURN_ON = '{"EventBridgeConfiguration": {}}'


def check_triggers(demand: Demand, account: Account) -> Iterator[Finding]:
    """Yield a finding for each bucket and each bus that triggers need; nothing without any."""
    for bucket in demand.event_buckets:
        yield _bucket(bucket, account.event_buckets.get(bucket))
    for bus in demand.event_buses:
        yield _bus(bus, account)


def _bucket(bucket: str, sends: bool | Unknown | None) -> Finding:
    match sends:
        case Unknown():
            return Finding(
                "warning",
                _TRIGGERS,
                f"cannot read whether the bucket {bucket} sends events to EventBridge ({sends.reason}); allow {sends.action} to "
                "check it",
            )
        case None:
            return Finding(
                "problem",
                _TRIGGERS,
                f"the bucket {bucket} does not exist. Correct the `s3` of its trigger, or create the bucket",
            )
        case False:
            return Finding(
                "problem",
                _TRIGGERS,
                f"the bucket {bucket} sends no events to EventBridge, so its triggers would start nothing. Its owner turns them on "
                f"in the console (Properties, Amazon EventBridge), or with `aws s3api put-bucket-notification-configuration "
                f"--bucket {bucket} --notification-configuration '{_TURN_ON}'`, which replaces the notifications that it has: add "
                "them to the JSON",
            )
        case _:
            return Finding("ok", _TRIGGERS, f"the bucket {bucket} sends events to EventBridge")


def _bus(bus: str, account: Account) -> Finding:
    buses = account.event_buses
    if isinstance(buses, Unknown):
        return Finding(
            "warning", _TRIGGERS, f"cannot read the event buses ({buses.reason}); allow {buses.action} to check {bus}"
        )
    if bus not in buses:
        return Finding(
            "problem",
            _TRIGGERS,
            f"the event bus {bus} does not exist. Correct the `event.bus` of its trigger, or run `aws events create-event-bus "
            f"--name {bus}`",
        )
    return Finding("ok", _TRIGGERS, f"the event bus {bus} exists")


# Quotas of the Service Quotas console, for requests.
LAMBDA_CONCURRENCY = "L-B99A9384"
SPARK_VCPU = "L-D05C8A75"

_DEFAULT_QUALIFIER = "hnb659fds"
# From this part of a quota a check warns.
_NEARLY_FULL = 0.9
_RESTORE = "docs/how-to/remove-and-restore.md"
_ADVICE: dict[Kind, str] = {
    "table": f"Import it into the stack, or delete it: {_RESTORE}",
    "bucket": f"Import it into the stack, or empty and delete it: {_RESTORE}",
    "queue": "Take its messages out, then delete it with `aws sqs delete-queue`",
    "log group": "Delete it with `aws logs delete-log-group`",
}


def check(demand: Demand, account: Account) -> list[Finding]:
    """Return a finding for each check, problems included."""
    return [
        *_place(demand, account),
        *_bootstrap(demand, account),
        *_stacks(account),
        *_existing(demand, account),
        *_concurrency(demand, account.concurrency),
        *_in_flight(demand),
        *_spark(demand, account.spark_vcpu),
        *_iam(demand, account),
        *check_code_key(account),
        *check_key(demand, account),
        *check_triggers(demand, account),
    ]


def _place(demand: Demand, account: Account) -> Iterator[Finding]:
    identity = account.identity
    subject = "credentials"
    wrong = [
        f"the {what} of the stage is {expected}, and that of the credentials {actual}"
        for what, expected, actual in (
            ("account", demand.account, identity.account),
            ("region", demand.region, identity.region),
        )
        if expected is not None and expected != actual
    ]
    if wrong:
        yield Finding("problem", subject, f"{'; '.join(wrong)}. Use the profile of the stage, or another stage")
    elif identity.arn.endswith(":root"):
        yield Finding("warning", subject, f"{identity.arn} is the root user; deploy with a role")
    else:
        yield Finding("ok", subject, f"{identity.arn}, region {identity.region}")


def _bootstrap(demand: Demand, account: Account) -> Iterator[Finding]:
    version, needed = account.bootstrap_version, demand.bootstrap_version
    command = f"run `npx cdk bootstrap aws://{account.identity.account}/{account.identity.region}{_qualifier(demand)}`"
    if isinstance(version, Unknown):
        yield _unknown("cdk bootstrap", "the version of `cdk bootstrap`", version)
    elif version is None:
        yield Finding(
            "problem",
            "cdk bootstrap",
            f"the region has no bootstrap stack ({demand.bootstrap_parameter} is missing); {command}",
        )
    elif version < needed:
        yield Finding("problem", "cdk bootstrap", f"version {version}; the stacks need {needed}: {command}")
    else:
        yield Finding("ok", "cdk bootstrap", f"version {version}; the stacks need {needed}")


def _qualifier(demand: Demand) -> str:
    """Return the options of `cdk bootstrap` for a mesh with a qualifier of its own."""
    qualifier = demand.bootstrap_qualifier
    if qualifier == _DEFAULT_QUALIFIER:
        return ""
    return f" --qualifier {qualifier} --toolkit-stack-name CDKToolkit-{qualifier}"


def _stacks(account: Account) -> Iterator[Finding]:
    if isinstance(account.stacks, Unknown):
        yield _unknown("stacks", "the stacks of the mesh", account.stacks)
        return
    stuck = [(name, advice) for name, stack in sorted(account.stacks.items()) if (advice := _obstacle(stack))]
    for name, advice in stuck:
        yield Finding("problem", "stacks", f"{name} is {account.stacks[name].status}: {advice}")
    if not stuck:
        count = len(account.stacks)
        yield Finding("ok", "stacks", f"{count} deployed, none is blocked" if count else "none yet: a first deployment")


def _obstacle(stack: DeployedStack) -> str:
    """Return what to do about a stack that cannot be deployed; empty if it can."""
    if stack.status.endswith("_IN_PROGRESS") and stack.status != "REVIEW_IN_PROGRESS":
        return "wait for its end"
    if stack.status == "UPDATE_ROLLBACK_FAILED":
        return "repair the cause in its events, then `aws cloudformation continue-update-rollback`"
    if stack.status in {"DELETE_FAILED", "ROLLBACK_FAILED"}:
        return "repair the cause in its events, then delete the stack"
    return ""


def _existing(demand: Demand, account: Account) -> Iterator[Finding]:
    if isinstance(account.stacks, Unknown):
        yield Finding("warning", "names", "not checked: without the stacks, their resources cannot be told from others")
        return
    owned = {resource for stack in account.stacks.values() for resource in stack.resources}
    found = 0
    for kind, existing in account.existing.items():
        if isinstance(existing, Unknown):
            yield _unknown("names", f"the {kind}s of the account", existing)
            continue
        for resource in sorted(existing - owned):
            found += 1
            yield Finding(
                "problem",
                "names",
                f"the {kind} {resource.name} exists outside the stacks of the mesh, and the deployment cannot create it. "
                f"{_ADVICE[resource.kind]}",
            )
    if not found:
        yield Finding("ok", "names", f"nothing outside the stacks has a name that the mesh {demand.namespace} needs")


def _concurrency(demand: Demand, concurrency: Concurrency | Unknown) -> Iterator[Finding]:
    subject = "Lambda concurrency"
    if isinstance(concurrency, Unknown):
        yield _unknown(subject, "the concurrent executions of the account", concurrency)
        return
    total, unreserved = concurrency.total, concurrency.unreserved + concurrency.own
    kept = min(UNRESERVED_CONCURRENCY.value, total)
    reserved = sum(demand.reserved.values()) + demand.provisioned
    request = f"Ask for a higher quota (Lambda, {LAMBDA_CONCURRENCY})"
    if reserved and reserved > unreserved - kept:
        functions = ", ".join(f"{name}: {value}" for name, value in sorted(demand.reserved.items()))
        details = f" ({functions})" if functions else ""
        yield Finding(
            "problem",
            subject,
            f"the mesh reserves {reserved} concurrent executions{details}, and the account can give {max(0, unreserved - kept)}: "
            f"{unreserved} of its {total} are unreserved, and AWS keeps {kept} of them. {request}, or reserve less: "
            "`reserved`, `provisioned`, `gateway.watchers`",
        )
        return
    remaining = unreserved - reserved
    needs = (
        f"the queues with a limit may use {demand.source_concurrency} at once; the account has {remaining} of {total}"
    )
    if demand.source_concurrency > remaining:
        yield Finding(
            "warning",
            subject,
            f"{needs} unreserved for all its functions. Under full load Lambda throttles: messages are late, "
            f"and become dead letters after many throttled deliveries. {request}, or lower `concurrency` of actors",
        )
    else:
        yield Finding("ok", subject, f"{needs} unreserved")


def _in_flight(demand: Demand) -> Iterator[Finding]:
    subject = "SQS"
    most = max(demand.in_flight.values(), default=0)
    for queue, count in sorted(demand.in_flight.items()):
        if count > IN_FLIGHT.value:
            yield Finding(
                "warning",
                subject,
                f"{queue} may have {count:,} messages in flight, `concurrency` × `batch.size`; SQS gives out {IN_FLIGHT.value:,} "
                "at once. Lower one of them: more functions would wait than work",
            )
    if most <= IN_FLIGHT.value:
        yield Finding(
            "ok", subject, f"at most {most:,} messages of a queue are in flight; SQS allows {IN_FLIGHT.value:,}"
        )


def _spark(demand: Demand, quota: int | Unknown) -> Iterator[Finding]:
    subject = "EMR Serverless vCPU"
    if demand.max_vcpu is None:
        return
    if isinstance(quota, Unknown):
        yield _unknown(subject, "the vCPU quota of EMR Serverless", quota)
    elif quota < demand.max_vcpu:
        yield Finding(
            "problem",
            subject,
            f"`spark.application.max_vcpu` is {demand.max_vcpu}, and the account may use {quota} at once. The mesh would start "
            f"more drivers than there is room for executors. Set {quota} or less, or ask for a higher quota "
            f"(EMR Serverless, {SPARK_VCPU})",
        )
    else:
        yield Finding(
            "ok", subject, f"`max_vcpu` is {demand.max_vcpu}; the account may use {quota}, all applications together"
        )


def _iam(demand: Demand, account: Account) -> Iterator[Finding]:
    if isinstance(account.iam, Unknown):
        yield _unknown("IAM", "the number of roles and policies", account.iam)
        return
    stacks = {} if isinstance(account.stacks, Unknown) else account.stacks
    new_roles = max(0, demand.roles - sum(stack.roles for stack in stacks.values()))
    new_policies = max(0, demand.policies - sum(stack.policies for stack in stacks.values()))
    yield from _quota("IAM roles", new_roles, account.iam.roles, account.iam.roles_quota)
    yield from _quota("IAM policies", new_policies, account.iam.policies, account.iam.policies_quota)


def _quota(subject: str, new: int, used: int, quota: int) -> Iterator[Finding]:
    what = subject.removeprefix("IAM ")
    message = f"the deployment adds {new} {what} to {used}; the account may have {quota}"
    if used + new > quota:
        yield Finding("problem", subject, f"{message}. Ask for a higher quota (IAM), or remove unused {what}")
    elif used + new > quota * _NEARLY_FULL:
        yield Finding("warning", subject, f"{message}. Ask for a higher quota (IAM) before the mesh grows")
    else:
        yield Finding("ok", subject, message)


def _unknown(subject: str, what: str, unknown: Unknown) -> Finding:
    return Finding("warning", subject, f"cannot read {what} ({unknown.reason}); allow {unknown.action} to check it")
