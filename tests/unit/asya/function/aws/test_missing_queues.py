"""The error codes of SQS for a queue that does not exist."""

import pytest
from botocore.exceptions import ClientError

from asya.function.aws.missing_queues import is_missing_queue


@pytest.mark.parametrize(
    ("code", "is_missing"),
    [
        ("AWS.SimpleQueueService.NonExistentQueue", True),
        ("QueueDoesNotExist", True),
        ("AccessDenied", False),
        ("AWS.SimpleQueueService.QueueDeletedRecently", False),
    ],
)
def test_a_missing_queue_has_one_of_two_codes(code: str, is_missing: bool) -> None:
    assert is_missing_queue(ClientError({"Error": {"Code": code, "Message": ""}}, "GetQueueUrl")) == is_missing
