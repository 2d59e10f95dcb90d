"""protocol §4: a service that does not answer is asked by one call of a process, not by each message."""

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.stub import Stubber

from asya.function.aws.outage_notes import OutageNotes, words_about
from asya.function.aws.outages import ASK_AGAIN_SECONDS, Outage, ServiceHealth, ServiceOffError, observe
from asya.testing.dynamo.tables import MemoryDynamo, Table


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.rule("4.outage.probe")
def test_4_one_call_asks_again_and_the_others_fail_at_once() -> None:
    clock = Clock()
    health = ServiceHealth(clock)
    health.before("S3")
    health.failed("S3", "503")
    with pytest.raises(ServiceOffError, match=r"S3 does not answer \(503\)"):
        health.before("S3")
    health.before("SQS")
    clock.seconds += ASK_AGAIN_SECONDS
    health.before("S3")  # this call asks
    with pytest.raises(ServiceOffError):
        health.before("S3")
    health.answered("S3")
    health.before("S3")
    assert health.off == ()
    assert health.known == (Outage("S3", 1000.0, 1000.0, "503"),)


def nowhere(service: str) -> Any:
    """A client whose service does not answer."""
    return boto3.client(
        service,
        endpoint_url="http://127.0.0.1:1",
        region_name="eu-west-1",
        aws_access_key_id="a",
        aws_secret_access_key="s",
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=1),
    )


@pytest.mark.rule("4.outage.probe")
@pytest.mark.parametrize(
    ("service", "call"),
    [
        ("s3", lambda client: client.get_object(Bucket="b", Key="k")),
        ("dynamodb", lambda client: client.get_item(TableName="t", Key={"pk": {"S": "a"}})),
        ("sqs", lambda client: client.send_message(QueueUrl="http://127.0.0.1:1/1/q", MessageBody="m")),
    ],
)
def test_4_the_clients_of_the_sdk_ask_and_tell_the_health(service: str, call: Any) -> None:
    client, health = nowhere(service), ServiceHealth(Clock())
    observe(client, service, health)
    with pytest.raises(EndpointConnectionError):
        call(client)
    with pytest.raises(ServiceOffError):
        call(client)
    assert [outage.cause for outage in health.off] == ["EndpointConnectionError"]


@pytest.mark.rule("4.outage.probe")
def test_4_only_the_sends_of_sqs_are_work_on_a_message() -> None:
    client, health = nowhere("sqs"), ServiceHealth(Clock())
    observe(client, "SQS", health, "SendMessage", "SendMessageBatch")
    health.failed("SQS", "503")
    with pytest.raises(EndpointConnectionError):
        client.delete_message(QueueUrl="http://127.0.0.1:1/1/q", ReceiptHandle="r")
    with pytest.raises(ServiceOffError):
        client.send_message_batch(QueueUrl="http://127.0.0.1:1/1/q", Entries=[])


def noted(**members: dict[str, str]) -> dict[str, object]:
    good = {"since": {"N": "1000"}, "until": {"N": "2000"}, "cause": {"S": "503"}}
    return {"M": good | members}


@pytest.mark.rule("4.outage.named")
@pytest.mark.parametrize(
    "note",
    [
        *({"S": "x"}, {"N": "1"}, {"L": []}, {"M": {}}),
        *(noted(until={"N": number}) for number in ("1e120", "9e15", "-1e60")),
        *(noted(since={"N": "-1e20"}), noted(since={"S": "1000"}), noted(cause={"N": "503"})),
    ],
    ids=str,
)
def test_4_a_note_that_is_none_names_nothing_and_gives_way(note: dict[str, object]) -> None:
    """Each role of the mesh may write the item, also that of code of users, and the gateway reads it for each task."""
    dynamodb = MemoryDynamo({"asya-shop-sink": Table()})
    item = {"pk": {"S": "OUTAGE"}, "sk": {"S": "outage"}, "DynamoDB": note, "S3": noted()}
    dynamodb.put_item(TableName="asya-shop-sink", Item=item)
    notes = OutageNotes(dynamodb, "asya-shop-sink")  # type: ignore[arg-type]
    assert [outage.service for outage in notes.read()] == ["S3"]
    notes.add([Outage("DynamoDB", 1000.0, 1010.0, "503")])
    assert [outage.until for outage in notes.read()] == [1010.0, 2000.0]


@pytest.mark.rule("4.outage.named")
def test_4_the_notes_of_several_processes_are_one_outage() -> None:
    notes = OutageNotes(MemoryDynamo({"asya-shop-sink": Table()}), "asya-shop-sink")  # type: ignore[arg-type]
    notes.add([Outage("S3", 1000.0, 1010.0, "503 SlowDown")])
    notes.add([Outage("S3", 1020.0, 1600.0, "503 Slow\nDown <b>"), Outage("SQS", 5000.0, 5001.0, "500")])
    notes.add([Outage("SQS", 9000.0, 9001.0, "500")])
    s3, sqs = notes.read()
    assert s3 == Outage("S3", 1000.0, 1600.0, "503 SlowDown b")
    assert sqs == Outage("SQS", 9000.0, 9001.0, "500")
    since, now = datetime.fromtimestamp(1500, UTC), datetime.fromtimestamp(2000, UTC)
    assert words_about([s3, sqs], since, now) == (
        ". Meanwhile S3 did not answer from 1970-01-01T00:16:40.000000Z to 1970-01-01T00:26:40.000000Z (503 SlowDown b)"
    )
    assert words_about([s3, sqs], datetime.fromtimestamp(1700, UTC), now) == ""


def refuse(client: Any, code: str, status: int) -> None:
    """Let a client of S3 get an error."""
    with Stubber(client) as stubber:
        stubber.add_client_error("get_object", code, http_status_code=status)
        with pytest.raises(ClientError, match=code):
            client.get_object(Bucket="b", Key="k")


@pytest.mark.rule("4.outage.named")
@pytest.mark.parametrize("code", ["AccessDenied", "NoSuchBucket", "SlowDown"])
def test_4_a_refusal_is_an_outage_if_it_keeps_a_message(code: str) -> None:
    health, client = ServiceHealth(Clock()), nowhere("s3")
    observe(client, "S3", health)
    for is_kept in (False, True):
        refuse(client, code, 403)
        assert health.off == ()  # other calls go on
        health.end_batch(is_kept=is_kept)
        assert [outage.cause for outage in health.take_unnoted()] == [f"403 {code}"] * is_kept
    assert words_about(health.known, datetime.fromtimestamp(900, UTC), datetime.fromtimestamp(2000, UTC)) == (
        f". Meanwhile S3 refused calls from 1970-01-01T00:16:40.000000Z to 1970-01-01T00:16:40.000000Z (403 {code})"
    )


@pytest.mark.rule("4.outage.named")
def test_4_an_answer_that_a_caller_expects_is_no_outage() -> None:
    health, client = ServiceHealth(Clock()), nowhere("s3")
    observe(client, "S3", health)
    refuse(client, "NoSuchKey", 404)
    health.end_batch(is_kept=True)
    assert health.known == ()
