"""What all calls for operators answer alike."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from asya.protocol.api_errors import ApiError


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
