"""What all calls for operators check and answer alike."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from asya.gateway.access import AccessRules
from asya.gateway.http.router import Request, required_identity
from asya.protocol.api_errors import ApiError


def check_operator(access: AccessRules, request: Request) -> None:
    """Check that an operator calls.

    Raises:
        ApiError: 403 for other callers.
    """
    if not access.caller(required_identity(request)).is_operator:
        raise ApiError(403, "forbidden", "only operators may make this call")


@contextmanager
def available(what: str) -> Iterator[None]:
    """Turn an error of AWS into an answer.

    Args:
        what: what is read, for the message.
    """
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        if isinstance(error, ClientError) and error.response["Error"]["Code"] == "InvalidParameterException":
            # The page token of CloudWatch Logs in the cursor expires after a day.
            raise ApiError(
                400, "invalid_cursor", "the cursor has expired; start again without a cursor", "cursor"
            ) from None
        raise ApiError(503, "unavailable", f"{what} are unavailable; try again") from error
