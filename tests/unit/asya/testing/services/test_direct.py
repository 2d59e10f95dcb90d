"""SQS and S3 of the test kit on the process of a test, and the faults that it plans."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from asya.testing.planned_faults import Death
from asya.testing.services.clients import Bucket
from asya.testing.services.direct import MemoryS3, MemorySqs
from asya.testing.services.faults import Fault
from asya.testing.services.process import ProcessCrashed
from asya.testing.services.queues import Refusal

URL = "https://sqs/1/asya-shop-post"
QUEUE = "asya-shop-post"


def send(sqs: MemorySqs, *bodies: str, **more: Any) -> dict[str, Any]:
    entries = [{"Id": str(number), "MessageBody": body, **more} for number, body in enumerate(bodies)]
    return sqs.send_message_batch(QueueUrl=URL, Entries=entries)


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    return error.value.response["Error"]["Code"]


def test_a_batch_keeps_delay_group_and_attributes() -> None:
    sqs, attributes = MemorySqs(), {"a": {"DataType": "String", "StringValue": "b"}}
    send(sqs, "x", DelaySeconds=900, MessageGroupId="acme", MessageAttributes=attributes)
    (sent,) = sqs.sent[QUEUE]
    assert (sent.body, sent.delay, sent.group, sent.attributes) == ("x", 900, "acme", attributes)


@pytest.mark.parametrize("more", [{"MessageGroupId": "a b"}, {"MessageGroupId": ""}, {"DelaySeconds": 901}])
def test_sqs_refuses_a_group_and_a_delay_that_are_none(more: dict[str, Any]) -> None:
    sqs = MemorySqs()
    assert send(sqs, "x", **more)["Failed"][0]["Code"] == "InvalidParameterValue"
    assert not sqs.sent[QUEUE]


def test_a_batch_has_a_mebibyte_at_most() -> None:
    with pytest.raises(ClientError) as error:
        send(MemorySqs(), "x" * 600_000, "x" * 600_000)
    assert code_of(error) == "AWS.SimpleQueueService.BatchRequestTooLong"


@pytest.mark.parametrize(
    ("refusal", "answer"),
    [
        (Refusal("entry", "X", sender_fault=True), {"Successful": ["1"], "Failed": ["0"]}),
        (Refusal("silence"), {"Successful": ["1"]}),
    ],
)
def test_a_planned_refusal_is_of_one_message(refusal: Refusal, answer: dict[str, list[str]]) -> None:
    sqs = MemorySqs(refuse={QUEUE: [refusal]})
    assert {kind: [each["Id"] for each in found] for kind, found in send(sqs, "a", "b").items()} == answer
    assert [sent.body for sent in sqs.sent[QUEUE]] == ["b"]


def test_a_planned_refusal_of_the_call_lasts() -> None:
    sqs = MemorySqs(refuse_always={QUEUE: Refusal("call", "AccessDenied")})
    for call in (lambda: send(sqs, "a"), lambda: sqs.send_message(QueueUrl=URL, MessageBody="a")):
        with pytest.raises(ClientError) as error:
            call()
        assert code_of(error) == "AccessDenied"


def test_a_bucket_with_a_name_refuses_calls_for_another_one() -> None:
    s3 = MemoryS3(bucket=Bucket(name="mine"))
    s3.put_object(Bucket="mine", Key="a", Body=b"1")
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket="other", Key="a")
    assert code_of(error) == "NoSuchBucket"


@pytest.mark.parametrize(
    ("fault", "error", "is_done"),
    [
        (Fault.REFUSED, ClientError, False),
        (Fault.ANSWER_LOST, ReadTimeoutError, True),
        (Fault.CRASH_BEFORE, ProcessCrashed, False),
        (Fault.CRASH_AFTER, ProcessCrashed, True),
    ],
)
def test_a_plan_decides_the_fault_of_a_call(fault: Fault, error: type[BaseException], is_done: bool) -> None:
    s3 = MemoryS3()
    s3.process.faults.plans.append(
        lambda service, what: fault if (service, what) == ("s3", "PutObject a") else Fault.NONE
    )
    s3.put_object(Bucket="b", Key="other", Body=b"1")
    with pytest.raises(error):
        s3.put_object(Bucket="b", Key="a", Body=b"1")
    assert ("a" in s3.objects) is is_done


@pytest.mark.parametrize("is_after", [False, True])
def test_a_death_comes_once_at_its_write(is_after: bool) -> None:
    s3, death = MemoryS3(), Death(2, is_after)
    s3.process.faults.plans.append(death.plan)
    s3.put_object(Bucket="b", Key="1", Body=b"")
    s3.get_object(Bucket="b", Key="1")
    with pytest.raises(ProcessCrashed):
        s3.put_object(Bucket="b", Key="2", Body=b"")
    s3.put_object(Bucket="b", Key="3", Body=b"")
    assert s3.keys() == (["1", "2", "3"] if is_after else ["1", "3"])
    assert death.effects == ["PutObject"] * 3
