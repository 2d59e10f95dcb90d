"""Permissions to use the customer managed key of a mesh, derived from the other permissions of a role.

S3, SQS and DynamoDB use the key with the permissions of their caller. `kms:ViaService` limits a permission to calls that such a
service makes for the role, so no code can decrypt anything by itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

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
