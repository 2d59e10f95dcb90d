"""Permissions for the customer managed key of a mesh: those of its roles, and its policy for AWS services."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from asya.protocol import names
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant

_DECRYPT, _GENERATE = "kms:Decrypt", "kms:GenerateDataKey"
# What S3 and SQS ask of the key for an action. DynamoDB only decrypts the key of the table, also to write.
_USES: Mapping[str, tuple[str, ...]] = {
    "s3:GetObject": (_DECRYPT,),
    # A multipart upload also decrypts. The permission reads nothing: that takes `s3:GetObject`.
    "s3:PutObject": (_DECRYPT, _GENERATE),
    "sqs:ReceiveMessage": (_DECRYPT,),
    "sqs:SendMessage": (_DECRYPT, _GENERATE),
}


def use_key(key: str | None, grants: Iterable[Grant], addresses: Addresses) -> list[Grant]:
    """Return the permissions to use the key for what the grants allow; none without a key.

    Args:
        key: the ARN of the key.
        grants: the other permissions of the role. Permissions for resources outside of the mesh count for nothing.
    """
    if key is None:
        return []
    services: dict[str, set[str]] = defaultdict(set)
    for grant in grants:
        if grant.effect == "Allow" and any(_is_encrypted(resource, addresses) for resource in grant.resources):
            for service, use in _uses(grant):
                services[use].add(f"{service}.{addresses.region}.{addresses.url_suffix}")
    return [
        Grant((use,), (key,), conditions={"StringEquals": {"kms:ViaService": sorted(services[use])}})
        for use in sorted(services)
    ]


def use_keys_of_buckets(grants: Iterable[Grant], addresses: Addresses) -> list[Grant]:
    """Return the permissions for the keys of the buckets that the mesh does not own, for the objects that the grants allow.

    The owner of a bucket chooses its key, which synthesis does not know. The bucket of `cdk bootstrap`, which has the code of
    jobs, is always encrypted by KMS. A session policy must name these permissions even for the key `aws/s3`, which lets every
    principal of its account use it. S3 names the object, or with a bucket key the bucket, in the encryption context. What a
    role may do with an object stays with its `s3:` permissions.
    """
    own = addresses.objects_arn(addresses.bucket, "")
    buckets: dict[str, set[str]] = defaultdict(set)
    for grant in grants:
        if grant.effect != "Allow":
            continue
        uses = {use for action in grant.actions if action.startswith("s3:") for use in _USES.get(action, ())}
        for resource in grant.resources:
            if not resource.startswith(own):
                for use in uses:
                    buckets[use].add(resource.partition("/")[0])
    return [
        Grant(
            (use,),
            (f"arn:{addresses.partition}:kms:*:*:key/*",),
            reason="Only the owner of a bucket knows its key. The conditions name the buckets.",
            conditions={
                "StringLike": {
                    "kms:EncryptionContext:aws:s3:arn": [
                        arn for each in sorted(buckets[use]) for arn in (each, f"{each}/*")
                    ],
                    "kms:ViaService": f"s3.*.{addresses.url_suffix}",
                }
            },
        )
        for use in sorted(buckets)
    ]


def decrypt_variables(key: str | None, addresses: Addresses, function: str) -> list[Grant]:
    """Allow Lambda to decrypt the environment variables of a function with the function's role; nothing without a key."""
    if key is None:
        return []
    # Lambda names the function in the encryption context. It is not known to set `kms:ViaService` when a function starts.
    context = {"kms:EncryptionContext:aws:lambda:FunctionArn": addresses.function_arn(function)}
    return [Grant((_DECRYPT,), (key,), conditions={"StringEquals": context})]


def _uses(grant: Grant) -> Iterator[tuple[str, str]]:
    for action in grant.actions:
        service = action.partition(":")[0]
        for use in (_DECRYPT,) if service == "dynamodb" else _USES.get(action, ()):
            yield service, use


