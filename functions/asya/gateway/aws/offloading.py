"""Stores the payload of a message that is too large, with the errors of a call (`protocol §4`)."""

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws.claim_check import ClaimCheck
from asya.function.claim_check import EnvelopeTooLargeError
from asya.function.hop import Delivery
from asya.protocol.api_errors import ApiError


def offloaded(claim_check: ClaimCheck, delivery: Delivery) -> Delivery:
    """The delivery in a form that SQS takes; its payload is stored if it is too large for a message.

    Raises:
        ApiError: 413 if the envelope is too large even without its payload, 503 if the payload could not be stored.
    """
    try:
        sendable = claim_check.offload(delivery)
    except EnvelopeTooLargeError as error:
        raise ApiError(413, "too_large", str(error)) from error
    except (ClientError, BotoCoreError) as error:
        raise ApiError(503, "unavailable", "its payload could not be stored; try again") from error
    if sendable.actor != delivery.actor:
        raise ApiError(413, "too_large", "the envelope is too large for a message, even without its payload")
    return sendable
