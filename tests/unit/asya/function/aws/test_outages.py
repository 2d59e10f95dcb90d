"""protocol §4: outages of the mesh's own services, told from errors of one message."""

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from asya.function.aws.outages import is_outage
from asya.function.aws.outbox import send_error
from asya.function.nack import BlockedError, OutdatedError
from asya.tasks.aws.task_store import TaskStoreError, table_errors


def error(code: str, status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "PutItem")  # type: ignore[arg-type]


def raised_from(cause: Exception) -> Exception:
    """The error of the tasks table for an error of DynamoDB."""

    def read() -> None:
        raise cause

    with pytest.raises(TaskStoreError) as raised, table_errors("read task a"):
        read()
    return raised.value


OUTAGES = (
    error("SlowDown", 503),
    error("InternalServerError", 500),
    error("Anything", 502),
    error("ThrottlingException"),
    error("ProvisionedThroughputExceededException"),
    error("AccessDenied", 403),
    error("KMS.DisabledException"),
    error("ExpiredToken"),
    error("ResourceNotFoundException"),
    EndpointConnectionError(endpoint_url="https://s3"),
    ReadTimeoutError(endpoint_url="https://s3"),
    BlockedError("no secret"),
    OutdatedError("no such actor"),
    raised_from(error("InternalServerError", 500)),
    send_error("post", "https://sqs/asya-shop-post", error("AccessDenied", 403)),
    send_error("post", "https://sqs/asya-shop-post", error("ServiceUnavailable", 503)),
)
OF_THE_MESSAGE = (
    ValueError("unforeseen"),
    MemoryError(),
    error("ValidationException"),
    error("KeyTooLongError"),
    error("InvalidMessageContents"),
    send_error("post", "https://sqs/asya-shop-post", error("InvalidMessageContents")),
)


@pytest.mark.rule("4.outage")
@pytest.mark.parametrize("problem", OUTAGES, ids=repr)
def test_4_an_error_of_a_service_is_an_outage(problem: Exception) -> None:
    assert is_outage(problem)


@pytest.mark.rule("4.outage")
@pytest.mark.parametrize("problem", OF_THE_MESSAGE, ids=repr)
def test_4_an_error_that_may_depend_on_the_message_is_none(problem: Exception) -> None:
    assert not is_outage(problem)
