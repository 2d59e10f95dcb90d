"""Tells outages of AWS services from errors of one message, and remembers them (`protocol §4.outage`)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import field
from msgspec.structs import replace

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


# How long the process leaves a service alone that did not answer. Each call would take the time of the batch: a service that
# does not answer at all costs the timeouts of the SDK, and the function's own timeout would look like a crash of the handler.
ASK_AGAIN_SECONDS = 5.0


class ServiceOffError(BotoCoreError):
    """The service did not answer a moment ago, so this call was not made."""

    fmt = "{service} does not answer ({cause}); this process asks again in some seconds"


class Outage(msgspec.Struct, frozen=True):
    """A time in which a service did not answer, or refused calls.

    Attributes:
        since, until: the first and the last failed call, in seconds since 1970.
        cause: the code or the type of its error.
    """

    service: str
    since: float
    until: float
    cause: str


class ServiceHealth(msgspec.Struct):
    """Whether the services answer this process.

    Attributes:
        clock: seconds since 1970.
    """

    clock: Callable[[], float]
    _off: dict[str, Outage] = field(default_factory=dict)
    _ask_at: dict[str, float] = field(default_factory=dict)
    _unnoted: dict[str, Outage] = field(default_factory=dict)
    _last: dict[str, Outage] = field(default_factory=dict)
    _refused: dict[str, Outage] = field(default_factory=dict)

    def before(self, service: str) -> None:
        """Call this before each call of a service.

        Raises:
            ServiceOffError: it did not answer a moment ago, and another call has not asked it again yet.
        """
        outage = self._off.get(service)
        if outage is None:
            return
        now = self.clock()
        if now < self._ask_at[service]:
            raise ServiceOffError(service=service, cause=outage.cause)
        # The other threads wait for the answer to this call.
        self._ask_at[service] = now + ASK_AGAIN_SECONDS

    def answered(self, service: str) -> None:
        """Note that a service has answered, whatever the answer was."""
        if service in self._off:
            self._off.pop(service, None)

    def failed(self, service: str, cause: str) -> None:
        """Note that a service has not answered."""
        now = self.clock()
        known = self._off.get(service)
        outage = Outage(service, known.since if known is not None else now, now, cause)
        self._off[service] = self._unnoted[service] = self._last[service] = outage
        self._ask_at[service] = now + ASK_AGAIN_SECONDS

    def refused(self, service: str, cause: str) -> None:
        """Note that a service has refused a call. It answers, so the process goes on asking."""
        now = self.clock()
        self._refused[service] = Outage(service, now, now, cause)

    def end_batch(self, *, is_kept: bool) -> None:
        """Take the refusals of a batch for outages if one has kept a message; a caller may expect any other."""
        if is_kept:
            self._unnoted |= self._refused
            self._last |= self._refused
        self._refused = {}

    @property
    def off(self) -> tuple[Outage, ...]:
        """The services that did not answer the last call, and are not to be asked yet."""
        now = self.clock()
        return tuple(outage for service, outage in self._off.items() if now < self._ask_at[service])

    @property
    def known(self) -> tuple[Outage, ...]:
        """The last outage of each service that this process has seen. One that has not ended lasts until now."""
        now = self.clock()
        return tuple(
            replace(outage, until=now) if service in self._off else outage for service, outage in self._last.items()
        )

    def take_unnoted(self) -> list[Outage]:
        """The outages since the last call of this method, for the notes of the mesh."""
        unnoted, self._unnoted = list(self._unnoted.values()), {}
        return unnoted

    def keep_unnoted(self, outages: list[Outage]) -> None:
        """Keep outages that could not be noted."""
        for outage in outages:
            self._unnoted.setdefault(outage.service, outage)


def observe(client: Any, service: str, health: ServiceHealth, *actions: str) -> None:
    """Let the calls of a client ask for, and tell, the health of its service.

    Args:
        client: the client of boto3.
        actions: the actions; none for all of the client's.
    """

    def before(**_: Any) -> None:
        health.before(service)

    def after(http_response: Any, parsed: Mapping[str, Any], **_: Any) -> None:
        if http_response.status_code >= _SERVER_ERROR:
            health.failed(service, str(http_response.status_code))
            return
        health.answered(service)
        code = parsed.get("Error", {}).get("Code", "")
        if code and is_refusal(code):
            health.refused(service, f"{http_response.status_code} {code}")

    def failed(exception: Exception, **_: Any) -> None:
        if is_unavailable(exception) and not isinstance(exception, ServiceOffError):
            health.failed(service, cause_of(exception))

    name = client.meta.service_model.service_id.hyphenize()
    for action in actions or ("",):
        suffix = f"{name}.{action}" if action else name
        client.meta.events.register(f"before-call.{suffix}", before)
        client.meta.events.register(f"after-call.{suffix}", after)
        client.meta.events.register(f"after-call-error.{suffix}", failed)