def _is_encrypted(resource: str, addresses: Addresses) -> bool:
    """Return whether the key encrypts a resource, or may do so: the owner of an existing bucket chooses its key."""
    buckets = (addresses.bucket, addresses.data.bucket, addresses.results.bucket)
    return resource.startswith(
        (
            addresses.arn("sqs", names.queue_name(addresses.namespace, "")),
            addresses.arn("dynamodb", f"table/{names.table_name(addresses.namespace, '')}"),
            *(addresses.objects_arn(bucket, "") for bucket in buckets),
        )
    )


def service_statements(
    *,
    namespace: str,
    partition: str,
    region: str,
    account: str,
    suffix: str,
    events: bool,
    topics: bool = False,
    redrives: bool = False,
    objects: bool = False,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each service that uses the key by itself, with its statement.

    Args:
        namespace: the namespace with its stage.
        suffix: the domain of service names, `amazonaws.com` outside of China.
        events: whether a rule of EventBridge sends to a queue or a topic.
        topics: whether one sends to a topic.
        redrives: whether SNS sends to a queue what it could not deliver.
        objects: whether the mesh's bucket notifies a queue.
    """
    groups = f"arn:{partition}:logs:{region}:{account}:log-group:/aws/*/asya-{namespace}-*"
    logs = f"logs.{region}.{suffix}"
    actions = ("Encrypt", "Decrypt", "ReEncrypt*", "GenerateDataKey*", "Describe*")
    yield logs, _statement(logs, actions, {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}})
    if events:
        rule = f"arn:{partition}:events:{region}:{account}:rule"
        rules = [f"{rule}/asya-{namespace}-*", f"{rule}/*/asya-{namespace}-*"]
        # SNS does not support conditions on the source for events to an encrypted topic. The topic names its rules.
        condition: dict[str, Any] = {} if topics else {"ArnLike": {"aws:SourceArn": rules}}
        yield "events.amazonaws.com", _statement("events.amazonaws.com", ("Decrypt", "GenerateDataKey"), condition)
    if redrives:
        # The form that AWS documents has no condition. The queue names the topics.
        yield "sns.amazonaws.com", _statement("sns.amazonaws.com", ("Decrypt", "GenerateDataKey"), {})
    if objects:
        buckets = f"arn:{partition}:s3:::asya-{namespace}-*"
        condition = {"ArnLike": {"aws:SourceArn": buckets}, "StringEquals": {"aws:SourceAccount": account}}
        yield "s3.amazonaws.com", _statement("s3.amazonaws.com", ("Decrypt", "GenerateDataKey"), condition)


def account_statement(*, partition: str, account: str) -> dict[str, Any]:
    """Return the statement that lets the IAM policies of the account count. A new key has it."""
    root = {"AWS": f"arn:{partition}:iam::{account}:root"}
    return {"Effect": "Allow", "Principal": root, "Action": "kms:*", "Resource": "*"}


SOURCE_KEYS = ("aws:sourceaccount", "aws:sourcearn", "aws:sourceorgid")
"""The condition keys, in lower case, that SNS does not support for events of EventBridge to encrypted topics."""


def allowed_principals(policy: Mapping[str, Any], *, without: Collection[str] = ()) -> frozenset[str]:
    """Return the services, accounts and roles that some statement of a key's policy allows something.

    Actions and conditions of a statement are not compared: there are many ways to write what is needed.

    Args:
        without: condition keys in lower case; a statement with one of them does not count.
    """
    statements = policy.get("Statement", [])
    allowed: set[str] = set()
    for statement in statements if isinstance(statements, list) else [statements]:
        keys = {key.lower() for operands in statement.get("Condition", {}).values() for key in operands}
        if statement.get("Effect") != "Allow" or keys & set(without):
            continue
        principal = statement.get("Principal", {})
        values = principal.values() if isinstance(principal, dict) else [principal]
        for value in values:
            allowed.update([value] if isinstance(value, str) else value)
    return frozenset(allowed)


def _statement(service: str, actions: tuple[str, ...], condition: dict[str, Any]) -> dict[str, Any]:
    return {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": [f"kms:{action}" for action in actions],
        "Resource": "*",
        **({"Condition": condition} if condition else {}),
    }
