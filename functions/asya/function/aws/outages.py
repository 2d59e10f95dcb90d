"""Tells an outage of the mesh's own services from an error of one message (`protocol §4.outage`)."""

from collections.abc import Iterator

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.nack import ServiceError

_SERVER_ERROR = 500
# Another call is at the same thing.
_CONFLICTS = frozenset(
    {
        "ConditionalRequestConflict",
        "PriorRequestNotComplete",
        "TransactionCanceledException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
# The service is there and has too much to do, or one entry of a batch met an error of its own.
_BUSY = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "KMS.ThrottlingException",
        "KmsThrottled",
        "LimitExceededException",
        "OverLimit",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
    }
)
# SQS refuses every further message for a queue with these codes, until an operator mends a permission, a key or a queue.
# The SDK gives some errors the codes of the older query protocol.
REFUSALS = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AWS.SimpleQueueService.NonExistentQueue",
        "InvalidAddress",
        "InvalidSecurity",
        "KMS.AccessDeniedException",
        "KMS.DisabledException",
        "KMS.InvalidKeyUsageException",
        "KMS.InvalidStateException",
        "KMS.NotFoundException",
        "KMS.OptInRequired",
        "KmsAccessDenied",
        "KmsDisabled",
        "KmsInvalidKeyUsage",
        "KmsInvalidState",
        "KmsNotFound",
        "KmsOptInRequired",
        "QueueDoesNotExist",
    }
)
# So do other services, and all of them refuse bad credentials.
_REFUSED = REFUSALS | frozenset(
    {
        "403",
        "AllAccessDisabled",
        "ExpiredToken",
        "ExpiredTokenException",
        "Forbidden",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "MissingAuthenticationToken",
        "NoSuchBucket",
        "OptInRequired",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "ResourceNotFoundException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


def is_outage(error: BaseException) -> bool:
    """Whether a service of the mesh keeps a message on its queue, and not the message itself.

    A request that a service refuses as wrong may depend on the message, so it counts as an error of the message.
    """
    return any(map(_is_of_a_service, _chain(error)))


def is_refusal(code: str) -> bool:
    """Whether an error with this code is a refusal: a permission, a key, a resource or capacity is missing."""
    return code in _BUSY | _REFUSED


def is_unavailable(error: BaseException) -> bool:
    """Whether the service of a call answers nobody: no answer, or an error of its own."""
    if isinstance(error, ClientError):
        return _status(error) >= _SERVER_ERROR
    return isinstance(error, BotoCoreError)


def cause_of(error: BaseException) -> str:
    """The code of an error, or its type, in a few words."""
    if isinstance(error, ClientError):
        return f"{_status(error)} {error.response['Error']['Code']}"
    return type(error).__name__


def _is_of_a_service(error: BaseException) -> bool:
    if isinstance(error, ClientError):
        return _status(error) >= _SERVER_ERROR or _keeps(error.response["Error"]["Code"])
    return isinstance(error, BotoCoreError) or (isinstance(error, ServiceError) and error.is_outage)


def _keeps(code: str) -> bool:
    return is_refusal(code) or code in _CONFLICTS


def _status(error: ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and those that it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__
